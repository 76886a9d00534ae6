//! A packet filled: what is to be sent again first, then new data (RFC 9260 §6.1, §6.10).

use core::time::Duration;

use super::Sender;
use super::fragmentation::Cut;
use super::multipath::Mapping;
use super::outstanding::{ChunkState, SentChunk};
use super::queue::MessageId;
use crate::config::StreamMapping;
use crate::congestion::PacketNumber;
use crate::counters::Counters;
use crate::identifier::PathId;
use crate::path::Paths;
use crate::scheduler::StreamSlot;
use crate::wire::{PacketWriter, padded};

/// For which path a message is chosen.
#[derive(Clone, Copy, Debug)]
struct Choice {
    path: PathId,
    /// Whether it is the only path.
    only: bool,
    /// Whether messages without a wish go on this path.
    is_default: bool,
}

/// What one call of [`Sender::fill`] goes by.
#[derive(Clone, Copy, Debug)]
struct Filling {
    now: Duration,
    choice: Choice,
    flight: u8,
    /// The number of the packet on its path.
    number: PacketNumber,
    /// Bytes of data that go into a packet with nothing else in it.
    whole: usize,
    /// Bytes that may be added before the congestion window is full.
    window: usize,
    /// Bytes of user data in the packet so far.
    bytes: usize,
}

impl Sender {
    /// Whether there is something to send on a path that the peer's window allows. Messages that
    /// wait for more (Nagle's rule) count, too; [`Self::fill`] knows.
    #[must_use]
    pub fn has_data_to_send(&mut self, path: PathId, paths: &Paths) -> bool {
        if self.outstanding.flight_on(path).is_some_and(|flight| flight.waiting() > 0) {
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
                Choice { path, only: false, is_default: paths.for_data(None) == Some(path) };
            self.choose(choice, paths).is_some()
        }
    }

    /// How many bytes the next packet on a path may have: its MTU; more only if a chunk is to be
    /// sent again that was cut when the MTU was larger (RFC 9260 §6.9; IP fragments it then).
    #[must_use]
    pub fn packet_limit(&mut self, path: PathId, mtu: usize) -> usize {
        let Some(number) = self.outstanding.number_on(path) else { return mtu };
        if self.outstanding.flight(number).waiting() == 0 {
            return mtu;
        }
        let tsn = self.outstanding.first_again(number);
        let chunk = tsn.and_then(|tsn| self.outstanding.get(tsn));
        chunk.map_or(mtu, |chunk| {
            let bytes = padded(self.terms.chunk_header() + usize::from(chunk.length));
            mtu.max(self.terms.overhead() + bytes)
        })
    }

    /// Adds chunks to a packet for a path: what is to be sent again first, then new data. Says how
    /// many bytes of user data that were; 0: nothing was added. Whether the path may send is the
    /// caller's question to [`crate::path::Path::allowance`].
    pub fn fill(
        &mut self,
        now: Duration,
        path: PathId,
        paths: &mut Paths,
        packet: &mut PacketWriter<'_>,
        counters: &mut Counters,
    ) -> usize {
        let Some(flight) = self.outstanding.number_for(path) else { return 0 };
        self.note_time(now);
        let only = paths.len() == 1;
        let is_default = only || self.is_multipath() || paths.for_data(None) == Some(path);
        let Some(way) = paths.get(path) else { return 0 };
        let mut filling = Filling {
            now,
            choice: Choice { path, only, is_default },
            flight,
            number: way.next_packet(),
            whole: way.mtu().saturating_sub(self.terms.overhead() + self.terms.chunk_header()),
            window: way.congestion.window().saturating_sub(way.outstanding()),
            bytes: 0,
        };
        let may_add = self.has_just_found(path);
        self.fill_again(&mut filling, packet, paths, counters);
        if self.queue.unsent() > 0 && (may_add || self.may_add_new(path, paths)) {
            self.fill_new(&mut filling, packet, paths);
        }
        if filling.bytes > 0 {
            self.note_sent(&filling, paths);
        }
        self.check();
        filling.bytes
    }

    /// The packet goes out.
    fn note_sent(&mut self, filling: &Filling, paths: &mut Paths) {
        let flight = self.outstanding.flight_mut(filling.flight);
        let is_all = self.queue.unsent() == 0 && flight.waiting() == 0;
        if let Some(path) = paths.get_mut(filling.choice.path) {
            path.on_sent(filling.now, filling.bytes, is_all);
            if path.t3.is_none() {
                path.t3 = Some(filling.now.saturating_add(path.rto.current()));
                flight.timed = Some(filling.number);
            }
        }
        self.note_turn_of(filling.choice.path, filling.now);
        self.schedule_probe(filling.flight, filling.now, paths);
        self.schedule_doubt(filling.flight, filling.now, None, paths);
    }

    /// Adds what is to be sent again.
    fn fill_again(
        &mut self,
        filling: &mut Filling,
        packet: &mut PacketWriter<'_>,
        paths: &mut Paths,
        counters: &mut Counters,
    ) {
        let number = filling.flight;
        while self.outstanding.flight(number).waiting() > 0 {
            let Some(tsn) = self.outstanding.first_again(number) else { return };
            let Some(chunk) = self.outstanding.get(tsn).copied() else { return };
            let is_expired = self.queue.is_expired(chunk.message, filling.now);
            if is_expired && self.terms.partial_reliability {
                self.abandon(chunk.message, paths);
                continue;
            }
            // Everything waits for the answer to a probe (RFC 7053 §4).
            let is_probe = self.outstanding.flight(number).probe.is_out();
            let immediate = self.rules.asks_for_sacks && is_probe;
            if !self.queue.write(tsn, &chunk, immediate, packet) {
                return;
            }
            let length = usize::from(chunk.length);
            self.outstanding.send_waiting(filling.now, tsn, number, filling.number);
            if let Some(message) = self.queue.message(chunk.message) {
                self.note_arrival_of(message.stream, filling.choice.path, length, paths);
            }
            filling.bytes += length;
            counters.retransmissions += 1;
        }
    }

    /// Adds new data.
    fn fill_new(
        &mut self,
        filling: &mut Filling,
        packet: &mut PacketWriter<'_>,
        paths: &mut Paths,
    ) {
        if filling.bytes == 0 && self.waits_for_more(filling.whole) {
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
            let cut = Cut {
                rest: message.unsent(),
                is_first,
                room: packet.room() - header,
                whole: filling.whole,
                is_packet_empty: packet.is_empty(),
            };
            let Some(length) = cut.length(self.rules.max_segment.into()) else { return };
            if !self.peer_window.admits(length, self.in_flight()) {
                return;
            }
            if !self.send_chunk(filling, slot, id, length, packet) {
                return;
            }
            self.note_arrival_of(slot, filling.choice.path, length, paths);
        }
    }

    /// Whether little data waits for more to fill a packet (Nagle's rule, RFC 9260 §6.1).
    pub(super) fn waits_for_more(&self, whole: usize) -> bool {
        self.rules.nagle && self.in_flight() > 0 && self.queue.unsent() < whole
    }

    /// The stream that may send next on this path.
    #[inline]
    fn choose(&mut self, choice: Choice, paths: &Paths) -> Option<StreamSlot> {
        if self.multipath.is_some() {
            return self.choose_of_several(choice.path, paths);
        }
        self.queue.choose(|_, message| match message.path {
            _ if choice.only => true,
            None => choice.is_default,
            wish => paths.for_data(wish) == Some(choice.path),
        })
    }

    /// The stream that may send next on this path, where all paths are used at once.
    pub(super) fn choose_of_several(&mut self, path: PathId, paths: &Paths) -> Option<StreamSlot> {
        let concurrent = self.multipath.as_ref()?;
        if concurrent.choices.mapping == StreamMapping::Automatic {
            return self.choose_automatically(path, paths);
        }
        let mapping = Mapping::new(&concurrent.choices.mapping, path, paths);
        let is_in_the_way = self.queue.is_message_begun();
        self.queue.choose(|stream, message| mapping.admits(stream.id, message.path, is_in_the_way))
    }

    /// Whether new data may go into a packet on a path behind what is sent again.
    fn may_add_new(&mut self, path: PathId, paths: &Paths) -> bool {
        self.multipath.is_none() || self.may_carry_new(path, paths)
    }

    /// Sends the next `length` bytes of a message.
    #[inline]
    fn send_chunk(
        &mut self,
        filling: &mut Filling,
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
            taken_back: false,
            moved: false,
        };
        let ends_urgent = message.immediate && message.unsent() == length;
        let immediate =
            ends_urgent || (self.rules.asks_for_sacks && self.is_last_for_now(filling, length));
        if !self.queue.write(tsn, &chunk, immediate, packet) {
            return false;
        }
        self.peer_window.on_sent(tsn, length, self.in_flight());
        self.outstanding.send(filling.now, chunk);
        self.queue.on_cut(slot, id, tsn, length);
        filling.bytes += length;
        true
    }

    /// Whether the peer should not wait with its SACK (RFC 7053 §4): after this chunk the window
    /// is full, or nothing is left of a burst.
    #[inline]
    fn is_last_for_now(&self, filling: &Filling, length: usize) -> bool {
        let with_this = filling.bytes + length;
        let in_flight = self.in_flight() + length;
        (self.queue.unsent() == length && self.in_flight() > filling.bytes)
            || with_this >= filling.window
            || self.peer_window.left(in_flight) == 0
    }
}
