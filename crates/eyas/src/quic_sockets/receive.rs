//! Splits trains of datagrams received from the kernel (GRO).
//!
//! quinn allocates 32 receive buffers, each as large as the longest train that the socket declares:
//! for Linux's trains of 64 KiB that is 2 to 3 MB, allocated and cleared for each endpoint, even
//! for a handshake of five datagrams. Here trains are received into memory that grows with what
//! arrives, and quinn's buffers hold [`SEGMENTS`] datagrams each. The extra copy is made while the
//! data is still in the cache.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::{array, iter};

use eyas_host::udp_offload::UdpOffload;
use quinn::udp::RecvMeta;
use socket2::Socket;

/// The number of datagrams that fit into one of quinn's buffers.
pub(super) const SEGMENTS: usize = 4;
/// The maximum size of a train in bytes: that of one IP packet.
const MAX_TRAIN: usize = 65_535;
/// The maximum number of trains read in one call.
const MAX_TRAINS: usize = 8;

/// Memory for trains, and those in it that have not been passed on yet.
#[derive(Debug)]
pub(super) struct ReceivedTrains {
    memory: Vec<Box<[u8]>>,
    pending: VecDeque<TrainRest>,
}

/// The rest of a train.
#[derive(Debug)]
struct TrainRest {
    /// The index of the memory that holds it.
    memory: usize,
    /// The offset of the remaining data.
    at: usize,
    meta: RecvMeta,
}

impl Default for ReceivedTrains {
    fn default() -> Self {
        Self { memory: vec![train_buffer()], pending: VecDeque::new() }
    }
}

fn train_buffer() -> Box<[u8]> {
    vec![0; MAX_TRAIN].into()
}

impl ReceivedTrains {
    /// Reads as many trains as there is memory for. Must be called only when none of the last ones
    /// is left.
    pub(super) fn receive(&mut self, offload: &UdpOffload, socket: &Socket) -> io::Result<()> {
        let capacity = self.memory.len();
        let mut meta = [RecvMeta::default(); MAX_TRAINS];
        let mut memory = self.memory.iter_mut();
        let mut slices: [IoSliceMut<'_>; MAX_TRAINS] = array::from_fn(|_| {
            IoSliceMut::new(memory.next().map_or(&mut [], |buffer| &mut buffer[..]))
        });
        let count = offload.receive(socket, &mut slices[..capacity], &mut meta[..capacity])?;
        let trains = meta.iter().take(count).enumerate();
        self.pending.clear();
        self.pending.extend(trains.map(|(memory, meta)| TrainRest { memory, at: 0, meta: *meta }));
        if count == capacity && capacity < MAX_TRAINS {
            self.memory.extend(iter::repeat_with(train_buffer).take(capacity));
        }
        Ok(())
    }

    /// Returns the sources of the trains that were read last.
    pub(super) fn sources(&self) -> impl Iterator<Item = SocketAddr> {
        self.pending.iter().map(|train| train.meta.addr)
    }

    /// Fills buffers with whole datagrams. Returns the number of buffers filled.
    pub(super) fn fill(&mut self, buffers: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> usize {
        let mut count = 0;
        let mut targets = buffers.iter_mut().zip(metas).peekable();
        while let (Some(train), Some((buffer, meta))) =
            (self.pending.front_mut(), targets.peek_mut())
        {
            let rest = &self.memory[train.memory][train.at..train.meta.len];
            let stride = train.meta.stride.max(1);
            let length = rest.len().min(buffer.len() / stride * stride);
            // Skip a datagram that is larger than the maximum that we accept (RFC 9000 §18.2).
            if length == 0 {
                self.pending.pop_front();
                continue;
            }
            buffer[..length].copy_from_slice(&rest[..length]);
            **meta = train.meta;
            meta.len = length;
            train.at += length;
            if length == rest.len() {
                self.pending.pop_front();
            }
            count += 1;
            targets.next();
        }
        count
    }
}

#[cfg(test)]
mod tests;
