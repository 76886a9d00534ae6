//! A session in real time, for the tasks that use it. `transport` runs it over a connection.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use crate::frame::{ChannelPurpose, RefuseReason};
use crate::packet_counts::{PacketCounts, PacketTally};
use crate::paths::ConnectionPaths;
use crate::session::{
    ChannelAnswer, ReadResult, SessionEnd, SessionEvent, SessionLimits, SessionSide, TunnelLane,
    TunnelSession,
};
use crate::vigil::SessionVigil;

/// A session over a connection. Cheap to clone; it lasts as long as [`run`](SessionLink::run).
#[derive(Clone, Debug)]
pub(crate) struct SessionLink {
    pub(crate) shared: Arc<SharedLink>,
}

#[derive(Debug)]
pub(crate) struct SharedLink {
    state: Mutex<LinkState>,
    /// Notified when a session that is up or over has changed.
    pub(crate) changed: Notify,
    /// Notified when data was received from the other end.
    pub(crate) received: Notify,
    /// Notified when a further stream of the transport would be useful.
    wants_lane: Notify,
    /// The paths of the current connection.
    paths: Mutex<Option<ConnectionPaths>>,
    /// The counts of packets, while an interface is attached.
    packets: Mutex<Option<Arc<PacketTally>>>,
    pub(crate) vigil: SessionVigil,
    pub(crate) began: Instant,
}

#[derive(Debug)]
pub(crate) struct LinkState {
    pub(crate) session: TunnelSession,
    /// The senders of the streams, which are notified when there may be something to send.
    senders: BTreeMap<TunnelLane, Arc<Notify>>,
    /// The wakers of tasks that wait for a channel.
    waiting: BTreeMap<u32, ChannelWakers>,
    /// The requests of the other end, whose number the session bounds.
    requests: Option<mpsc::UnboundedSender<(u32, ChannelPurpose)>>,
}

#[derive(Debug, Default)]
struct ChannelWakers {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// A request of the other end for a channel, to be [accepted](ChannelRequest::accept) or
/// [refused](ChannelRequest::refuse). Dropping it resets the channel.
#[derive(Debug)]
pub(crate) struct ChannelRequest {
    pub(crate) purpose: ChannelPurpose,
    channel: ChannelStream,
}

/// The requests of the other end.
#[derive(Debug)]
pub(crate) struct ChannelRequests {
    link: SessionLink,
    requests: mpsc::UnboundedReceiver<(u32, ChannelPurpose)>,
}

impl LinkState {
    /// Wakes the senders of streams with something to send, and that of the first one at the end.
    fn wake_senders(&self) {
        if self.session.end().is_some() {
            self.wake_sender(TunnelLane::FIRST);
        }
        for lane in self.session.ready_lanes() {
            self.wake_sender(lane);
        }
    }

    fn wake_sender_of(&self, channel: u32) {
        if let Some(lane) = self.session.lane_of(channel) {
            self.wake_sender(lane);
        }
    }

    fn wake_sender(&self, lane: TunnelLane) {
        if let Some(sender) = self.senders.get(&lane) {
            sender.notify_one();
        }
    }

    /// Passes the session's events to the waiting tasks. Returns whether the session is up or over.
    pub(crate) fn dispatch_events(&mut self) -> bool {
        let Self { session, waiting, requests, .. } = self;
        while let Some(event) = session.poll_event() {
            match event {
                SessionEvent::Requested(id, purpose) => {
                    let requests = requests.as_ref();
                    if requests.is_none_or(|requests| requests.send((id, purpose)).is_err()) {
                        session.release(id);
                    }
                }
                SessionEvent::Changed(id) => {
                    if let Some(waiting) = waiting.get_mut(&id) {
                        waiting.reader.take().into_iter().for_each(Waker::wake);
                        waiting.writer.take().into_iter().for_each(Waker::wake);
                    }
                }
            }
        }
        let is_over = session.end().is_some();
        if is_over {
            *requests = None;
        }
        is_over || session.is_up()
    }
}

impl SessionLink {
    /// Creates a session without a connection.
    pub(crate) fn new(side: SessionSide, limits: SessionLimits) -> (Self, ChannelRequests) {
        let (sender, requests) = mpsc::unbounded_channel();
        let session = TunnelSession::new(side, limits, Duration::ZERO);
        let senders = BTreeMap::from([(TunnelLane::FIRST, Arc::default())]);
        let state =
            LinkState { session, senders, waiting: BTreeMap::new(), requests: Some(sender) };
        let shared = SharedLink {
            state: Mutex::new(state),
            changed: Notify::new(),
            received: Notify::new(),
            wants_lane: Notify::new(),
            paths: Mutex::default(),
            packets: Mutex::default(),
            vigil: SessionVigil::default(),
            began: Instant::now(),
        };
        let link = Self { shared: Arc::new(shared) };
        (link.clone(), ChannelRequests { link, requests })
    }

    /// Changes the session, and wakes the tasks that this concerns.
    pub(crate) fn change_session<T>(
        &self,
        change: impl FnOnce(&mut TunnelSession, Duration) -> T,
    ) -> T {
        let now = self.shared.began.elapsed();
        let mut state = self.lock();
        let result = change(&mut state.session, now);
        if state.dispatch_events() {
            self.shared.changed.notify_waiters();
        }
        state.wake_senders();
        if state.session.wants_lane() {
            self.shared.wants_lane.notify_one();
        }
        result
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn peek<T>(&self, read: impl FnOnce(&TunnelSession) -> T) -> T {
        read(&self.lock().session)
    }

    pub(crate) fn set_paths(&self, paths: Option<ConnectionPaths>) {
        let former = std::mem::replace(&mut *self.lock_paths(), paths);
        // After the lock is released, since dropping the last handle of a connection closes it.
        drop(former);
    }

    /// Returns the paths of the current connection, if there is one.
    pub(crate) fn paths(&self) -> Option<ConnectionPaths> {
        self.lock_paths().clone()
    }

    fn lock_paths(&self) -> MutexGuard<'_, Option<ConnectionPaths>> {
        self.shared.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the counts of packets while an interface is attached.
    pub(crate) fn set_packets(&self, packets: Option<Arc<PacketTally>>) {
        *self.shared.packets.lock().unwrap_or_else(PoisonError::into_inner) = packets;
    }

    /// Returns the counts of packets, if an interface is attached.
    pub(crate) fn packets(&self) -> Option<PacketCounts> {
        let packets = self.shared.packets.lock().unwrap_or_else(PoisonError::into_inner);
        packets.as_ref().map(|tally| tally.read())
    }

    /// Returns why the session is over, if it is.
    pub(crate) fn end(&self) -> Option<SessionEnd> {
        self.peek(|session| session.end().cloned())
    }

    /// Ends the session with a GOODBYE.
    pub(crate) fn goodbye(&self, text: &str) {
        self.change_session(|session, _| session.goodbye(text));
    }

    /// Waits for the other end's HELLO.
    pub(crate) async fn up(&self) -> Result<(), SessionEnd> {
        loop {
            let changed = self.shared.changed.notified();
            let (is_up, end) = self.peek(|session| (session.is_up(), session.end().cloned()));
            match end {
                Some(end) => return Err(end),
                None if is_up => return Ok(()),
                None => changed.await,
            }
        }
    }

    /// Sends a PING, and returns whether the other end answers within this time.
    pub(crate) async fn answers(&self, within: Duration) -> bool {
        let token = self.change_session(|session, _| session.ping());
        let answered = async {
            loop {
                let received = self.shared.received.notified();
                let (last, is_over) =
                    self.peek(|session| (session.last_pong(), session.end().is_some()));
                if is_over || last >= token {
                    return !is_over;
                }
                received.await;
            }
        };
        timeout(within, answered).await.unwrap_or(false)
    }

    /// Waits until the other end has read the data of the channels that have ended at this end, for at most
    /// [`SessionLimits::drain`].
    pub(crate) async fn drain(&self) {
        let within = self.peek(|session| session.limits().drain);
        let drained = async {
            loop {
                let received = self.shared.received.notified();
                if self.peek(|session| session.is_drained() || session.end().is_some()) {
                    return;
                }
                received.await;
            }
        };
        // The remaining channels are reset.
        let _ = timeout(within, drained).await;
    }

    /// Waits until the session has no channels, or is over.
    pub(crate) async fn empty(&self) {
        loop {
            let changed = self.shared.changed.notified();
            if self.peek(|session| session.channels() == 0 || session.end().is_some()) {
                return;
            }
            changed.await;
        }
    }

    /// Returns whether this is a handle of the same session.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Gives the session up.
    pub(crate) fn give_up(&self, text: &str) {
        self.change_session(|session, _| session.lost(text));
    }

    /// Requests a channel at once. The returned future waits for the answer: the channel, and the port if the
    /// other end is to listen.
    pub(crate) fn open(
        &self,
        purpose: ChannelPurpose,
    ) -> impl Future<Output = Result<(ChannelStream, u16), (RefuseReason, String)>> + Send + use<>
    {
        let id = self.change_session(|session, _| session.open(purpose));
        let channel = id.map(|id| self.channel(id)).ok_or_else(|| {
            let text = match self.end() {
                Some(end) => end.to_string(),
                None => "the maximum number of connections is reached".to_owned(),
            };
            (RefuseReason::TooMany, text)
        });
        async move { channel?.answer().await }
    }

    /// Waits until at most this many bytes of a channel wait to be sent, or the channel is over.
    pub(crate) async fn unsent_below(&self, id: u32, limit: usize) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.session.unsent(id) <= limit {
                return Poll::Ready(());
            }
            state.waiting.entry(id).or_default().writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn channel(&self, id: u32) -> ChannelStream {
        ChannelStream { link: self.clone(), id }
    }

    /// Waits until a further stream would be useful.
    pub(crate) async fn wants_lane(&self) {
        while !self.peek(TunnelSession::wants_lane) {
            self.shared.wants_lane.notified().await;
        }
    }

    /// Returns the number of streams that both ends use.
    pub(crate) fn lanes(&self) -> usize {
        self.peek(TunnelSession::lanes)
    }

    /// Adds a stream. Returns the notification that there is something to send on it, or `None` if there are
    /// too many streams.
    pub(crate) fn add_lane(&self, lane: TunnelLane) -> Option<Arc<Notify>> {
        let sender = Arc::<Notify>::default();
        let mut state = self.lock();
        if !state.session.add_lane(lane) {
            return None;
        }
        state.senders.insert(lane, Arc::clone(&sender));
        sender.notify_one();
        Some(sender)
    }

    /// Returns the notification that there is something to send on the first stream.
    pub(crate) fn first_sender(&self) -> Arc<Notify> {
        self.lock().senders.get(&TunnelLane::FIRST).cloned().unwrap_or_default()
    }
}

impl ChannelRequests {
    /// Waits for the next request. Returns `None` once the session is over.
    pub(crate) async fn next(&mut self) -> Option<ChannelRequest> {
        let (id, purpose) = self.requests.recv().await?;
        Some(ChannelRequest { purpose, channel: self.link.channel(id) })
    }
}

impl ChannelRequest {
    /// Returns the number of the requested channel.
    pub(crate) fn id(&self) -> u32 {
        self.channel.id
    }

    /// Accepts the request.
    pub(crate) fn accept(self, port: u16) -> ChannelStream {
        self.channel.link.change_session(|session, _| session.accept(self.channel.id, port));
        self.channel
    }

    /// Refuses the request.
    pub(crate) fn refuse(self, why: RefuseReason, text: String) {
        self.channel.link.change_session(|session, _| session.refuse(self.channel.id, why, text));
    }
}

/// A channel as a byte stream. If it is dropped before both directions have ended, it is reset.
#[derive(Debug)]
pub(crate) struct ChannelStream {
    link: SessionLink,
    id: u32,
}

impl ChannelStream {
    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.link.lock()
    }

    /// Returns the number of the channel.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Waits for the other end's answer to the request.
    async fn answer(self) -> Result<(Self, u16), (RefuseReason, String)> {
        let answer = poll_fn(|cx| {
            let mut state = self.lock();
            match state.session.answer(self.id) {
                ChannelAnswer::Waiting => {
                    state.waiting.entry(self.id).or_default().reader = Some(cx.waker().clone());
                    Poll::Pending
                }
                answer => Poll::Ready(answer),
            }
        });
        match answer.await {
            ChannelAnswer::Accepted(port) => Ok((self, port)),
            ChannelAnswer::Refused(why, text) => Err((why, text)),
            ChannelAnswer::Reset | ChannelAnswer::Waiting => {
                let end = self.link.end().map(|end| end.to_string());
                Err((
                    RefuseReason::Failed,
                    end.unwrap_or_else(|| "the other end reset it".to_owned()),
                ))
            }
        }
    }

    fn reset_error(&self) -> io::Error {
        let text = match self.link.end() {
            Some(end) => end.to_string(),
            None => "the other end of the tunnel closed it".to_owned(),
        };
        io::Error::new(io::ErrorKind::ConnectionReset, text)
    }
}

impl AsyncRead for ChannelStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = {
            let mut state = self.lock();
            let read = state.session.read(self.id, buf.initialize_unfilled());
            match read {
                ReadResult::Wait => {
                    state.waiting.entry(self.id).or_default().reader = Some(cx.waker().clone());
                }
                // There may be credit to send.
                ReadResult::Bytes(_) => state.wake_sender_of(self.id),
                ReadResult::End | ReadResult::Gone => {}
            }
            read
        };
        match read {
            ReadResult::Bytes(length) => {
                buf.advance(length);
                Poll::Ready(Ok(()))
            }
            ReadResult::End => Poll::Ready(Ok(())),
            ReadResult::Wait => Poll::Pending,
            ReadResult::Gone => Poll::Ready(Err(self.reset_error())),
        }
    }
}

impl AsyncWrite for ChannelStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let accepted = {
            let mut state = self.lock();
            let accepted = state.session.write(self.id, bytes);
            match accepted {
                Some(0) if !bytes.is_empty() => {
                    state.waiting.entry(self.id).or_default().writer = Some(cx.waker().clone());
                }
                _ => state.wake_sender_of(self.id),
            }
            accepted
        };
        match accepted {
            Some(0) if !bytes.is_empty() => Poll::Pending,
            Some(accepted) => Poll::Ready(Ok(accepted)),
            None => Poll::Ready(Err(self.reset_error())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.change_session(|session, _| session.finish(self.id));
        Poll::Ready(Ok(()))
    }
}

impl Drop for ChannelStream {
    fn drop(&mut self) {
        self.lock().waiting.remove(&self.id);
        self.link.change_session(|session, _| session.release(self.id));
    }
}
