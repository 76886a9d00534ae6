use alloc::vec;

use proptest::prelude::*;

use super::*;

/// Returns the octets that these digits state, two each; spaces are ignored.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn decoded(encoded: &[u8]) -> Result<Vec<u8>, HuffmanFault> {
    let mut out = BytesMut::new();
    decode(encoded, usize::MAX >> 1, &mut out).map(|()| out.to_vec())
}

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(text, &mut out);
    out
}

/// The decoder that RFC 7541 describes: bit by bit, against every code.
fn reference(encoded: &[u8]) -> Result<Vec<u8>, QpackRule> {
    let (mut out, mut code, mut length) = (Vec::new(), 0_u32, 0_u8);
    for bit in encoded.iter().flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1)) {
        (code, length) = (code << 1 | u32::from(bit), length + 1);
        let symbol = (0..257).find(|symbol| LENGTHS[*symbol] == length && CODES[*symbol] == code);
        match symbol {
            Some(256) => return Err(QpackRule::HuffmanEndOfString),
            Some(symbol) => {
                out.push(symbol as u8);
                (code, length) = (0, 0);
            }
            None => {}
        }
    }
    if length < 8 && code == (1 << length) - 1 { Ok(out) } else { Err(QpackRule::HuffmanPadding) }
}

//= rfc9204 §4.1.2
//# strings in the Huffman code, where it is shorter
#[test]
fn strings_of_rfc_7541_appendix_c_are_exact() {
    for (text, digits) in [
        // C.4.1 to C.4.3
        ("www.example.com", "f1e3 c2e5 f23a 6ba0 ab90 f4ff"),
        ("no-cache", "a8eb 1064 9cbf"),
        ("custom-key", "25a8 49e9 5ba9 7d7f"),
        ("custom-value", "25a8 49e9 5bb8 e8b4 bf"),
        // C.6.1 to C.6.3
        ("302", "6402"),
        ("private", "aec3 771a 4b"),
        ("Mon, 21 Oct 2013 20:13:21 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"),
        ("https://www.example.com", "9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3"),
        ("307", "640e ff"),
        ("Mon, 21 Oct 2013 20:13:22 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff"),
        ("gzip", "9bd9 ab"),
        (
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            "94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 \
             03ed 4ee5 b106 3d50 07",
        ),
    ] {
        assert_eq!(encoded(text.as_bytes()), hex(digits), "{text}");
        assert_eq!(encoded_length(text.as_bytes()), hex(digits).len(), "{text}");
        assert_eq!(decoded(&hex(digits)).as_deref(), Ok(text.as_bytes()));
    }
}

#[test]
fn the_code_is_that_of_rfc_7541_appendix_b() {
    // FNV-1a over each code in four octets and its length, computed from the list of the RFC.
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for symbol in 0..257 {
        for octet in CODES[symbol].to_be_bytes().into_iter().chain([LENGTHS[symbol]]) {
            sum = (sum ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(sum, 0x4383_bfeb_832e_c019);
    assert_eq!((CODES[usize::from(END)], LENGTHS[usize::from(END)]), (0x3fff_ffff, 30));
}

#[test]
fn each_octet_is_decoded_alone_and_after_another() {
    for octet in 0..=255 {
        for text in [vec![octet], vec![b'a', octet], vec![octet, b'a', octet]] {
            assert_eq!(decoded(&encoded(&text)), Ok(text));
        }
    }
    assert_eq!(decoded(&[]), Ok(vec![]));
}

//= rfc9204 §4.1.2
//# padding of more than seven bits, or not of ones, fails (RFC 7541 §5.2)
#[test]
fn padding_is_at_most_seven_ones() {
    let padding = Err(HuffmanFault::Invalid(QpackRule::HuffmanPadding));
    // "0" is 00000.
    assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
    for wrong in [0b0000_0000, 0b0000_0110, 0b0000_0011, 0b0000_0101] {
        assert_eq!(decoded(&[wrong]), padding, "{wrong:08b}");
    }
    assert_eq!(decoded(&[0b0000_0111, 0xff]), padding, "more than seven bits");
    assert_eq!(decoded(&[0xff]), padding);
    assert_eq!(decoded(&[0xff, 0xff, 0xff]), padding);
    // "&" is 11111000: no padding at all.
    assert_eq!(decoded(&[0b1111_1000]), Ok(b"&".to_vec()));
}

//= rfc9204 §4.1.2
//# so does the code for the end
#[test]
fn the_code_for_the_end_is_refused() {
    let end = Err(HuffmanFault::Invalid(QpackRule::HuffmanEndOfString));
    assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), end);
    assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc]), end);
    assert_eq!(decoded(&[0b0000_0111, 0xff, 0xff, 0xff, 0xff]), end);
}

#[test]
fn a_string_longer_than_the_limit_is_refused() {
    let encoded = encoded(b"www.example.com");
    let limited = |limit| {
        let mut out = BytesMut::from(&b"before"[..]);
        decode(&encoded, limit, &mut out).map(|()| out)
    };
    assert_eq!(limited(15).as_deref(), Ok(&b"beforewww.example.com"[..]));
    for limit in 0..15 {
        assert_eq!(limited(limit), Err(HuffmanFault::TooLong), "{limit}");
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let encoded = encoded(&text);
        prop_assert_eq!(encoded.len(), encoded_length(&text));
        prop_assert!(fewest_decoded(encoded.len() as u64) <= text.len() as u64);
        prop_assert!(most_decoded(encoded.len()) >= text.len());
        prop_assert_eq!(decoded(&encoded), Ok(text));
    }

    #[test]
    fn any_octets_are_decoded_as_bit_by_bit(
        encoded in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            // Longer codes, and the end.
            proptest::collection::vec(0xf8_u8.., 0..12),
        ],
    ) {
        prop_assert_eq!(decoded(&encoded), reference(&encoded).map_err(HuffmanFault::Invalid));
    }
}
