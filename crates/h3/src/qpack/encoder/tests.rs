use super::*;
use crate::qpack::{Decoded, Decoder, DecoderSetup};

type Field<'a> = (&'a [u8], &'a [u8], Sensitivity);

const REQUEST: [(&str, &str); 9] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.com"),
    (":path", "/"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("sec-fetch-mode", "navigate"),
];

fn fields<'a>(texts: &'a [(&str, &str)]) -> impl Iterator<Item = Field<'a>> {
    texts.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes(), Sensitivity::Ordinary))
}

fn encoder(setup: EncoderSetup, capacity: u64, blocked: u64) -> Encoder {
    let mut encoder = Encoder::new(setup);
    encoder.set_peer_limits(capacity, blocked).expect("they are the first");
    encoder
}

fn encoded(encoder: &mut Encoder, stream: u64, texts: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    encoder.encode(stream, fields(texts), &mut section);
    section
}

/// Encodes, and lets a decoder acknowledge everything at once; returns the section's length and that
/// of the instructions beside it.
fn exchange(
    encoder: &mut Encoder,
    decoder: &mut Decoder,
    stream: u64,
    texts: &[(&str, &str)],
) -> (usize, usize) {
    let section = encoded(encoder, stream, texts);
    let instructions = encoder.take_instructions();
    let lengths = (section.len(), instructions.len());
    decoder.handle_encoder_stream(&instructions).expect("valid instructions");
    let Ok(Decoded::Ready(lines)) = decoder.decode(stream, section.into()) else { panic!() };
    assert!(lines.iter().map(|line| line.as_parts()).eq(fields(texts)));
    encoder.handle_decoder_stream(&decoder.take_instructions()).expect("valid instructions");
    assert_eq!((encoder.table_size(), encoder.outstanding_sections()), (decoder.table_size(), 0));
    lengths
}

#[test]
fn a_repeated_request_costs_an_octet_for_each_field() {
    let mut encoder = encoder(EncoderSetup::default(), 4096, 0);
    let mut decoder = Decoder::new(DecoderSetup::default());
    let first = exchange(&mut encoder, &mut decoder, 0, &REQUEST);
    assert!(first.0 > 100 && first.1 > 100, "{first:?}");
    let again = exchange(&mut encoder, &mut decoder, 4, &REQUEST);
    assert_eq!(again, (2 + REQUEST.len(), 0));
}

//= rfc9204 §2.1.2
//# MUST limit the streams that may be blocked; by default none
#[test]
fn no_section_refers_to_what_is_not_acknowledged() {
    let mut encoder = encoder(EncoderSetup::default(), 4096, 100);
    for stream in 0..10 {
        let section = encoded(&mut encoder, stream, &REQUEST);
        assert_eq!(section[..2], [0, 0], "the Required Insert Count is 0");
    }
    let sent = encoder.take_instructions().len();
    assert!((1..400).contains(&sent), "inserted once: {sent}");
    assert_eq!((encoder.outstanding_sections(), encoder.blocking_streams()), (0, 0));
}

//= rfc9204 §2.1.2
//# `EncoderSetup::max_blocked_streams` allows some
#[test]
fn some_streams_may_block() {
    let setup = EncoderSetup { max_blocked_streams: 2, ..EncoderSetup::default() };
    let mut encoder = encoder(setup, 4096, 100);
    for stream in [0, 4, 0] {
        assert_ne!(encoded(&mut encoder, stream, &REQUEST)[0], 0);
    }
    assert_eq!(encoded(&mut encoder, 8, &REQUEST)[..2], [0, 0], "two streams are waiting");
    assert_eq!((encoder.outstanding_sections(), encoder.blocking_streams()), (3, 2));
    // A cancelled stream does not wait any more, and nothing else is known of it.
    encoder.handle_decoder_stream(&[0x40]).expect("a valid instruction");
    assert_eq!((encoder.outstanding_sections(), encoder.blocking_streams()), (1, 1));
    assert_ne!(encoded(&mut encoder, 8, &REQUEST)[0], 0);
    encoder.handle_decoder_stream(&[0x84, 0x88]).expect("valid instructions");
    assert_eq!((encoder.outstanding_sections(), encoder.blocking_streams()), (0, 0));
}

#[test]
fn the_peer_limits_blocked_streams_too() {
    let setup = EncoderSetup { max_blocked_streams: 2, ..EncoderSetup::default() };
    let mut encoder = encoder(setup, 4096, 1);
    assert_ne!(encoded(&mut encoder, 0, &REQUEST)[0], 0);
    assert_eq!(encoded(&mut encoder, 4, &REQUEST)[0], 0);
}

//= rfc9204 §3.2.3
//# MUST NOT send instructions while the maximum is 0
#[test]
fn without_a_table_only_static_entries_are_used() {
    for (setup, capacity) in [(EncoderSetup::STATIC_ONLY, 4096), (EncoderSetup::default(), 0)] {
        let mut encoder = encoder(setup, capacity, 100);
        for stream in 0..3 {
            assert_eq!(encoded(&mut encoder, stream, &REQUEST)[..2], [0, 0]);
        }
        assert_eq!(encoder.take_instructions(), "");
    }
}

//= rfc9204 §7.1.3
//# sensitive fields MUST be literals with the N bit
#[test]
fn sensitive_fields_are_literals_that_are_never_indexed() {
    let setup = EncoderSetup { max_blocked_streams: 10, ..EncoderSetup::default() };
    let mut encoder = encoder(setup, 4096, 10);
    let secret = |name: &'static str| (name.as_bytes(), &b"secret"[..], Sensitivity::Sensitive);
    let secrets = ["authorization", "user-agent", "x-key"].map(secret);
    for stream in 0..4 {
        let mut section = Vec::new();
        encoder.encode(stream, secrets, &mut section);
        let fields = Decoder::new(DecoderSetup::default()).decode(stream, section.into());
        let Ok(Decoded::Ready(fields)) = fields else { panic!("{fields:?}") };
        assert!(fields.iter().all(|field| field.sensitive));
        assert!(fields.iter().map(|field| field.as_parts()).eq(secrets));
    }
    assert_eq!(encoder.take_instructions(), "");
}

//= rfc9204 §7.1
//# values that differ, and secrets that can be guessed, are not inserted
#[test]
fn fields_that_differ_are_not_inserted() {
    let mut encoder = encoder(EncoderSetup::default(), 4096, 0);
    for stream in 0..4 {
        let path = alloc::format!("/{stream}");
        let id = alloc::format!("0123456789-{stream}");
        let response = [
            (":path", &path[..]),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("content-length", "1234"),
            ("etag", "\"abc\""),
            ("authorization", "Basic YTpi"),
            ("cookie", "pin=1234"),
            ("x-unknown-id", &id),
        ];
        encoded(&mut encoder, stream, &response);
    }
    assert_eq!(encoder.take_instructions(), "");
}

#[test]
fn an_unknown_field_is_inserted_when_it_is_seen_again() {
    let mut encoder = encoder(EncoderSetup::default(), 4096, 0);
    let mut decoder = Decoder::new(DecoderSetup::default());
    let fields = [("x-tenant", "acme")];
    let lengths: Vec<_> =
        (0..3).map(|n| exchange(&mut encoder, &mut decoder, 4 * n, &fields)).collect();
    assert!(lengths[0].1 == 0 && lengths[1].1 > 0 && lengths[2] == (3, 0), "{lengths:?}");
    // So is a path that is requested again.
    let path = [(":path", "/package.Service/Method")];
    let lengths: Vec<_> =
        (0..3).map(|n| exchange(&mut encoder, &mut decoder, 4 * n, &path)).collect();
    assert!(lengths[0].1 == 0 && lengths[1].1 > 0 && lengths[2] == (3, 0), "{lengths:?}");
    // The name is known now, for another value.
    let other = exchange(&mut encoder, &mut decoder, 12, &[("x-tenant", "more")]);
    assert!(other.0 < lengths[0].0 && other.1 == 0, "{other:?}");
}

#[test]
fn a_value_that_changes_does_not_fill_the_table() {
    let mut encoder = encoder(EncoderSetup::default(), 4096, 0);
    let mut decoder = Decoder::new(DecoderSetup::default());
    for stream in 0..100 {
        let cookie = alloc::format!("session=0123456789abcdef{stream}");
        exchange(&mut encoder, &mut decoder, stream, &[("cookie", &cookie)]);
    }
    assert!(encoder.table_size() < 100, "{}", encoder.table_size());
}

//= rfc9204 §2.1.1.1
//# an entry that is soon evicted is inserted again
#[test]
fn entries_that_are_used_outlive_others() {
    let mut encoder = encoder(EncoderSetup::default(), 1024, 0);
    let setup = DecoderSetup { max_capacity: 1024, ..DecoderSetup::default() };
    let mut decoder = Decoder::new(setup);
    let agent = ("user-agent", "an agent");
    exchange(&mut encoder, &mut decoder, 0, &[agent]);
    for stream in 1..200 {
        // Each is inserted the second time.
        let other = alloc::format!("value {}", stream / 2);
        let (length, _) =
            exchange(&mut encoder, &mut decoder, stream, &[agent, ("x-other", &other)]);
        assert!(length < 20, "the agent is never sent again: {length}");
    }
}

//= rfc9204 §2.1.1
//# MUST NOT evict what is unacknowledged or referenced
#[test]
fn nothing_unacknowledged_or_referenced_is_evicted() {
    let setup = EncoderSetup { max_blocked_streams: 1, ..EncoderSetup::default() };
    let mut encoder = encoder(setup, 180, 1);
    let sections: Vec<_> = (0..6_u64)
        .map(|stream| {
            let value = alloc::format!("{stream}");
            // The same field twice, so that it is inserted.
            let field = ("x-f", &value[..]);
            encoded(&mut encoder, stream, &[field, field])
        })
        .collect();
    // Five entries of 36 octets fit; the sixth would evict one that is not acknowledged.
    assert_eq!((encoder.table_size(), encoder.outstanding_sections()), (180, 1));
    let setup = DecoderSetup { max_capacity: 180, ..DecoderSetup::default() };
    let mut decoder = Decoder::new(setup);
    decoder.handle_encoder_stream(&encoder.take_instructions()).expect("valid instructions");
    encoder.handle_decoder_stream(&decoder.take_instructions()).expect("a valid instruction");
    // Acknowledged, but the first is referenced.
    let again = [("x-g", "1"), ("x-g", "1")];
    encoded(&mut encoder, 100, &again);
    assert_eq!(encoder.take_instructions(), "");
    assert!(matches!(decoder.decode(0, sections[0].clone().into()), Ok(Decoded::Ready(_))));
    encoder.handle_decoder_stream(&decoder.take_instructions()).expect("a valid instruction");
    encoded(&mut encoder, 104, &again);
    assert!(!encoder.take_instructions().is_empty());
    assert_eq!(encoder.table_size(), 180);
}

//= rfc9204 §4.4.1, §4.4.3
//# acknowledgments of nothing, increments of 0 or too much: MUST be QPACK_DECODER_STREAM_ERROR
#[test]
fn invalid_decoder_instructions_fail() {
    for (octets, rule) in [
        (&[0x80][..], QpackRule::NothingToAcknowledge),
        (&[0x85, 0x85], QpackRule::NothingToAcknowledge),
        (&[0x00], QpackRule::IncrementOfZero),
        (&[0x3f, 0x00], QpackRule::IncrementBeyondInsertions),
        (&[0x85, 0x01], QpackRule::IncrementBeyondInsertions),
        (&[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], QpackRule::IntegerTooLarge),
    ] {
        let setup = EncoderSetup { max_blocked_streams: 1, ..EncoderSetup::default() };
        let begin = || {
            let mut encoder = encoder(setup, 4096, 1);
            encoded(&mut encoder, 5, &[("server", "x")]);
            encoder
        };
        let failed = Err(QpackFault::DecoderStream(rule));
        assert_eq!(begin().handle_decoder_stream(octets), failed, "{octets:x?}");
        let mut encoder = begin();
        let each = octets.iter().try_for_each(|octet| encoder.handle_decoder_stream(&[*octet]));
        assert_eq!(each, failed, "{octets:x?}");
    }
}

//= rfc9204 §4.4.2
//# a stream that is not known may be cancelled
#[test]
fn a_cancellation_of_any_stream_is_accepted() {
    let mut encoder = encoder(EncoderSetup::default(), 4096, 1);
    assert_eq!(encoder.handle_decoder_stream(&[0x40, 0x7f, 0x80, 0x01]), Ok(()));
}

//= rfc9204 §3.2.3
//# a maximum capacity that is not the one remembered for 0-RTT: QPACK_DECODER_STREAM_ERROR
#[test]
fn remembered_limits_stay_or_begin() {
    let mut remembered = encoder(EncoderSetup::default(), 4096, 0);
    assert_eq!(remembered.set_peer_limits(4096, 10), Ok(()));
    let changed = Err(QpackFault::DecoderStream(QpackRule::CapacityNotAsRemembered));
    assert_eq!(remembered.set_peer_limits(0, 10), changed);
    assert_eq!(remembered.set_peer_limits(8192, 10), changed);
    let mut without = encoder(EncoderSetup::default(), 0, 0);
    assert_eq!(without.set_peer_limits(4096, 10), Ok(()));
    encoded(&mut without, 0, &REQUEST);
    assert!(!without.take_instructions().is_empty());
}

//= rfc9204 §7.3
//# 4,096 sections with references are tracked; more have none
#[test]
fn outstanding_sections_are_bounded() {
    let mut encoder = encoder(EncoderSetup::default(), 4096, 0);
    let mut decoder = Decoder::new(DecoderSetup::default());
    exchange(&mut encoder, &mut decoder, 0, &REQUEST);
    let lengths: Vec<_> =
        (1..5000).map(|stream| encoded(&mut encoder, stream, &REQUEST).len()).collect();
    assert_eq!((lengths[0], encoder.outstanding_sections()), (11, 4096));
    assert!(lengths[4998] > 100);
    assert_eq!(encoder.handle_decoder_stream(&[0x81]), Ok(()));
    assert_eq!(encoded(&mut encoder, 5000, &REQUEST).len(), 11);
}

#[test]
fn the_instructions_of_rfc_9204_appendix_b_are_exact() {
    let mut out = Vec::new();
    write_set_capacity(220, &mut out);
    assert_eq!(out, [0x3f, 0xbd, 0x01]);
    // The examples do without the Huffman code, which is shorter here: the rest is the same.
    let mut out = Vec::new();
    write_insert_with_static_name(0, b"", &mut out);
    write_insert_with_static_name(1, b"", &mut out);
    write_insert_with_dynamic_name(1, b"", &mut out);
    write_insert_with_literal_name(b"", b"", &mut out);
    write_duplicate(2, &mut out);
    assert_eq!(out, [0xc0, 0, 0xc1, 0, 0x81, 0, 0x40, 0, 0x02]);
    let mut prefix = Vec::new();
    SectionPrefix { required: 2, base: 0 }.write(220, &mut prefix);
    SectionPrefix { required: 4, base: 4 }.write(220, &mut prefix);
    assert_eq!(prefix, [0x03, 0x81, 0x05, 0x00]);
    let mut out = Vec::new();
    DecoderInstruction::SectionAcknowledgment { stream: 4 }.write(&mut out);
    DecoderInstruction::InsertCountIncrement { increment: 1 }.write(&mut out);
    DecoderInstruction::StreamCancellation { stream: 8 }.write(&mut out);
    assert_eq!(out, [0x84, 0x01, 0x48]);
}
