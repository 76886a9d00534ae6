//! Arbitrary octets as a stream of capsules, and as the path of a request for one: the content of the stream
//! does not depend on how it was split, and the path of a parsed destination parses to the same destination.
#![no_main]

use bytes::{Bytes, BytesMut};
use eyas_proxy::internals::capsule::{self, CapsuleFault, CapsuleReader, MAX_PAYLOAD};
use eyas_relay::connect_udp::{destination, path};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<7> = Reach::new([
    "a datagram",
    "an empty datagram",
    "a datagram after a skipped capsule",
    "a missing context",
    "a datagram that is too long",
    "a stream that ends within a capsule",
    "a valid path of a destination",
]);

/// Returns all payloads, the fault that ended them, and whether the stream may end here.
fn read(bytes: &[u8], cut: usize) -> (Vec<Bytes>, Option<CapsuleFault>, bool) {
    let (mut capsules, mut payloads) = (CapsuleReader::default(), Vec::new());
    for piece in bytes.chunks(cut.max(1)) {
        capsules.receive(piece);
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
    (payloads, None, capsules.is_at_boundary())
}

fuzz_target!(|input: (u8, &[u8])| {
    REACH.begin();
    let (cut, bytes) = input;
    let whole = read(bytes, bytes.len());
    assert_eq!(whole, read(bytes, usize::from(cut)));
    assert_eq!(whole, read(bytes, 1));
    let (payloads, fault, is_at_boundary) = whole;
    match fault {
        Some(CapsuleFault::NoContext) => REACH.hit("a missing context"),
        Some(CapsuleFault::TooLong) => REACH.hit("a datagram that is too long"),
        None if !is_at_boundary => REACH.hit("a stream that ends within a capsule"),
        None => {}
    }
    let mut rewritten = BytesMut::new();
    for payload in &payloads {
        assert!(payload.len() <= MAX_PAYLOAD);
        capsule::write(&mut rewritten, payload);
        REACH.hit(if payload.is_empty() { "an empty datagram" } else { "a datagram" });
    }
    if !payloads.is_empty() && bytes.first().is_some_and(|kind| !matches!(kind, 0 | 0x40..)) {
        REACH.hit("a datagram after a skipped capsule");
    }
    assert!(rewritten.len() <= bytes.len(), "rewriting must not lengthen the stream");
    assert_eq!(read(&rewritten, rewritten.len()), (payloads, None, true));
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(to) = destination(text)
    {
        REACH.hit("a valid path of a destination");
        assert_eq!(destination(&path(&to)), Ok(to));
    }
});
