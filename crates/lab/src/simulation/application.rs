//! The applications of the hosts: one sends as much as possible, the other one measures.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::message::{Message, SendInfo};

use crate::run::StreamResult;
use crate::situation::{ApplicationSetup, QueueInfo};

/// Bytes at the start of each message that contain the time at which it was sent.
const TIMESTAMP_SIZE: usize = 8;

/// The size of a keystroke's message, and the amount whose arrival is timed.
pub(crate) const KEYSTROKE: usize = 100;
const FIRST: u64 = 1 << 20;

/// Always has a message for the next stream.
#[derive(Debug)]
pub(super) struct SaturatedSender {
    setup: ApplicationSetup,
    /// The share of the buffer for each stream, if the application uses queue information.
    share: usize,
    next: u16,
    /// When the next keystroke falls; `None` before the first call.
    keystroke: Option<Duration>,
    /// A message to be refused.
    placeholder: Bytes,
}

impl SaturatedSender {
    pub(super) fn new(setup: ApplicationSetup, send_buffer: usize) -> Self {
        let share = send_buffer / usize::from(setup.streams.max(1));
        Self { setup, share, next: 0, keystroke: None, placeholder: vec![0; setup.message].into() }
    }

    /// Sends messages on the streams in turn until there is no room, and returns whether there were
    /// any. With queue information, a stream that has enough is skipped; without it, the next
    /// message waits for room.
    pub(super) fn fill(
        &mut self,
        now: Duration,
        endpoint: &mut Endpoint,
        id: AssociationId,
    ) -> bool {
        let (mut skipped, mut any) = (0, self.send_keystrokes(now, endpoint, id));
        while skipped < self.setup.streams {
            let stream = StreamId(self.next);
            if self.skips_stream(endpoint, id, stream) {
                skipped += 1;
            } else {
                let info = SendInfo { stream, ..SendInfo::default() };
                // Most calls find no room, and creating a message takes time. One is offered and
                // refused nevertheless, because an association does more for a waiting sender.
                let has_room = endpoint.is_writable(id, self.setup.message);
                let message = if has_room {
                    stamped(now, self.setup.message)
                } else {
                    self.placeholder.clone()
                };
                if endpoint.send(now, id, &info, message).is_err() || !has_room {
                    return any;
                }
                (skipped, any) = (0, true);
            }
            self.next = (self.next + 1) % self.setup.streams;
        }
        any
    }

    /// Returns whether a stream has enough, according to the association's queue information.
    fn skips_stream(&self, endpoint: &Endpoint, id: AssociationId, stream: StreamId) -> bool {
        let queue = || endpoint.stream_queue(id, stream).unwrap_or_default();
        match self.setup.queue_info {
            QueueInfo::None => false,
            QueueInfo::Share => queue().total() >= self.share,
            QueueInfo::Unsent => queue().unsent >= self.setup.message,
        }
    }

    /// Returns whether it sends a message as soon as another one of its stream has left.
    pub(super) fn refills_immediately(&self) -> bool {
        self.setup.queue_info == QueueInfo::Unsent
    }

    /// Sends the keystrokes that are due, before anything else, and returns whether there were any.
    /// One that finds no room waits for it, and counts from when it fell.
    fn send_keystrokes(
        &mut self,
        now: Duration,
        endpoint: &mut Endpoint,
        id: AssociationId,
    ) -> bool {
        let Some(every) = self.setup.keystrokes else { return false };
        let mut any = false;
        loop {
            let at = *self.keystroke.get_or_insert(now);
            let info = SendInfo { stream: StreamId(self.setup.streams), ..SendInfo::default() };
            if at > now || endpoint.send(now, id, &info, stamped(at, KEYSTROKE)).is_err() {
                return any;
            }
            self.keystroke = Some(at + every.0);
            any = true;
        }
    }

    /// Returns when the next keystroke falls; `None` if there is none, or it waits for room.
    pub(super) fn next_keystroke(&self, now: Duration) -> Option<Duration> {
        self.keystroke.filter(|at| *at > now)
    }
}

/// Returns a message of this size; only the time stamp differs.
pub(crate) fn stamped(at: Duration, size: usize) -> Bytes {
    let mut message = BytesMut::with_capacity(size);
    message.put_u64(nanoseconds(at));
    message.put_bytes(0, size - TIMESTAMP_SIZE);
    message.freeze()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Receives messages, and counts them once counting has begun.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageSink {
    streams: Vec<CountedMessages>,
    last_message: Option<Duration>,
    longest_gap: Duration,
    /// Bytes since the start of the simulation.
    received: u64,
    first: Option<Duration>,
    /// The stream whose single delays are kept.
    keystrokes: Option<u16>,
    delays: Vec<u64>,
    /// When the last keystroke that has arrived fell, in nanoseconds.
    last_keystroke: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CountedMessages {
    result: StreamResult,
    /// The time at which the incoming message was sent.
    sent_at: u64,
}

impl MessageSink {
    /// Keeps the delay of each message of the stream of the keystrokes.
    pub(super) fn from_setup(setup: &ApplicationSetup) -> Self {
        Self { keystrokes: setup.keystrokes.map(|_| setup.streams), ..Self::default() }
    }

    /// Returns when the first MiB had arrived.
    pub(super) const fn first_mebibyte(&self) -> Option<Duration> {
        self.first
    }

    /// Returns the delays of all keystrokes, in nanoseconds.
    pub(super) fn keystrokes(&self) -> &[u64] {
        &self.delays
    }

    /// Returns when the last keystroke that has arrived fell.
    pub(super) const fn last_keystroke(&self) -> Duration {
        Duration::from_nanos(self.last_keystroke)
    }

    /// Discards the counts so far; messages in flight count when they arrive.
    pub(super) fn begin(&mut self, now: Duration) {
        for stream in &mut self.streams {
            stream.result = StreamResult::default();
        }
        self.delays.clear();
        self.last_message = Some(now);
        self.longest_gap = Duration::ZERO;
    }

    /// Receives a message, or part of one.
    pub(super) fn receive(&mut self, now: Duration, message: &Message) {
        let stream = usize::from(message.stream.0);
        if stream >= self.streams.len() {
            self.streams.resize_with(stream + 1, CountedMessages::default);
        }
        let counted = &mut self.streams[stream];
        if message.begins
            && let Some(stamp) = message.data.iter().next().and_then(|piece| piece.first_chunk())
        {
            counted.sent_at = u64::from_be_bytes(*stamp);
        }
        counted.result.bytes += message.len() as u64;
        if message.ends {
            counted.result.messages += 1;
            let delay = nanoseconds(now).saturating_sub(counted.sent_at);
            counted.result.delay_ns += delay;
            if self.keystrokes == Some(message.stream.0) {
                self.delays.push(delay);
                self.last_keystroke = counted.sent_at;
            }
        }
        self.received += message.len() as u64;
        if self.received >= FIRST {
            self.first.get_or_insert(now);
        }
        if let Some(last) = self.last_message {
            self.longest_gap = self.longest_gap.max(now.saturating_sub(last));
        }
        self.last_message = Some(now);
    }

    /// Returns the counts of each stream.
    pub(super) fn streams(&self, count: u16) -> Vec<StreamResult> {
        let counted = |stream: usize| self.streams.get(stream).map(|counted| counted.result);
        (0..usize::from(count)).map(|stream| counted(stream).unwrap_or_default()).collect()
    }

    /// Returns the bytes of messages on all streams.
    pub(super) fn bytes(&self) -> u64 {
        self.streams.iter().map(|counted| counted.result.bytes).sum()
    }

    /// Returns the longest time without a message, up to `now`.
    pub(super) fn longest_gap(&self, now: Duration) -> Duration {
        let last = self.last_message.map_or(now, |last| now.saturating_sub(last));
        self.longest_gap.max(last)
    }
}
