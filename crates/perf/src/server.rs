//! The server: tests for whoever asks, within limits.
//!
//! Nothing is sent before a handshake is complete, so a forged address receives nothing. A client can have what
//! [`ServerLimits`] allow, and before that no more than a few frames for [`STEP_TIME`].

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyas::{Connection, ListenParameters, Listener, Transport, quinn};
use eyas_sctp_tokio::protocol::identifier::StreamId;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::ALPN;
use crate::driver::TestClock;
use crate::driver::channel::{ChannelSource, TestChannel};
use crate::driver::control::{ControlChannel, ReadError, read_frame, write_frame};
use crate::driver::data::{DataEvent, DataFlow, next_event};
use crate::protocol::frame::{
    FrameError, PerfFrame, RefusalKind, TestGrant, TestRefusal, TestToken,
};
use crate::protocol::request::{MAX_STREAMS, ServerLimits, TestRequest};
use crate::protocol::server_session::{ServerInput, ServerOutcome, ServerOutput, ServerSession};
use crate::protocol::{EndReading, STEP_TIME};

/// Connections beside those of the tests that are allowed: of clients that are about to ask, or are refused.
const SPARE_CONNECTIONS: usize = 64;
/// How long a client may take to read a refusal.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// The bytes of data that a QUIC client may have sent and the server not read, before and during a test.
const WINDOWS: [u32; 2] = [256 << 10, 16 << 20];

/// What happens at a server.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// A test was granted.
    Granted(TestPeer, TestRequest),
    /// A test is over.
    Ended(TestPeer, TestRequest, ServerOutcome),
    /// A client was refused.
    Refused(TestPeer, TestRefusal),
}

/// A client, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPeer {
    /// Its address.
    pub remote: SocketAddr,
    /// The transport of its test.
    pub transport: Transport,
}

/// Returns the parameters of a listener with what a server needs beside addresses, transports and identity.
pub fn listen_parameters(parameters: ListenParameters) -> ListenParameters {
    let mut quic = quinn::TransportConfig::default();
    quic.max_concurrent_bidi_streams((u32::from(MAX_STREAMS) + 2).into());
    quic.max_concurrent_uni_streams(0_u32.into());
    quic.stream_receive_window(WINDOWS[1].into());
    quic.receive_window(WINDOWS[0].into());
    parameters.with_alpn([ALPN]).quic_transport(quic)
}

/// A server of tests.
#[derive(Debug)]
pub struct PerfServer {
    listener: Listener,
    shared: Arc<SharedServer>,
}

impl PerfServer {
    /// Creates a server with a listener of [`listen_parameters`].
    pub fn new(listener: Listener, limits: ServerLimits) -> Self {
        let connections = limits.tests.saturating_mul(usize::from(MAX_STREAMS) + 2);
        let connections = connections.saturating_add(SPARE_CONNECTIONS).min(Semaphore::MAX_PERMITS);
        let connections = Arc::new(Semaphore::new(connections));
        Self {
            listener,
            shared: Arc::new(SharedServer { limits, connections, tests: Mutex::default() }),
        }
    }

    /// Returns the listener, for its address.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Serves until the future is dropped, which ends all tests.
    pub async fn run(&self, observer: impl Fn(ServerEvent) + Send + Sync + 'static) {
        let observer: Arc<dyn Fn(ServerEvent) + Send + Sync> = Arc::new(observer);
        let mut tasks = JoinSet::new();
        loop {
            let connection = tokio::select! {
                connection = self.listener.accept() => connection,
                Some(_) = tasks.join_next() => continue,
            };
            let Ok(permit) = Arc::clone(&self.shared.connections).try_acquire_owned() else {
                tracing::debug!("too many connections");
                continue;
            };
            let (shared, observer) = (Arc::clone(&self.shared), Arc::clone(&observer));
            tasks.spawn(async move { shared.serve(connection, permit, &*observer).await });
        }
    }
}

#[derive(Debug)]
struct SharedServer {
    limits: ServerLimits,
    connections: Arc<Semaphore>,
    tests: Mutex<BTreeMap<TestToken, RunningTest>>,
}

/// A test that occupies one of the places.
#[derive(Debug)]
struct RunningTest {
    channels: mpsc::Sender<(u16, TestChannel)>,
    /// Whether there was no other test while it ran.
    is_alone: Arc<AtomicBool>,
}

impl SharedServer {
    async fn serve(
        self: &Arc<Self>,
        mut connection: Connection,
        permit: OwnedSemaphorePermit,
        observer: &(dyn Fn(ServerEvent) + Send + Sync),
    ) {
        let info = connection.info();
        let peer = TestPeer { remote: info.remote, transport: info.transport };
        let Ok(first) = timeout(STEP_TIME, read_frame(&mut connection)).await else { return };
        let refused = match first {
            Ok(PerfFrame::Attach(token, number)) => match self.channels(token) {
                Some(channels) => {
                    let channel = TestChannel::from_connection(connection, Some(permit));
                    // The test may be over by now.
                    let _ = channels.try_send((number, channel));
                    return;
                }
                None => refusal(RefusalKind::NoTest, "there is no such test, or not any more"),
            },
            Ok(PerfFrame::Open(asked)) => match self.admit(asked) {
                Ok(place) => {
                    let request = place.grant.request;
                    observer(ServerEvent::Granted(peer, request));
                    let outcome = run_test(connection, place).await;
                    observer(ServerEvent::Ended(peer, request, outcome));
                    return;
                }
                Err(refused) => refused,
            },
            Err(ReadError::Frame(error @ FrameError::Version(_))) => {
                refusal(RefusalKind::Version, error.to_string())
            }
            // Not a client of this protocol.
            _ => return,
        };
        observer(ServerEvent::Refused(peer, refused.clone()));
        let refuse = async {
            if write_frame(&mut connection, &PerfFrame::Refused(refused)).await.is_ok() {
                let _ = connection.shutdown().await;
                // Closed before the client has read everything, a connection might be reset.
                while tokio::io::AsyncReadExt::read_u8(&mut connection).await.is_ok() {}
            }
        };
        let _ = timeout(REFUSAL_TIME, refuse).await;
    }

    fn tests(&self) -> MutexGuard<'_, BTreeMap<TestToken, RunningTest>> {
        self.tests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn channels(&self, token: TestToken) -> Option<mpsc::Sender<(u16, TestChannel)>> {
        self.tests().get(&token).map(|test| test.channels.clone())
    }

    fn admit(self: &Arc<Self>, asked: TestRequest) -> Result<TestPlace, TestRefusal> {
        let valid = asked.validated();
        let valid = valid.map_err(|error| refusal(RefusalKind::Request, error.to_string()))?;
        let mut token = TestToken([0; 16]);
        let busy = |text: String| refusal(RefusalKind::Busy, text);
        let random = SystemRandom::new().fill(&mut token.0);
        random.map_err(|_| busy("there is no randomness".to_owned()))?;
        let mut tests = self.tests();
        if tests.len() >= self.limits.tests {
            let number = match self.limits.tests {
                1 => "a test is".to_owned(),
                many => format!("{many} tests are"),
            };
            return Err(busy(format!("{number} running, which is as many as it allows")));
        }
        for other in tests.values() {
            other.is_alone.store(false, Relaxed);
        }
        let (channels, attached) = mpsc::channel(usize::from(MAX_STREAMS) + 1);
        let is_alone = Arc::new(AtomicBool::new(tests.is_empty()));
        let test = RunningTest { channels: channels.clone(), is_alone: Arc::clone(&is_alone) };
        tests.insert(token, test);
        let grant =
            TestGrant { token, request: self.limits.grant(valid), bytes: self.limits.bytes };
        Ok(TestPlace { shared: Arc::clone(self), grant, channels, attached, is_alone })
    }
}

fn refusal(kind: RefusalKind, text: impl Into<String>) -> TestRefusal {
    TestRefusal { kind, text: text.into() }
}

/// A place for a test; dropping it, or [leaving](Self::leave) it, makes it free.
struct TestPlace {
    shared: Arc<SharedServer>,
    grant: TestGrant,
    channels: mpsc::Sender<(u16, TestChannel)>,
    attached: mpsc::Receiver<(u16, TestChannel)>,
    is_alone: Arc<AtomicBool>,
}

impl TestPlace {
    fn leave(&self) {
        self.shared.tests().remove(&self.grant.token);
    }
}

impl Drop for TestPlace {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Runs a test that was granted.
async fn run_test(connection: Connection, mut place: TestPlace) -> ServerOutcome {
    let source = ChannelSource::of_connection(&connection);
    let _accepting = accept_channels(&source, place.grant, &place.channels);
    let mut test = ServedTest {
        session: ServerSession::new(place.grant, Duration::ZERO),
        control: ControlChannel::new(Box::new(connection)),
        clock: TestClock::start(),
        source,
        echo: JoinSet::new(),
        channels: Vec::new(),
        data: None,
        has_closed: false,
    };
    let outcome = loop {
        let until = match test.next_step(&place) {
            Ok(until) => until,
            Err(outcome) => break outcome,
        };
        let input = tokio::select! {
            biased;
            frame = test.control.next(), if !test.has_closed => {
                test.has_closed = frame.is_none();
                frame.map_or(ServerInput::Lost, ServerInput::Frame)
            }
            Some((number, channel)) = place.attached.recv() => test.attach(number, channel),
            event = next_event(test.data.as_mut()) => match event {
                DataEvent::FirstByte => ServerInput::Reading(test.reading(&place)),
                DataEvent::SendingEnded => ServerInput::SendingEnded,
                DataEvent::ReceivingEnded => ServerInput::ReceivingEnded,
                DataEvent::Broken => ServerInput::Lost,
            },
            Some(_) = test.echo.join_next() => continue,
            () = test.clock.sleep_until(until) => ServerInput::Reading(test.reading(&place)),
        };
        test.handle_input(input, &place);
    };
    test.source.close();
    outcome
}

/// Accepts the streams of a client whose connection has several.
fn accept_channels(
    source: &ChannelSource,
    grant: TestGrant,
    channels: &mpsc::Sender<(u16, TestChannel)>,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    match source {
        ChannelSource::Connections => {}
        ChannelSource::Quic(quic) => {
            quic.set_receive_window(WINDOWS[1].into());
            let (quic, channels) = (quic.clone(), channels.clone());
            tasks.spawn(async move {
                let mut attaching = JoinSet::new();
                loop {
                    let stream = tokio::select! {
                        stream = quic.accept_bi() => stream,
                        Some(_) = attaching.join_next() => continue,
                    };
                    let Ok(stream) = stream else { return };
                    let channel = async move { Some(TestChannel::from_quic(stream)) };
                    attaching.spawn(receive_attach(channel, grant.token, channels.clone()));
                }
            });
        }
        ChannelSource::Sctp(streams, _) => {
            for number in 0..=grant.request.streams {
                let streams = streams.clone();
                let channel = async move {
                    // The control channel is stream 0.
                    let opened = streams.stream(StreamId(number + 1)).await;
                    opened.ok().map(TestChannel::from_stream)
                };
                tasks.spawn(receive_attach(channel, grant.token, channels.clone()));
            }
        }
    }
    tasks
}

/// Passes a channel on once the client has attached it. One that it attaches to something else is dropped.
async fn receive_attach(
    channel: impl Future<Output = Option<TestChannel>>,
    token: TestToken,
    channels: mpsc::Sender<(u16, TestChannel)>,
) {
    let attach = async {
        let mut channel = channel.await?;
        match read_frame(&mut channel.stream).await {
            Ok(PerfFrame::Attach(of, number)) if of == token => Some((number, channel)),
            _ => None,
        }
    };
    if let Ok(Some(attached)) = timeout(STEP_TIME, attach).await {
        // The test may be over by now.
        let _ = channels.try_send(attached);
    }
}

/// A test and what belongs to it.
struct ServedTest {
    session: ServerSession,
    control: ControlChannel,
    clock: TestClock,
    source: ChannelSource,
    echo: JoinSet<()>,
    channels: Vec<TestChannel>,
    data: Option<DataFlow>,
    has_closed: bool,
}

impl ServedTest {
    fn reading(&self, place: &TestPlace) -> EndReading {
        let alone = place.is_alone.load(Relaxed);
        self.data.as_ref().map(|data| data.reading(alone)).unwrap_or_default()
    }

    fn handle_input(&mut self, input: ServerInput, place: &TestPlace) {
        let now = self.clock.now();
        if self.data.is_some() {
            self.session.handle_input(now, ServerInput::Reading(self.reading(place)));
        }
        self.session.handle_input(now, input);
    }

    fn attach(&mut self, number: u16, channel: TestChannel) -> ServerInput {
        match number {
            0 => {
                self.echo.spawn(echo(channel));
            }
            _ => self.channels.push(channel),
        }
        ServerInput::Attached(number)
    }

    /// Does what is to be done, and returns until when to wait, or how the test ended.
    fn next_step(&mut self, place: &TestPlace) -> Result<Duration, ServerOutcome> {
        loop {
            match self.session.poll_output(self.clock.now()) {
                ServerOutput::Send(frame) => {
                    if matches!(frame, PerfFrame::Summary(..)) {
                        // The client may ask for its next test as soon as it has read this.
                        place.leave();
                    }
                    if !self.control.send(frame) {
                        self.handle_input(ServerInput::Lost, place);
                    }
                }
                ServerOutput::Begin => {
                    let request = &place.grant.request;
                    let channels = std::mem::take(&mut self.channels);
                    let ways = (request.direction.has_down(), request.direction.has_up());
                    self.data = Some(DataFlow::new(&self.source, channels, request, ways));
                }
                ServerOutput::StopSending => {
                    if let Some(data) = &mut self.data {
                        data.stop_sending();
                    }
                }
                ServerOutput::End(outcome) => return Err(outcome),
                ServerOutput::Timeout(until) => return Ok(until),
            }
        }
    }
}

/// Answers pings.
async fn echo(channel: TestChannel) {
    let TestChannel { mut stream, permit: _permit, .. } = channel;
    while let Ok(PerfFrame::Ping(number)) = read_frame(&mut stream).await {
        if write_frame(&mut stream, &PerfFrame::Pong(number)).await.is_err() {
            return;
        }
    }
}
