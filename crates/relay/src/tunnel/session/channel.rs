//! One channel: a stream of bytes in each direction, with a window for each.

use bytes::{Buf, BytesMut};

use super::{Answer, Lane, SessionLimits};
use crate::tunnel::frame::{Broken, MAX_DATA, Purpose, Why};

/// Up to so many bytes waiting a channel goes before those with more: a keystroke before a copy.
const BRIEF: usize = 2 * 1024;

/// What is to be said about a channel beside its bytes. Each is said once, so the other end cannot make
/// this grow.
#[derive(Debug, Default)]
pub(super) struct Due {
    pub(super) open: Option<Purpose>,
    pub(super) answer: Option<Result<u16, (Why, String)>>,
    pub(super) credit: bool,
    pub(super) delivered: bool,
    pub(super) reset: bool,
}

/// The direction that leads away.
#[derive(Debug)]
pub(super) struct Sending {
    waiting: BytesMut,
    credit: u64,
    finish: Finish,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    No,
    Wanted,
    Said,
    /// The other end has read everything before it.
    Delivered,
}

impl Sending {
    pub(super) fn new(credit: u32) -> Self {
        Self { waiting: BytesMut::new(), credit: credit.into(), finish: Finish::No, sent: 0 }
    }

    pub(super) fn add_credit(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes.into());
    }

    /// Takes as many bytes as there is room for.
    pub(super) fn put(&mut self, bytes: &[u8], limit: usize) -> usize {
        let room = limit.saturating_sub(self.waiting.len()).min(bytes.len());
        self.waiting.extend_from_slice(&bytes[..room]);
        room
    }

    pub(super) fn finish(&mut self) {
        if self.finish == Finish::No {
            self.finish = Finish::Wanted;
        }
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finish != Finish::No
    }

    /// The other end says that it has read everything.
    pub(super) fn deliver(&mut self) -> Result<(), Broken> {
        match std::mem::replace(&mut self.finish, Finish::Delivered) {
            Finish::Said => Ok(()),
            _ => Err(Broken("it has read an end that was not sent, or twice")),
        }
    }

    pub(super) fn is_delivered(&self) -> bool {
        self.finish == Finish::Delivered
    }

    /// Whether there is something that may be sent now.
    pub(super) fn is_ready(&self) -> bool {
        match self.waiting.is_empty() {
            true => self.finish == Finish::Wanted,
            false => self.credit > 0,
        }
    }

    /// Bytes that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes that wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_brief(&self) -> bool {
        self.waiting.len() <= BRIEF
    }

    /// The next bytes, or `None` where the end is to be said.
    pub(super) fn take(&mut self) -> Option<BytesMut> {
        if self.waiting.is_empty() {
            self.finish = Finish::Said;
            return None;
        }
        let credit = usize::try_from(self.credit).unwrap_or(usize::MAX);
        let length = self.waiting.len().min(credit).min(MAX_DATA);
        self.credit -= length as u64;
        self.sent += length as u64;
        let piece = self.waiting.split_to(length);
        if self.waiting.is_empty() {
            // A connection with nothing under way holds no buffer.
            self.waiting = BytesMut::new();
        }
        Some(piece)
    }

    pub(super) fn clear(&mut self) {
        self.waiting = BytesMut::new();
    }
}

/// The direction that leads here.
#[derive(Debug)]
pub(super) struct Receiving {
    unread: BytesMut,
    /// Bytes that the other end may still send.
    open: u32,
    /// Bytes that were read, and that it has not been told of.
    owed: u32,
    /// All three together.
    window: u32,
    has_ended: bool,
    /// The other end is told, or will be, that everything was read.
    is_confirmed: bool,
    received: u64,
}

impl Receiving {
    pub(super) fn new(window: u32) -> Self {
        let unread = BytesMut::new();
        Self {
            unread,
            open: window,
            owed: 0,
            window,
            has_ended: false,
            is_confirmed: false,
            received: 0,
        }
    }

    /// Bytes by which the window is larger than it was at first.
    pub(super) fn growth(&self, limits: &SessionLimits) -> usize {
        (self.window - limits.first_window) as usize
    }

    /// Whether everything has come and was read.
    pub(super) fn was_read(&self) -> bool {
        self.has_ended && self.unread.is_empty()
    }

    /// Whether the other end has to be told so: once.
    pub(super) fn confirm(&mut self) -> bool {
        self.was_read() && !std::mem::replace(&mut self.is_confirmed, true)
    }

    /// Bytes that have come.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn unread(&self) -> usize {
        self.unread.len()
    }

    /// Takes in what has come. `keep` says whether anybody will read it.
    pub(super) fn put(&mut self, bytes: &[u8], keep: bool) -> Result<(), Broken> {
        if self.has_ended {
            return Err(Broken("data behind the end of a channel"));
        }
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let left = self.open.checked_sub(length);
        self.open = left.ok_or(Broken("more data than there was credit for"))?;
        self.received += u64::from(length);
        if keep {
            self.unread.extend_from_slice(bytes);
        } else {
            self.owed += length;
        }
        self.check();
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<(), Broken> {
        match std::mem::replace(&mut self.has_ended, true) {
            false => Ok(()),
            true => Err(Broken("a channel ends twice")),
        }
    }

    pub(super) fn take(&mut self, into: &mut [u8]) -> usize {
        let length = self.unread.len().min(into.len());
        into[..length].copy_from_slice(&self.unread[..length]);
        self.unread.advance(length);
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
        }
        self.owed += length as u32;
        self.check();
        length
    }

    /// Whether credit is worth a frame.
    pub(super) fn owes_much(&self) -> bool {
        !self.has_ended && self.owed >= self.window / 2
    }

    /// What the other end may send more. The window doubles where everything has been read, up to the most
    /// and for as long as the budget of the session allows.
    pub(super) fn credit(&mut self, most: u32, budget: &mut usize) -> u32 {
        let more = self.window.min(most.saturating_sub(self.window));
        if self.unread.is_empty() && *budget >= more as usize {
            *budget -= more as usize;
            self.window += more;
            self.owed += more;
        }
        let credit = std::mem::take(&mut self.owed);
        self.open += credit;
        self.check();
        credit
    }

    pub(super) fn clear(&mut self) {
        self.owed += self.unread.len() as u32;
        self.unread = BytesMut::new();
    }

    fn check(&self) {
        let all = u64::from(self.open) + u64::from(self.owed) + self.unread.len() as u64;
        debug_assert_eq!(all, u64::from(self.window), "every byte of the window is somewhere");
    }
}

/// One channel, from its opening until both ends have let go of it.
#[derive(Debug)]
pub(super) struct Channel {
    /// The stream that it was opened on.
    pub(super) lane: Lane,
    pub(super) purpose: Purpose,
    pub(super) answer: Answer,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    pub(super) due: Due,
    /// Nobody here reads or writes it any more.
    pub(super) is_released: bool,
    pub(super) queued: Queued,
}

/// The queues of its stream that a channel stands in, so that it stands in each but once.
#[derive(Debug, Default)]
pub(super) struct Queued {
    pub(super) due: bool,
    pub(super) data: bool,
    pub(super) event: bool,
}

impl Channel {
    pub(super) fn new(lane: Lane, purpose: Purpose, credit: u32, window: u32) -> Self {
        Self {
            lane,
            purpose,
            answer: Answer::Waiting,
            sending: Sending::new(credit),
            receiving: Receiving::new(window),
            due: Due::default(),
            is_released: false,
            queued: Queued::default(),
        }
    }

    /// It is over, and nothing more of it is passed on.
    pub(super) fn end(&mut self, answer: Answer) {
        self.answer = answer;
        self.sending.clear();
        self.receiving.clear();
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.answer, Answer::Reset | Answer::Refused(..))
    }

    /// What its window may grow to.
    pub(super) fn most(&self, limits: &SessionLimits) -> u32 {
        match self.purpose {
            Purpose::Packets { .. } => limits.packet_window,
            _ => limits.window,
        }
    }

    /// Whether both ends have said everything and have read it.
    pub(super) fn is_done(&self) -> bool {
        self.sending.is_delivered() && self.receiving.was_read()
    }

    /// Whether it can be forgotten.
    pub(super) fn can_go(&self) -> bool {
        let due = &self.due;
        let is_quiet = !due.reset && !due.delivered && due.answer.is_none() && due.open.is_none();
        self.is_released && is_quiet && (self.is_over() || self.is_done())
    }
}
