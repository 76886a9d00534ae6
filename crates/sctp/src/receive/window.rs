//! The receive window and its accounting (RFC 9260 §6.2, §6.2.1).
//!
//! Two quantities are accounted for: bytes of user data, which the window is about, and memory,
//! which is the data plus [`CHUNK_OVERHEAD`] for each chunk. The advertised window closes when
//! either is used up, so a flood of tiny chunks cannot take more memory than full ones.
//! [`WindowAccounting::Payload`] ignores the latter, up to a bound that only floods reach.

use crate::config::WindowAccounting;

/// The memory that a stored chunk takes beyond its data, in bytes: its queue entry, the handle of
/// its data, the header of its allocation.
pub(crate) const CHUNK_OVERHEAD: usize = 192;

/// The memory that an incomplete message takes beyond its chunks, in bytes, if it is stored
/// separately.
pub(crate) const MESSAGE_OVERHEAD: usize = 384;

/// The memory limit in multiples of the receive buffer. Chunks with more than [`CHUNK_OVERHEAD`]
/// bytes of data fill the window before they reach it.
pub(crate) const MEMORY_FACTOR: usize = 2;

/// The same if only payload closes the window.
const PAYLOAD_MEMORY_FACTOR: usize = 64;

/// The space beyond the bounds for chunks that fill a gap, as a fraction of the receive buffer:
/// without it, data that waits for the chunk could never be released.
const GAP_ALLOWANCE_PART: usize = 4;

/// The smallest receive buffer: one that cannot hold a packet could never receive one.
const MIN_BUFFER: usize = 4096;

/// The step in which a small window is reopened, in bytes: about one packet (RFC 9260 §6.2 refers
/// to RFC 1122 §4.2.3.3).
const SILLY_STEP: usize = 1500;

/// The fraction of the buffer by which the window must have grown since it was last advertised to
/// be advertised immediately.
const UPDATE_PART: usize = 4;

/// Whether a chunk fills a gap between others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapFilling {
    /// It has the highest TSN.
    None,
    /// It fills one of several, perhaps.
    Any,
    /// It has the first TSN that is missing.
    First,
}

/// The accounting of stored data.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    buffer: usize,
    /// The part of it that may currently be used.
    allowance: u32,
    /// The memory limit in multiples of the buffer.
    memory_factor: u32,
    payload: usize,
    memory: usize,
    /// The window that was last advertised to the peer, less the data it has sent since.
    advertised_window: usize,
}

impl ReceiveWindow {
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

    /// Limits the use of the buffer; data in it is kept.
    pub(crate) fn set_allowance(&mut self, bytes: usize) {
        self.allowance = u32::try_from(bytes.clamp(MIN_BUFFER, self.buffer)).unwrap_or(u32::MAX);
    }

    /// Returns the bytes of user data that there is room for.
    pub(crate) fn free(&self) -> usize {
        let payload = self.buffer().saturating_sub(self.payload);
        payload.min(self.memory_limit().saturating_sub(self.memory))
    }

    /// Returns the usable size of the receive buffer in bytes.
    pub(crate) fn buffer(&self) -> usize {
        self.allowance as usize
    }

    /// Returns the upper bound of the memory in bytes.
    #[cfg(test)]
    pub(crate) fn memory_bound(&self) -> usize {
        self.memory_limit() + self.gap_allowance() + usize::from(u16::MAX) + CHUNK_OVERHEAD
    }

    /// Returns the memory in use in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    fn memory_limit(&self) -> usize {
        self.buffer().saturating_mul(self.memory_factor as usize)
    }

    fn gap_allowance(&self) -> usize {
        self.buffer() / GAP_ALLOWANCE_PART
    }

    /// Returns whether a chunk is accepted. It is while there is any room, as the peer may have
    /// probed with more than that. One that fills a gap is accepted even if there is none, within
    /// bounds: half of them for any, the rest for the one that everything else waits for. Others
    /// would take its place, and nothing could ever be released.
    #[inline]
    pub(crate) fn admits(&self, gap: GapFilling) -> bool {
        let beyond = match gap {
            GapFilling::None => 0,
            GapFilling::Any => self.gap_allowance() / 2,
            GapFilling::First => self.gap_allowance(),
        };
        self.payload < self.buffer() + beyond && self.memory < self.memory_limit() + beyond
    }

    /// Accounts for a stored chunk.
    #[inline]
    pub(crate) fn charge(&mut self, payload: usize) {
        self.payload += payload;
        self.memory += payload + CHUNK_OVERHEAD;
        self.advertised_window = self.advertised_window.saturating_sub(payload);
    }

    /// Releases `chunks` chunks.
    #[inline]
    pub(crate) fn release(&mut self, payload: usize, chunks: usize) {
        self.payload = self.payload.saturating_sub(payload);
        self.memory = self.memory.saturating_sub(payload + chunks * CHUNK_OVERHEAD);
    }

    /// Accounts for incomplete messages.
    #[inline]
    pub(crate) fn charge_messages(&mut self, messages: usize) {
        self.memory += messages * MESSAGE_OVERHEAD;
    }

    /// Releases incomplete messages.
    #[inline]
    pub(crate) fn release_messages(&mut self, messages: usize) {
        self.memory = self.memory.saturating_sub(messages * MESSAGE_OVERHEAD);
    }

    /// Returns the window to advertise. A small window does not grow in small steps.
    pub(crate) fn would_advertise(&self) -> u32 {
        u32::try_from(self.next_advertised()).unwrap_or(u32::MAX)
    }

    /// Records that [`Self::would_advertise`] was sent to the peer.
    pub(crate) fn advertised(&mut self) {
        self.advertised_window = self.next_advertised();
    }

    fn next_advertised(&self) -> usize {
        let free = self.free();
        let step = SILLY_STEP.min(self.buffer() / 2);
        let would_be_silly = free < self.buffer() / 2 && free < self.advertised_window + step;
        if would_be_silly { free.min(self.advertised_window) } else { free }
    }

    /// Returns whether the window has grown enough to be advertised immediately.
    pub(crate) fn wants_update(&self) -> bool {
        let step = (self.buffer() / UPDATE_PART).max(SILLY_STEP.min(self.buffer() / 2));
        self.free() >= self.advertised_window + step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(buffer: usize) -> ReceiveWindow {
        ReceiveWindow::new(buffer, WindowAccounting::Memory)
    }

    #[test]
    fn counted_by_payload_tiny_chunks_leave_the_window_open() {
        let mut window = ReceiveWindow::new(10_000, WindowAccounting::Payload);
        for _ in 0..1000 {
            window.charge(1);
        }
        assert_eq!(window.free(), 9_000);
        // Not without a bound.
        while window.admits(GapFilling::None) {
            window.charge(1);
        }
        assert!(window.memory() <= 10_000 * PAYLOAD_MEMORY_FACTOR + CHUNK_OVERHEAD + 1);
    }

    fn advertise(window: &mut ReceiveWindow) -> u32 {
        let reported = window.would_advertise();
        window.advertised();
        reported
    }

    #[test]
    fn tiny_chunks_close_the_window_by_their_memory() {
        let mut window = of(10_000);
        let mut chunks = 0;
        while window.admits(GapFilling::None) {
            window.charge(1);
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
            assert!(window.admits(GapFilling::None));
            window.charge(1452);
        }
        assert_eq!(window.free(), 0);
        assert!(!window.admits(GapFilling::None));
        assert!(window.admits(GapFilling::First));
    }

    #[test]
    fn a_gap_is_filled_within_bounds() {
        let mut window = of(10_000);
        while window.admits(GapFilling::First) {
            window.charge(1000);
        }
        assert!(window.memory() <= window.memory_bound());
    }

    #[test]
    fn a_closed_window_opens_in_one_step() {
        let mut window = of(10_000);
        window.charge(10_000);
        assert_eq!(advertise(&mut window), 0);
        window.release(500, 0);
        assert_eq!(advertise(&mut window), 0, "500 bytes would be too small");
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
