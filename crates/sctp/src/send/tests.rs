//! The sender with a peer that acknowledges what a test specifies.

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::net::SocketAddr;
use core::time::Duration;

use super::{AssociationSender, SackOutcome, SenderTerms, TimeoutOutcome};
use crate::config::{AssociationConfig, CongestionControlKind, LossDetection};
use crate::counters::EndpointCounters;
use crate::error::Error;
use crate::event::Event;
use crate::identifier::{PathId, StreamId, VerificationTag};
use crate::message::SendInfo;
use crate::path::{AssociationPaths, SendAllowance};
use crate::serial::Tsn;
use crate::wire::{
    ChecksumKind, Chunk, CommonHeader, DataChunk, GapBlock, PacketParser, PacketWriter,
    SackBuilder, SackChunk,
};

mod losses;
mod packets;
mod paths;
mod properties;
mod queue;
mod reliability;
mod resets;
mod sacks;
mod window;

/// Our initial TSN, close to wrapping around.
const FIRST: Tsn = Tsn(u32::MAX - 2);

const HEADER: CommonHeader =
    CommonHeader { source_port: 1, destination_port: 2, tag: VerificationTag(0x0102_0304) };

/// The failed messages, if the events contain nothing else: stream, context, and whether a part was
/// sent.
pub(super) fn failures(events: &[Event]) -> Vec<(u16, u32, bool)> {
    let of = |event: &Event| match event {
        Event::SendFailed { stream, context, sent, .. } => (stream.0, *context, *sent),
        other => panic!("{other:?}"),
    };
    events.iter().map(of).collect()
}

/// A sender, its paths and the current time.
pub(super) struct Bench {
    pub(super) sender: AssociationSender,
    pub(super) paths: AssociationPaths,
    config: AssociationConfig,
    pub(super) counters: EndpointCounters,
    pub(super) now: Duration,
}

/// One packet as it was sent.
pub(super) struct SentPacket {
    pub(super) path: PathId,
    size: usize,
    pub(super) chunks: Vec<DataChunk>,
}

impl SentPacket {
    pub(super) fn tsns(&self) -> Vec<u32> {
        self.chunks.iter().map(|chunk| chunk.tsn.distance_from(FIRST)).collect()
    }
}

pub(super) fn config() -> AssociationConfig {
    AssociationConfig {
        congestion_control: CongestionControlKind::NewReno.into(),
        loss_detection: LossDetection::Classic,
        ..AssociationConfig::default()
    }
}

pub(super) fn terms() -> SenderTerms {
    SenderTerms {
        initial_tsn: FIRST,
        peer_window: 1 << 20,
        outbound: 100,
        interleaving: false,
        partial_reliability: true,
        reserved: 0,
    }
}

pub(super) fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// On stream `stream`.
pub(super) fn on(stream: u16) -> SendInfo {
    SendInfo { stream: StreamId(stream), ..SendInfo::default() }
}

impl Bench {
    fn new() -> Self {
        Self::with(config(), terms())
    }

    pub(super) fn with(config: AssociationConfig, terms: SenderTerms) -> Self {
        let remote = SocketAddr::from(([192, 0, 2, 1], 0));
        let paths = AssociationPaths::new(remote, None, &config, [7; 32]);
        let sender = AssociationSender::new(&config, terms);
        let now = Duration::from_secs(1000);
        Self { sender, paths, config, counters: EndpointCounters::default(), now }
    }

    /// Adds a second, confirmed path.
    pub(super) fn add_path(&mut self) -> PathId {
        let remote = SocketAddr::from(([192, 0, 2, 2], 0));
        let id = self.paths.add(remote, None, &self.config).expect("there are few paths");
        self.paths.confirm(id);
        id
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    pub(super) fn send(&mut self, info: SendInfo, length: usize) -> Result<(), Error> {
        self.send_bytes(info, Bytes::from(alloc::vec![0xab; length]))
    }

    fn send_bytes(&mut self, info: SendInfo, data: Bytes) -> Result<(), Error> {
        self.sender.send(self.now, &info, data, &mut self.paths)
    }

    /// Fills one packet for a path, regardless of its window.
    pub(super) fn packet(&mut self, path: PathId) -> Option<SentPacket> {
        let mtu = self.paths.get(path)?.mtu();
        let limit = self.sender.packet_limit(path, mtu);
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, HEADER, limit);
        let (paths, counters) = (&mut self.paths, &mut self.counters);
        let bytes = self.sender.fill(self.now, path, paths, &mut packet, counters);
        let size = packet.finish(ChecksumKind::Crc32c);
        if bytes == 0 {
            return None;
        }
        let contents = buffer.freeze();
        let (_, chunks) = PacketParser::parse(&contents, ChecksumKind::Crc32c).expect("a packet");
        let chunks: Vec<DataChunk> = chunks
            .map(|chunk| match chunk {
                Chunk::Data(data) => data,
                other => panic!("{other:?} instead of data"),
            })
            .collect();
        assert_eq!(chunks.iter().map(|chunk| chunk.payload.len()).sum::<usize>(), bytes);
        Some(SentPacket { path, size, chunks })
    }

    pub(super) fn has_data(&mut self, path: PathId) -> bool {
        self.sender.has_data_to_send(path, &self.paths)
    }

    /// Fills packets on all paths as far as their windows allow.
    fn output(&mut self) -> Vec<SentPacket> {
        let mut packets = Vec::new();
        let ids: Vec<PathId> = self.paths.iter().map(|path| path.id).collect();
        for id in ids {
            while self.has_data(id) {
                let path = self.paths.get(id).expect("listed");
                let SendAllowance::Now(_) = path.allowance(self.now, path.mtu()) else { break };
                let Some(packet) = self.packet(id) else { break };
                packets.push(packet);
            }
        }
        packets
    }

    /// Acknowledges the first `cumulative` chunks, and these chunks beyond them.
    fn sack(&mut self, cumulative: u32, beyond: &[(u32, u32)]) -> SackOutcome {
        let sack = sack(cumulative, beyond, 1 << 20);
        self.handle(&sack)
    }

    fn handle(&mut self, sack: &SackChunk) -> SackOutcome {
        self.handle_on(sack, PathId(0))
    }

    /// Handles a SACK that arrives on this path.
    pub(super) fn handle_on(&mut self, sack: &SackChunk, arrived_on: PathId) -> SackOutcome {
        let (paths, counters) = (&mut self.paths, &mut self.counters);
        let outcome = self.sender.handle_sack(self.now, sack, arrived_on, paths, counters);
        self.check();
        outcome
    }

    fn timeout(&mut self) -> TimeoutOutcome {
        let at = self.sender.next_timeout(&self.paths).expect("no timer runs");
        self.now = self.now.max(at);
        let outcome = self.sender.handle_timeout(self.now, &mut self.paths);
        self.check();
        outcome
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.sender.poll_event()).collect()
    }

    /// Checks the invariants.
    pub(super) fn check(&self) {
        let outstanding: usize = self.paths.iter().map(crate::path::Path::outstanding).sum();
        assert_eq!(outstanding, self.sender.in_flight(), "paths and sender disagree");
        self.sender.check_sums();
    }
}

/// A SACK for the first `cumulative` chunks, counted from 0, and for those from the first to the
/// last of each pair beyond.
fn sack(cumulative: u32, beyond: &[(u32, u32)], a_rwnd: u32) -> SackChunk {
    build(cumulative, beyond, a_rwnd, 0)
}

/// The same, for this many packets (DAC).
pub(super) fn sack_of(cumulative: u32, beyond: &[(u32, u32)], packets: u8) -> SackChunk {
    build(cumulative, beyond, 1 << 20, packets)
}

fn build(cumulative: u32, beyond: &[(u32, u32)], a_rwnd: u32, dac_count: u8) -> SackChunk {
    let offset = |chunk: u32| u16::try_from(chunk + 1 - cumulative).expect("near");
    let gap_blocks: Vec<GapBlock> = beyond
        .iter()
        .map(|&(first, last)| GapBlock { start: offset(first), end: offset(last) })
        .collect();
    let cumulative_tsn = FIRST.plus(cumulative).previous();
    SackBuilder { cumulative_tsn, a_rwnd, gap_blocks: &gap_blocks, dac_count, ..Default::default() }
        .build()
}
