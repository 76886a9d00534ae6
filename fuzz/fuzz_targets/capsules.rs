//! Arbitrary octets of a stream of capsules, and the path of a request for one: what is in the stream does
//! not depend on how it was cut, and a destination can be asked for again by its own path.
#![no_main]

use bytes::{Bytes, BytesMut};
use eyas_relay::connect_udp::capsule::{self, Capsules, Fault, MAX_PAYLOAD};
use eyas_relay::connect_udp::{destination, path};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<7> = Reach::new([
    "a datagram",
    "an empty datagram",
    "a datagram behind what is skipped",
    "a context that is missing",
    "a datagram that is too long",
    "a stream that ends in the middle",
    "a path of a destination",
]);

/// All payloads, why there are no more, and whether the stream may end where it does.
fn read(bytes: &[u8], cut: usize) -> (Vec<Bytes>, Option<Fault>, bool) {
    let (mut capsules, mut payloads) = (Capsules::default(), Vec::new());
    for piece in bytes.chunks(cut.max(1)) {
        capsules.put(piece);
        loop {
            match capsules.datagram() {
                Ok(Some(payload)) => payloads.push(payload),
                Ok(None) => break,
                Err(fault) => {
                    assert_eq!(capsules.datagram(), Err(fault));
                    return (payloads, Some(fault), false);
                }
            }
        }
    }
    (payloads, None, capsules.is_between())
}

fuzz_target!(|input: (u8, &[u8])| {
    REACH.begin();
    let (cut, bytes) = input;
    let whole = read(bytes, bytes.len());
    assert_eq!(whole, read(bytes, usize::from(cut)));
    assert_eq!(whole, read(bytes, 1));
    let (payloads, fault, is_between) = whole;
    match fault {
        Some(Fault::NoContext) => REACH.hit("a context that is missing"),
        Some(Fault::TooLong) => REACH.hit("a datagram that is too long"),
        None if !is_between => REACH.hit("a stream that ends in the middle"),
        None => {}
    }
    let mut again = BytesMut::new();
    for payload in &payloads {
        assert!(payload.len() <= MAX_PAYLOAD);
        capsule::write(&mut again, payload);
        REACH.hit(if payload.is_empty() { "an empty datagram" } else { "a datagram" });
    }
    if !payloads.is_empty() && bytes.first().is_some_and(|kind| !matches!(kind, 0 | 0x40..)) {
        REACH.hit("a datagram behind what is skipped");
    }
    assert!(again.len() <= bytes.len(), "the shortest form is not the longest");
    assert_eq!(read(&again, again.len()), (payloads, None, true));
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(to) = destination(text)
    {
        REACH.hit("a path of a destination");
        assert_eq!(destination(&path(&to)), Ok(to));
    }
});
