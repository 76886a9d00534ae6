//! Decoding and encoding of error causes.

use super::*;
use crate::wire::Parameter;
use alloc::vec::Vec;

fn parse_all(bytes: &[u8]) -> Vec<ErrorCause> {
    Causes::from_bytes(Bytes::copy_from_slice(bytes)).iter().collect()
}

#[test]
fn causes_round_trip() {
    let parameters: Parameters = [Parameter::EcnCapable].into_iter().collect();
    let request = Bytes::from_static(&[0xc0, 2, 0, 4]);
    let cases: [(&[u8], ErrorCause); 16] = [
        (&[0, 1, 0, 8, 0, 7, 0, 0], ErrorCause::InvalidStream { stream: StreamId(7) }),
        (
            &[0, 2, 0, 10, 0, 0, 0, 1, 0, 7],
            ErrorCause::MissingMandatoryParameter { types: Bytes::from_static(&[0, 7]) },
        ),
        (&[0, 3, 0, 8, 0, 0, 0x3, 0xe8], ErrorCause::StaleCookie { staleness: 1000 }),
        (&[0, 4, 0, 4], ErrorCause::OutOfResource),
        (&[0, 5, 0, 8, 0, 11, 0, 4], {
            ErrorCause::UnresolvableAddress { parameter: Bytes::from_static(&[0, 11, 0, 4]) }
        }),
        (&[0, 6, 0, 8, 0xfe, 0, 0, 4], {
            ErrorCause::UnrecognizedChunkType { chunk: Bytes::from_static(&[0xfe, 0, 0, 4]) }
        }),
        (&[0, 7, 0, 4], ErrorCause::InvalidMandatoryParameter),
        (&[0, 8, 0, 8, 0x80, 0, 0, 4], ErrorCause::UnrecognizedParameters(parameters.clone())),
        (&[0, 9, 0, 8, 0, 0, 0, 5], ErrorCause::NoUserData { tsn: Tsn(5) }),
        (&[0, 10, 0, 4], ErrorCause::CookieWhileShuttingDown),
        (&[0, 11, 0, 8, 0x80, 0, 0, 4], ErrorCause::RestartWithNewAddresses(parameters)),
        (
            &[0, 12, 0, 7, b'b', b'y', b'e'],
            ErrorCause::UserInitiatedAbort { reason: Bytes::from_static(b"bye") },
        ),
        (&[0, 13, 0, 6, b'n', b'o'], ErrorCause::violation("no")),
        (&[0, 0xa2, 0, 8, 0xc0, 2, 0, 4], ErrorCause::DeleteSourceAddress { request }),
        (&[1, 5, 0, 6, 0, 2], ErrorCause::UnsupportedHmac { hmac_id: 2 }),
        (
            &[0x77, 0x77, 0, 5, 9],
            ErrorCause::Unknown { code: CauseCode(0x7777), information: Bytes::from_static(&[9]) },
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(Causes::from(expected.clone()).as_bytes()[..], *bytes);
        assert_eq!(parse_all(bytes), [expected]);
    }
}

#[test]
fn missing_parameters_are_listed() {
    let causes = parse_all(&[0, 2, 0, 12, 0, 0, 0, 2, 0, 7, 0x80, 2]);
    let missing: Vec<_> = causes.iter().flat_map(ErrorCause::missing).collect();
    assert_eq!(missing, [ParameterType::STATE_COOKIE, ParameterType::RANDOM]);
    assert_eq!(ErrorCause::OutOfResource.missing().count(), 0);
}

#[test]
fn a_count_of_missing_parameters_that_does_not_fit_is_malformed() {
    for count in [[0, 0, 0, 2], [255, 255, 255, 255]] {
        let mut bytes = [0, 2, 0, 10, 0, 0, 0, 0, 0, 7];
        bytes[4..8].copy_from_slice(&count);
        let code = CauseCode::MISSING_MANDATORY_PARAMETER;
        assert_eq!(parse_all(&bytes), [ErrorCause::Malformed { code }]);
    }
}

#[test]
fn causes_are_padded() {
    let list = [ErrorCause::violation("a"), ErrorCause::OutOfResource];
    let causes: Causes = list.clone().into_iter().collect();
    assert_eq!(causes.as_bytes()[..], [0, 13, 0, 5, b'a', 0, 0, 0, 0, 4, 0, 4]);
    assert!(causes.iter().eq(list));
}

#[test]
fn a_length_that_does_not_fit_ends_the_list() {
    for length in [0, 3, 9] {
        let bytes = [0, 4, 0, 4, 0, 13, 0, length, 1, 2, 3, 4];
        let malformed = ErrorCause::Malformed { code: CauseCode::PROTOCOL_VIOLATION };
        assert_eq!(parse_all(&bytes), [ErrorCause::OutOfResource, malformed]);
    }
}
