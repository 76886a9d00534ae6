//! Finds the association of a packet, and handles packets without one (RFC 9260 §8.4, §8.5).

use core::{net::SocketAddr, time::Duration};

use super::Endpoint;
use super::cookie_echo::CookieEcho;
use super::registry::PeerPorts;
use crate::association::PacketArrival;
use crate::identifier::VerificationTag;
use crate::io::{Input, Received, Unreachable};
use crate::wire::{
    ChecksumKind, Chunk, ChunkType, CommonHeader, MalformedPacket, PacketChunks, UnreadPacket,
};

/// The association of a packet.
#[derive(Clone, Copy)]
struct FoundAssociation {
    slot: u32,
    accepts_zero_checksum: bool,
}

/// A packet has the tag of an association whose peer did not send it.
struct NotFromPeer;

impl Endpoint {
    /// Processes an input. Call [`Self::poll_output`] afterwards until it returns a timeout.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.advance_time(now);
        match input {
            Input::Tick => {}
            Input::Packets(received) => self.handle_packets(&received),
            Input::Struct(received) => {
                self.handle_packet(&arrival(&received), UnreadPacket::Struct(&received.contents));
            }
            Input::Unreachable { remote, reason, quoted } => {
                self.handle_unreachable(remote, reason, quoted.as_deref());
            }
            Input::LocalAddresses(addresses) => self.handle_local_addresses(addresses),
        }
    }

    fn handle_packets(&mut self, received: &Received) {
        let arrival = arrival(received);
        let size = received.segment_size.max(1);
        for start in (0..received.contents.len()).step_by(size) {
            let end = received.contents.len().min(start.saturating_add(size));
            self.handle_packet(&arrival, UnreadPacket::Wire(&received.contents, start..end));
        }
    }

    fn handle_packet(&mut self, arrival: &PacketArrival, packet: UnreadPacket<'_>) {
        self.counters.packets_in += 1;
        let Ok(header) = packet.header() else {
            self.counters.malformed_packets += 1;
            return;
        };
        let Ok(found) = self.find(&header, arrival) else {
            self.counters.bad_tags += 1;
            return;
        };
        let first = packet.first_type();
        let slot = found.map(|found| found.slot);
        // Packets of a handshake always have their checksum (RFC 9653 §5.2).
        let opens = matches!(first, Some(ChunkType::INIT | ChunkType::COOKIE_ECHO));
        // "An SCTP implementation MAY also process OOTB packets having an incorrect zero checksum. Doing
        // so might result in faster SCTP association failure detection" (§5.3): a peer whose
        // association this host has lost still omits the checksum.
        let accepts_zero = match found {
            Some(found) => found.accepts_zero_checksum,
            None => self.accepting.extensions.zero_checksum,
        };
        let zero = !opens && accepts_zero;
        let check = if zero { ChecksumKind::Zero } else { ChecksumKind::Crc32c };
        let (header, mut chunks) = match packet.open(check, &mut self.header_share) {
            Ok(parsed) => parsed,
            Err(MalformedPacket::Checksum) => {
                self.counters.bad_checksums += 1;
                return;
            }
            Err(MalformedPacket::TooShort) => {
                self.counters.malformed_packets += 1;
                return;
            }
        };
        // AUTH before a COOKIE ECHO does not concern an association yet (RFC 4895 §6.3).
        if matches!(first, Some(ChunkType::COOKIE_ECHO | ChunkType::AUTH))
            && let Some(echo) = CookieEcho::read(chunks.clone())
        {
            return self.handle_cookie_echo(arrival, &header, slot, echo);
        }
        match (first, slot) {
            (Some(ChunkType::COOKIE_ECHO), _) => self.counters.malformed_chunks += 1,
            (_, Some(slot)) => self.dispatch(slot, arrival, chunks),
            (Some(ChunkType::INIT), None) if header.tag == VerificationTag::ZERO => {
                match (chunks.next(), chunks.next()) {
                    (Some(Chunk::Init(init)), None) => self.handle_init(arrival, &header, &init),
                    // It must be alone (RFC 9260 §6.10).
                    _ => self.counters.malformed_chunks += 1,
                }
            }
            (_, None) => match self.find_by_tag_only(&header) {
                Some(slot) => self.handle_from_unknown_address(slot, arrival, chunks),
                None => self.handle_unmatched(arrival, &header, chunks),
            },
        }
    }

    #[inline(always)]
    fn dispatch(&mut self, slot: u32, arrival: &PacketArrival, chunks: PacketChunks<'_>) {
        if let Some(entry) = self.registry.entry_mut(slot) {
            let counters = &mut self.counters;
            entry.association.handle_packet(self.now, arrival, chunks, false, counters);
            // The verified addresses belong to the peer: their permits are refunded.
            if let Some((verified, source)) = entry.association.take_verified() {
                (0..verified).for_each(|_| self.probes.refund(source));
            }
            entry.mark_pending(slot, &mut self.pending);
        }
    }

    /// Returns the association whose tag a packet carries from an unknown address, if the peer may
    /// change its addresses.
    fn find_by_tag_only(&mut self, header: &CommonHeader) -> Option<u32> {
        if header.tag == VerificationTag::ZERO {
            return None;
        }
        let slot = self.registry.by_tag(header.tag.0)?;
        let association = &self.registry.entry(slot)?.association;
        let fits = association.identity().has_ports(header.destination_port, header.source_port)
            && association.has_dynamic_addresses();
        fits.then_some(slot)
    }

    /// Accepts a packet whose ASCONF announces the new address of its sender. Others are dropped
    /// without a response: they may be the peer's, and an ABORT would end its association.
    fn handle_from_unknown_address(
        &mut self,
        slot: u32,
        arrival: &PacketArrival,
        chunks: PacketChunks<'_>,
    ) {
        let entry = self.registry.entry(slot);
        if entry.is_some_and(|entry| entry.association.accepts_from_unknown_address(chunks.clone()))
        {
            self.dispatch(slot, arrival, chunks);
        } else {
            self.counters.out_of_the_blue += 1;
        }
    }

    /// Returns the association whose tag the packet carries, if ports and address match too; an
    /// error if its peer, according to the layer below, did not send the packet. Neither the
    /// contents nor the source of the packet then matter.
    fn find(
        &mut self,
        header: &CommonHeader,
        arrival: &PacketArrival,
    ) -> Result<Option<FoundAssociation>, NotFromPeer> {
        if header.tag == VerificationTag::ZERO {
            return Ok(None);
        }
        let Some(slot) = self.registry.by_tag(header.tag.0) else { return Ok(None) };
        let Some(entry) = self.registry.entry(slot) else { return Ok(None) };
        let association = &entry.association;
        if !association.is_from_peer(arrival) {
            return Err(NotFromPeer);
        }
        let fits = association.identity().has_ports(header.destination_port, header.source_port)
            && association.accepts_from(arrival.remote.ip());
        let accepts_zero_checksum = association.config().extensions.zero_checksum;
        Ok(fits.then_some(FoundAssociation { slot, accepts_zero_checksum }))
    }

    /// Returns the association with this peer between these ports, regardless of the tag.
    pub(super) fn find_by_peer(
        &self,
        header: &CommonHeader,
        arrival: &PacketArrival,
    ) -> Option<u32> {
        let slot = self.registry.by_peer(&PeerPorts {
            remote: arrival.remote,
            remote_port: header.source_port,
            local_port: header.destination_port,
            identity: arrival.peer,
        })?;
        let is_from_peer = self.registry.entry(slot)?.association.is_from_peer(arrival);
        is_from_peer.then_some(slot)
    }

    /// Handles a packet without the tag of an association.
    fn handle_unmatched(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        chunks: PacketChunks<'_>,
    ) {
        let Some(slot) = self.find_by_peer(header, arrival) else {
            return self.handle_out_of_the_blue(arrival, header, chunks);
        };
        if let Some(entry) = self.registry.entry_mut(slot) {
            let first = chunks.into_iter().next();
            let counters = &mut self.counters;
            entry.association.handle_foreign_tag(arrival, header.tag, first, counters);
            self.mark_pending(slot);
        }
    }

    /// Handles an error that reports `remote` as unreachable. A quoted packet must belong to the
    /// association.
    fn handle_unreachable(
        &mut self,
        remote: SocketAddr,
        reason: Unreachable,
        quoted: Option<&[u8]>,
    ) {
        let mut is_verified = false;
        for slot in self.registry.associations_to(canonical(remote)) {
            if let Some(entry) = self.registry.entry_mut(slot)
                && quoted.is_none_or(|quoted| entry.association.identity().has_sent(quoted))
            {
                is_verified = true;
                let (remote, is_quoted) = (canonical(remote), quoted.is_some());
                entry.association.handle_unreachable(self.now, remote, reason, is_quoted);
                self.mark_pending(slot);
            }
        }
        self.counters.unverified_reports += u64::from(quoted.is_some() && !is_verified);
    }

    /// Handles a change of the host's addresses.
    fn handle_local_addresses(&mut self, addresses: alloc::vec::Vec<core::net::IpAddr>) {
        let slots: alloc::vec::Vec<u32> = self.registry.slots().collect();
        for slot in slots {
            if let Some(entry) = self.registry.entry_mut(slot) {
                let counters = &mut self.counters;
                entry.association.set_local_addresses(self.now, &addresses, counters);
                self.mark_pending(slot);
            }
        }
        self.local_addresses = addresses;
    }
}

/// Returns how packets arrived.
fn arrival<C>(received: &Received<C>) -> PacketArrival {
    PacketArrival {
        remote: canonical(received.remote),
        local: received.local,
        ecn: received.ecn,
        peer: received.peer,
    }
}

/// Returns an address for comparison, without the flow label.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) => {
            v6.set_flowinfo(0);
            SocketAddr::V6(v6)
        }
        v4 @ SocketAddr::V4(_) => v4,
    }
}
