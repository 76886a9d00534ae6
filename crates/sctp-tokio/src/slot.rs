//! The state of one association that its users see.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::{Poll, Waker};

use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::Message;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::SctpError;

/// The maximum number of bytes of messages that were taken from the protocol but wait for the
/// reader of their stream. Beyond it, the association's window closes until they are read.
pub(super) const MAX_PARKED: usize = 256 * 1024;
/// The maximum number of unread notifications; beyond it, the oldest is dropped.
const MAX_NOTIFICATIONS: usize = 64;

/// The state of an association, as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The INIT was sent.
    Opening,
    /// The INIT ACK was received.
    Answered,
    /// Messages can be sent and received.
    Up,
    /// It has ended: `None` after a shutdown.
    Ended(Option<LossReason>),
}

/// One association.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    /// Whether the peer sends no more.
    pub(super) peer_is_done: bool,
    /// Whether the send buffer is full.
    pub(super) is_full: bool,
    /// Whether its last handle was dropped: it ends by itself.
    pub(super) is_orphan: bool,
    /// Dropped when the association ends, to count those that are open.
    pub(super) opened: Option<TaskTrackerToken>,
    /// Guards that are dropped when it has ended.
    kept: Vec<Box<dyn Any + Send>>,
    /// Our port and the peer's, as counted by the endpoint's `Ports`.
    pub(super) ports: Option<(u16, u16)>,
    /// Streams that are read as bytes, with their received data.
    inboxes: BTreeMap<StreamId, Inbox>,
    /// Received data of all other streams.
    common: Inbox,
    /// Streams whose data is discarded.
    discarded: BTreeSet<StreamId>,
    parked: usize,
    notifications: VecDeque<Event>,
    /// Tasks that wait for the stage to change, or for notifications.
    pub(super) watchers: Wakers,
    /// Tasks that wait for space in the send buffer.
    pub(super) writers: Wakers,
}

/// Data that was received but not read.
#[derive(Debug, Default)]
struct Inbox {
    messages: VecDeque<Message>,
    readers: Wakers,
    /// Whether the peer has reset the stream (RFC 6525): nothing more arrives before it is reused.
    is_reset: bool,
}

/// Tasks that wait for the same thing.
#[derive(Debug, Default)]
pub(super) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(super) fn add(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    pub(super) fn wake(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}

impl Slot {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            peer_is_done: false,
            is_full: false,
            is_orphan: false,
            opened: None,
            kept: Vec::new(),
            ports: None,
            inboxes: BTreeMap::new(),
            common: Inbox::default(),
            discarded: BTreeSet::new(),
            parked: 0,
            notifications: VecDeque::new(),
            watchers: Wakers::default(),
            writers: Wakers::default(),
        }
    }

    /// Records that it has ended.
    pub(super) fn end(&mut self, reason: Option<LossReason>) {
        self.stage = Stage::Ended(reason);
        self.opened = None;
        self.kept.clear();
    }

    /// Keeps a guard until it has ended.
    pub(super) fn keep(&mut self, guard: Box<dyn Any + Send>) {
        if !matches!(self.stage, Stage::Ended(_)) {
            self.kept.push(guard);
        }
    }

    /// Records the protocol's events. Readers fetch the data themselves.
    pub(super) fn handle_event(&mut self, event: Event) {
        match &event {
            Event::Answered => self.stage = Stage::Answered,
            Event::Up { .. } => self.stage = Stage::Up,
            Event::Lost(reason) => self.end(Some(reason.clone())),
            Event::Closed => self.end(None),
            Event::PeerShutdown => self.peer_is_done = true,
            Event::Readable => return self.wake_readers(),
            Event::Writable => {
                self.is_full = false;
                return self.writers.wake();
            }
            Event::StreamsReset { outgoing: false, streams, .. } => self.record_reset(streams),
            _ => {}
        }
        if matches!(self.stage, Stage::Ended(_)) || self.peer_is_done {
            self.wake_readers();
            self.writers.wake();
        }
        if self.notifications.len() >= MAX_NOTIFICATIONS {
            self.notifications.pop_front();
        }
        self.notifications.push_back(event);
        self.watchers.wake();
    }

    fn record_reset(&mut self, streams: &[StreamId]) {
        for (stream, inbox) in &mut self.inboxes {
            if streams.is_empty() || streams.contains(stream) {
                inbox.is_reset = true;
                inbox.readers.wake();
            }
        }
    }

    pub(super) fn wake_readers(&mut self) {
        self.common.readers.wake();
        for inbox in self.inboxes.values_mut() {
            inbox.readers.wake();
        }
    }

    /// Wakes all tasks: nothing more will arrive.
    pub(super) fn wake_all(&mut self) {
        self.wake_readers();
        self.writers.wake();
        self.watchers.wake();
    }

    pub(super) fn notification(&mut self) -> Option<Event> {
        self.notifications.pop_front()
    }

    /// Starts reading this stream as bytes.
    pub(super) fn open_stream(&mut self, stream: StreamId) -> Result<(), SctpError> {
        if self.inboxes.contains_key(&stream) {
            return Err(SctpError::StreamTaken(stream.0));
        }
        self.discarded.remove(&stream);
        let mut inbox = Inbox::default();
        // Messages that arrived before the stream was opened belong to it.
        let (matching, others) =
            self.common.messages.drain(..).partition(|message| message.stream == stream);
        (inbox.messages, self.common.messages) = (matching, others);
        self.inboxes.insert(stream, inbox);
        Ok(())
    }

    /// Makes this stream readable as messages again, including those received in the meantime.
    pub(super) fn return_stream(&mut self, stream: StreamId) {
        if let Some(inbox) = self.inboxes.remove(&stream) {
            self.common.messages.extend(inbox.messages);
            self.common.readers.wake();
        }
    }

    /// Discards what arrives on this stream from now on, until it is opened again.
    pub(super) fn discard_stream(&mut self, stream: StreamId) {
        self.close_stream(stream);
        self.discarded.insert(stream);
    }

    /// Drops what has arrived on this stream.
    pub(super) fn close_stream(&mut self, stream: StreamId) {
        if let Some(inbox) = self.inboxes.remove(&stream) {
            let was_full = self.parked >= MAX_PARKED;
            self.parked -= inbox.messages.iter().map(Message::len).sum::<usize>();
            if was_full {
                self.wake_readers();
            }
        }
    }

    /// Returns whether the peer has ended this stream and everything on it was read.
    pub(super) fn is_stream_over(&self, stream: StreamId) -> bool {
        self.inboxes.get(&stream).is_some_and(|inbox| inbox.is_reset && inbox.messages.is_empty())
    }

    /// Returns the next message of a byte stream, or of all other streams. `receive` returns what
    /// the protocol has.
    pub(super) fn next(
        &mut self,
        stream: Option<StreamId>,
        mut receive: impl FnMut() -> Option<Message>,
    ) -> Option<Message> {
        loop {
            let inbox = match &stream {
                None => &mut self.common,
                Some(stream) => self.inboxes.get_mut(stream)?,
            };
            if let Some(message) = inbox.messages.pop_front() {
                let was_full = self.parked >= MAX_PARKED;
                self.parked -= message.len();
                if was_full {
                    self.wake_readers();
                }
                return Some(message);
            }
            if self.parked >= MAX_PARKED {
                return None;
            }
            let message = receive()?;
            if self.discarded.contains(&message.stream) {
                continue;
            }
            let own = self.inboxes.get_mut(&message.stream);
            let is_requested = match (&own, stream) {
                (None, None) => true,
                (Some(_), Some(stream)) => message.stream == stream,
                _ => false,
            };
            if is_requested {
                return Some(message);
            }
            let inbox = own.unwrap_or(&mut self.common);
            self.parked += message.len();
            inbox.messages.push_back(message);
            inbox.readers.wake();
        }
    }

    /// Keeps a message until it is read.
    #[cfg(target_os = "linux")]
    pub(super) fn park(&mut self, message: Message) {
        if self.discarded.contains(&message.stream) {
            return;
        }
        self.parked += message.len();
        let inbox = self.inboxes.get_mut(&message.stream).unwrap_or(&mut self.common);
        inbox.messages.push_back(message);
        inbox.readers.wake();
    }

    /// Returns whether so much data is waiting to be read that no more is accepted.
    #[cfg(target_os = "linux")]
    pub(super) fn is_parking_full(&self) -> bool {
        self.parked >= MAX_PARKED
    }

    /// Returns the result for a reader without a message: pending, or the end.
    pub(super) fn end_of(
        &self,
        stream: Option<StreamId>,
    ) -> Poll<Result<Option<Message>, SctpError>> {
        match &self.stage {
            Stage::Ended(Some(reason)) => Poll::Ready(Err(SctpError::Lost(reason.clone()))),
            Stage::Ended(None) => Poll::Ready(Ok(None)),
            _ if self.peer_is_done || stream.is_some_and(|stream| self.is_stream_over(stream)) => {
                Poll::Ready(Ok(None))
            }
            _ => Poll::Pending,
        }
    }

    /// Registers a waiter for the next message.
    pub(super) fn await_message(&mut self, stream: Option<StreamId>, waker: &Waker) {
        let inbox = match stream {
            None => Some(&mut self.common),
            Some(stream) => self.inboxes.get_mut(&stream),
        };
        if let Some(inbox) = inbox {
            inbox.readers.add(waker);
        }
    }
}
