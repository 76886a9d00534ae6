//! The receiver, by topic. A packet here is its chunks; what a receiver would send is parsed from
//! the packet that it writes.

mod delivery;
mod forward_tsn;
mod hostile;
mod properties;
mod reassembly;
mod receive_order;
mod sack;

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::time::Duration;

use super::{AssociationReceiver, DataOutcome};
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::identifier::{PathId, Ppid, StreamId, VerificationTag};
use crate::message::Message;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::{
    ChecksumKind, Chunk, CommonHeader, DataChunk, DataFlags, DataOrder, PacketParser, PacketWriter,
    SackChunk,
};

pub(super) const PATH: PathId = PathId(0);
/// Its round-trip time.
const RTT: Option<Duration> = Some(Duration::from_millis(80));

/// The initial TSN of all tests, close to wrapping around.
pub(super) const FIRST: u32 = u32::MAX - 3;

/// A receiver with its counters.
pub(super) struct Side {
    pub(super) receiver: AssociationReceiver,
    pub(super) counters: EndpointCounters,
    pub(super) now: Duration,
}

pub(super) fn config() -> AssociationConfig {
    AssociationConfig::default()
}

impl Side {
    pub(super) fn with(config: &AssociationConfig, interleaving: bool, nr_sack: bool) -> Self {
        Self {
            receiver: AssociationReceiver::new(config, Tsn(FIRST), 16, interleaving, nr_sack),
            counters: EndpointCounters::default(),
            now: Duration::from_secs(100),
        }
    }

    /// A receiver of DATA chunks.
    pub(super) fn data() -> Self {
        Self::with(&config(), false, false)
    }

    /// Receives a packet with these chunks.
    pub(super) fn packet(&mut self, chunks: &[DataChunk]) -> Vec<DataOutcome> {
        let bytes = 12 + chunks.iter().map(|chunk| 16 + chunk.payload.len()).sum::<usize>();
        let outcomes = chunks
            .iter()
            .map(|chunk| self.receiver.handle_data(&mut chunk.clone(), &mut self.counters))
            .collect();
        self.receiver.end_of_packet(self.now, (PATH, RTT), bytes, false);
        outcomes
    }

    /// Receives a packet with one chunk.
    pub(super) fn chunk(&mut self, chunk: &DataChunk) -> DataOutcome {
        self.packet(core::slice::from_ref(chunk))[0]
    }

    /// All messages that the application can read now.
    pub(super) fn receive(&mut self) -> Vec<Message> {
        core::iter::from_fn(|| self.receiver.receive()).collect()
    }

    /// The data of all messages that the application can read now, as text.
    pub(super) fn texts(&mut self) -> Vec<alloc::string::String> {
        let text = |message: Message| {
            alloc::string::String::from_utf8_lossy(&message.into_bytes()).into_owned()
        };
        self.receive().into_iter().map(text).collect()
    }

    pub(super) fn wants_sack(&self) -> bool {
        self.receiver.sack_wanted(self.now)
    }

    /// The SACK that is sent now, in a packet of its own.
    pub(super) fn sack(&mut self) -> SackChunk {
        self.sack_in(1452)
    }

    /// The SACK in a packet of at most `limit` bytes.
    pub(super) fn sack_in(&mut self, limit: usize) -> SackChunk {
        let header = CommonHeader { source_port: 1, destination_port: 2, tag: VerificationTag(3) };
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, header, limit);
        assert!(self.receiver.write_sack(&mut packet));
        packet.finish(ChecksumKind::Crc32c);
        let contents = buffer.freeze();
        let (_, mut chunks) =
            PacketParser::parse(&contents, ChecksumKind::Crc32c).expect("a packet");
        let Some(Chunk::Sack(sack)) = chunks.next() else { panic!("no SACK") };
        sack
    }
}

/// Offsets of the first and last TSN of each gap block.
pub(super) fn gaps(sack: &SackChunk) -> Vec<(u16, u16)> {
    sack.gap_blocks().map(|block| (block.start, block.end)).collect()
}

/// The TSN `offset` after the first.
pub(super) fn tsn(offset: u32) -> Tsn {
    Tsn(FIRST).plus(offset)
}

/// A DATA chunk with a whole ordered message on stream 0.
pub(super) fn whole(offset: u32, ssn: u16, text: &'static str) -> DataChunk {
    DataChunk {
        tsn: tsn(offset),
        stream: StreamId(0),
        flags: DataFlags::WHOLE,
        order: DataOrder::Ssn(Ssn(ssn)),
        ppid: Ppid(7),
        payload: Bytes::from_static(text.as_bytes()),
    }
}

/// A fragment in a DATA chunk of an ordered message on stream 0: "b" begins, "e" ends.
pub(super) fn fragment(offset: u32, ssn: u16, marks: &str, text: &'static str) -> DataChunk {
    let mut chunk = whole(offset, ssn, text);
    chunk.flags.begin = marks.contains('b');
    chunk.flags.end = marks.contains('e');
    chunk.flags.unordered = marks.contains('u');
    chunk
}

/// A fragment in an I-DATA chunk of a message on `stream`.
pub(super) fn i_fragment(
    offset: u32,
    (stream, mid, fsn): (u16, u32, u32),
    marks: &str,
    text: &'static str,
) -> DataChunk {
    let mut chunk = fragment(offset, 0, marks, text);
    chunk.stream = StreamId(stream);
    chunk.order = DataOrder::Mid { mid: Mid(mid), fsn };
    if fsn > 0 {
        chunk.ppid = Ppid(0);
    }
    chunk
}
