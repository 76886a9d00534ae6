//! Data on the channels of a test.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::sync::Notify;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::channel::{ChannelSource, ReadWrite, TestChannel};
use super::gauge::{TransportGauge, cpu_time};
use crate::protocol::EndReading;
use crate::protocol::pacer::MessagePacer;
use crate::protocol::request::{MAX_SIZE, TestRequest};

/// The size of a read buffer, in bytes.
const READ_SIZE: usize = 256 * 1024;
/// Messages that are due within this time are sent at once: timers are no finer.
const TIMER_STEP: Duration = Duration::from_millis(1);

/// What is sent: noise, because some links compress.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(MAX_SIZE as usize / 8).flatten().collect()
});

/// The counters of the data of one end.
#[derive(Debug, Default)]
struct DataCounters {
    received: AtomicU64,
    sent: AtomicU64,
    /// Messages that are still to be sent, if their number is limited.
    messages: AtomicU64,
    first_byte: Notify,
}

/// What happens to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataEvent {
    FirstByte,
    /// All messages were sent.
    SendingEnded,
    /// The peer has ended all streams.
    ReceivingEnded,
    Broken,
}

/// The data of one end while it flows; dropping it closes the channels.
pub(crate) struct DataFlow {
    counters: Arc<DataCounters>,
    senders: JoinSet<io::Result<()>>,
    receivers: JoinSet<io::Result<ChannelReceiver>>,
    /// Streams that the peer has ended; closed before the end of the test, they would look broken to it.
    ended: Vec<ChannelReceiver>,
    gauge: TransportGauge,
}

impl DataFlow {
    /// Starts to send on all channels, or to receive, or both.
    pub(crate) fn new(
        source: &ChannelSource,
        channels: Vec<TestChannel>,
        request: &TestRequest,
        (sends, receives): (bool, bool),
    ) -> Self {
        let gauge = TransportGauge::new(source, &channels);
        let counters = Arc::new(DataCounters::default());
        counters.messages.store(request.count, Relaxed);
        let (mut senders, mut receivers) = (JoinSet::new(), JoinSet::new());
        for channel in channels {
            let TestChannel { stream, permit, .. } = channel;
            let (reader, writer) = tokio::io::split(stream);
            let (request, counted) = (*request, Arc::clone(&counters));
            if sends {
                senders.spawn(async move { send(writer, &request, &counted).await });
            }
            // One that only sends reads, too, so as to notice the end.
            let counted = Arc::clone(&counters);
            let receiver = ChannelReceiver { reader, _permit: permit };
            receivers.spawn(async move { receiver.receive(receives, &counted).await });
        }
        Self { counters, senders, receivers, ended: Vec::new(), gauge }
    }

    /// Waits for the next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> DataEvent {
        let (event, joined) = tokio::select! {
            () = self.counters.first_byte.notified() => return DataEvent::FirstByte,
            Some(sent) = self.senders.join_next() => {
                let is_over = self.senders.is_empty();
                (is_over.then_some(DataEvent::SendingEnded), sent)
            }
            Some(received) = self.receivers.join_next() => {
                let is_over = self.receivers.is_empty();
                let received = received.map(|received| received.map(|ended| self.ended.push(ended)));
                (is_over.then_some(DataEvent::ReceivingEnded), received)
            }
            else => return std::future::pending().await,
        };
        match (joined, event) {
            (Ok(Ok(())), Some(event)) => event,
            (Ok(Ok(())), None) => Box::pin(self.next()).await,
            // Whoever stops the senders does not wait for them.
            (Err(cause), _) if cause.is_cancelled() => Box::pin(self.next()).await,
            (Ok(Err(error)), _) => {
                tracing::debug!(%error, "a data channel broke");
                DataEvent::Broken
            }
            (Err(_), _) => DataEvent::Broken,
        }
    }

    /// Stops sending, in the middle of a message.
    pub(crate) fn stop_sending(&mut self) {
        self.senders.abort_all();
    }

    /// Returns the counters. The CPU time is that of the process if it is this test's `alone`.
    pub(crate) fn reading(&self, alone: bool) -> EndReading {
        let (retransmitted, rtt) = self.gauge.read();
        EndReading {
            received: self.counters.received.load(Relaxed),
            sent: self.counters.sent.load(Relaxed),
            cpu: alone.then(cpu_time).flatten(),
            retransmitted,
            rtt,
        }
    }
}

/// Waits for the next event of data that may not flow yet.
pub(crate) async fn next_event(data: Option<&mut DataFlow>) -> DataEvent {
    match data {
        Some(data) => data.next().await,
        None => std::future::pending().await,
    }
}

/// Sends messages until their number is reached, and ends the stream then.
async fn send(
    mut to: impl AsyncWrite + Unpin,
    request: &TestRequest,
    counters: &DataCounters,
) -> io::Result<()> {
    let epoch = Instant::now();
    let rate = request.rate as f64 / f64::from(request.streams);
    let mut pacer = (request.rate > 0).then(|| MessagePacer::new(rate, Duration::ZERO));
    let message = &NOISE[..(request.size as usize).min(NOISE.len())];
    while request.count == 0 || claim(&counters.messages) {
        if let Some(pacer) = &mut pacer {
            let now = epoch.elapsed();
            let due = pacer.schedule(now, message.len());
            if due > now + TIMER_STEP {
                // What is due within a step of the timer was already sent by then.
                to.flush().await?;
                tokio::time::sleep(due - now).await;
            }
        }
        let mut rest = message;
        while !rest.is_empty() {
            let written = to.write(rest).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            counters.sent.fetch_add(written as u64, Relaxed);
            rest = &rest[written..];
        }
    }
    to.flush().await?;
    to.shutdown().await
}

/// Takes one of the messages that are left.
fn claim(messages: &AtomicU64) -> bool {
    messages.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// The receiving half of a channel.
struct ChannelReceiver {
    reader: ReadHalf<Box<dyn ReadWrite>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ChannelReceiver {
    /// Receives until the peer ends the stream. Where nothing should come, nothing may.
    async fn receive(mut self, expects: bool, counters: &DataCounters) -> io::Result<Self> {
        let mut buffer = vec![0; if expects { READ_SIZE } else { 1 }];
        loop {
            let length = self.reader.read(&mut buffer).await?;
            if length == 0 {
                return Ok(self);
            }
            if !expects {
                let cause = "data in the wrong direction";
                return Err(io::Error::new(io::ErrorKind::InvalidData, cause));
            }
            if counters.received.fetch_add(length as u64, Relaxed) == 0 {
                counters.first_byte.notify_one();
            }
        }
    }
}
