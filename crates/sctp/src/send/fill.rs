//! A packet filled: what is to be sent again first, then new data (RFC 9260 §6.1, §6.10).

use core::time::Duration;

use super::Sender;
use super::fragmentation::Cut;
use super::messages::{Limit, MessageId};
use super::multipath::Mapping;
use super::outstanding::{ChunkState, SentChunk};
use crate::cmt::StreamMapping;
use crate::congestion::{CongestionControl, PacketNumber};
use crate::counters::Counters;
use crate::identifier::PathId;
use crate::path::Paths;
use crate::scheduler::{StreamSlot, Turn};
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::{DataFlags, DataHeader, Order, PACKET_HEADER, PacketWriter, padded};

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
        if self.flight(path).is_some_and(|flight| flight.waiting > 0) {
            return true;
        }
        if self.unsent == 0 || (self.in_flight > 0 && self.peer_window.left(self.in_flight) == 0) {
            return false;
        }
        if self.multipath.is_some() {
            return self.may_carry_new(path, paths);
        }
        paths.len() == 1 || {
            self.scheduler.on_packet();
            let choice =
                Choice { path, only: false, is_default: paths.for_data(None) == Some(path) };
            self.choose(choice, paths).is_some()
        }
    }

    /// How many bytes the next packet on a path may have: its MTU; more only if a chunk is to be
    /// sent again that was cut when the MTU was larger (RFC 9260 §6.9; IP fragments it then).
    #[must_use]
    pub fn packet_limit(&mut self, path: PathId, mtu: usize) -> usize {
        let header = self.chunk_header();
        let Some(number) = self.flights.iter().position(|flight| flight.path == Some(path)) else {
            return mtu;
        };
        if self.flights[number].waiting == 0 {
            return mtu;
        }
        let tsn = self.flights[number].first_again(number as u8, &self.outstanding);
        let chunk = tsn.and_then(|tsn| self.outstanding.get(tsn));
        chunk.map_or(mtu, |chunk| {
            mtu.max(self.overhead() + padded(header + usize::from(chunk.length)))
        })
    }

    /// Bytes of a packet that chunks with data cannot have.
    pub(super) fn overhead(&self) -> usize {
        PACKET_HEADER + self.terms.reserved
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
        let Some(flight) = self.flight_of(path) else { return 0 };
        self.note_time(now);
        let only = paths.len() == 1;
        let is_default = only || self.is_multipath() || paths.for_data(None) == Some(path);
        let Some(way) = paths.get(path) else { return 0 };
        let mut filling = Filling {
            now,
            choice: Choice { path, only, is_default },
            flight,
            number: way.next_packet(),
            whole: way.mtu().saturating_sub(self.overhead() + self.chunk_header()),
            window: way.congestion.window().saturating_sub(way.outstanding()),
            bytes: 0,
        };
        let may_add = self.has_just_found(path);
        self.fill_again(&mut filling, packet, paths, counters);
        if self.unsent > 0 && (may_add || self.may_add_new(path, paths)) {
            self.fill_new(&mut filling, packet, paths);
        }
        if filling.bytes > 0 {
            self.note_sent(&filling, paths);
        }
        filling.bytes
    }

    /// The packet goes out.
    fn note_sent(&mut self, filling: &Filling, paths: &mut Paths) {
        let is_all = self.unsent == 0 && self.flights[usize::from(filling.flight)].waiting == 0;
        if let Some(path) = paths.get_mut(filling.choice.path) {
            path.on_sent(filling.now, filling.bytes, is_all);
            if path.t3.is_none() {
                path.t3 = Some(filling.now.saturating_add(path.rto.current()));
                self.flights[usize::from(filling.flight)].timed = Some(filling.number);
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
        let at = usize::from(filling.flight);
        while self.flights[at].waiting > 0 {
            let Some(tsn) = self.flights[at].first_again(filling.flight, &self.outstanding) else {
                return;
            };
            let Some(chunk) = self.outstanding.get(tsn).copied() else { return };
            if self.is_expired(chunk.message, filling.now) && self.terms.partial_reliability {
                self.abandon(chunk.message, paths);
                continue;
            }
            // Everything waits for the answer to a probe (RFC 7053 §4).
            let immediate = self.asks_for_sacks && self.flights[at].probe.is_out();
            if !self.write_chunk(tsn, &chunk, immediate, packet) {
                return;
            }
            let length = usize::from(chunk.length);
            if let Some(chunk) = self.outstanding.get_mut(tsn) {
                chunk.state = ChunkState::InFlight;
                chunk.packet = filling.number;
                chunk.transmissions = chunk.transmissions.saturating_add(1);
                chunk.missing = 0;
            }
            let flight = &mut self.flights[at];
            flight.take_again();
            flight.on_sent(filling.number, filling.now, tsn);
            self.note_lowest(filling.flight, tsn, true);
            if let Some(slot) = self.messages.get(chunk.message).map(|message| message.stream) {
                self.note_arrival_of(slot, filling.choice.path, length, paths);
            }
            self.in_flight += length;
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
        self.scheduler.on_packet();
        let header = self.chunk_header();
        while self.unsent > 0 && packet.room() > header {
            let Some(slot) = self.choose(filling.choice, paths) else { return };
            let Some(id) = self.streams.get(slot).map(|stream| stream.head) else { return };
            let Some(message) = self.messages.get(id) else { return };
            let is_first = message.sent == 0;
            if is_first && self.is_expired(id, filling.now) {
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
            let Some(length) = cut.length(self.max_segment.into()) else { return };
            if !self.peer_window.admits(length, self.in_flight) {
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
        self.nagle && self.in_flight > 0 && self.unsent < whole
    }

    /// The stream that may send next on this path.
    #[inline]
    fn choose(&mut self, choice: Choice, paths: &Paths) -> Option<StreamSlot> {
        if self.multipath.is_some() {
            return self.choose_of_several(choice.path, paths);
        }
        let (streams, messages) = (&self.streams, &self.messages);
        let mut may = |slot: StreamSlot| {
            let Some(stream) = streams.get(slot) else { return false };
            let Some(message) = messages.get(stream.head) else { return false };
            if stream.paused && message.sent == 0 {
                return false;
            }
            match message.path {
                _ if choice.only => true,
                None => choice.is_default,
                wish => paths.for_data(wish) == Some(choice.path),
            }
        };
        match self.current {
            Some(slot) => may(slot).then_some(slot),
            None => self.scheduler.next(&mut may),
        }
    }

    /// The stream that may send next on this path, where all paths are used at once.
    pub(super) fn choose_of_several(&mut self, path: PathId, paths: &Paths) -> Option<StreamSlot> {
        let concurrent = self.multipath.as_ref()?;
        if concurrent.choices.mapping == StreamMapping::Automatic {
            return self.choose_automatically(path, paths);
        }
        let mapping = Mapping::new(&concurrent.choices.mapping, path, paths);
        let (streams, messages) = (&self.streams, &self.messages);
        let in_the_way = self.current;
        let mut may = |slot: StreamSlot| {
            let Some(stream) = streams.get(slot) else { return false };
            let Some(message) = messages.get(stream.head) else { return false };
            if stream.paused && message.sent == 0 {
                return false;
            }
            mapping.admits(stream.id, message.path, in_the_way == Some(slot))
        };
        match in_the_way {
            Some(slot) => may(slot).then_some(slot),
            None => self.scheduler.next(&mut may),
        }
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
        self.begin(slot, id, tsn);
        let Some(message) = self.messages.get_mut(id) else { return false };
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
        let ends = message.unsent() == length;
        let immediate = (ends && message.immediate)
            || (self.asks_for_sacks && self.is_last_for_now(filling, length));
        if !self.write_chunk(tsn, &chunk, immediate, packet) {
            return false;
        }
        if let Some(message) = self.messages.get_mut(id) {
            message.sent += length as u32;
            message.next_fragment = message.next_fragment.wrapping_add(1);
            message.last_tsn = tsn;
            message.chunks += 1;
        }
        self.outstanding.push(chunk);
        self.flights[usize::from(filling.flight)].on_sent(filling.number, filling.now, tsn);
        self.enqueue_on(filling.flight, length);
        self.note_lowest(filling.flight, tsn, false);
        self.peer_window.on_sent(tsn, length, self.in_flight);
        self.in_flight += length;
        self.unsent -= length.min(self.unsent);
        filling.bytes += length;
        self.note_turn(slot, id, length, ends);
        true
    }

    /// A message gets its number and its first TSN when its first chunk is sent, so one that was
    /// given up before leaves no hole.
    #[inline]
    fn begin(&mut self, slot: StreamSlot, id: MessageId, tsn: Tsn) {
        let interleaving = self.terms.interleaving;
        let Some(message) = self.messages.get_mut(id) else { return };
        if message.sent > 0 {
            return;
        }
        message.first_tsn = tsn;
        let Some(stream) = self.streams.get_mut(slot) else { return };
        message.number = match (interleaving, message.unordered) {
            (false, true) => 0,
            (false, false) => stream.next_ssn.0.into(),
            (true, false) => stream.next_mid.0,
            (true, true) => stream.next_unordered_mid.0,
        };
    }

    /// The stream had its turn.
    #[inline]
    fn note_turn(&mut self, slot: StreamSlot, id: MessageId, length: usize, ends: bool) {
        let interleaving = self.terms.interleaving;
        let unordered = self.messages.get(id).is_some_and(|message| message.unordered);
        let Some(stream) = self.streams.get_mut(slot) else { return };
        stream.unsent = stream.unsent.saturating_sub(length);
        stream.unacknowledged += length;
        if !ends {
            self.current = (!interleaving).then_some(slot);
            let turn =
                Turn { stream: slot, bytes: length, ends_message: false, ends_stream: false };
            self.scheduler.on_sent(&turn);
            return;
        }
        number_is_used(stream, interleaving, unordered);
        self.leave_queue(slot, id, length);
    }

    /// Whether the peer should not wait with its SACK (RFC 7053 §4): after this chunk the window
    /// is full, or nothing is left of a burst.
    #[inline]
    fn is_last_for_now(&self, filling: &Filling, length: usize) -> bool {
        let with_this = filling.bytes + length;
        let in_flight = self.in_flight + length;
        (self.unsent == length && self.in_flight > filling.bytes)
            || with_this >= filling.window
            || self.peer_window.left(in_flight) == 0
    }

    /// Writes a chunk; says whether it fitted.
    #[inline]
    fn write_chunk(
        &self,
        tsn: Tsn,
        chunk: &SentChunk,
        immediate: bool,
        packet: &mut PacketWriter<'_>,
    ) -> bool {
        let Some(message) = self.messages.get(chunk.message) else { return false };
        let Some(stream) = self.streams.get(message.stream) else { return false };
        let (start, length) = (chunk.offset as usize, usize::from(chunk.length));
        let Some(payload) = message.data.get(start..start + length) else { return false };
        let order = if self.terms.interleaving {
            Order::Mid { mid: Mid(message.number), fsn: chunk.fragment }
        } else {
            Order::Ssn(Ssn(message.number as u16))
        };
        let flags = DataFlags {
            unordered: message.unordered,
            begin: start == 0,
            end: start + length == message.data.len(),
            immediate,
        };
        let header = DataHeader { tsn, stream: stream.id, flags, order, ppid: message.ppid };
        packet.data(&header, payload)
    }

    /// Whether the lifetime of a message is over.
    pub(super) fn is_expired(&self, id: MessageId, now: Duration) -> bool {
        self.timed > 0
            && self.messages.get(id).is_some_and(
                |message| matches!(message.limit, Limit::Deadline(deadline) if deadline <= now),
            )
    }
}

/// The number that a message had is used up once the message is through.
pub(super) fn number_is_used(
    stream: &mut super::streams::Stream,
    interleaving: bool,
    unordered: bool,
) {
    match (interleaving, unordered) {
        (false, true) => {}
        (false, false) => stream.next_ssn = stream.next_ssn.next(),
        (true, false) => stream.next_mid = stream.next_mid.next(),
        (true, true) => stream.next_unordered_mid = stream.next_unordered_mid.next(),
    }
}
