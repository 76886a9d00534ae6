//! Property tests of the protocol: arbitrary input is parsed or refused, and encoded values are
//! parsed back.

use eyas_supervisor::local::control::copy_control;
use eyas_supervisor::local::subject::addresses;
use eyas_supervisor::local::{
    Capability, MAX_CONTROL, MAX_DATA, MAX_PEER, MAX_SIDE, REQUEST, RESPONSE, Request, Response,
    VERSION, key_of, mark,
};
use proptest::prelude::*;

proptest! {
    #[test]
    #[test]
    fn requests_are_read_if_version_operation_and_sizes_are_valid(
        bytes in prop::array::uniform32(any::<u8>()),
        op in 0_u32..20,
        sizes in prop::array::uniform3(prop_oneof![0..70_000_u32, any::<u32>()]),
        version in VERSION - 1..=VERSION + 1,
    ) {
        let mut header = [0; REQUEST];
        header[8..40].copy_from_slice(&bytes);
        header[..4].copy_from_slice(&version.to_ne_bytes());
        header[4..8].copy_from_slice(&op.to_ne_bytes());
        for (index, size) in sizes.iter().enumerate() {
            header[REQUEST - 12 + 4 * index..][..4].copy_from_slice(&size.to_ne_bytes());
        }
        let [name, control, data] = sizes.map(|size| size as usize);
        let is_valid = version == VERSION
            && (1..=17).contains(&op)
            && name.max(control) <= MAX_SIDE
            && data <= MAX_DATA;
        let request = Request::parse(&header);
        prop_assert_eq!(request.is_some(), is_valid);
        if let Some(request) = request {
            prop_assert_eq!(Request::parse(&request.encode()), Some(request));
        }
    }

    #[test]
    fn an_encoded_response_is_parsed_back(result in any::<i32>(), marks in any::<u32>(),
                                            flags in any::<i32>(), data in any::<u32>(),
                                            peer in prop::collection::vec(any::<u8>(), 0..64),
                                            control in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut response = Response::new(result).with_peer(&peer).with_control(&control);
        (response.marks, response.flags, response.data) = (marks, flags, data);
        let read = Response::parse(&response.encode());
        prop_assert_eq!(read, Some(response));
        prop_assert_eq!(response.peer(), &peer[..peer.len().min(MAX_PEER)]);
        let fits = control.len() <= MAX_CONTROL;
        prop_assert_eq!(response.control(), if fits { &control[..] } else { &[][..] });
    }

    #[test]
    fn responses_are_read_if_their_lengths_fit(
        bytes in prop::collection::vec(any::<u8>(), RESPONSE),
        lengths in prop::array::uniform2(prop_oneof![0..300_u32, any::<u32>()]),
    ) {
        let mut bytes = bytes;
        bytes[..4].copy_from_slice(&VERSION.to_ne_bytes());
        for (index, length) in lengths.iter().enumerate() {
            bytes[20 + 4 * index..][..4].copy_from_slice(&length.to_ne_bytes());
        }
        let [peer, control] = lengths.map(|length| length as usize);
        let response = Response::parse(&bytes);
        prop_assert_eq!(response.is_some(), peer <= MAX_PEER && control <= MAX_CONTROL);
        if let Some(response) = response {
            prop_assert_eq!((response.peer().len(), response.control().len()), (peer, control));
        }
    }

    #[test]
    fn a_capability_is_told_from_other_rates(random in any::<u64>(), rate in any::<u64>()) {
        let capability = Capability::new(random);
        prop_assert_eq!(Capability::from_rate(capability.rate()), Some(capability));
        prop_assert!(Capability::from_rate(rate).is_none_or(|found| found.rate() == rate));
        // 2^63 bytes a second are more than any program asks for, and the default is the maximum.
        let writable = capability.with_writable(true);
        prop_assert_eq!(Capability::from_rate(writable.rate()), Some(writable));
        prop_assert!(writable.is_writable() && !capability.is_writable());
        prop_assert_eq!(writable.number(), capability.number());
        prop_assert_eq!(writable.with_writable(false), capability);
        prop_assert_eq!(Capability::from_rate(rate >> 1), None);
        prop_assert_eq!(Capability::from_rate(u64::MAX), None);
    }

    #[test]
    fn marks_are_independent(buffer in 0_usize..(16 << 20), tokens in 0_u32..100_000, others in 0_u32..4) {
        let marks = mark::of_buffer(buffer) | mark::of_tokens(tokens) | others;
        prop_assert_eq!(mark::tokens(marks), tokens);
        prop_assert_eq!(mark::buffer(marks), buffer / 4096 * 4096);
        prop_assert_eq!(marks & (mark::ADD_FILLER | mark::STOP_WRITING), others);
    }

    #[test]
    fn control_messages_fit_the_available_room(control in prop::collection::vec(any::<u8>(), 0..200),
                                                   lengths in prop::collection::vec(0_usize..80, 0..4),
                                                   room in 0_usize..250) {
        let mut control = control;
        let mut at = 0;
        // Most inputs are a sequence of messages.
        for length in lengths {
            if let Some(place) = control.get_mut(at..at + size_of::<usize>()) {
                place.copy_from_slice(&length.to_ne_bytes());
            }
            at += length.max(16).next_multiple_of(size_of::<usize>());
        }
        let mut memory = vec![0; room];
        let copied = copy_control(&control, room, |at, bytes| {
            memory[at..at + bytes.len()].copy_from_slice(bytes);
        });
        prop_assert!(copied.length <= room);
        prop_assert!(memory[copied.length..].iter().all(|byte| *byte == 0));
        if room >= control.len() {
            prop_assert!(!copied.is_truncated);
        }
    }

    #[test]
    fn the_number_of_addresses_is_bounded(value in prop::collection::vec(any::<u8>(), 0..24), length in any::<i32>()) {
        let mut value = value;
        if let Some(place) = value.get_mut(4..8) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        if let Some((place, bytes)) = addresses(&value) {
            prop_assert!(place != 0 && (1..=MAX_SIDE).contains(&bytes) && value.len() >= 16);
        }
    }

    #[test]
    fn a_key_is_parsed_from_its_digits(key in any::<u64>()) {
        prop_assert_eq!(key_of(format!("{key:016x}").as_bytes()), Some(key));
        prop_assert_eq!(key_of(format!("{key:017x}").as_bytes()), None);
    }
}
