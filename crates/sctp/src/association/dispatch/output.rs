//! Assembly of packets: control chunks first, then the acknowledgement, then data (RFC 9260 §6.10).

use core::time::Duration;

use crate::association::Association;
use crate::association::control::StandaloneChunk;
use crate::association::state::AssociationPhase;
use crate::counters::EndpointCounters;
use crate::endpoint::AgreedExtensions;
use crate::endpoint::packet_buffer::{PacketBuffer, TrainContents};
use crate::endpoint::train::{PacketRoute, PacketSource, PacketTrain};
use crate::identifier::PathId;
use crate::io::{Ecn, Fragmentation};
use crate::path::{AssociationPaths, HeartbeatToSend};
use crate::receive::AssociationReceiver;
use crate::wire::{ChecksumKind, Chunk, ChunkType, EncodeChunk, PACKET_HEADER, PacketWriter};

/// The length of a chunk header in bytes.
const CHUNK_HEADER: usize = 4;

/// The contents of a packet besides control chunks.
#[derive(Clone, Copy, Debug)]
struct PacketLoad {
    path: PathId,
    sack: bool,
    data: bool,
}

/// How a packet is sent; the rest of its route follows from the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PacketHandling {
    path: PathId,
    ecn: Ecn,
    fragmentation: Fragmentation,
}

impl PacketHandling {
    /// Returns how a packet is sent over a path without ECN.
    const fn unmarked(path: PathId, fragmentation: Fragmentation) -> Self {
        Self { path, ecn: Ecn::NotCapable, fragmentation }
    }
}

/// The packets that an association has to send now.
struct PendingPackets<'a> {
    association: &'a mut Association,
    now: Duration,
    counters: &'a mut EndpointCounters,
}

impl PacketSource for PendingPackets<'_> {
    type Handling = PacketHandling;

    fn write(&mut self, buffer: &mut PacketBuffer) -> Option<PacketHandling> {
        self.association.write_packet(self.now, buffer, self.counters)
    }

    fn route(&self, handling: PacketHandling) -> Option<PacketRoute> {
        self.association.route(handling)
    }
}

impl Association {
    /// Returns the packets to send now, as many as fit in one train.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Duration,
        train: &mut PacketTrain,
        counters: &mut EndpointCounters,
    ) -> Option<TrainContents> {
        train.gather(PendingPackets { association: self, now, counters })
    }

    /// Appends the next packet to `buffer`.
    fn write_packet(
        &mut self,
        now: Duration,
        buffer: &mut PacketBuffer,
        counters: &mut EndpointCounters,
    ) -> Option<PacketHandling> {
        if let Some(standalone) = self.queues.pop_standalone() {
            return self.write_standalone(&standalone, buffer);
        }
        match &mut self.state {
            AssociationPhase::Closed => return None,
            AssociationPhase::Opening(handshake) => {
                let (path, cookie) = handshake.poll_cookie_echo()?;
                return self.write_cookie_echo(now, path, &cookie, buffer, counters);
            }
            _ => {}
        }
        if self.paths.is_due(now) {
            self.sender.record_pending_retransmissions(&mut self.paths);
            while let Some(heartbeat) = self.paths.poll_heartbeat(now, &self.config) {
                if let Some(size) = heartbeat.probe {
                    return self.write_probe(&heartbeat, size, buffer);
                }
                self.queues.push(Some(heartbeat.path), heartbeat.chunk(), counters);
            }
        }
        // A packet that cannot be sent now may leave room for another one.
        for _ in 0..self.paths.len() + 2 {
            let load = self.next_load(now)?;
            if let Some(handling) = self.write_load(now, load, buffer, counters) {
                return Some(handling);
            }
        }
        None
    }

    /// Selects the path and the contents of the next packet.
    fn next_load(&mut self, now: Duration) -> Option<PacketLoad> {
        let sends_data = self.state.sends_data();
        let data = if sends_data {
            let next = self.sender.path_for_data(now, &mut self.paths);
            self.paced_until = next.paced_until;
            next.path
        } else {
            None
        };
        let sack_due = self.receiver.sack_wanted(now);
        let has_sack = sack_due || self.receiver.sack_pending();
        let answers = if has_sack { self.receiver.sack_path(now, &self.paths) } else { None };
        let default_path = || self.paths.default_path();
        let path = match (self.queues.path(&self.paths), sack_due, data) {
            (Some(path), _, _) => path,
            (None, true, _) => answers.unwrap_or_else(default_path),
            (None, false, Some(path)) => path,
            (None, false, None) if sends_data && self.sender.forward_tsn_due() => default_path(),
            (None, false, None) => return None,
        };
        // A delayed acknowledgement is bundled with data in the same direction (RFC 9260 §6.2).
        let piggybacks =
            self.receiver.sack_pending() && data == Some(path) && answers == Some(path);
        // A heartbeat must show that the path works even if large packets are lost on it (RFC 8899
        // §4.3).
        let is_probe = |kind| matches!(kind, ChunkType::HEARTBEAT | ChunkType::HEARTBEAT_ACK);
        let small = self.queues.types().any(is_probe);
        Some(PacketLoad { path, sack: sack_due || piggybacks, data: data == Some(path) && !small })
    }

    fn write_load(
        &mut self,
        now: Duration,
        load: PacketLoad,
        buffer: &mut PacketBuffer,
        counters: &mut EndpointCounters,
    ) -> Option<PacketHandling> {
        let path = self.paths.get(load.path)?;
        let mtu = path.mtu();
        let limit = if load.data { self.sender.packet_limit(load.path, mtu) } else { mtu };
        let mut packet = buffer.begin(self.identity.header_to_peer(), limit);
        if self.wants_auth(load) {
            self.authentication.begin(&mut packet);
        }
        let bare = packet.len();
        let cumulative = self.receiver.cumulative_tsn();
        let has_asconf = self.queues.write(load.path, &self.paths, cumulative, &mut packet);
        if load.sack {
            let echoes = self.agreed.ecn;
            write_sack(&mut self.receiver, &self.paths, load.path, echoes, &mut packet);
        }
        if self.state.sends_data() && self.sender.forward_tsn_due() {
            self.sender.write_forward_tsn(now, load.path, &mut self.paths, &mut packet);
        }
        let mut bytes = 0;
        if load.data {
            let paths = &mut self.paths;
            bytes = self.sender.fill(now, load.path, paths, &mut packet, counters);
        }
        if packet.len() == bare {
            packet.discard();
            return None;
        }
        self.authentication.sign(&mut packet);
        // "When an endpoint … sends a packet containing an ASCONF chunk, it MUST include a correct CRC32c checksum"
        // (RFC 9653 §5.2).
        let checksum = if has_asconf { ChecksumKind::Crc32c } else { checksum(self.agreed) };
        let fits_mtu = packet.finish(checksum) <= mtu;
        let ecn = if self.agreed.ecn && bytes > 0 {
            self.paths.get_mut(load.path).map_or(Ecn::NotCapable, |path| path.ecn_codepoint())
        } else {
            Ecn::NotCapable
        };
        let fragmentation = if fits_mtu { Fragmentation::Avoided } else { Fragmentation::Allowed };
        Some(PacketHandling { path: load.path, ecn, fragmentation })
    }

    /// Writes a packet with one chunk and its own tag: INIT, ABORT, SHUTDOWN COMPLETE.
    fn write_standalone(
        &mut self,
        standalone: &StandaloneChunk,
        buffer: &mut PacketBuffer,
    ) -> Option<PacketHandling> {
        let known = self.paths.get(standalone.path).is_some();
        let path = if known { standalone.path } else { self.paths.primary() };
        let kind = standalone.chunk.chunk_type();
        let limit = PACKET_HEADER
            + self.authentication.len_before(kind)
            + standalone.chunk.encoded_len()
            + CHUNK_HEADER;
        let mut packet = buffer.begin(self.identity.header(standalone.tag), limit);
        if self.authentication.len_before(kind) > 0 {
            self.authentication.begin(&mut packet);
        }
        packet.append(&standalone.chunk);
        self.authentication.sign(&mut packet);
        packet.finish(ChecksumKind::Crc32c);
        Some(PacketHandling::unmarked(path, Fragmentation::Allowed))
    }

    /// Writes the COOKIE ECHO, and as much data as fits after it: no other packet is allowed until
    /// the COOKIE ACK (RFC 9260 §5.1, C).
    fn write_cookie_echo(
        &mut self,
        now: Duration,
        path: PathId,
        cookie: &Chunk,
        buffer: &mut PacketBuffer,
        counters: &mut EndpointCounters,
    ) -> Option<PacketHandling> {
        let mtu = self.paths.get(path)?.mtu();
        let auth = self.authentication.len_before(ChunkType::COOKIE_ECHO);
        let limit = mtu.max(PACKET_HEADER + auth + cookie.encoded_len() + CHUNK_HEADER);
        let mut packet = buffer.begin(self.identity.header_to_peer(), limit);
        if auth > 0 {
            self.authentication.begin(&mut packet);
        }
        packet.append(cookie);
        if let Some(heartbeat) = self.paths.verification_heartbeat(now, path) {
            // Nothing else is sent to an unconfirmed address (RFC 9260 §5.4).
            if auth == 0 && self.authentication.len_before(ChunkType::HEARTBEAT) > 0 {
                self.authentication.begin(&mut packet);
            }
            packet.append(&heartbeat.chunk());
        } else {
            if auth == 0 && self.wants_auth(PacketLoad { path, sack: false, data: true }) {
                self.authentication.begin(&mut packet);
            }
            let cumulative = self.receiver.cumulative_tsn();
            self.queues.write(path, &self.paths, cumulative, &mut packet);
            self.sender.fill(now, path, &mut self.paths, &mut packet, counters);
        }
        self.authentication.sign(&mut packet);
        packet.finish(ChecksumKind::Crc32c);
        Some(PacketHandling::unmarked(path, Fragmentation::Allowed))
    }

    /// Writes a heartbeat padded to the probed size (RFC 8899 §6.2.2).
    fn write_probe(
        &mut self,
        heartbeat: &HeartbeatToSend,
        size: usize,
        buffer: &mut PacketBuffer,
    ) -> Option<PacketHandling> {
        let mut packet = buffer.begin(self.identity.header_to_peer(), size);
        if self.authentication.len_before(ChunkType::HEARTBEAT) > 0 {
            self.authentication.begin(&mut packet);
        }
        packet.append(&heartbeat.chunk());
        if let Some(length) = packet.room().checked_sub(CHUNK_HEADER) {
            packet.append(&Chunk::Pad { length: u16::try_from(length).unwrap_or(u16::MAX) });
        }
        self.authentication.sign(&mut packet);
        packet.finish(checksum(self.agreed));
        Some(PacketHandling::unmarked(heartbeat.path, Fragmentation::Forbidden))
    }

    /// Returns whether a packet with this load must begin with AUTH.
    fn wants_auth(&self, load: PacketLoad) -> bool {
        let authentication = &self.authentication;
        if !authentication.is_negotiated() {
            return false;
        }
        let data = if self.agreed.interleaving { ChunkType::I_DATA } else { ChunkType::DATA };
        let sack = if self.agreed.nr_sack { ChunkType::NR_SACK } else { ChunkType::SACK };
        let forward = [ChunkType::FORWARD_TSN, ChunkType::I_FORWARD_TSN];
        load.data && authentication.wants(data)
            || load.sack && authentication.wants(sack)
            || self.sender.forward_tsn_due()
                && forward.iter().any(|kind| authentication.wants(*kind))
            || authentication.wants_any(&self.queues)
    }

    fn route(&self, handling: PacketHandling) -> Option<PacketRoute> {
        let PacketHandling { path, ecn, fragmentation } = handling;
        let path = self.paths.get(path)?;
        Some(PacketRoute {
            local: path.local,
            remote: path.remote,
            ecn,
            marking: self.config.markings.towards(path.remote),
            fragmentation,
            peer: self.identity.peer(),
        })
    }
}

/// Writes the SACK for a path and, if `echoes`, the echoes of congestion marks (RFC 9260 appendix A).
fn write_sack(
    receiver: &mut AssociationReceiver,
    paths: &AssociationPaths,
    path: PathId,
    echoes: bool,
    packet: &mut PacketWriter<'_>,
) {
    if !receiver.write_sack(packet) {
        return;
    }
    receiver.sack_sent_on(path);
    if !echoes {
        return;
    }
    for path in paths.iter() {
        if let Some(lowest_tsn) = path.ecn_echo() {
            packet.append(&Chunk::Ecne { lowest_tsn });
        }
    }
}

/// Zero only if both sides negotiated it (RFC 9653 §5.2).
fn checksum(agreed: AgreedExtensions) -> ChecksumKind {
    if agreed.zero_checksum { ChecksumKind::Zero } else { ChecksumKind::Crc32c }
}
