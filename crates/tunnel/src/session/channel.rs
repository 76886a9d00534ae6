//! One channel: a byte stream in each direction, each with a window.

use bytes::{Buf, BytesMut};

use super::{ChannelAnswer, SessionLimits, TunnelLane};
use crate::frame::{ChannelPurpose, MAX_DATA, ProtocolViolation, RefuseReason};

/// A channel with at most this many bytes waiting goes before those with more: a keystroke before a copy.
const BRIEF: usize = 2 * 1024;

/// The frames of a channel that are to be sent, apart from its data. Each is sent once, so that the other end
/// cannot grow this.
#[derive(Debug, Default)]
pub(super) struct DueChannelFrames {
    pub(super) open: Option<ChannelPurpose>,
    pub(super) answer: Option<Result<u16, (RefuseReason, String)>>,
    pub(super) credit: bool,
    pub(super) delivered: bool,
    pub(super) reset: bool,
}

/// The direction to the other end.
#[derive(Debug)]
pub(super) struct SendingDirection {
    waiting: BytesMut,
    credit: u64,
    finish: FinishState,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinishState {
    No,
    Queued,
    Sent,
    /// The other end has read everything before it.
    Delivered,
}

impl SendingDirection {
    pub(super) fn new(credit: u32) -> Self {
        Self { waiting: BytesMut::new(), credit: credit.into(), finish: FinishState::No, sent: 0 }
    }

    pub(super) fn add_credit(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes.into());
    }

    /// Queues as many bytes as there is room for, and returns their number.
    pub(super) fn queue(&mut self, bytes: &[u8], limit: usize) -> usize {
        let room = limit.saturating_sub(self.waiting.len()).min(bytes.len());
        self.waiting.extend_from_slice(&bytes[..room]);
        room
    }

    pub(super) fn finish(&mut self) {
        if self.finish == FinishState::No {
            self.finish = FinishState::Queued;
        }
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finish != FinishState::No
    }

    /// Handles the confirmation that the other end has read everything.
    pub(super) fn deliver(&mut self) -> Result<(), ProtocolViolation> {
        match std::mem::replace(&mut self.finish, FinishState::Delivered) {
            FinishState::Sent => Ok(()),
            _ => Err(ProtocolViolation(
                "a confirmation of an end that was not sent, or a second one",
            )),
        }
    }

    pub(super) fn is_delivered(&self) -> bool {
        self.finish == FinishState::Delivered
    }

    /// Returns whether there is something that may be sent now.
    pub(super) fn is_ready(&self) -> bool {
        match self.waiting.is_empty() {
            true => self.finish == FinishState::Queued,
            false => self.credit > 0,
        }
    }

    /// Returns the number of bytes that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of bytes that wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_brief(&self) -> bool {
        self.waiting.len() <= BRIEF
    }

    /// Returns the next bytes, or `None` if the end is to be sent.
    pub(super) fn next_bytes(&mut self) -> Option<BytesMut> {
        if self.waiting.is_empty() {
            self.finish = FinishState::Sent;
            return None;
        }
        let credit = usize::try_from(self.credit).unwrap_or(usize::MAX);
        let length = self.waiting.len().min(credit).min(MAX_DATA);
        self.credit -= length as u64;
        self.sent += length as u64;
        let piece = self.waiting.split_to(length);
        if self.waiting.is_empty() {
            // A connection without data in transit has no buffer.
            self.waiting = BytesMut::new();
        }
        Some(piece)
    }

    pub(super) fn clear(&mut self) {
        self.waiting = BytesMut::new();
    }
}

/// The direction from the other end.
#[derive(Debug)]
pub(super) struct ReceivingDirection {
    unread: BytesMut,
    /// The number of bytes that the other end may still send.
    open: u32,
    /// The number of bytes that were read, and for which the other end has not got credit.
    uncredited: u32,
    /// The sum of these and the unread bytes.
    window: u32,
    has_ended: bool,
    /// Whether it is confirmed, or will be, that everything was read.
    is_confirmed: bool,
    received: u64,
}

impl ReceivingDirection {
    pub(super) fn new(window: u32) -> Self {
        let unread = BytesMut::new();
        Self {
            unread,
            open: window,
            uncredited: 0,
            window,
            has_ended: false,
            is_confirmed: false,
            received: 0,
        }
    }

    /// Returns the number of bytes by which the window has grown.
    pub(super) fn growth(&self, limits: &SessionLimits) -> usize {
        (self.window - limits.first_window) as usize
    }

    /// Returns whether everything was received and read.
    pub(super) fn was_read(&self) -> bool {
        self.has_ended && self.unread.is_empty()
    }

    /// Returns, once, whether it must be confirmed that everything was read.
    pub(super) fn confirm(&mut self) -> bool {
        self.was_read() && !std::mem::replace(&mut self.is_confirmed, true)
    }

    /// Returns the number of received bytes.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn unread(&self) -> usize {
        self.unread.len()
    }

    /// Adds received data, which is discarded unless `keep`.
    pub(super) fn add(&mut self, bytes: &[u8], keep: bool) -> Result<(), ProtocolViolation> {
        if self.has_ended {
            return Err(ProtocolViolation("data after the end of a channel"));
        }
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let left = self.open.checked_sub(length);
        self.open = left.ok_or(ProtocolViolation("data without credit"))?;
        self.received += u64::from(length);
        if keep {
            self.unread.extend_from_slice(bytes);
        } else {
            self.uncredited += length;
        }
        self.check();
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), ProtocolViolation> {
        match std::mem::replace(&mut self.has_ended, true) {
            false => Ok(()),
            true => Err(ProtocolViolation("a second end of a channel")),
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let length = self.unread.len().min(into.len());
        into[..length].copy_from_slice(&self.unread[..length]);
        self.unread.advance(length);
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
        }
        self.uncredited += length as u32;
        self.check();
        length
    }

    /// Returns whether there is enough credit for a frame.
    pub(super) fn should_send_credit(&self) -> bool {
        !self.has_ended && self.uncredited >= self.window / 2
    }

    /// Returns the credit for the other end. If everything has been read, the window doubles, up to the limit
    /// and as far as the session's budget allows.
    pub(super) fn credit(&mut self, limit: u32, budget: &mut usize) -> u32 {
        let more = self.window.min(limit.saturating_sub(self.window));
        if self.unread.is_empty() && *budget >= more as usize {
            *budget -= more as usize;
            self.window += more;
            self.uncredited += more;
        }
        let credit = std::mem::take(&mut self.uncredited);
        self.open += credit;
        self.check();
        credit
    }

    pub(super) fn clear(&mut self) {
        self.uncredited += self.unread.len() as u32;
        self.unread = BytesMut::new();
    }

    fn check(&self) {
        let all = u64::from(self.open) + u64::from(self.uncredited) + self.unread.len() as u64;
        debug_assert_eq!(all, u64::from(self.window), "every byte of the window is accounted for");
    }
}

/// A channel, from its opening until both ends have released it.
#[derive(Debug)]
pub(super) struct SessionChannel {
    /// The stream on which it was opened.
    pub(super) lane: TunnelLane,
    pub(super) purpose: ChannelPurpose,
    pub(super) answer: ChannelAnswer,
    pub(super) sending: SendingDirection,
    pub(super) receiving: ReceivingDirection,
    pub(super) due: DueChannelFrames,
    /// Whether this end no longer reads or writes it.
    pub(super) is_released: bool,
    pub(super) queued: QueueMembership,
}

/// The queues that contain the channel, so that each contains it only once.
#[derive(Debug, Default)]
pub(super) struct QueueMembership {
    pub(super) due: bool,
    pub(super) data: bool,
    pub(super) event: bool,
}

impl SessionChannel {
    pub(super) fn new(lane: TunnelLane, purpose: ChannelPurpose, credit: u32, window: u32) -> Self {
        Self {
            lane,
            purpose,
            answer: ChannelAnswer::Waiting,
            sending: SendingDirection::new(credit),
            receiving: ReceivingDirection::new(window),
            due: DueChannelFrames::default(),
            is_released: false,
            queued: QueueMembership::default(),
        }
    }

    /// Ends the channel and discards its data.
    pub(super) fn end(&mut self, answer: ChannelAnswer) {
        self.answer = answer;
        self.sending.clear();
        self.receiving.clear();
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.answer, ChannelAnswer::Reset | ChannelAnswer::Refused(..))
    }

    /// Returns the limit on its window.
    pub(super) fn max_window(&self, limits: &SessionLimits) -> u32 {
        match self.purpose {
            ChannelPurpose::Packets { .. } => limits.packet_window,
            _ => limits.window,
        }
    }

    /// Returns whether both directions have ended and were read.
    pub(super) fn is_done(&self) -> bool {
        self.sending.is_delivered() && self.receiving.was_read()
    }

    /// Returns whether it can be removed.
    pub(super) fn is_removable(&self) -> bool {
        let due = &self.due;
        let is_quiet = !due.reset && !due.delivered && due.answer.is_none() && due.open.is_none();
        self.is_released && is_quiet && (self.is_over() || self.is_done())
    }
}
