//! An encoder and a decoder whose streams are independent, as in QUIC.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// How many streams are used at a time.
const STREAMS: u64 = 6;

type OwnedField = (String, String, bool);

/// A section on its way, and what it has to be decoded to.
#[derive(Clone, Debug)]
struct Sent {
    section: Vec<u8>,
    fields: Vec<OwnedField>,
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Encode {
        stream: u64,
        fields: Vec<OwnedField>,
    },
    /// So many octets of the encoder stream arrive.
    EncoderStream(usize),
    /// So many octets of the decoder stream arrive.
    DecoderStream(usize),
    /// The next section of a stream arrives.
    Section {
        stream: u64,
    },
    /// The decoder reads no more of a stream.
    Cancel {
        stream: u64,
    },
}

struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    capacity: u64,
    blocked: usize,
    encoder_stream: VecDeque<u8>,
    decoder_stream: VecDeque<u8>,
    sections: BTreeMap<u64, VecDeque<Sent>>,
    /// How many streams of the same number in the steps were cancelled: nothing more is sent on them.
    cancelled: BTreeMap<u64, u64>,
    /// What is decoded next on each stream whose sections wait.
    expected: BTreeMap<u64, VecDeque<Vec<OwnedField>>>,
}

impl Pair {
    fn new(capacity: u64, own_capacity: u64, blocked: u64) -> Self {
        let limits = DecoderSetup {
            max_capacity: capacity,
            max_blocked_streams: blocked,
            ..Default::default()
        };
        let setup = EncoderSetup { max_capacity: own_capacity, max_blocked_streams: blocked };
        let mut encoder = Encoder::new(setup);
        encoder.set_peer_limits(capacity, blocked).expect("they are the first");
        Self {
            encoder,
            decoder: Decoder::new(limits),
            capacity: capacity.min(own_capacity),
            blocked: blocked as usize,
            encoder_stream: VecDeque::new(),
            decoder_stream: VecDeque::new(),
            sections: BTreeMap::new(),
            cancelled: BTreeMap::new(),
            expected: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Encode { stream, fields } => self.encode(self.current(stream), fields),
            Step::EncoderStream(count) => {
                let count = count.min(self.encoder_stream.len());
                let octets: Vec<u8> = self.encoder_stream.drain(..count).collect();
                self.decoder.handle_encoder_stream(&octets).expect("valid instructions");
                while let Some((stream, fields)) = self.decoder.unblocked() {
                    self.check(stream, &fields.expect("a valid section"));
                }
            }
            Step::DecoderStream(count) => {
                self.decoder_stream.extend(self.decoder.take_instructions());
                let count = count.min(self.decoder_stream.len());
                let octets: Vec<u8> = self.decoder_stream.drain(..count).collect();
                self.encoder.handle_decoder_stream(&octets).expect("valid instructions");
            }
            Step::Section { stream } => self.arrive(self.current(stream)),
            Step::Cancel { stream } => {
                let current = self.current(stream);
                self.decoder.cancel(current);
                self.sections.remove(&current);
                self.expected.remove(&current);
                *self.cancelled.entry(stream).or_default() += 1;
            }
        }
        assert!(self.encoder.table_size() <= self.capacity);
        assert!(self.decoder.table_size() <= self.capacity);
        assert!(self.decoder.blocked_streams() <= self.blocked);
        assert!(self.encoder.blocking_streams() <= self.blocked);
    }

    /// Returns the stream that a step means by this number.
    fn current(&self, stream: u64) -> u64 {
        stream + STREAMS * self.cancelled.get(&stream).copied().unwrap_or(0)
    }

    fn encode(&mut self, stream: u64, fields: Vec<OwnedField>) {
        let mut section = Vec::new();
        let parts = fields.iter().map(|(name, value, sensitive)| {
            (name.as_bytes(), value.as_bytes(), Sensitivity::from(*sensitive))
        });
        self.encoder.encode(stream, parts, &mut section);
        self.encoder_stream.extend(self.encoder.take_instructions());
        self.sections.entry(stream).or_default().push_back(Sent { section, fields });
    }

    fn arrive(&mut self, stream: u64) {
        let is_waiting = self.expected.get(&stream).map_or(0, VecDeque::len);
        if is_waiting == MAX_SECTIONS_OF_BLOCKED_STREAM {
            return;
        }
        let Some(sent) = self.sections.get_mut(&stream).and_then(VecDeque::pop_front) else {
            return;
        };
        self.expected.entry(stream).or_default().push_back(sent.fields);
        match self.decoder.decode(stream, Bytes::from(sent.section)).expect("a valid section") {
            Decoded::Ready(fields) => self.check(stream, &fields),
            Decoded::Blocked => assert!(self.blocked > 0, "no stream may block"),
        }
    }

    fn check(&mut self, stream: u64, fields: &[FieldLine]) {
        let expected = self.expected.get_mut(&stream).and_then(VecDeque::pop_front);
        let text = |octets: &Bytes| String::from_utf8(octets.to_vec()).expect("text");
        let decoded: Vec<OwnedField> = fields
            .iter()
            .map(|field| (text(&field.name), text(&field.value), field.sensitive))
            .collect();
        assert_eq!(Some(decoded), expected);
    }

    /// Delivers everything, after which nothing waits.
    fn finish(&mut self) {
        self.step(Step::EncoderStream(usize::MAX));
        let streams: Vec<u64> = self.sections.keys().copied().collect();
        for stream in streams {
            while self.sections.get(&stream).is_some_and(|sections| !sections.is_empty()) {
                self.arrive(stream);
            }
        }
        self.step(Step::DecoderStream(usize::MAX));
        assert!(self.expected.values().all(VecDeque::is_empty), "everything is decoded");
        assert_eq!(self.encoder.outstanding_sections(), 0);
        assert_eq!((self.encoder.blocking_streams(), self.decoder.blocked_streams()), (0, 0));
        assert_eq!(self.encoder.table_size(), self.decoder.table_size());
        assert_eq!(self.decoder.partial_octets(), 0);
    }
}

fn field() -> impl Strategy<Value = OwnedField> {
    const NAMES: [&str; 11] = [
        ":authority",
        ":path",
        ":status",
        "accept",
        "cookie",
        "user-agent",
        "x-a",
        "x-b",
        "x-c",
        "",
        "x-a-name-that-is-rather-long",
    ];
    let value = prop_oneof![
        4 => (0..6_u8).prop_map(|number| alloc::format!("value {number}")),
        1 => "[ -~]{0,60}",
        1 => Just("*/*".into()),
    ];
    let is_sensitive = prop::bool::weighted(0.1);
    (prop::sample::select(&NAMES[..]), value, is_sensitive)
        .prop_map(|(name, value, sensitive)| (name.into(), value, sensitive))
}

fn step() -> impl Strategy<Value = Step> {
    let stream = 0..STREAMS;
    let octets = prop_oneof![0..5_usize, 0..200_usize];
    prop_oneof![
        4 => (stream.clone(), prop::collection::vec(field(), 0..6))
            .prop_map(|(stream, fields)| Step::Encode { stream, fields }),
        3 => octets.clone().prop_map(Step::EncoderStream),
        3 => octets.prop_map(Step::DecoderStream),
        4 => stream.clone().prop_map(|stream| Step::Section { stream }),
        1 => stream.prop_map(|stream| Step::Cancel { stream }),
    ]
}

/// Everything that a decoder gives back for these octets of its encoder stream and these sections.
fn decode_hostile(
    stream: &[u8],
    cut: usize,
    sections: &[Vec<u8>],
) -> (Result<(), QpackFault>, Vec<u8>, u64) {
    let setup = DecoderSetup { max_capacity: 300, max_blocked_streams: 3, max_section_size: 2000 };
    let mut decoder = Decoder::new(setup);
    let mut result = Ok(());
    for piece in stream.chunks(cut) {
        result = result.and_then(|()| decoder.handle_encoder_stream(piece));
        assert!(decoder.table_size() <= setup.max_capacity);
        // Two strings in the Huffman code, with their lengths.
        assert!(decoder.partial_octets() <= 2 * (300 * 30 / 8 + 10) + piece.len());
    }
    for (index, section) in sections.iter().enumerate() {
        if let Ok(Decoded::Ready(fields)) = decoder.decode(index as u64, section.clone().into()) {
            let size: usize =
                fields.iter().map(|field| field.name.len() + field.value.len() + 32).sum();
            assert!(size <= 2000);
        }
        assert!(decoder.blocked_streams() <= 3);
    }
    (result, decoder.take_instructions().to_vec(), decoder.table_size())
}

/// Octets that are often instructions and lines.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let octet = prop_oneof![
        any::<u8>(),
        prop::sample::select(
            &[0x00, 0x01, 0x02, 0x10, 0x20, 0x3f, 0x41, 0x80, 0x81, 0xc0, 0xff][..]
        ),
    ];
    prop::collection::vec(octet, 0..80)
}

proptest! {
    //= rfc9204 §2.1
    //# lines keep their order
    #[test]
    fn every_section_is_decoded_to_what_was_encoded(
        capacity in prop_oneof![Just(0_u64), 0..200_u64, 200..4096_u64],
        own_capacity in prop_oneof![Just(0_u64), Just(4096), 0..300_u64],
        blocked in 0..4_u64,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut pair = Pair::new(capacity, own_capacity, blocked);
        steps.into_iter().for_each(|step| pair.step(step));
        pair.finish();
    }

    //= rfc9204 §4.3, §4.4
    //# instructions split anywhere
    #[test]
    fn a_hostile_encoder_is_bounded_however_its_stream_is_cut(
        octets in hostile(),
        sections in prop::collection::vec(hostile(), 0..6),
        cut in 1..20_usize,
    ) {
        // A table is the rule, so that there is something to break.
        let stream = [&[0x3f, 0x8d, 0x02][..], &octets].concat();
        let whole = decode_hostile(&stream, stream.len(), &sections);
        prop_assert_eq!(&whole, &decode_hostile(&stream, 1, &sections));
        prop_assert_eq!(&whole, &decode_hostile(&stream, cut, &sections));
    }

    #[test]
    fn a_hostile_decoder_is_bounded_however_its_stream_is_cut(
        octets in hostile(),
        cut in 1..20_usize,
    ) {
        let run = |cut: usize| {
            let mut pair = Pair::new(400, 400, 2);
            for stream in 0..4 {
                let fields = [("server", "a"), ("via", "b"), ("x-a", "c"), ("x-a", "c")];
                let fields = fields.map(|(name, value)| (name.into(), value.into(), false));
                pair.encode(stream, fields.to_vec());
            }
            let mut pieces = octets.chunks(cut);
            let result = pieces.try_for_each(|piece| pair.encoder.handle_decoder_stream(piece));
            (result, pair.encoder.outstanding_sections(), pair.encoder.blocking_streams())
        };
        let whole = run(octets.len().max(1));
        prop_assert_eq!(whole, run(1));
        prop_assert_eq!(whole, run(cut));
        prop_assert!(whole.1 <= 4 && whole.2 <= 2);
    }
}
