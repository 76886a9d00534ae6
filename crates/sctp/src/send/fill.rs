//! Filling of packets: retransmissions first, then new data (RFC 9260 §6.1, §6.10).

use core::time::Duration;

use super::AssociationSender;
use super::fragmentation::FragmentCut;
use super::multipath::{NextPath, PathMapping};
use super::outstanding::{ChunkState, SentChunk};
use super::queue::MessageId;
use crate::config::StreamMapping;
use crate::congestion::PacketNumber;
use crate::counters::EndpointCounters;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, SendAllowance};
use crate::scheduler::StreamSlot;
use crate::wire::{PacketWriter, padded};

/// The path that a message is chosen for.
#[derive(Clone, Copy, Debug)]
struct PathChoice {
    path: PathId,
    /// Whether it is the only path.
    only: bool,
    /// Whether messages without a requested path go on this path.
    is_default: bool,
}

/// The state of one call of [`AssociationSender::fill`].
#[derive(Clone, Copy, Debug)]
struct PacketFilling {
    now: Duration,
    choice: PathChoice,
    flight: u8,
    /// The number of the packet on its path.
    number: PacketNumber,
    /// The bytes of data that fit into an otherwise empty packet.
    capacity: usize,
    /// The bytes that may be added before the congestion window is full.
    window: usize,
    /// Bytes of user data in the packet so far.
    bytes: usize,
}

impl AssociationSender {
    /// Returns whether there is something to send on a path that the peer's window allows. Messages
    /// that wait for more data (Nagle's algorithm) count too; [`Self::fill`] checks that.
    #[must_use]
    pub fn has_data_to_send(&mut self, path: PathId, paths: &AssociationPaths) -> bool {
        if self
            .outstanding
            .flight_on(path)
            .is_some_and(|flight| flight.pending_retransmissions() > 0)
        {
            return true;
        }
        if self.queue.unsent() == 0 || (self.in_flight() > 0 && self.peer_window() == 0) {
            return false;
        }
        if self.multipath.is_some() {
            return self.may_carry_new(path, paths);
        }
        paths.len() == 1 || {
            self.queue.on_packet();
            let choice =
                PathChoice { path, only: false, is_default: paths.for_data(None) == Some(path) };
            self.choose(choice, paths).is_some()
        }
    }

    /// Returns a path that has data and may send it now, and when to check again if only pacing
    /// delays data.
    #[inline]
    pub(crate) fn path_for_data(
        &mut self,
        now: Duration,
        paths: &mut AssociationPaths,
    ) -> NextPath {
        if self.is_multipath() {
            let next = self.next_path(now, paths);
            let paced_until = next.paced_until.filter(|_| next.path.is_none());
            return NextPath { paced_until, ..next };
        }
        let mut found = NextPath::default();
        let Some(default) = paths.for_data(None) else { return found };
        for path in paths.iter() {
            if !self.has_data_to_send(path.id, paths) {
                continue;
            }
            match path.allowance(now, path.mtu()) {
                // The default path comes first; others carry retransmissions and data bound to
                // them.
                SendAllowance::Now(_) if path.id == default => {
                    found.path = Some(default);
                    return found;
                }
                SendAllowance::Now(_) => {
                    found.path.get_or_insert(path.id);
                }
                SendAllowance::At(at) => {
                    let earliest = found.paced_until.map_or(at, |other| other.min(at));
                    found.paced_until = Some(earliest);
                }
                SendAllowance::Closed => {}
            }
        }
        found
    }

    /// Returns the maximum size of the next packet on a path: its MTU, or more if a chunk has to be
    /// retransmitted that was created when the MTU was larger (RFC 9260 §6.9; IP fragments it
    /// then).
    #[must_use]
    pub fn packet_limit(&mut self, path: PathId, mtu: usize) -> usize {
        let Some(number) = self.outstanding.number_on(path) else { return mtu };
        if self.outstanding.flight(number).pending_retransmissions() == 0 {
            return mtu;
        }
        let tsn = self.outstanding.first_retransmission(number);
        let chunk = tsn.and_then(|tsn| self.outstanding.get(tsn));
        chunk.map_or(mtu, |chunk| {
            let bytes = padded(self.terms.chunk_header() + usize::from(chunk.length));
            mtu.max(self.terms.overhead() + bytes)
        })
    }

    /// Adds chunks to a packet for a path: retransmissions first, then new data. Returns the bytes
    /// of user data that were added. The caller checks with [`crate::path::Path::allowance`]
    /// whether the path may send.
    pub fn fill(
        &mut self,
        now: Duration,
        path: PathId,
        paths: &mut AssociationPaths,
        packet: &mut PacketWriter<'_>,
        counters: &mut EndpointCounters,
    ) -> usize {
        let Some(flight) = self.outstanding.number_for(path) else { return 0 };
        self.set_time(now);
        let only = paths.len() == 1;
        let is_default = only || self.is_multipath() || paths.for_data(None) == Some(path);
        let Some(path_entry) = paths.get(path) else { return 0 };
        let mut filling = PacketFilling {
            now,
            choice: PathChoice { path, only, is_default },
            flight,
            number: path_entry.next_packet(),
            capacity: self.terms.capacity(path_entry.mtu()),
            window: path_entry.congestion.window().saturating_sub(path_entry.outstanding()),
            bytes: 0,
        };
        let may_add = self.takes_cached_path(path);
        self.fill_retransmissions(&mut filling, packet, paths, counters);
        if self.queue.unsent() > 0 && (may_add || self.may_add_new(path, paths)) {
            self.fill_new_data(&mut filling, packet, paths);
        }
        if filling.bytes > 0 {
            self.note_sent(&filling, paths);
        }
        self.check();
        filling.bytes
    }

    /// Records that the packet is sent.
    fn note_sent(&mut self, filling: &PacketFilling, paths: &mut AssociationPaths) {
        let flight = self.outstanding.flight_mut(filling.flight);
        let is_all = self.queue.unsent() == 0 && flight.pending_retransmissions() == 0;
        if let Some(path) = paths.get_mut(filling.choice.path) {
            path.on_sent(filling.now, filling.bytes, is_all);
            if path.t3.is_none() {
                path.t3 = Some(filling.now.saturating_add(path.rto.current()));
                flight.timed = Some(filling.number);
            }
        }
        self.record_packet_sent(filling.choice.path, filling.now);
        self.schedule_probe(filling.flight, filling.now, paths);
        self.schedule_doubt(filling.flight, filling.now, None, paths);
    }

    /// Adds retransmissions.
    fn fill_retransmissions(
        &mut self,
        filling: &mut PacketFilling,
        packet: &mut PacketWriter<'_>,
        paths: &mut AssociationPaths,
        counters: &mut EndpointCounters,
    ) {
        let number = filling.flight;
        while self.outstanding.flight(number).pending_retransmissions() > 0 {
            let Some(tsn) = self.outstanding.first_retransmission(number) else { return };
            let Some(chunk) = self.outstanding.get(tsn).copied() else { return };
            let is_expired = self.queue.is_expired(chunk.message, filling.now);
            if is_expired && self.terms.partial_reliability {
                self.abandon(chunk.message, paths);
                continue;
            }
            // The response to a probe is urgent (RFC 7053 §4).
            let is_probe = self.outstanding.flight(number).probe.is_outstanding();
            let immediate = self.rules.requests_immediate_sacks && is_probe;
            if !self.queue.write(tsn, &chunk, immediate, packet) {
                return;
            }
            let length = usize::from(chunk.length);
            self.outstanding.send_retransmission(filling.now, tsn, number, filling.number);
            if let Some(message) = self.queue.message(chunk.message) {
                self.record_stream_sent(message.stream, filling.choice.path, length, paths);
            }
            filling.bytes += length;
            counters.retransmissions += 1;
        }
    }

    /// Adds new data.
    fn fill_new_data(
        &mut self,
        filling: &mut PacketFilling,
        packet: &mut PacketWriter<'_>,
        paths: &mut AssociationPaths,
    ) {
        if filling.bytes == 0 && self.waits_for_more(filling.capacity) {
            return;
        }
        self.queue.on_packet();
        let header = self.terms.chunk_header();
        while self.queue.unsent() > 0 && packet.room() > header {
            let Some(slot) = self.choose(filling.choice, paths) else { return };
            let Some(id) = self.queue.stream(slot).map(|stream| stream.head) else { return };
            let Some(message) = self.queue.message(id) else { return };
            let is_first = message.sent == 0;
            if is_first && self.queue.is_expired(id, filling.now) {
                self.abandon(id, paths);
                continue;
            }
            let cut = FragmentCut {
                rest: message.unsent(),
                is_first,
                room: packet.room() - header,
                capacity: filling.capacity,
                is_packet_empty: packet.is_empty(),
            };
            let Some(length) = cut.length(self.rules.max_segment.into()) else { return };
            if !self.peer_window.admits(length, self.in_flight()) {
                return;
            }
            if !self.send_chunk(filling, slot, id, length, packet) {
                return;
            }
            self.record_stream_sent(slot, filling.choice.path, length, paths);
        }
    }

    /// Returns whether a small amount of data waits for more to fill a packet (Nagle's algorithm,
    /// RFC 9260 §6.1).
    pub(super) fn waits_for_more(&self, capacity: usize) -> bool {
        self.rules.nagle && self.in_flight() > 0 && self.queue.unsent() < capacity
    }

    /// Returns the stream that may send next on this path.
    #[inline]
    fn choose(&mut self, choice: PathChoice, paths: &AssociationPaths) -> Option<StreamSlot> {
        if self.multipath.is_some() {
            return self.choose_for_multipath(choice.path, paths);
        }
        self.queue.choose(|_, message| match message.path {
            _ if choice.only => true,
            None => choice.is_default,
            requested => paths.for_data(requested) == Some(choice.path),
        })
    }

    /// Returns the stream that may send next on this path if all paths are used at once.
    pub(super) fn choose_for_multipath(
        &mut self,
        path: PathId,
        paths: &AssociationPaths,
    ) -> Option<StreamSlot> {
        let concurrent = self.multipath.as_ref()?;
        if concurrent.choices.mapping == StreamMapping::Automatic {
            return self.choose_automatically(path, paths);
        }
        let mapping = PathMapping::new(&concurrent.choices.mapping, path, paths);
        let is_blocking = self.queue.is_message_started();
        self.queue.choose(|stream, message| mapping.admits(stream.id, message.path, is_blocking))
    }

    /// Returns whether new data may follow retransmissions in a packet on a path.
    fn may_add_new(&mut self, path: PathId, paths: &AssociationPaths) -> bool {
        self.multipath.is_none() || self.may_carry_new(path, paths)
    }

    /// Sends the next `length` bytes of a message.
    #[inline]
    fn send_chunk(
        &mut self,
        filling: &mut PacketFilling,
        slot: StreamSlot,
        id: MessageId,
        length: usize,
        packet: &mut PacketWriter<'_>,
    ) -> bool {
        let tsn = self.outstanding.next();
        let Some(message) = self.queue.begin(slot, id, tsn) else { return false };
        let chunk = SentChunk {
            message: id,
            offset: message.sent,
            fragment: message.next_fragment,
            packet: filling.number,
            length: length as u16,
            transmissions: 1,
            flight: filling.flight,
            state: ChunkState::InFlight,
            missing: 0,
            released: false,
            fast_retransmitted: false,
            reneged: false,
            moved: false,
        };
        let ends_urgent = message.immediate && message.unsent() == length;
        let immediate = ends_urgent
            || (self.rules.requests_immediate_sacks && self.is_last_for_now(filling, length));
        if !self.queue.write(tsn, &chunk, immediate, packet) {
            return false;
        }
        self.peer_window.on_sent(tsn, length, self.in_flight());
        self.outstanding.send(filling.now, chunk);
        self.queue.on_chunked(slot, id, tsn, length);
        filling.bytes += length;
        true
    }

    /// Returns whether the peer should not delay its SACK (RFC 7053 §4): after this chunk the
    /// window is full, or the burst is complete.
    #[inline]
    fn is_last_for_now(&self, filling: &PacketFilling, length: usize) -> bool {
        let flight_after = filling.bytes + length;
        let in_flight = self.in_flight() + length;
        (self.queue.unsent() == length && self.in_flight() > filling.bytes)
            || flight_after >= filling.window
            || self.peer_window.available(in_flight) == 0
    }
}
