//! Both ends over real sockets on loopback, and clients and servers that misbehave.

#[path = "../../eyas/tests/ports/mod.rs"]
mod ports;

use std::future::{Future, pending};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use eyas::{
    Connection, Endpoint, ListenParameters, Listener, MemoryStore, Security, SecurityParameters,
    ServerIdentity, Target, TargetHost, Transport,
};
use eyas_perf::ALPN;
use eyas_perf::client::{PerfTest, TestConnector, TestReport};
use eyas_perf::protocol::TestEnd;
use eyas_perf::protocol::client_session::TestFailure;
use eyas_perf::protocol::frame::{HEADER, PerfFrame, RefusalKind};
use eyas_perf::protocol::request::{ServerLimits, TestDirection, TestRequest};
use eyas_perf::server::{PerfServer, ServerEvent, listen_parameters};
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use ports::own_port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything takes in these tests.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that runs until it is dropped, and what it has reported.
struct TestServer {
    address: SocketAddr,
    sctp_port: u16,
    security: Security,
    events: Arc<Mutex<Vec<ServerEvent>>>,
    task: JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestServer {
    async fn new(security: Security, limits: ServerLimits) -> Self {
        let sctp_port = own_port();
        let secured = security != Security::None;
        let transports = [Transport::Tcp, Transport::SctpUdp, Transport::Quic];
        let transports =
            transports.into_iter().filter(|transport| secured || !transport.has_own_security());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, own_port()));
        let mut parameters = ListenParameters::new(address)
            .transports(transports)
            .sctp_association(AssociationConfig::default())
            .sctp_encapsulation_port(sctp_port);
        if secured {
            let identity = ServerIdentity::self_signed(["localhost"]).expect("an identity");
            parameters = parameters.security(identity);
        }
        let listener = Listener::bind(listen_parameters(parameters)).await.expect("a listener");
        let server = PerfServer::new(listener, limits);
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let task = tokio::spawn(async move {
            server.run(move |event| seen.lock().expect("not poisoned").push(event)).await;
        });
        Self { address, sctp_port, security, events, task }
    }

    async fn connect(&self, transport: Transport) -> (Connection, TestConnector) {
        let endpoint = Endpoint::builder()
            .security(SecurityParameters::platform().accept_any_certificate())
            .memory(MemoryStore::none())
            .sctp_encapsulation_port(self.sctp_port)
            .build()
            .expect("an endpoint");
        let host = TargetHost::Literal(self.address.ip(), 0);
        let port = self.address.port();
        let mut target = Target::plain(host.clone(), port, vec![transport], self.security);
        if self.security != Security::None {
            target = target.with_alpn([ALPN]);
        }
        let connection = endpoint.preconnection(target).connect().await.expect("it connects");
        (connection, TestConnector { endpoint, host })
    }

    /// Runs a test to its end.
    async fn test(
        &self,
        transport: Transport,
        request: TestRequest,
    ) -> Result<TestReport, TestFailure> {
        self.test_until(transport, request, pending()).await
    }

    async fn test_until(
        &self,
        transport: Transport,
        request: TestRequest,
        stop: impl Future<Output = ()>,
    ) -> Result<TestReport, TestFailure> {
        let began = Instant::now();
        let (connection, connector) = self.connect(transport).await;
        let idle = Duration::from_millis(100);
        let test = PerfTest { request, idle, began };
        let run = test.run(connection, &connector, stop, |_| {});
        timeout(TIMEOUT, run).await.expect("it ends")
    }

    /// Waits for an event that this accepts.
    async fn event<T>(&self, find: impl Fn(&ServerEvent) -> Option<T>) -> T {
        let look = async {
            loop {
                let found = self.events.lock().expect("not poisoned").iter().find_map(&find);
                match found {
                    Some(found) => return found,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        timeout(TIMEOUT, look).await.expect("the event")
    }
}

fn short(direction: TestDirection) -> TestRequest {
    let millis = Duration::from_millis;
    TestRequest {
        direction,
        streams: 2,
        time: millis(300),
        omit: millis(50),
        interval: millis(100),
        ..TestRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_flows_in_each_direction_over_each_transport() {
    for security in [Security::None, Security::Tls] {
        let server = TestServer::new(security, ServerLimits::default()).await;
        for transport in [Transport::Tcp, Transport::SctpUdp, Transport::Quic] {
            if security == Security::None && transport == Transport::Quic {
                continue;
            }
            for direction in [TestDirection::Up, TestDirection::Down, TestDirection::AtOnce] {
                let what = format!("{transport} {security} {}", direction.name());
                let report = server.test(transport, short(direction)).await;
                let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
                let outcome = &report.outcome;
                assert_eq!(outcome.ended, TestEnd::Complete, "{what}: {outcome:?}");
                assert_eq!(outcome.up.is_some(), direction.has_up(), "{what}");
                assert_eq!(outcome.down.is_some(), direction.has_down(), "{what}");
                for flow in outcome.up.iter().chain(&outcome.down) {
                    assert!(flow.bytes() > 0, "{what}: {outcome:?}");
                    assert!(flow.duration() >= Duration::from_millis(300), "{what}: {outcome:?}");
                }
                let peer = outcome.server.expect("a summary");
                let received = outcome.up.as_ref().map_or(0, |flow| flow.bytes());
                assert_eq!(peer.received, received, "{what}");
                assert_eq!(outcome.client.sent > 0, direction.has_up(), "{what}");
                assert_eq!(peer.sent > 0, direction.has_down(), "{what}");
                assert!(outcome.client.retransmitted.is_some(), "{what}: {outcome:?}");
                assert!(outcome.client.cpu.is_some() && peer.cpu.is_some(), "{what}: {outcome:?}");
                assert!(report.idle.is_some_and(|idle| idle.count > 0), "{what}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_a_number_of_messages_arrives_and_ends_the_test() {
    let server = TestServer::new(Security::Tls, ServerLimits::default()).await;
    for transport in [Transport::Tcp, Transport::SctpUdp, Transport::Quic] {
        for direction in [TestDirection::Up, TestDirection::Down, TestDirection::AtOnce] {
            let request = TestRequest {
                direction,
                streams: 3,
                time: Duration::from_secs(50),
                count: 20,
                size: 10_000,
                ..TestRequest::default()
            };
            let report = server.test(transport, request).await.expect("a report");
            let what = format!("{transport} {}", direction.name());
            assert_eq!(report.outcome.ended, TestEnd::Complete, "{what}");
            for flow in report.outcome.up.iter().chain(&report.outcome.down) {
                assert_eq!(flow.bytes(), 200_000, "{what}: {:?}", report.outcome);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paced_sender_sends_no_more_than_its_rate() {
    let server = TestServer::new(Security::None, ServerLimits::default()).await;
    let request = TestRequest { rate: 800_000, size: 1_000, ..short(TestDirection::Down) };
    let report = server.test(Transport::Tcp, request).await.expect("a report");
    let goodput = report.outcome.down.expect("a flow").goodput().expect("data");
    // However late it runs, it does not make up for more than 100 ms.
    assert!(goodput < 800_000.0 * 1.5, "{goodput}");
    assert!(report.loaded.is_some(), "pings go on under load");
}

//= hostile perf
//# a test of a year, or without an end
//= bound: `ServerLimits`, `GRACE`
#[tokio::test(flavor = "multi_thread")]
async fn a_year_is_cut_to_what_the_server_allows() {
    let limits = ServerLimits { time: Duration::from_millis(200), ..ServerLimits::default() };
    let server = TestServer::new(Security::None, limits).await;
    let request = TestRequest {
        time: Duration::from_secs(86_400),
        omit: Duration::ZERO,
        interval: Duration::from_secs(1),
        ..short(TestDirection::Up)
    };
    let report = server.test(Transport::Tcp, request).await.expect("a report");
    assert_eq!(report.outcome.grant.request.time, limits.time);
    assert_eq!(report.outcome.ended, TestEnd::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_ends_at_the_bytes_that_the_server_allows() {
    let limits = ServerLimits { bytes: 1 << 20, ..ServerLimits::default() };
    let server = TestServer::new(Security::None, limits).await;
    for direction in [TestDirection::Up, TestDirection::Down] {
        let request = TestRequest { time: Duration::from_secs(50), ..short(direction) };
        let report = server.test(Transport::Tcp, request).await.expect("a report");
        assert_eq!(report.outcome.ended, TestEnd::ByteLimit, "{direction:?}");
    }
}

//= hostile perf
//# more tests than places
//= bound: `ServerLimits`
#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_its_limit_refuses_and_then_has_a_place_again() {
    let server =
        TestServer::new(Security::None, ServerLimits { tests: 1, ..ServerLimits::default() }).await;
    let long = TestRequest { time: Duration::from_secs(50), ..short(TestDirection::Up) };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let first = server.test_until(Transport::Tcp, long, async {
        let _ = stopped.await;
    });
    let second = async {
        server.event(|event| matches!(event, ServerEvent::Granted(..)).then_some(())).await;
        let refused = server.test(Transport::SctpUdp, short(TestDirection::Up)).await;
        let Err(TestFailure::Refused(refusal)) = refused else { panic!("{refused:?}") };
        assert_eq!(refusal.kind, RefusalKind::Busy);
        assert!(refusal.text.contains("a test is running"), "{}", refusal.text);
        drop(stop);
    };
    let (first, ()) = tokio::join!(first, second);
    // It may have been stopped before it began.
    if let Ok(first) = first {
        assert_eq!(first.outcome.ended, TestEnd::Stopped);
    }
    server.event(|event| matches!(event, ServerEvent::Ended(..)).then_some(())).await;
    server.test(Transport::Tcp, short(TestDirection::Up)).await.expect("a place");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_test_reports_what_was_measured() {
    let server = TestServer::new(Security::Tls, ServerLimits::default()).await;
    for transport in [Transport::Tcp, Transport::SctpUdp, Transport::Quic] {
        for direction in [TestDirection::Up, TestDirection::Down] {
            let long = TestRequest { time: Duration::from_secs(50), ..short(direction) };
            let (stop, stopped) = tokio::sync::oneshot::channel();
            let mut stop = Some(stop);
            let began = Instant::now();
            let (connection, connector) = server.connect(transport).await;
            let test = PerfTest { request: long, idle: Duration::ZERO, began };
            let stopped = async {
                let _ = stopped.await;
            };
            // After the first interval.
            let run = test.run(connection, &connector, stopped, |_| {
                stop.take().map(|stop| stop.send(()));
            });
            let what = format!("{transport} {}", direction.name());
            let report = timeout(TIMEOUT, run).await.unwrap_or_else(|_| panic!("{what} goes on"));
            let report = report.expect("a report");
            assert_eq!(report.outcome.ended, TestEnd::Stopped, "{what}");
            let flow = report.outcome.up.or(report.outcome.down).expect("a flow");
            assert!(flow.bytes() > 0, "{what}");
            assert!(report.outcome.server.is_some(), "{what}");
        }
    }
}

/// Returns everything that the server sends to a client that sends this.
async fn answer(server: &TestServer, octets: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).await.expect("it connects");
    // The server may have closed it before everything was sent.
    let _ = stream.write_all(octets).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.expect("it closes");
    answer
}

//= hostile perf
//# garbage, another protocol or version
//= bound: `MAX_PAYLOAD`
#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_not_answered_and_leaves_the_server_in_order() {
    let server = TestServer::new(Security::None, ServerLimits::default()).await;
    assert_eq!(answer(&server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await, b"");
    assert_eq!(answer(&server, &[0xff; 100_000]).await, b"");
    assert_eq!(answer(&server, &PerfFrame::Start.encode()).await, b"");
    assert_eq!(answer(&server, &[]).await, b"");
    let mut other = PerfFrame::Open(TestRequest::default()).encode();
    other[HEADER + 5] = 9;
    let refused = answer(&server, &other).await;
    let frame = PerfFrame::parse(refused[0], &refused[HEADER..]).expect("a frame");
    let PerfFrame::Refused(refusal) = frame else { panic!("{frame:?}") };
    assert_eq!(refusal.kind, RefusalKind::Version);
    assert!(refusal.text.contains("version 9"), "{}", refusal.text);
    server.test(Transport::Tcp, short(TestDirection::Up)).await.expect("it still works");
}

//= hostile perf
//# impossible requests, unknown tests
//= bound: `MAX_STREAMS`, `MAX_SIZE`, `MAX_INTERVALS`; 128 random bits
#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_request_and_an_unknown_test_are_refused() {
    let server = TestServer::new(Security::None, ServerLimits::default()).await;
    let impossible = TestRequest { streams: 0, ..TestRequest::default() };
    let kind_of = |octets: Vec<u8>| match PerfFrame::parse(octets[0], &octets[HEADER..]) {
        Ok(PerfFrame::Refused(refusal)) => refusal.kind,
        other => panic!("{other:?}"),
    };
    let refused = answer(&server, &PerfFrame::Open(impossible).encode()).await;
    assert_eq!(kind_of(refused), RefusalKind::Request);
    let token = eyas_perf::protocol::frame::TestToken([3; 16]);
    let refused = answer(&server, &PerfFrame::Attach(token, 1).encode()).await;
    assert_eq!(kind_of(refused), RefusalKind::NoTest);
}

//= hostile perf
//# clients that disappear
//= bound: `STEP_TIME`, `MAX_IDLE`
/// A client that asks and then never attaches its streams loses its place when it disconnects.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disappears_leaves_its_place() {
    let server =
        TestServer::new(Security::None, ServerLimits { tests: 1, ..ServerLimits::default() }).await;
    let mut stream = TcpStream::connect(server.address).await.expect("it connects");
    stream.write_all(&PerfFrame::Open(TestRequest::default()).encode()).await.expect("it is sent");
    let mut header = [0; HEADER];
    timeout(TIMEOUT, stream.read_exact(&mut header)).await.expect("in time").expect("an answer");
    drop(stream);
    let outcome = server.event(|event| match event {
        ServerEvent::Ended(.., outcome) => Some(*outcome),
        _ => None,
    });
    assert_eq!(outcome.await.ended, None);
    server.test(Transport::Tcp, short(TestDirection::Up)).await.expect("a place");
}

/// Runs a client against a server that says this to its first frame, and then reads.
async fn against(script: Vec<u8>) -> TestFailure {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let script = script.clone();
            tokio::spawn(async move {
                let _ = stream.write_all(&script).await;
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
            });
        }
    });
    let endpoint = Endpoint::builder().memory(MemoryStore::none()).build().expect("an endpoint");
    let host = TargetHost::Literal(address.ip(), 0);
    let target = Target::plain(host.clone(), address.port(), vec![Transport::Tcp], Security::None);
    let connection = endpoint.preconnection(target).connect().await.expect("it connects");
    let test = PerfTest {
        request: short(TestDirection::Down),
        idle: Duration::ZERO,
        began: Instant::now(),
    };
    let connector = TestConnector { endpoint, host };
    let ran = timeout(TIMEOUT, test.run(connection, &connector, pending(), |_| {})).await;
    serving.abort();
    ran.expect("it ends").expect_err("no server")
}

//= hostile perf
//# a server that talks nonsense, or is silent
//= bound: `MAX_WAITING`, `STEP_TIME`
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_server_is_found_out() {
    assert_eq!(against(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await, TestFailure::Lost);
    assert_eq!(against(vec![0x55; 10_000_000]).await, TestFailure::Lost);
    let early = against(PerfFrame::Ready.encode()).await;
    assert!(matches!(early, TestFailure::Violation(_)), "{early:?}");
    let many = PerfFrame::Pong(1).encode().repeat(100_000);
    assert!(matches!(against(many).await, TestFailure::Violation(_)));
    let grant = eyas_perf::protocol::frame::TestGrant {
        token: eyas_perf::protocol::frame::TestToken([1; 16]),
        request: TestRequest { streams: 60, ..short(TestDirection::Down) },
        bytes: 1,
    };
    let more = against(PerfFrame::Accepted(grant).encode()).await;
    assert!(matches!(more, TestFailure::Violation(_)), "{more:?}");
}

/// A server that accepts the connection and says nothing; this takes as long as a step may.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_given_up() {
    assert_eq!(against(Vec::new()).await, TestFailure::Silent("answer"));
}
