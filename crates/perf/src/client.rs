//! The client: one test over a connection.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyas::race::candidate::AddressOrigin;
use eyas::race::evidence::AttemptFailure;
use eyas::{Candidate, Connection, ConnectionInfo, EchOutcome, Endpoint, Security, TargetHost};
use eyas_sctp_tokio::protocol::identifier::StreamId;
use futures_util::future::try_join_all;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::ALPN;
use crate::driver::TestClock;
use crate::driver::channel::{ChannelSource, TestChannel};
use crate::driver::control::{ControlChannel, read_frame, write_frame};
use crate::driver::data::{DataEvent, DataFlow, next_event};
use crate::protocol::EndReading;
use crate::protocol::client_session::{
    ClientInput, ClientOutput, ClientSession, TestFailure, TestOutcome,
};
use crate::protocol::frame::{PerfFrame, TestGrant};
use crate::protocol::goodput::GoodputInterval;
use crate::protocol::request::TestRequest;
use crate::protocol::round_trips::{PingPhase, RoundTripSummary, RoundTrips};

/// The time from one ping to the next.
pub const PING_EVERY: Duration = Duration::from_millis(25);

/// Opens further connections to the same address where a transport has one stream for each.
#[derive(Clone, Debug)]
pub struct TestConnector {
    /// The endpoint that has opened the first connection.
    pub endpoint: Endpoint,
    /// The host that certificates must be valid for.
    pub host: TargetHost,
}

impl TestConnector {
    async fn connect(&self, first: &ConnectionInfo) -> Result<Connection, AttemptFailure> {
        let is_secured = first.security != Security::None;
        let candidate = Candidate {
            address: first.remote,
            transport: first.transport,
            security: first.security,
            alpn: is_secured.then(|| ALPN.to_owned()).into_iter().collect(),
            ech: first
                .ech
                .as_ref()
                .and_then(EchOutcome::accepted)
                .map(|ech| ech.as_bytes().to_vec()),
            priority: None,
            origin: AddressOrigin::Caller,
        };
        self.endpoint.attempt(&self.host, candidate, first.rtt).await
    }
}

/// A test.
#[derive(Clone, Copy, Debug)]
pub struct PerfTest {
    /// What to ask for; it must be [valid](TestRequest::validated).
    pub request: TestRequest,
    /// For how long the idle path is pinged before data flows.
    pub idle: Duration,
    /// When the connection was begun.
    pub began: std::time::Instant,
}

/// What is known while a test runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestProgress {
    /// Whether it is about the client's data, as received by the server.
    pub up: bool,
    /// What was received.
    pub interval: GoodputInterval,
    /// The last round trip.
    pub round_trip: Option<Duration>,
}

/// What a test measured.
#[derive(Clone, Debug, PartialEq)]
pub struct TestReport {
    /// The data.
    pub outcome: TestOutcome,
    /// The time until the server's first answer, since [`PerfTest::began`].
    pub first_byte: Duration,
    /// Round trips before data flowed.
    pub idle: Option<RoundTripSummary>,
    /// Round trips while data flowed.
    pub loaded: Option<RoundTripSummary>,
}

impl PerfTest {
    /// Runs the test over this connection, which the server then closes. When `stop` is done, the test ends early with what
    /// was measured. Dropping the future closes everything.
    ///
    /// # Errors
    /// If the test did not begin, or the server violates the protocol.
    pub async fn run(
        self,
        connection: Connection,
        connector: &TestConnector,
        stop: impl Future<Output = ()>,
        progress: impl FnMut(TestProgress),
    ) -> Result<TestReport, TestFailure> {
        let info = connection.shared_info();
        let source = ChannelSource::of_connection(&connection);
        let control = ControlChannel::new(Box::new(connection));
        let opener = ChannelOpener { source: source.clone(), connector, first: &info };
        let result = RunningTest::new(self, control).run(&opener, stop, progress).await;
        source.close();
        result
    }
}

/// Why a channel could not be opened.
#[derive(Debug, thiserror::Error)]
enum ChannelError {
    /// The connection or the stream of an association failed.
    #[error(transparent)]
    Attempt(#[from] AttemptFailure),
    #[error(transparent)]
    Quic(#[from] eyas::quinn::ConnectionError),
    /// The server was not told whose channel it is.
    #[error(transparent)]
    Attach(#[from] io::Error),
}

/// Opens and attaches channels.
struct ChannelOpener<'a> {
    source: ChannelSource,
    connector: &'a TestConnector,
    first: &'a ConnectionInfo,
}

impl ChannelOpener<'_> {
    /// Opens channel 0 and those for data, at once.
    async fn attach_all(&self, grant: TestGrant) -> Result<Vec<TestChannel>, TestFailure> {
        let each = (0..=grant.request.streams).map(|number| self.attach(grant, number));
        try_join_all(each).await.map_err(|error| TestFailure::Channel(error.to_string()))
    }

    async fn attach(&self, grant: TestGrant, number: u16) -> Result<TestChannel, ChannelError> {
        let mut channel = match &self.source {
            ChannelSource::Connections => {
                TestChannel::from_connection(self.connector.connect(self.first).await?, None)
            }
            ChannelSource::Quic(quic) => TestChannel::from_quic(quic.open_bi().await?),
            ChannelSource::Sctp(streams, _) => {
                // The control channel is stream 0.
                TestChannel::from_stream(streams.stream(StreamId(number + 1)).await?)
            }
        };
        let frame = PerfFrame::Attach(grant.token, number);
        write_frame(&mut channel.stream, &frame).await?;
        Ok(channel)
    }
}

/// A test and what belongs to it.
struct RunningTest {
    test: PerfTest,
    session: ClientSession,
    control: ControlChannel,
    clock: TestClock,
    first_byte: Option<Duration>,
    pings: Arc<SharedPings>,
    pinging: JoinSet<()>,
    channels: Vec<TestChannel>,
    data: Option<DataFlow>,
    /// Data that flowed before the server knows of it could take all the space that the frame about it needs.
    starting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    has_closed: bool,
}

/// What is to be done next.
enum ClientStep {
    Attach(TestGrant),
    WaitUntil(Duration),
    End(Result<Box<TestOutcome>, TestFailure>),
}

impl RunningTest {
    fn new(test: PerfTest, control: ControlChannel) -> Self {
        Self {
            test,
            session: ClientSession::new(test.request, test.idle, Duration::ZERO),
            control,
            clock: TestClock::start(),
            first_byte: None,
            pings: Arc::default(),
            pinging: JoinSet::new(),
            channels: Vec::new(),
            data: None,
            starting: None,
            has_closed: false,
        }
    }

    async fn run(
        mut self,
        opener: &ChannelOpener<'_>,
        stop: impl Future<Output = ()>,
        mut progress: impl FnMut(TestProgress),
    ) -> Result<TestReport, TestFailure> {
        let mut stop = pin!(stop);
        let mut was_stopped = false;
        let mut attaching = None;
        loop {
            let until = match self.next_step(&mut progress) {
                ClientStep::WaitUntil(until) => until,
                ClientStep::Attach(grant) => {
                    attaching = Some(Box::pin(opener.attach_all(grant)));
                    continue;
                }
                ClientStep::End(result) => return self.report(*result?),
            };
            let input = tokio::select! {
                biased;
                () = &mut stop, if !was_stopped => {
                    was_stopped = true;
                    ClientInput::Stop
                }
                frame = self.control.next(), if !self.has_closed => self.arrived(frame),
                attached = wait_for(attaching.as_mut()) => {
                    attaching = None;
                    self.channels = attached?;
                    ClientInput::Attached
                }
                () = wait_for(self.starting.as_mut()) => {
                    self.starting = None;
                    self.begin(opener);
                    ClientInput::Begun
                }
                event = next_event(self.data.as_mut()) => from_event(event, self.reading()),
                Some(_) = self.pinging.join_next() => continue,
                () = self.clock.sleep_until(until) => {
                    ClientInput::Reading(self.reading())
                }
            };
            self.handle_input(input);
        }
    }

    fn handle_input(&mut self, input: ClientInput) {
        let now = self.clock.now();
        if self.data.is_some() {
            self.session.handle_input(now, ClientInput::Reading(self.reading()));
        }
        self.session.handle_input(now, input);
    }

    fn reading(&self) -> EndReading {
        self.data.as_ref().map(|data| data.reading(true)).unwrap_or_default()
    }

    fn arrived(&mut self, frame: Option<PerfFrame>) -> ClientInput {
        self.has_closed = frame.is_none();
        if frame.is_some() {
            self.first_byte.get_or_insert_with(|| self.test.began.elapsed());
        }
        frame.map_or(ClientInput::Lost, ClientInput::Frame)
    }

    fn next_step(&mut self, progress: &mut impl FnMut(TestProgress)) -> ClientStep {
        loop {
            match self.session.poll_output(self.clock.now()) {
                ClientOutput::Send(frame) => {
                    if !self.control.send(frame) {
                        self.handle_input(ClientInput::Lost);
                    }
                }
                ClientOutput::Attach(grant) => return ClientStep::Attach(grant),
                ClientOutput::PingIdle => self.begin_pings(),
                ClientOutput::Begin => {
                    self.pings.lock().0.set_phase(PingPhase::Omitted);
                    self.starting = Some(Box::pin(self.control.written()));
                }
                ClientOutput::Measure => self.pings.lock().0.set_phase(PingPhase::Loaded),
                ClientOutput::Interval { up, interval } => {
                    let round_trip = self.pings.lock().1;
                    progress(TestProgress { up, interval, round_trip });
                }
                ClientOutput::StopSending => {
                    self.pinging.abort_all();
                    if let Some(data) = &mut self.data {
                        data.stop_sending();
                    }
                }
                ClientOutput::End(result) => return ClientStep::End(result),
                ClientOutput::Timeout(until) => return ClientStep::WaitUntil(until),
            }
        }
    }

    fn begin_pings(&mut self) {
        if self.channels.is_empty() {
            return;
        }
        // Channel 0 is the first.
        let channel = self.channels.remove(0);
        let (mut reader, mut writer) = tokio::io::split(channel.stream);
        let (pings, clock) = (Arc::clone(&self.pings), self.clock);
        self.pinging.spawn(async move {
            let mut ticks = tokio::time::interval(PING_EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let mut free_since = Duration::ZERO;
            loop {
                let due = clock.time(ticks.tick().await);
                // Time in which the channel took no ping counts; the lateness of a timer does not.
                let begin = if free_since > due { due } else { clock.now() };
                let Some(number) = pings.lock().0.send(begin) else { continue };
                if write_frame(&mut writer, &PerfFrame::Ping(number)).await.is_err() {
                    return;
                }
                free_since = clock.now();
            }
        });
        let pings = Arc::clone(&self.pings);
        self.pinging.spawn(async move {
            while let Ok(PerfFrame::Pong(number)) = read_frame(&mut reader).await {
                let now = clock.now();
                let mut pings = pings.lock();
                match pings.0.answered(now, number) {
                    Ok(time) => pings.1 = Some(time),
                    // What it says is not worth measuring.
                    Err(_) => return,
                }
            }
        });
    }

    fn begin(&mut self, opener: &ChannelOpener<'_>) {
        let request = self.session.granted().unwrap_or(self.test.request);
        let channels = std::mem::take(&mut self.channels);
        let ways = (request.direction.has_up(), request.direction.has_down());
        self.data = Some(DataFlow::new(&opener.source, channels, &request, ways));
    }

    fn report(self, outcome: TestOutcome) -> Result<TestReport, TestFailure> {
        let pings = self.pings.lock();
        let first_byte = self.first_byte.ok_or(TestFailure::Lost)?;
        let (idle, loaded) = (pings.0.summary(PingPhase::Idle), pings.0.summary(PingPhase::Loaded));
        Ok(TestReport { outcome, first_byte, idle, loaded })
    }
}

/// The pings and the last round trip.
#[derive(Debug, Default)]
struct SharedPings(Mutex<(RoundTrips, Option<Duration>)>);

impl SharedPings {
    fn lock(&self) -> MutexGuard<'_, (RoundTrips, Option<Duration>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn from_event(event: DataEvent, reading: EndReading) -> ClientInput {
    match event {
        DataEvent::FirstByte => ClientInput::Reading(reading),
        DataEvent::SendingEnded => ClientInput::SendingEnded,
        DataEvent::ReceivingEnded => ClientInput::ReceivingEnded,
        DataEvent::Broken => ClientInput::Lost,
    }
}

/// Waits for a future that may not exist.
async fn wait_for<F: Future + Unpin>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
