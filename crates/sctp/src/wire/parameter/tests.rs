//! Decoding and encoding of parameters.

use super::*;
use alloc::vec::Vec;

/// Parses the bytes of one parameter.
pub(super) fn parse_one(bytes: &[u8]) -> Parameter {
    let parameters = parse_all(bytes);
    assert_eq!(parameters.len(), 1, "{parameters:?}");
    parameters.into_iter().next().expect("there is one")
}

fn parse_all(bytes: &[u8]) -> Vec<Parameter> {
    Parameters::from_bytes(Bytes::copy_from_slice(bytes)).iter().collect()
}

/// Checks that parsing and encoding gives the same bytes.
pub(super) fn round_trip(bytes: &[u8]) {
    assert_eq!(parse_one(bytes).to_bytes()[..], *bytes);
}

#[test]
fn capabilities() {
    let cases: [(&[u8], Parameter); 10] = [
        (&[0x80, 0, 0, 4], Parameter::EcnCapable),
        (&[0xc0, 0, 0, 4], Parameter::ForwardTsnSupported),
        (
            &[0x80, 1, 0, 8, 0, 0, 0, 1],
            Parameter::ZeroChecksumAcceptable { error_detection_method: 1 },
        ),
        (&[0x80, 2, 0, 6, 1, 2], Parameter::Random(Bytes::from_static(&[1, 2]))),
        (&[0x80, 3, 0, 6, 193, 128], Parameter::ChunkList(Bytes::from_static(&[193, 128]))),
        (
            &[0x80, 4, 0, 8, 0, 3, 0, 1],
            Parameter::RequestedHmacs(Bytes::from_static(&[0, 3, 0, 1])),
        ),
        (
            &[0x80, 8, 0, 7, 64, 194, 130],
            Parameter::SupportedExtensions(Bytes::from_static(&[64, 194, 130])),
        ),
        (&[0xc0, 6, 0, 8, 0, 0, 0, 9], Parameter::AdaptationLayerIndication { code: 9 }),
        (&[0, 9, 0, 8, 0, 0, 0x3, 0xe8], Parameter::CookiePreservative { increment: 1000 }),
        (&[0x80, 5, 0, 6, 0, 0], Parameter::Padding { length: 2 }),
    ];
    for (bytes, expected) in cases {
        assert_eq!(parse_one(bytes), expected);
        round_trip(bytes);
    }
}

#[test]
fn opaque_values_are_carried_unchanged() {
    let value = Bytes::from_static(b"any");
    for (number, expected) in [
        (1, Parameter::HeartbeatInfo(value.clone())),
        (7, Parameter::StateCookie(value.clone())),
        (8, Parameter::Unrecognized(value.clone())),
        (11, Parameter::HostNameAddress(value)),
    ] {
        let bytes = [0, number, 0, 7, b'a', b'n', b'y'];
        assert_eq!(parse_one(&bytes), expected);
        round_trip(&bytes);
    }
}

#[test]
fn missing_numbers_are_malformed() {
    for number in [9, 0x8001, 0xc006, 0xc005] {
        let [high, low] = u16::to_be_bytes(number);
        let malformed = Parameter::Malformed { parameter_type: ParameterType(number) };
        assert_eq!(parse_one(&[high, low, 0, 7, 0, 0, 0]), malformed);
    }
}

#[test]
fn the_last_parameter_of_a_list_has_no_padding() {
    let list = [
        Parameter::Random(Bytes::from_static(&[9])),
        Parameter::EcnCapable,
        Parameter::ChunkList(Bytes::from_static(&[193])),
    ];
    let parameters: Parameters = list.clone().into_iter().collect();
    let expected = [0x80, 2, 0, 5, 9, 0, 0, 0, 0x80, 0, 0, 4, 0x80, 3, 0, 5, 193];
    assert_eq!(parameters.as_bytes()[..], expected);
    assert!(parameters.iter().eq(list));
    assert!(Parameters::default().is_empty());
}

#[test]
fn a_length_that_does_not_fit_ends_the_list() {
    for length in [0, 3, 9] {
        let bytes = [0x80, 0, 0, 4, 0x80, 2, 0, length, 1, 2, 3, 4];
        let malformed = Parameter::Malformed { parameter_type: ParameterType::RANDOM };
        assert_eq!(parse_all(&bytes), [Parameter::EcnCapable, malformed], "length {length}");
    }
}
