//! Arbitrary bytes as an SCTP packet: parsing terminates, and parsed chunks can be encoded and parsed to the
//! same chunks.
#![no_main]

use bytes::{Bytes, BytesMut};
use eyas_sctp::auth::AuthOffer;
use eyas_sctp::wire::{
    Causes, ChecksumKind, Chunk, CommonHeader, DataOrder, EncodeChunk, ErrorCause, PacketParser,
    PacketWriter, Parameter, Parameters,
};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<22> = Reach::new([
    "DATA",
    "I-DATA",
    "INIT",
    "INIT ACK",
    "SACK",
    "HEARTBEAT",
    "ABORT",
    "SHUTDOWN",
    "ERROR",
    "COOKIE ECHO",
    "AUTH",
    "ASCONF",
    "ASCONF-ACK",
    "RE-CONFIG",
    "FORWARD TSN",
    "I-FORWARD-TSN",
    "PAD",
    "an unknown chunk",
    "a malformed chunk",
    "a parameter",
    "a malformed parameter",
    "a cause",
]);

/// Returns the name of what a chunk has reached.
fn name(chunk: &Chunk) -> Option<&'static str> {
    Some(match chunk {
        Chunk::Data(data) if matches!(data.order, DataOrder::Ssn(_)) => "DATA",
        Chunk::Data(_) => "I-DATA",
        Chunk::Init(_) => "INIT",
        Chunk::InitAck(_) => "INIT ACK",
        Chunk::Sack(_) => "SACK",
        Chunk::Heartbeat(_) => "HEARTBEAT",
        Chunk::Abort(_) => "ABORT",
        Chunk::Shutdown { .. } => "SHUTDOWN",
        Chunk::Error(_) => "ERROR",
        Chunk::CookieEcho(_) => "COOKIE ECHO",
        Chunk::Auth(_) => "AUTH",
        Chunk::Asconf(_) => "ASCONF",
        Chunk::AsconfAck(_) => "ASCONF-ACK",
        Chunk::Reconfig(_) => "RE-CONFIG",
        Chunk::ForwardTsn(_) => "FORWARD TSN",
        Chunk::IForwardTsn(_) => "I-FORWARD-TSN",
        Chunk::Pad { .. } => "PAD",
        Chunk::Unknown(_) => "an unknown chunk",
        Chunk::Malformed { .. } => "a malformed chunk",
        _ => return None,
    })
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    let mut input = input.to_vec();
    // Fuzzing cannot find a valid checksum, so none is required.
    if let Some(checksum) = input.get_mut(8..12) {
        checksum.fill(0);
    }
    let packet = Bytes::from(input);
    let Ok((header, chunks)) = PacketParser::parse(&packet, ChecksumKind::Zero) else {
        assert!(packet.len() < 12);
        return;
    };
    let types = chunks.types().count();
    let remaining = chunks.remaining();
    let chunks: Vec<Chunk> = chunks.collect();
    assert!(types <= chunks.len() && chunks.len() <= types + 1);
    assert!(types * 4 <= remaining + 3, "every chunk has a header");
    for chunk in chunks {
        if let Some(name) = name(&chunk) {
            REACH.hit(name);
        }
        check_content(&chunk);
        check_round_trip(header, &chunk);
    }
});

/// Checks all lists in a chunk.
fn check_content(chunk: &Chunk) {
    match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => {
            check_parameters(&init.parameters);
            if let Some(offer) = AuthOffer::from_parameters(&init.parameters) {
                let parameters: Parameters = offer.parameters().collect();
                assert_eq!(AuthOffer::from_parameters(&parameters), Some(offer));
            }
        }
        Chunk::Asconf(asconf) => check_parameters(&asconf.parameters),
        Chunk::AsconfAck(ack) => check_parameters(&ack.parameters),
        Chunk::Reconfig(reconfig) => check_parameters(&reconfig.parameters),
        Chunk::Abort(abort) => check_causes(&abort.causes),
        Chunk::Error(error) => check_causes(&error.causes),
        Chunk::Sack(sack) => {
            let blocks = sack.gap_blocks().chain(sack.nr_gap_blocks()).count();
            assert_eq!(blocks, sack.gap_blocks().len() + sack.nr_gap_blocks().len());
            assert_eq!(sack.duplicates().count(), sack.duplicates().len());
        }
        Chunk::ForwardTsn(forward) => assert!(forward.skipped().count() < 1 << 14),
        Chunk::IForwardTsn(forward) => assert!(forward.skipped().count() < 1 << 13),
        _ => {}
    }
}

fn check_parameters(parameters: &Parameters) {
    for parameter in parameters.iter() {
        match &parameter {
            Parameter::Malformed { .. } => {
                REACH.hit("a malformed parameter");
                continue;
            }
            Parameter::ErrorCauseIndication { causes, .. } => check_causes(causes),
            _ => {}
        }
        REACH.hit("a parameter");
        let written = Parameters::from_bytes(parameter.to_bytes());
        assert!(written.iter().eq([parameter]));
    }
}

fn check_causes(causes: &Causes) {
    for cause in causes.iter() {
        match &cause {
            ErrorCause::Malformed { .. } => continue,
            ErrorCause::UnrecognizedParameters(parameters) => check_parameters(parameters),
            _ => {}
        }
        REACH.hit("a cause");
        let written = Causes::from(cause.clone());
        assert!(written.iter().eq([cause]));
    }
}

/// Checks that the encoded chunk parses to the same chunk.
fn check_round_trip(header: CommonHeader, chunk: &Chunk) {
    if matches!(chunk, Chunk::Malformed { .. }) {
        return;
    }
    let mut buffer = BytesMut::new();
    let mut writer = PacketWriter::begin(&mut buffer, header, 1 << 17);
    assert!(writer.append(chunk), "a chunk of one packet fits into one");
    let length = writer.finish(ChecksumKind::Crc32c);
    let packet = buffer.freeze();
    assert_eq!(packet.len(), length);
    assert_eq!(length, 12 + chunk.encoded_len().next_multiple_of(4));
    let (read_header, chunks) =
        PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("just written");
    assert_eq!(read_header, header);
    let mut expected = chunk.clone();
    if let Chunk::Auth(auth) = &mut expected {
        // It includes the data that follows it, which was not written.
        auth.covered = packet.slice(12..);
    }
    assert!(chunks.eq([expected]));
}
