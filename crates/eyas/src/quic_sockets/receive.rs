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

use quinn::udp::{RecvMeta, UdpSocketState};
use socket2::Socket;

/// Datagrams of a train that go into one buffer of quinn's.
pub(super) const SEGMENTS: usize = 4;
/// The most bytes of a train: the most that one IP packet can hold.
const TRAIN: usize = 65_535;
/// The most trains that are read in one call.
const MAX_TRAINS: usize = 8;

/// Memory for trains, and those in it that were not handed on yet.
#[derive(Debug)]
pub(super) struct Trains {
    memory: Vec<Box<[u8]>>,
    waiting: VecDeque<Train>,
}

/// What is left of a train.
#[derive(Debug)]
struct Train {
    /// Which memory it lies in.
    memory: usize,
    /// The offset of the remaining data.
    at: usize,
    meta: RecvMeta,
}

impl Default for Trains {
    fn default() -> Self {
        Self { memory: vec![train()], waiting: VecDeque::new() }
    }
}

fn train() -> Box<[u8]> {
    vec![0; TRAIN].into()
}

impl Trains {
    /// Reads as many trains as there is memory for, once none is left of the last ones.
    pub(super) fn receive(&mut self, state: &UdpSocketState, socket: &Socket) -> io::Result<()> {
        let room = self.memory.len();
        let mut meta = [RecvMeta::default(); MAX_TRAINS];
        let mut memory = self.memory.iter_mut();
        let mut slices: [IoSliceMut<'_>; MAX_TRAINS] =
            array::from_fn(|_| IoSliceMut::new(memory.next().map_or(&mut [], |one| &mut one[..])));
        let count = state.recv(socket.into(), &mut slices[..room], &mut meta[..room])?;
        let trains = meta.iter().take(count).enumerate();
        self.waiting.clear();
        self.waiting.extend(trains.map(|(memory, meta)| Train { memory, at: 0, meta: *meta }));
        if count == room && room < MAX_TRAINS {
            self.memory.extend(iter::repeat_with(train).take(room));
        }
        Ok(())
    }

    /// Returns the sources of the trains that were read last.
    pub(super) fn sources(&self) -> impl Iterator<Item = SocketAddr> {
        self.waiting.iter().map(|train| train.meta.addr)
    }

    /// Fills buffers with whole datagrams. Says how many buffers.
    pub(super) fn hand_out(
        &mut self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> usize {
        let mut count = 0;
        let mut places = buffers.iter_mut().zip(metas).peekable();
        while let (Some(train), Some((buffer, meta))) =
            (self.waiting.front_mut(), places.peek_mut())
        {
            let rest = &self.memory[train.memory][train.at..train.meta.len];
            let stride = train.meta.stride.max(1);
            let length = rest.len().min(buffer.len() / stride * stride);
            // What is longer than all that we take was not meant to be read (RFC 9000 §18.2).
            if length == 0 {
                self.waiting.pop_front();
                continue;
            }
            buffer[..length].copy_from_slice(&rest[..length]);
            **meta = train.meta;
            meta.len = length;
            train.at += length;
            if length == rest.len() {
                self.waiting.pop_front();
            }
            count += 1;
            places.next();
        }
        count
    }
}

#[cfg(test)]
mod tests;
