//! A session as its users have it, in real time. `carry` has what carries it.

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

use super::frame::{Purpose, Why};
use super::packets::{PacketCounts, Tally};
use super::paths::Paths;
use super::session::{Answer, End, Event, Lane, Read, Session, SessionLimits, Side};

/// A session that is carried by something. Cheap to clone; it lives for as long as
/// [`run`](Link::run) does.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Something has been done with a session that is up, or over.
    pub(super) settled: Notify,
    /// Something was heard of the other end.
    pub(super) heard: Notify,
    /// A further stream of the transport would be of use.
    wants_lane: Notify,
    /// The paths of what carries it at the moment.
    paths: Mutex<Option<Paths>>,
    /// What becomes of the packets of an interface, while there are some.
    packets: Mutex<Option<Arc<Tally>>>,
    pub(super) began: Instant,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) session: Session,
    /// Who sends on each stream of the transport, told when there may be something to send.
    senders: BTreeMap<Lane, Arc<Notify>>,
    /// Who waits for a channel, one row for each that is in use.
    waiting: BTreeMap<u32, Waiting>,
    /// What the other end asks for. The session bounds how much that can be.
    asked: Option<mpsc::UnboundedSender<(u32, Purpose)>>,
}

#[derive(Debug, Default)]
struct Waiting {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What the other end asks for: to be [accepted](Asked::accept) or [refused](Asked::refuse), and refused
/// if it is dropped.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) purpose: Purpose,
    channel: ChannelStream,
}

/// What the other end asks for, one by one; `None` once the session is over.
#[derive(Debug)]
pub(crate) struct Questions {
    link: Link,
    asked: mpsc::UnboundedReceiver<(u32, Purpose)>,
}

impl State {
    /// Has those streams send that have something to, and the first one notice the end.
    fn wake_senders(&self) {
        if self.session.end().is_some() {
            self.wake_sender(Lane::FIRST);
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

    fn wake_sender(&self, lane: Lane) {
        if let Some(sender) = self.senders.get(&lane) {
            sender.notify_one();
        }
    }

    /// Hands on what has happened, and says whether the session is up or over.
    pub(super) fn hand_on(&mut self) -> bool {
        let Self { session, waiting, asked, .. } = self;
        while let Some(event) = session.poll_event() {
            match event {
                Event::Asked(id, purpose) => {
                    let asked = asked.as_ref();
                    if asked.is_none_or(|asked| asked.send((id, purpose)).is_err()) {
                        session.release(id);
                    }
                }
                Event::Changed(id) => {
                    if let Some(waiting) = waiting.get_mut(&id) {
                        waiting.reader.take().into_iter().for_each(Waker::wake);
                        waiting.writer.take().into_iter().for_each(Waker::wake);
                    }
                }
            }
        }
        let is_over = session.end().is_some();
        if is_over {
            *asked = None;
        }
        is_over || session.is_up()
    }
}

impl Link {
    /// A session that nothing carries yet.
    pub(crate) fn new(side: Side, limits: SessionLimits) -> (Self, Questions) {
        let (sender, asked) = mpsc::unbounded_channel();
        let session = Session::new(side, limits, Duration::ZERO);
        let senders = BTreeMap::from([(Lane::FIRST, Arc::default())]);
        let state = State { session, senders, waiting: BTreeMap::new(), asked: Some(sender) };
        let shared = Shared {
            state: Mutex::new(state),
            settled: Notify::new(),
            heard: Notify::new(),
            wants_lane: Notify::new(),
            paths: Mutex::default(),
            packets: Mutex::default(),
            began: Instant::now(),
        };
        let link = Self { shared: Arc::new(shared) };
        (link.clone(), Questions { link, asked })
    }

    /// Does something with the session, and wakes whom that concerns.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Session, Duration) -> T) -> T {
        let now = self.shared.began.elapsed();
        let mut state = self.lock();
        let came_of_it = act(&mut state.session, now);
        if state.hand_on() {
            self.shared.settled.notify_waiters();
        }
        state.wake_senders();
        if state.session.wants_lane() {
            self.shared.wants_lane.notify_one();
        }
        came_of_it
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn peek<T>(&self, look: impl FnOnce(&Session) -> T) -> T {
        look(&self.lock().session)
    }

    pub(super) fn set_paths(&self, paths: Option<Paths>) {
        let former = std::mem::replace(&mut *self.lock_paths(), paths);
        // Not before it is unlocked: the last handle of a connection ends it.
        drop(former);
    }

    /// The paths of what carries it, if anything does.
    pub(super) fn paths(&self) -> Option<Paths> {
        self.lock_paths().clone()
    }

    fn lock_paths(&self) -> MutexGuard<'_, Option<Paths>> {
        self.shared.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packets of an interface are carried from now on, or none.
    pub(super) fn set_packets(&self, packets: Option<Arc<Tally>>) {
        *self.shared.packets.lock().unwrap_or_else(PoisonError::into_inner) = packets;
    }

    /// What became of packets of an interface, if there are some.
    pub(super) fn packets(&self) -> Option<PacketCounts> {
        let packets = self.shared.packets.lock().unwrap_or_else(PoisonError::into_inner);
        packets.as_ref().map(|tally| tally.read())
    }

    /// Why the session is over, if it is.
    pub(crate) fn end(&self) -> Option<End> {
        self.peek(|session| session.end().cloned())
    }

    /// Ends the session.
    pub(crate) fn goodbye(&self, words: &str) {
        self.with(|session, _| session.goodbye(words));
    }

    /// Waits until the other end has introduced itself.
    pub(crate) async fn up(&self) -> Result<(), End> {
        loop {
            let settled = self.shared.settled.notified();
            let (is_up, end) = self.peek(|session| (session.is_up(), session.end().cloned()));
            match end {
                Some(end) => return Err(end),
                None if is_up => return Ok(()),
                None => settled.await,
            }
        }
    }

    /// Whether the other end says within this time that it is there.
    pub(crate) async fn is_there(&self, within: Duration) -> bool {
        let token = self.with(|session, _| session.ask());
        let answered = async {
            loop {
                let heard = self.shared.heard.notified();
                let (answered, is_over) =
                    self.peek(|session| (session.answered(), session.end().is_some()));
                if is_over || answered >= token {
                    return !is_over;
                }
                heard.await;
            }
        };
        timeout(within, answered).await.unwrap_or(false)
    }

    /// Waits until everything has been read of the channels that have ended here, for as long as the limits
    /// let it.
    pub(crate) async fn drain(&self) {
        let within = self.peek(|session| session.limits().drain);
        let drained = async {
            loop {
                let heard = self.shared.heard.notified();
                if self.peek(|session| session.is_drained() || session.end().is_some()) {
                    return;
                }
                heard.await;
            }
        };
        // What is left then is cut.
        let _ = timeout(within, drained).await;
    }

    /// Waits until it has no channel, or is over.
    pub(crate) async fn empty(&self) {
        loop {
            let settled = self.shared.settled.notified();
            if self.peek(|session| session.channels() == 0 || session.end().is_some()) {
                return;
            }
            settled.await;
        }
    }

    /// Whether this is a handle of the same session.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Gives the session up.
    pub(crate) fn give_up(&self, words: &str) {
        self.with(|session, _| session.lost(words));
    }

    /// Asks the other end for a channel, at once, and gives what waits for its answer: the channel, and
    /// the port that it listens at if it was asked to listen.
    pub(crate) fn open(
        &self,
        purpose: Purpose,
    ) -> impl Future<Output = Result<(ChannelStream, u16), (Why, String)>> + Send + use<> {
        let id = self.with(|session, _| session.open(purpose));
        let channel = id.map(|id| self.channel(id)).ok_or_else(|| {
            let words = match self.end() {
                Some(end) => end.to_string(),
                None => "the maximum number of connections is reached".to_owned(),
            };
            (Why::TooMany, words)
        });
        async move { channel?.answer().await }
    }

    /// Waits until no more than so many bytes of a channel wait to be sent, or it is over.
    pub(super) async fn unsent_below(&self, id: u32, most: usize) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.session.unsent(id) <= most {
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

    /// Waits until a further stream would be of use.
    pub(super) async fn wants_lane(&self) {
        while !self.peek(Session::wants_lane) {
            self.shared.wants_lane.notified().await;
        }
    }

    /// Streams of the transport that both ends use.
    pub(crate) fn lanes(&self) -> usize {
        self.peek(Session::lanes)
    }

    /// There is a further stream. Gives who tells when there is something to send on it; `None` if there
    /// are as many as there may be.
    pub(super) fn add_lane(&self, lane: Lane) -> Option<Arc<Notify>> {
        let sender = Arc::<Notify>::default();
        let mut state = self.lock();
        if !state.session.add_lane(lane) {
            return None;
        }
        state.senders.insert(lane, Arc::clone(&sender));
        sender.notify_one();
        Some(sender)
    }

    /// Who tells when there is something to send on the first stream.
    pub(super) fn first_sender(&self) -> Arc<Notify> {
        self.lock().senders.get(&Lane::FIRST).cloned().unwrap_or_default()
    }
}

impl Questions {
    /// The next question.
    pub(crate) async fn next(&mut self) -> Option<Asked> {
        let (id, purpose) = self.asked.recv().await?;
        Some(Asked { purpose, channel: self.link.channel(id) })
    }
}

impl Asked {
    /// The channel that the other end has asked for.
    pub(crate) fn id(&self) -> u32 {
        self.channel.id
    }

    /// Gives the other end what it asks for.
    pub(crate) fn accept(self, port: u16) -> ChannelStream {
        self.channel.link.with(|session, _| session.accept(self.channel.id, port));
        self.channel
    }

    /// Does not.
    pub(crate) fn refuse(self, why: Why, words: String) {
        self.channel.link.with(|session, _| session.refuse(self.channel.id, why, words));
    }
}

/// A channel as a stream of bytes. Dropped before both directions have ended, it is cut.
#[derive(Debug)]
pub(crate) struct ChannelStream {
    link: Link,
    id: u32,
}

impl ChannelStream {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.link.lock()
    }

    /// The number of the channel.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Waits for the other end's answer to what was asked.
    async fn answer(self) -> Result<(Self, u16), (Why, String)> {
        let answer = poll_fn(|cx| {
            let mut state = self.lock();
            match state.session.answer(self.id) {
                Answer::Waiting => {
                    state.waiting.entry(self.id).or_default().reader = Some(cx.waker().clone());
                    Poll::Pending
                }
                answer => Poll::Ready(answer),
            }
        });
        match answer.await {
            Answer::Accepted(port) => Ok((self, port)),
            Answer::Refused(why, words) => Err((why, words)),
            Answer::Reset | Answer::Waiting => {
                let end = self.link.end().map(|end| end.to_string());
                Err((Why::Failed, end.unwrap_or_else(|| "the other end cut it off".to_owned())))
            }
        }
    }

    fn is_cut(&self) -> io::Error {
        let words = match self.link.end() {
            Some(end) => end.to_string(),
            None => "the other end of the tunnel closed it".to_owned(),
        };
        io::Error::new(io::ErrorKind::ConnectionReset, words)
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
                Read::Wait => {
                    state.waiting.entry(self.id).or_default().reader = Some(cx.waker().clone());
                }
                // There may be credit to give.
                Read::Bytes(_) => state.wake_sender_of(self.id),
                Read::End | Read::Gone => {}
            }
            read
        };
        match read {
            Read::Bytes(length) => {
                buf.advance(length);
                Poll::Ready(Ok(()))
            }
            Read::End => Poll::Ready(Ok(())),
            Read::Wait => Poll::Pending,
            Read::Gone => Poll::Ready(Err(self.is_cut())),
        }
    }
}

impl AsyncWrite for ChannelStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = {
            let mut state = self.lock();
            let taken = state.session.write(self.id, bytes);
            match taken {
                Some(0) if !bytes.is_empty() => {
                    state.waiting.entry(self.id).or_default().writer = Some(cx.waker().clone());
                }
                _ => state.wake_sender_of(self.id),
            }
            taken
        };
        match taken {
            Some(0) if !bytes.is_empty() => Poll::Pending,
            Some(taken) => Poll::Ready(Ok(taken)),
            None => Poll::Ready(Err(self.is_cut())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.with(|session, _| session.finish(self.id));
        Poll::Ready(Ok(()))
    }
}

impl Drop for ChannelStream {
    fn drop(&mut self) {
        self.lock().waiting.remove(&self.id);
        self.link.with(|session, _| session.release(self.id));
    }
}
