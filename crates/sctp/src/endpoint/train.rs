//! Packets that are sent together: equal sizes to one address, so that a driver can pass them to
//! the kernel in one call (GSO).

use alloc::collections::VecDeque;
use bytes::BytesMut;
use core::mem;
use core::net::{IpAddr, SocketAddr};

use super::packet_buffer::{PacketBuffer, TrainContents};
use crate::config::PacketForm;
use crate::io::{Ecn, Fragmentation, Marking, PeerIdentity};

/// The maximum number of packets in a train: what Linux accepts (`UDP_MAX_SEGMENTS`).
const MAX_PACKETS: usize = 64;

/// The maximum length of a train in bytes: that of a datagram with its headers.
const MAX_BYTES: usize = 64_000;

/// The size of the memory blocks for packets.
const CHUNK: usize = 128 * 1024;

/// The maximum number of memory blocks that are kept for reuse, 4 MiB.
const MAX_PIECES: usize = 32;

/// The route of a packet. The packets of a train share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketRoute {
    pub(crate) local: Option<IpAddr>,
    pub(crate) remote: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) marking: Marking,
    pub(crate) fragmentation: Fragmentation,
    pub(crate) peer: Option<PeerIdentity>,
}

/// Memory that packets are written into.
///
/// An endpoint keeps up to 4 MiB of it after sending. Programs with many endpoints can share it
/// between them with [`Endpoint::swap_packet_memory`](super::Endpoint::swap_packet_memory).
#[derive(Debug, Default)]
pub struct PacketMemory {
    /// The unused rest of the current block. It is empty.
    room: BytesMut,
    /// See [`PacketTrain::pieces`].
    pieces: VecDeque<BytesMut>,
}

impl PacketMemory {
    /// Returns how many bytes can be written before more is allocated.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room.capacity()
    }
}

/// What writes packets one after the other.
pub(crate) trait PacketSource {
    /// What determines a packet's route, and is smaller than that.
    type Handling: Copy + PartialEq;

    /// Appends one packet to the buffer, or nothing.
    fn write(&mut self, buffer: &mut PacketBuffer) -> Option<Self::Handling>;

    /// Returns the route of a packet that was just written.
    fn route(&self, handling: Self::Handling) -> Option<PacketRoute>;
}

impl<F: FnMut(&mut PacketBuffer) -> Option<PacketRoute>> PacketSource for F {
    type Handling = PacketRoute;

    fn write(&mut self, buffer: &mut PacketBuffer) -> Option<PacketRoute> {
        self(buffer)
    }

    fn route(&self, handling: PacketRoute) -> Option<PacketRoute> {
        Some(handling)
    }
}

/// The packets written and not yet returned.
#[derive(Debug)]
pub(crate) struct PacketTrain {
    /// The buffer that packets are written to consecutively.
    buffer: PacketBuffer,
    /// The route of the packet that did not fit the last train; it starts the next one.
    deferred: Option<PacketRoute>,
    /// Whether the last train ended because there was no further packet.
    exhausted: bool,
    /// The starts of the memory blocks that trains are written into, the most recent at the back:
    /// each is reused once all of its trains have been sent.
    pieces: VecDeque<BytesMut>,
}

impl PacketTrain {
    pub(crate) fn new(form: PacketForm) -> Self {
        Self {
            buffer: PacketBuffer::new(form),
            deferred: None,
            exhausted: false,
            pieces: VecDeque::new(),
        }
    }

    /// Gathers packets until the train is full, and returns it. A packet that is larger than the
    /// train's, or has another route, starts the next one.
    pub(crate) fn gather(&mut self, mut source: impl PacketSource) -> Option<TrainContents> {
        self.make_room();
        self.exhausted = false;
        let (route, mut handling) = match self.deferred.take() {
            // It may be of another source.
            Some(route) => (route, None),
            None => match self.first_packet(&mut source) {
                Some((route, handling)) => (route, Some(handling)),
                None => {
                    self.exhausted = true;
                    return None;
                }
            },
        };
        let size = self.buffer.len();
        let mut packets = 1;
        while packets < MAX_PACKETS && self.buffer.len() + size <= MAX_BYTES {
            let before = self.buffer.len();
            let Some(next) = source.write(&mut self.buffer) else {
                self.exhausted = true;
                break;
            };
            let length = self.buffer.len() - before;
            let other = if handling == Some(next) { None } else { source.route(next) };
            handling = Some(next);
            let other = other.filter(|other| *other != route);
            if other.is_some() || length > size {
                self.deferred = other.or(Some(route));
                return Some(self.buffer.remove_packets(before, route, size));
            }
            packets += 1;
            if length < size {
                break;
            }
        }
        Some(self.buffer.remove_packets(self.buffer.len(), route, size))
    }

    /// Has the first packet of a train written.
    fn first_packet<S: PacketSource>(
        &mut self,
        source: &mut S,
    ) -> Option<(PacketRoute, S::Handling)> {
        let handling = source.write(&mut self.buffer)?;
        Some((source.route(handling)?, handling))
    }

    /// Swaps the memory that packets are written into. Pending packets are kept.
    pub(crate) fn swap_memory(&mut self, memory: &mut PacketMemory) {
        let PacketBuffer::Wire(buffer) = &mut self.buffer else { return };
        // Not for an empty one, as that would reference the block.
        let deferred = if buffer.is_empty() { BytesMut::new() } else { buffer.split() };
        mem::swap(buffer, &mut memory.room);
        mem::swap(&mut self.pieces, &mut memory.pieces);
        if !deferred.is_empty() {
            buffer.extend_from_slice(&deferred);
        }
    }

    /// Returns whether the last [`Self::gather`] found no further packet for now.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Reuses the memory of trains that have been sent, or allocates more. Writing into one large
    /// block after the other avoids an allocation per packet; keeping the blocks avoids returning
    /// them to the operating system, which would clear them each time.
    fn make_room(&mut self) {
        let PacketBuffer::Wire(buffer) = &mut self.buffer else { return };
        if buffer.capacity() >= MAX_BYTES {
            return;
        }
        // A deferred packet stays first.
        let rest = buffer.split();
        let mut oldest = self.pieces.pop_front();
        let is_free = oldest.as_mut().is_some_and(|piece| piece.try_reclaim(CHUNK));
        if !is_free && self.pieces.len() + 1 < MAX_PIECES {
            oldest.take().into_iter().for_each(|piece| self.pieces.push_front(piece));
        }
        let piece = oldest.filter(|_| is_free);
        *buffer = piece.unwrap_or_else(|| BytesMut::with_capacity(CHUNK));
        self.pieces.push_back(buffer.split_to(0));
        buffer.extend_from_slice(&rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identifier::VerificationTag;
    use crate::io::Transmit;
    use crate::wire::{ChecksumKind, Chunk, CommonHeader, StructPacket};
    use alloc::vec::Vec;

    fn route(port: u16) -> PacketRoute {
        PacketRoute {
            local: None,
            remote: SocketAddr::from(([192, 0, 2, 1], port)),
            ecn: Ecn::NotCapable,
            marking: Marking::default(),
            fragmentation: Fragmentation::Avoided,
            peer: None,
        }
    }

    /// Appends a packet of `size` bytes.
    fn write(buffer: &mut PacketBuffer, size: usize) {
        let header = CommonHeader { source_port: 1, destination_port: 2, tag: VerificationTag(3) };
        let mut packet = buffer.begin(header, size);
        let length = (packet.room() - 4) as u16;
        assert!(packet.append(&Chunk::Pad { length }));
        assert_eq!(packet.finish(ChecksumKind::Crc32c), size);
    }

    /// The trains that packets of these sizes to these ports make: the same in both forms.
    fn trains(packets: &[(u16, usize)]) -> Vec<(u16, usize, usize)> {
        let of = |form| {
            let mut train = PacketTrain::new(form);
            let mut left = packets.iter();
            let mut trains = Vec::new();
            while let Some(made) = train.gather(|buffer: &mut PacketBuffer| {
                left.next().map(|(port, size)| {
                    write(buffer, *size);
                    route(*port)
                })
            }) {
                trains.push(match made {
                    TrainContents::Wire(made) => {
                        (made.remote.port(), made.contents.len(), made.segment_size)
                    }
                    TrainContents::Struct(made) => {
                        let bytes = made.contents.iter().map(StructPacket::len).sum();
                        (made.remote.port(), bytes, made.segment_size)
                    }
                });
            }
            trains
        };
        let trains = of(PacketForm::Wire);
        assert_eq!(of(PacketForm::Struct), trains);
        trains
    }

    #[test]
    fn equal_packets_and_a_shorter_last_one_leave_together() {
        assert_eq!(trains(&[(1, 100), (1, 100), (1, 60), (1, 60)]), [(1, 260, 100), (1, 60, 60)]);
    }

    #[test]
    fn a_larger_packet_begins_a_train() {
        assert_eq!(trains(&[(1, 60), (1, 100), (1, 100)]), [(1, 60, 60), (1, 200, 100)]);
    }

    #[test]
    fn another_address_begins_a_train() {
        assert_eq!(trains(&[(1, 60), (2, 60), (2, 60)]), [(1, 60, 60), (2, 120, 60)]);
    }

    #[test]
    fn memory_is_used_again_once_its_trains_were_sent() {
        let mut train = PacketTrain::new(PacketForm::Wire);
        let write = |train: &mut PacketTrain| {
            let mut left = 60;
            let made = train.gather(|buffer: &mut PacketBuffer| {
                left -= 1;
                write(buffer, 1000);
                (left >= 0).then(|| route(1))
            });
            let Some(TrainContents::Wire(made)) = made else { panic!("no packets in bytes") };
            made
        };
        let kept: Vec<Transmit> = (0..200).map(|_| write(&mut train)).collect();
        assert_eq!(train.pieces.len(), MAX_PIECES);
        drop(kept);
        let places: alloc::collections::BTreeSet<_> =
            train.pieces.iter().map(|piece| piece.as_ptr()).collect();
        for _ in 0..2 * MAX_PIECES {
            let packets = write(&mut train).contents;
            let at = packets.as_ptr();
            let known = places.range(..=at).next_back().expect("the earlier memory");
            assert!(at as usize - *known as usize <= CHUNK);
        }
    }

    #[test]
    fn trains_share_memory_and_keep_what_they_carry() {
        let mut memory = PacketMemory::default();
        let mut all = [PacketTrain::new(PacketForm::Wire), PacketTrain::new(PacketForm::Wire)];
        // The second packet of each is too large for its first train.
        let mut left: Vec<_> = (0..2).map(|_| [60, 100, 100].into_iter()).collect();
        let mut found = Vec::new();
        for turn in [0, 1, 0, 1, 0] {
            let train = &mut all[turn];
            train.swap_memory(&mut memory);
            let made = train.gather(|buffer: &mut PacketBuffer| {
                let size = left[turn].next()?;
                write(buffer, size);
                Some(route(turn as u16))
            });
            train.swap_memory(&mut memory);
            if let Some(TrainContents::Wire(made)) = made {
                found.push((made.remote.port(), made.contents.len()));
            }
        }
        assert_eq!(found, [(0, 60), (1, 60), (0, 200), (1, 200)]);
        assert!(memory.room() >= CHUNK - 2 * 360, "one allocation serves both");
        assert_eq!(memory.pieces.len(), 1);
        for train in all {
            let PacketBuffer::Wire(buffer) = train.buffer else { panic!("no bytes") };
            assert!(train.pieces.is_empty() && buffer.capacity() < 1000);
        }
    }

    #[test]
    fn a_train_is_bounded() {
        let many = [(1, 100); 100];
        assert_eq!(trains(&many), [(1, 6400, 100), (1, 3600, 100)]);
        let large = [(1, 1400); 60];
        assert_eq!(trains(&large), [(1, 63_000, 1400), (1, 21_000, 1400)]);
    }
}
