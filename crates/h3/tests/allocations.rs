//! Encoding a request whose fields are in the dynamic table allocates nothing, and decoding it allocates
//! no more for many fields than for few.

use std::alloc::System;

use bytes::Bytes;
use eyas_h3::qpack::{
    Decoded, Decoder, DecoderSetup, Encoder, EncoderSetup, FieldLine, Sensitivity,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const REQUEST: [(&[u8], &[u8], Sensitivity); 5] = [
    (b":authority", b"www.example.com", Sensitivity::Ordinary),
    (b":path", b"/a/path/that/differs", Sensitivity::Ordinary),
    (b"user-agent", b"an agent", Sensitivity::Ordinary),
    (b"accept", b"text/html", Sensitivity::Ordinary),
    (b"authorization", b"Basic YTpi", Sensitivity::Sensitive),
];

/// Returns the lines of a request that passes from end to end, after which everything is acknowledged.
fn exchange(encoder: &mut Encoder, decoder: &mut Decoder, stream: u64) -> Vec<FieldLine> {
    let mut section = Vec::new();
    encoder.encode(stream, REQUEST, &mut section);
    decoder.handle_encoder_stream(&encoder.take_instructions()).expect("valid instructions");
    let decoded = decoder.decode(stream, section.into());
    encoder.handle_decoder_stream(&decoder.take_instructions()).expect("valid instructions");
    let Ok(Decoded::Ready(lines)) = decoded else { panic!("{decoded:?}") };
    lines
}

#[test]
fn a_repeated_request_is_encoded_without_allocation() {
    let limits = DecoderSetup::default();
    let (mut encoder, mut decoder) = (Encoder::new(EncoderSetup::default()), Decoder::new(limits));
    encoder.set_peer_limits(limits.max_capacity, 0).expect("they are the first");
    let first = exchange(&mut encoder, &mut decoder, 0);
    assert_eq!(exchange(&mut encoder, &mut decoder, 1), first);

    let mut section = Vec::with_capacity(100);
    let region = Region::new(ALLOCATOR);
    for stream in 2..100_u8 {
        section.clear();
        encoder.encode(stream.into(), REQUEST, &mut section);
        encoder.handle_decoder_stream(&[0x80 | stream]).expect("it is acknowledged");
    }
    let encoded = region.change();
    assert_eq!((encoded.allocations, encoded.reallocations), (0, 0));

    // The list of lines, and one piece of memory, with its count, for the strings in the Huffman code.
    let section = Bytes::from(section);
    let region = Region::new(ALLOCATOR);
    let decoded = decoder.decode(2, section);
    let change = region.change();
    assert!(matches!(decoded, Ok(Decoded::Ready(lines)) if lines == first));
    assert!(change.allocations + change.reallocations <= 5, "{change:?}");
}
