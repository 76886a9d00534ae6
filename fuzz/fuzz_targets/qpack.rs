//! The peers of a QPACK decoder and encoder (RFC 9204), and both as a pair: what is decoded does not
//! depend on how a stream of instructions was split, nothing exceeds its bound, and a pair agrees.
//!
//! The first octet says which of them, the second the limits; then each octet and a length begin a
//! record of as many octets.
#![no_main]

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use eyas_h3::qpack::{
    Decoded, Decoder, DecoderSetup, Encoder, EncoderSetup, FieldLine,
    MAX_SECTIONS_OF_BLOCKED_STREAM, QpackFault, Sensitivity,
};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<12> = Reach::new([
    "a section is decoded",
    "a section with dynamic references is decoded",
    "a section is blocked and decoded later",
    "a section is too large",
    "a section is invalid",
    "the encoder stream is invalid",
    "the decoder stream is invalid",
    "a section is acknowledged",
    "a pair agrees on a section",
    "a pair agrees on a section that was blocked",
    "a pair has a full table",
    "a pair has cancelled a stream",
]);

const MAX_SECTION_SIZE: u64 = 4096;

/// The limits that the second octet stands for.
#[derive(Clone, Copy)]
struct Limits {
    capacity: u64,
    blocked: u64,
}

struct Record<'a> {
    kind: u8,
    octets: &'a [u8],
}

fn records(mut rest: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    while let [kind, length, octets @ ..] = rest {
        let (octets, after) = octets.split_at(usize::from(*length).min(octets.len()));
        records.push(Record { kind: *kind, octets });
        rest = after;
    }
    records
}

type Fields = Vec<FieldLine>;

/// What a decoder gave back, in order; the last may be a fault.
type Given = Vec<(u64, Result<Fields, QpackFault>)>;

fn decoder(limits: Limits) -> Decoder {
    Decoder::new(DecoderSetup {
        max_capacity: limits.capacity,
        max_blocked_streams: limits.blocked,
        max_section_size: MAX_SECTION_SIZE,
    })
}

/// Gives the records to a decoder, the encoder stream in pieces of at most this many octets.
fn decode(limits: Limits, records: &[Record<'_>], cut: usize) -> (Given, Vec<u8>) {
    let mut decoder = decoder(limits);
    let (mut given, mut instructions) = (Given::new(), Vec::new());
    for record in records {
        let stream = u64::from(record.kind >> 2);
        match record.kind & 3 {
            0 | 1 => {
                for piece in record.octets.chunks(cut) {
                    if let Err(fault) = decoder.handle_encoder_stream(piece) {
                        REACH.hit("the encoder stream is invalid");
                        given.push((u64::MAX, Err(fault)));
                        return (given, instructions);
                    }
                    let bound = 8 * limits.capacity as usize + 64;
                    assert!(decoder.partial_octets() <= bound);
                }
                while let Some((stream, fields)) = decoder.unblocked() {
                    if fields.is_ok() {
                        REACH.hit("a section is blocked and decoded later");
                    }
                    given.push((stream, fields));
                }
            }
            2 => match decoder.decode(stream, Bytes::copy_from_slice(record.octets)) {
                Ok(Decoded::Blocked) => {}
                Ok(Decoded::Ready(fields)) => {
                    REACH.hit("a section is decoded");
                    if record.octets[0] != 0 {
                        REACH.hit("a section with dynamic references is decoded");
                    }
                    given.push((stream, Ok(fields)));
                }
                Err(fault) => {
                    REACH.hit(match fault {
                        QpackFault::FieldSectionTooLarge => "a section is too large",
                        _ => "a section is invalid",
                    });
                    given.push((stream, Err(fault)));
                }
            },
            _ => decoder.cancel(stream),
        }
        instructions.extend_from_slice(&decoder.take_instructions());
        assert!(decoder.table_size() <= limits.capacity);
        assert!(decoder.blocked_streams() as u64 <= limits.blocked);
    }
    (given, instructions)
}

/// Any peer's encoder.
fn hostile_encoder(limits: Limits, records: &[Record<'_>]) {
    let whole = decode(limits, records, 256);
    assert_eq!(whole, decode(limits, records, 1));
    assert_eq!(whole, decode(limits, records, 3));
    for (stream, fields) in whole.0 {
        let Ok(fields) = fields else { continue };
        let size: usize =
            fields.iter().map(|field| field.name.len() + field.value.len() + 32).sum();
        assert!(size as u64 <= MAX_SECTION_SIZE);
        // The static table alone encodes it too.
        let (mut encoder, mut section) = (Encoder::new(EncoderSetup::STATIC_ONLY), Vec::new());
        encoder.encode(stream, fields.iter().map(FieldLine::as_parts), &mut section);
        let limits = Limits { capacity: 0, blocked: 0 };
        assert_eq!(decoder(limits).decode(stream, section.into()), Ok(Decoded::Ready(fields)));
    }
}

fn encoder(limits: Limits) -> Encoder {
    let setup = EncoderSetup { max_capacity: limits.capacity, max_blocked_streams: limits.blocked };
    let mut encoder = Encoder::new(setup);
    encoder.set_peer_limits(limits.capacity, limits.blocked).expect("they are the first");
    encoder
}

/// Fields of a few names, whose values are the octets in pieces.
fn fields(octets: &[u8]) -> Vec<(&'static [u8], &[u8], Sensitivity)> {
    const NAMES: [&[u8]; 8] =
        [b":authority", b"server", b"accept", b"x-a", b"x-b", b":path", b"cookie", b""];
    let fields = octets.chunks(9).map(|piece| {
        let name = NAMES[usize::from(piece[0] & 7)];
        (name, &piece[1..], Sensitivity::from(piece[0] & 0xf8 == 0xf8))
    });
    fields.collect()
}

/// Any peer's decoder.
fn hostile_decoder(limits: Limits, records: &[Record<'_>]) {
    let run = |cut: usize| {
        let (mut encoder, mut sections) = (encoder(limits), Vec::new());
        for record in records {
            if record.kind & 1 == 0 {
                let stream = u64::from(record.kind >> 1);
                encoder.encode(stream, fields(record.octets), &mut sections);
                sections.extend_from_slice(&encoder.take_instructions());
            } else {
                let before = encoder.outstanding_sections();
                for piece in record.octets.chunks(cut) {
                    if let Err(fault) = encoder.handle_decoder_stream(piece) {
                        REACH.hit("the decoder stream is invalid");
                        return (sections, Err(fault));
                    }
                }
                if encoder.outstanding_sections() < before {
                    REACH.hit("a section is acknowledged");
                }
            }
            assert!(encoder.table_size() <= limits.capacity);
            assert!(encoder.blocking_streams() as u64 <= limits.blocked);
        }
        (sections, Ok(()))
    };
    assert_eq!(run(256), run(1));
}

/// A section that has not arrived, and one that waits.
#[derive(Default)]
struct Stream {
    sections: VecDeque<(Vec<u8>, Fields)>,
    waiting: VecDeque<Fields>,
}

/// An encoder and a decoder, with everything between them.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    encoder_stream: VecDeque<u8>,
    decoder_stream: VecDeque<u8>,
    streams: BTreeMap<u64, Stream>,
}

impl Pair {
    fn encode(&mut self, stream: u64, octets: &[u8]) {
        let (fields, mut section) = (fields(octets), Vec::new());
        self.encoder.encode(stream, fields.iter().copied(), &mut section);
        self.encoder_stream.extend(self.encoder.take_instructions());
        let line = |(name, value, sensitivity): &(&'static [u8], &[u8], Sensitivity)| FieldLine {
            name: Bytes::from_static(name),
            value: Bytes::copy_from_slice(value),
            sensitive: *sensitivity == Sensitivity::Sensitive,
        };
        let fields = fields.iter().map(line).collect();
        self.streams.entry(stream).or_default().sections.push_back((section, fields));
    }

    fn advance_encoder_stream(&mut self, count: usize) {
        let count = count.min(self.encoder_stream.len());
        let octets: Vec<u8> = self.encoder_stream.drain(..count).collect();
        self.decoder.handle_encoder_stream(&octets).expect("our instructions are valid");
        while let Some((stream, fields)) = self.decoder.unblocked() {
            let stream = self.streams.get_mut(&stream).expect("it has a section");
            assert_eq!(stream.waiting.pop_front(), Some(fields.expect("our section is valid")));
            REACH.hit("a pair agrees on a section that was blocked");
        }
    }

    fn advance_decoder_stream(&mut self, count: usize) {
        self.decoder_stream.extend(self.decoder.take_instructions());
        let count = count.min(self.decoder_stream.len());
        let octets: Vec<u8> = self.decoder_stream.drain(..count).collect();
        self.encoder.handle_decoder_stream(&octets).expect("our instructions are valid");
    }

    fn arrive(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.waiting.len() == MAX_SECTIONS_OF_BLOCKED_STREAM {
            return;
        }
        let Some((section, fields)) = stream.sections.pop_front() else { return };
        match self.decoder.decode(id, section.into()).expect("our section is valid") {
            Decoded::Blocked => stream.waiting.push_back(fields),
            Decoded::Ready(decoded) => {
                assert_eq!(decoded, fields);
                REACH.hit("a pair agrees on a section");
            }
        }
    }
}

/// Both of ours.
fn pair(limits: Limits, records: &[Record<'_>]) {
    let mut pair = Pair {
        encoder: encoder(limits),
        decoder: decoder(limits),
        encoder_stream: VecDeque::new(),
        decoder_stream: VecDeque::new(),
        streams: BTreeMap::new(),
    };
    // Nothing more is sent on a stream that was cancelled.
    let mut next_stream = [0_u64; 8];
    for record in records {
        let place = usize::from(record.kind >> 3 & 7);
        let stream = next_stream[place] * 8 + place as u64;
        match record.kind & 7 {
            0..3 => pair.encode(stream, record.octets),
            3 => pair.advance_encoder_stream(record.octets.len()),
            4 => pair.advance_decoder_stream(record.octets.len()),
            5 | 6 => pair.arrive(stream),
            _ => {
                pair.decoder.cancel(stream);
                pair.streams.remove(&stream);
                next_stream[place] += 1;
                REACH.hit("a pair has cancelled a stream");
            }
        }
        assert!(pair.encoder.table_size() <= limits.capacity);
        assert!(pair.decoder.table_size() <= limits.capacity);
        assert!(pair.decoder.blocked_streams() as u64 <= limits.blocked);
        if limits.capacity > 0 && pair.decoder.table_size() + 64 > limits.capacity {
            REACH.hit("a pair has a full table");
        }
    }
    pair.advance_encoder_stream(usize::MAX);
    let streams: Vec<u64> = pair.streams.keys().copied().collect();
    for stream in streams {
        while !pair.streams[&stream].sections.is_empty() {
            pair.arrive(stream);
        }
        assert!(pair.streams[&stream].waiting.is_empty());
    }
    pair.advance_decoder_stream(usize::MAX);
    assert_eq!((pair.encoder.outstanding_sections(), pair.encoder.blocking_streams()), (0, 0));
    assert_eq!(pair.encoder.table_size(), pair.decoder.table_size());
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    let [mode, limits, rest @ ..] = input else { return };
    let capacity = [0, 100, 220, 1024][usize::from(limits & 3)];
    let limits = Limits { capacity, blocked: u64::from(limits >> 2 & 3) };
    let records = records(rest);
    match mode % 3 {
        0 => hostile_encoder(limits, &records),
        1 => hostile_decoder(limits, &records),
        _ => pair(limits, &records),
    }
});
