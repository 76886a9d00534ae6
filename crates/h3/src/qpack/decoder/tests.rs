use alloc::string::String;
use alloc::vec;

use super::*;

/// Returns the octets that these digits state, two each; spaces are ignored.
fn hex(digits: &str) -> Bytes {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn with_capacity(max_capacity: u64) -> Decoder {
    Decoder::new(DecoderSetup { max_capacity, ..DecoderSetup::default() })
}

/// Returns the lines as text.
fn lines(decoded: Result<Decoded, QpackFault>) -> Vec<(String, String)> {
    let Ok(Decoded::Ready(fields)) = decoded else { panic!("{decoded:?}") };
    texts(&fields)
}

fn texts(fields: &[FieldLine]) -> Vec<(String, String)> {
    let text = |octets: &Bytes| String::from_utf8(octets.to_vec()).expect("text");
    fields.iter().map(|field| (text(&field.name), text(&field.value))).collect()
}

fn line(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

/// Returns a decoder after the exchanges of RFC 9204 Appendix B.1 to B.3.
fn after_appendix_b3() -> Decoder {
    let mut decoder = with_capacity(220);
    let index = decoder.decode(0, hex("0000 510b 2f69 6e64 6578 2e68 746d 6c"));
    assert_eq!(lines(index), [line(":path", "/index.html")]);
    assert_eq!(decoder.take_instructions(), "");

    let inserts =
        "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468";
    decoder.handle_encoder_stream(&hex(inserts)).expect("valid instructions");
    assert_eq!(decoder.table_size(), 106);
    let sample = decoder.decode(4, hex("0381 10 11"));
    let expected = [line(":authority", "www.example.com"), line(":path", "/sample/path")];
    assert_eq!(lines(sample), expected);
    assert_eq!(decoder.take_instructions(), hex("84"));

    let insert = "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565";
    decoder.handle_encoder_stream(&hex(insert)).expect("a valid instruction");
    assert_eq!((decoder.table_size(), decoder.take_instructions()), (160, hex("01")));
    decoder
}

//= rfc9204 §2.2.2.3, Appendix B
//# one Insert Count Increment for what arrived together and was not acknowledged otherwise
#[test]
fn the_exchanges_of_rfc_9204_appendix_b_are_exact() {
    let mut decoder = after_appendix_b3();
    // B.4: the section arrives before the entry that it refers to, and its stream is cancelled.
    let section = hex("0500 80 c1 81");
    assert_eq!(decoder.decode(8, section.clone()), Ok(Decoded::Blocked));
    decoder.cancel(8);
    assert_eq!((decoder.take_instructions(), decoder.blocked_streams()), (hex("48"), 0));
    decoder.handle_encoder_stream(&hex("02")).expect("a valid instruction");
    assert_eq!((decoder.table_size(), decoder.unblocked()), (217, None));
    // B.5
    decoder.handle_encoder_stream(&hex("810d 6375 7374 6f6d 2d76 616c 7565 32")).expect("valid");
    assert_eq!(decoder.table_size(), 215);
    let expected = [
        line(":authority", "www.example.com"),
        line(":path", "/"),
        line("custom-key", "custom-value"),
    ];
    assert_eq!(lines(decoder.decode(12, section)), expected);
    // The newest entry, and the oldest that is left.
    let ends = [line("custom-key", "custom-value2"), line(":path", "/sample/path")];
    assert_eq!(lines(decoder.decode(16, hex("0600 80 83"))), ends);
}

//= rfc9204 §2.2.1
//# a stream is blocked until its entries have arrived
#[test]
fn a_blocked_section_is_returned_when_its_entries_have_arrived() {
    let mut decoder = after_appendix_b3();
    assert_eq!(decoder.decode(8, hex("0500 80 c1 81")), Ok(Decoded::Blocked));
    assert_eq!(decoder.decode(8, hex("0000 d1")), Ok(Decoded::Blocked), "in order");
    assert_eq!(decoder.unblocked(), None);
    decoder.handle_encoder_stream(&hex("02")).expect("a valid instruction");
    let (stream, fields) = decoder.unblocked().expect("it has what it needs");
    assert_eq!((stream, texts(&fields.expect("valid")).len()), (8, 3));
    let (stream, fields) = decoder.unblocked().expect("the one behind it");
    assert_eq!((stream, texts(&fields.expect("valid"))), (8, vec![line(":method", "GET")]));
    assert_eq!((decoder.unblocked(), decoder.blocked_streams()), (None, 0));
    assert_eq!(decoder.take_instructions(), hex("88"), "the second needs no acknowledgment");
}

//= rfc9204 §2.1.2, §2.2.1
//# too many blocked streams: MUST be QPACK_DECOMPRESSION_FAILED; at most
//# `MAX_SECTIONS_OF_BLOCKED_STREAM` sections each
#[test]
fn blocked_streams_and_their_sections_are_bounded() {
    let setup = DecoderSetup { max_capacity: 220, max_blocked_streams: 2, ..Default::default() };
    let mut decoder = Decoder::new(setup);
    let section = hex("0200 80");
    for stream in [0, 4] {
        assert_eq!(decoder.decode(stream, section.clone()), Ok(Decoded::Blocked));
    }
    let streams = QpackFault::DecompressionFailed(QpackRule::TooManyBlockedStreams);
    assert_eq!(decoder.decode(8, section.clone()), Err(streams));
    for _ in 1..MAX_SECTIONS_OF_BLOCKED_STREAM {
        assert_eq!(decoder.decode(4, section.clone()), Ok(Decoded::Blocked));
    }
    let sections = QpackFault::DecompressionFailed(QpackRule::TooManyBlockedSections);
    assert_eq!(decoder.decode(4, section.clone()), Err(sections));
    decoder.cancel(0);
    assert_eq!(decoder.decode(8, section), Ok(Decoded::Blocked));
}

//= rfc9204 §4.5.4
//# the N bit is returned
#[test]
fn the_never_indexed_bit_is_returned() {
    let mut decoder = with_capacity(0);
    // With a static name, and with a literal one.
    let decoded = decoder.decode(0, hex("0000 7f 45 01 61 31 61 01 62 51 01 63"));
    let Ok(Decoded::Ready(fields)) = decoded else { panic!("{decoded:?}") };
    let sensitive: Vec<bool> = fields.iter().map(|field| field.sensitive).collect();
    assert_eq!(texts(&fields)[0], line("authorization", "a"));
    assert_eq!(sensitive, [true, true, false]);
}

#[test]
fn strings_are_not_copied() {
    let mut decoder = with_capacity(0);
    let section = hex("0000 51 03 2f 61 62 23 61 62 63 01 64");
    let decoded = decoder.decode(0, section.clone());
    let Ok(Decoded::Ready(fields)) = decoded else { panic!("{decoded:?}") };
    let within = |part: &Bytes| section.as_ptr_range().contains(&part.as_ptr());
    assert!(within(&fields[0].value) && within(&fields[1].name) && within(&fields[1].value));
    let (name, _) = static_table::entry(1).expect("an entry");
    assert_eq!(fields[0].name.as_ptr(), name.as_ptr());
}

//= rfc9204 §2.2.1
//# a Required Insert Count that is too small MUST fail
#[test]
fn invalid_sections_fail() {
    for (digits, rule) in [
        ("", QpackRule::SectionTruncated),
        ("00", QpackRule::SectionTruncated),
        ("0000 51", QpackRule::SectionTruncated),
        ("0000 5105 61", QpackRule::SectionTruncated),
        ("0000 ff24", QpackRule::NoStaticEntry),
        ("0000 ffff ffff ffff ffff ffff ff", QpackRule::IntegerTooLarge),
        ("0000 80", QpackRule::NoDynamicEntry),
        ("0000 10", QpackRule::BeyondRequiredInsertCount),
        ("0000 00 01 61", QpackRule::BeyondRequiredInsertCount),
        ("0300 83", QpackRule::NoDynamicEntry),
        ("0280 81", QpackRule::NoDynamicEntry),
        ("0280 10 11", QpackRule::BeyondRequiredInsertCount),
        ("0d00", QpackRule::RequiredInsertCount),
        ("0383", QpackRule::NegativeBase),
        ("0000 51 81 00", QpackRule::HuffmanPadding),
        ("0000 51 84 ffff ffff", QpackRule::HuffmanEndOfString),
    ] {
        let mut decoder = after_appendix_b3();
        let failed = Err(QpackFault::DecompressionFailed(rule));
        assert_eq!(decoder.decode(20, hex(digits)), failed, "{digits}");
    }
}

//= rfc9204 §2.2.3
//# a reference to what was evicted MUST fail
#[test]
fn a_reference_to_an_evicted_entry_fails() {
    let mut decoder = after_appendix_b3();
    assert_eq!(lines(decoder.decode(20, hex("0300 81"))), [line(":authority", "www.example.com")]);
    // Set Dynamic Table Capacity: 110 octets, which the oldest entry does not fit.
    decoder.handle_encoder_stream(&hex("3f4f")).expect("a valid instruction");
    let missing = Err(QpackFault::DecompressionFailed(QpackRule::NoDynamicEntry));
    assert_eq!(decoder.decode(24, hex("0300 81")), missing);
    assert_eq!(lines(decoder.decode(28, hex("0300 80"))), [line(":path", "/sample/path")]);
}

//= rfc9204 §2.2.1
//# one that is too large MAY fail: it does not
#[test]
fn a_required_insert_count_may_be_larger_than_needed() {
    let mut decoder = after_appendix_b3();
    // 3, though entry 0 is all that the section refers to; and 3 without a reference.
    assert_eq!(lines(decoder.decode(20, hex("0400 82"))), [line(":authority", "www.example.com")]);
    assert_eq!(lines(decoder.decode(24, hex("0400 d1"))), [line(":method", "GET")]);
    assert_eq!(decoder.take_instructions(), hex("94 98"));
}

//= rfc9204 §2.2.3, §3.1, §3.2.2, §4.3.1
//# invalid instructions: MUST be QPACK_ENCODER_STREAM_ERROR
#[test]
fn invalid_encoder_instructions_fail() {
    for (digits, rule) in [
        ("3fbe01", QpackRule::CapacityAboveMaximum),
        ("ff2400", QpackRule::NoStaticEntry),
        ("8300", QpackRule::NoDynamicEntry),
        ("03", QpackRule::NoDynamicEntry),
        ("1f ffff ffff ffff ffff ff7f", QpackRule::IntegerTooLarge),
        // A value of 189 octets does not fit, whatever its name.
        ("c07f3e", QpackRule::EntryLargerThanTable),
        ("5f9e01", QpackRule::EntryLargerThanTable),
        ("20 c000", QpackRule::EntryLargerThanTable),
        // In the Huffman code, the shortest string of 800 octets would have 214.
        ("c0ffa105", QpackRule::EntryLargerThanTable),
        ("c08100", QpackRule::HuffmanPadding),
    ] {
        let mut decoder = after_appendix_b3();
        let octets = hex(digits);
        let failed = Err(QpackFault::EncoderStream(rule));
        assert_eq!(decoder.handle_encoder_stream(&octets), failed, "{digits}");
        // The same, octet by octet.
        let mut decoder = after_appendix_b3();
        let each = octets.iter().try_for_each(|octet| decoder.handle_encoder_stream(&[*octet]));
        assert_eq!(each, failed, "{digits}");
    }
}

#[test]
fn an_entry_that_just_fits_is_inserted() {
    let mut decoder = with_capacity(220);
    decoder.handle_encoder_stream(&hex("3fbd01")).expect("a valid instruction");
    // `:authority` and 178 octets are 220 with the overhead.
    let insert =
        |length: u8| [&[0xc0, 0x7f, length - 127][..], &vec![b'a'; length.into()]].concat();
    decoder.handle_encoder_stream(&insert(178)).expect("it fits");
    assert_eq!(decoder.table_size(), 220);
    let too_large = Err(QpackFault::EncoderStream(QpackRule::EntryLargerThanTable));
    assert_eq!(decoder.handle_encoder_stream(&insert(179)), too_large);
}

//= rfc9204 §7.4
//# strings that do not fit are refused by their length
#[test]
fn a_partial_instruction_is_bounded_by_the_capacity() {
    let mut decoder = after_appendix_b3();
    // Two strings in the Huffman code that may just fit: 188 octets of the longest codes.
    let text = vec![b'\n'; 188];
    let mut insert = Vec::new();
    crate::qpack::primitive::write_integer(0x60, 5, 705, &mut insert);
    huffman::encode(&text, &mut insert);
    let mut longest = 0;
    for octet in insert.iter().chain(&[0x80 | 0x7f, 0xc2, 0x04]).chain(&[0xff; 704]) {
        decoder.handle_encoder_stream(&[*octet]).expect("it is incomplete");
        longest = longest.max(decoder.partial_octets());
    }
    assert_eq!(longest, insert.len() + 3 + 704);
    let ended = decoder.handle_encoder_stream(&[0xff]);
    assert_eq!(ended, Err(QpackFault::EncoderStream(QpackRule::HuffmanEndOfString)));
}

//= rfc9204 §7.4
//# sections are limited while they are decoded
#[test]
fn a_section_is_limited_while_it_is_decoded() {
    let limited = |max_section_size| {
        Decoder::new(DecoderSetup { max_capacity: 220, max_section_size, ..Default::default() })
    };
    // `:method: GET` has 42 octets, `:path: /index.html` 48.
    let section = hex("0000 d1 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(lines(limited(90).decode(0, section.clone())).len(), 2);
    let too_large = Err(QpackFault::FieldSectionTooLarge);
    for size in [0, 41, 42, 73, 74, 89] {
        assert_eq!(limited(size).decode(0, section.clone()), too_large, "{size}");
    }
    // What is not looked at any more can be invalid.
    assert_eq!(limited(41).decode(0, hex("0000 d1 ff24")), too_large);
    let huffman = hex("0000 51 8c f1e3 c2e5 f23a 6ba0 ab90 f4ff");
    assert_eq!(lines(limited(52).decode(0, huffman.clone())), [line(":path", "www.example.com")]);
    assert_eq!(limited(51).decode(0, huffman), too_large);
}

//= rfc9204 §2.2.2.1
//# sections with references are acknowledged, also those that are too large
#[test]
fn a_section_that_is_too_large_is_acknowledged() {
    let setup = DecoderSetup { max_capacity: 220, max_section_size: 60, ..Default::default() };
    let mut decoder = Decoder::new(setup);
    let inserts = hex("3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d");
    decoder.handle_encoder_stream(&inserts).expect("valid instructions");
    assert_eq!(lines(decoder.decode(0, hex("0200 80"))).len(), 1);
    assert_eq!(decoder.decode(4, hex("0200 80 80")), Err(QpackFault::FieldSectionTooLarge));
    assert_eq!(decoder.take_instructions(), hex("80 84"));
}

//= rfc9204 §2.2.2.2
//# a cancelled stream is reported, but not without a table
#[test]
fn a_decoder_without_a_table_sends_nothing() {
    let mut decoder = with_capacity(0);
    assert_eq!(lines(decoder.decode(0, hex("0000 d1"))), [line(":method", "GET")]);
    decoder.cancel(4);
    assert_eq!(decoder.take_instructions(), "");
    let above = Err(QpackFault::EncoderStream(QpackRule::CapacityAboveMaximum));
    assert_eq!(decoder.handle_encoder_stream(&[0x20]), Ok(()), "0 does not exceed the maximum");
    assert_eq!(decoder.handle_encoder_stream(&[0x21]), above);
}

//= rfc9204 §3.2.2
//# a new entry may refer to one that it evicts
#[test]
fn an_entry_can_have_the_name_of_one_that_it_evicts() {
    let mut decoder = with_capacity(220);
    let first = hex("3fbd01 41 61 7f10");
    decoder.handle_encoder_stream(&first).expect("valid instructions");
    decoder.handle_encoder_stream(&[b'v'; 143]).expect("a valid instruction");
    assert_eq!(decoder.table_size(), 32 + 1 + 143);
    // Insert with the name of the entry that this evicts: the name is still there.
    decoder.handle_encoder_stream(&hex("80 3f")).expect("incomplete");
    decoder.handle_encoder_stream(&[b'w'; 63]).expect("a valid instruction");
    let fields = decoder.decode(0, hex("0300 80"));
    assert_eq!(lines(fields), [line("a", &"w".repeat(63))]);
    assert_eq!(decoder.table_size(), 32 + 1 + 63);
}
