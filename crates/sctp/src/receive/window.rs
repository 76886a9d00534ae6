//! How much is held for the application, and how much more may come (RFC 9260 §6.2, §6.2.1).
//!
//! Two things are counted: bytes of user data, which the window is about, and memory, which is the
//! data and [`CHUNK_OVERHEAD`] for each chunk of it. The window that the peer is told closes when
//! either is used up, so a flood of tiny chunks cannot take more memory than full ones.
//! [`WindowAccounting::Payload`] leaves the second out, up to a bound that only floods reach.

use crate::config::WindowAccounting;

/// Bytes of memory that a held chunk costs beyond its data: its place in a queue, the handle of its
/// data, the head of its allocation.
pub(crate) const CHUNK_OVERHEAD: usize = 192;

/// Bytes of memory that a message which is not whole costs beyond its chunks, where it has a place
/// of its own.
pub(crate) const MESSAGE_OVERHEAD: usize = 384;

/// How many times the receive buffer may be taken in memory. Chunks with more than
/// [`CHUNK_OVERHEAD`] bytes of data fill the window before they reach it.
pub(crate) const MEMORY_FACTOR: usize = 2;

/// The same where only payload closes the window.
const PAYLOAD_MEMORY_FACTOR: usize = 64;

/// What a chunk that fills a gap may take beyond the bounds, as a part of the receive buffer:
/// without it, data that waits for the chunk could never be released.
const GAP_ALLOWANCE_PART: usize = 4;

/// The smallest receive buffer: one that cannot hold a packet could never receive one.
const MIN_BUFFER: usize = 4096;

/// Steps in which a small window is opened again, in bytes of about one packet (RFC 9260 §6.2
/// refers to RFC 1122 §4.2.3.3).
const SILLY_STEP: usize = 1500;

/// The part of the buffer by which the window must have grown since the peer was told for it to be
/// told at once.
const UPDATE_PART: usize = 4;

/// The account of what is held.
#[derive(Debug)]
pub(crate) struct Window {
    buffer: usize,
    /// What of it may be used for now.
    allowance: u32,
    /// How many times the buffer may be taken in memory.
    memory_factor: u32,
    payload: usize,
    memory: usize,
    /// What the peer may still send, as it was told last.
    advertised_window: usize,
}

impl Window {
    pub(crate) fn new(receive_buffer: usize, accounting: WindowAccounting) -> Self {
        let buffer = receive_buffer.max(MIN_BUFFER);
        let memory_factor = match accounting {
            WindowAccounting::Memory => MEMORY_FACTOR as u32,
            WindowAccounting::Payload => PAYLOAD_MEMORY_FACTOR as u32,
        };
        let mut window = Self {
            buffer,
            allowance: 0,
            memory_factor,
            payload: 0,
            memory: 0,
            advertised_window: buffer,
        };
        window.set_allowance(buffer);
        window
    }

    /// How much of the buffer may be used from now on; what is in it stays.
    pub(crate) fn set_allowance(&mut self, bytes: usize) {
        self.allowance = u32::try_from(bytes.clamp(MIN_BUFFER, self.buffer)).unwrap_or(u32::MAX);
    }

    /// Bytes of user data that there is room for.
    pub(crate) fn free(&self) -> usize {
        let payload = self.buffer().saturating_sub(self.payload);
        payload.min(self.memory_limit().saturating_sub(self.memory))
    }

    /// What may be used of the receive buffer, in bytes.
    pub(crate) fn buffer(&self) -> usize {
        self.allowance as usize
    }

    /// The most memory that is held, in bytes.
    #[cfg(test)]
    pub(crate) fn memory_bound(&self) -> usize {
        self.memory_limit() + self.gap_allowance() + usize::from(u16::MAX) + CHUNK_OVERHEAD
    }

    /// Memory that is held, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    fn memory_limit(&self) -> usize {
        self.buffer().saturating_mul(self.memory_factor as usize)
    }

    fn gap_allowance(&self) -> usize {
        self.buffer() / GAP_ALLOWANCE_PART
    }

    /// Whether a chunk may come in. While there is any room it may, as the peer may have probed
    /// with more than that; one that fills a gap may even if there is none, within bounds.
    #[inline]
    pub(crate) fn admits(&self, fills_gap: bool) -> bool {
        if self.payload < self.buffer() && self.memory < self.memory_limit() {
            return true;
        }
        fills_gap
            && self.payload < self.buffer() + self.gap_allowance()
            && self.memory < self.memory_limit() + self.gap_allowance()
    }

    /// Takes a chunk into account.
    #[inline]
    pub(crate) fn hold(&mut self, payload: usize) {
        self.payload += payload;
        self.memory += payload + CHUNK_OVERHEAD;
        self.advertised_window = self.advertised_window.saturating_sub(payload);
    }

    /// Gives back what `chunks` chunks took.
    #[inline]
    pub(crate) fn release(&mut self, payload: usize, chunks: usize) {
        self.payload = self.payload.saturating_sub(payload);
        self.memory = self.memory.saturating_sub(payload + chunks * CHUNK_OVERHEAD);
    }

    /// Takes the memory of messages that are not whole into account.
    #[inline]
    pub(crate) fn hold_messages(&mut self, messages: usize) {
        self.memory += messages * MESSAGE_OVERHEAD;
    }

    /// Gives back the memory of messages that were not whole.
    #[inline]
    pub(crate) fn release_messages(&mut self, messages: usize) {
        self.memory = self.memory.saturating_sub(messages * MESSAGE_OVERHEAD);
    }

    /// What to tell the peer now. A small window does not grow in small steps.
    pub(crate) fn would_advertise(&self) -> u32 {
        u32::try_from(self.next_advertised()).unwrap_or(u32::MAX)
    }

    /// The peer was told [`Self::would_advertise`].
    pub(crate) fn advertised(&mut self) {
        self.advertised_window = self.next_advertised();
    }

    fn next_advertised(&self) -> usize {
        let free = self.free();
        let step = SILLY_STEP.min(self.buffer() / 2);
        let silly = free < self.buffer() / 2 && free < self.advertised_window + step;
        if silly { free.min(self.advertised_window) } else { free }
    }

    /// Whether the window has grown so much that the peer is to be told now.
    pub(crate) fn wants_update(&self) -> bool {
        let step = (self.buffer() / UPDATE_PART).max(SILLY_STEP.min(self.buffer() / 2));
        self.free() >= self.advertised_window + step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(buffer: usize) -> Window {
        Window::new(buffer, WindowAccounting::Memory)
    }

    #[test]
    fn counted_by_payload_tiny_chunks_leave_the_window_open() {
        let mut window = Window::new(10_000, WindowAccounting::Payload);
        for _ in 0..1000 {
            window.hold(1);
        }
        assert_eq!(window.free(), 9_000);
        // Not without a bound.
        while window.admits(false) {
            window.hold(1);
        }
        assert!(window.memory() <= 10_000 * PAYLOAD_MEMORY_FACTOR + CHUNK_OVERHEAD + 1);
    }

    fn advertise(window: &mut Window) -> u32 {
        let reported = window.would_advertise();
        window.advertised();
        reported
    }

    #[test]
    fn tiny_chunks_close_the_window_by_their_memory() {
        let mut window = of(10_000);
        let mut chunks = 0;
        while window.admits(false) {
            window.hold(1);
            chunks += 1;
        }
        assert!(chunks <= 20_000 / CHUNK_OVERHEAD + 1);
        assert_eq!(window.free(), 0);
        window.release(chunks, chunks);
        assert_eq!((window.free(), window.memory()), (10_000, 0));
    }

    #[test]
    fn full_chunks_close_the_window_by_their_data() {
        let mut window = of(14_520);
        for _ in 0..10 {
            assert!(window.admits(false));
            window.hold(1452);
        }
        assert_eq!(window.free(), 0);
        assert!(!window.admits(false));
        assert!(window.admits(true));
    }

    #[test]
    fn a_gap_is_filled_within_bounds() {
        let mut window = of(10_000);
        while window.admits(true) {
            window.hold(1000);
        }
        assert!(window.memory() <= window.memory_bound());
    }

    #[test]
    fn a_closed_window_opens_in_one_step() {
        let mut window = of(10_000);
        window.hold(10_000);
        assert_eq!(advertise(&mut window), 0);
        window.release(500, 0);
        assert_eq!(advertise(&mut window), 0, "500 bytes would be silly");
        assert!(!window.wants_update());
        window.release(1500, 0);
        assert_eq!(advertise(&mut window), 2000);
        window.release(2400, 0);
        assert!(!window.wants_update());
        window.release(200, 1);
        assert!(window.wants_update());
        assert_eq!(advertise(&mut window), 4600);
        assert!(!window.wants_update());
    }
}
