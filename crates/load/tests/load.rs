//! Tests of the load generator against our own server on loopback.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use eyas::race::candidate::{Security, Transport};
use eyas::{Endpoint, SecurityParameters};
use eyas_http::Versions;
use eyas_http::serve::{Running, SctpService, Server, ServerBuilder};
use eyas_load::{
    ArrivalProcess, ConnectionUse, Load, LoadError, LoadExtent, LoadOutcome, LoadStop, run,
};
use eyas_testserver::site::Site;
use tokio::runtime::Runtime;

/// The number of requests of a test: enough for every path, few enough for a busy machine.
const SOME: u64 = 30;

/// Much longer than the end of an association takes, but shorter than the heartbeats by which a
/// server notices that a peer is gone.
const LONG: Duration = Duration::from_secs(20);

/// Returns a server of the site.
fn builder() -> ServerBuilder {
    Server::builder().service(Site::new())
}

/// A server with its own runtime.
struct Served {
    runtime: Runtime,
    running: Option<Running>,
}

impl Served {
    fn start(builder: ServerBuilder) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let running = runtime.block_on(builder.start()).expect("it starts");
        Self { runtime, running: Some(running) }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs")
    }

    fn address(&self) -> SocketAddr {
        self.running().local_addr()
    }

    fn load(&self, scheme: &str, path: &str) -> Load {
        let url = format!("{scheme}://{}{path}", self.address());
        let mut load = Load::new(url.parse().expect("a URL"));
        let sctp = self.running().sctp().and_then(|sctp| sctp.encapsulation_port());
        load.endpoint = Endpoint::builder()
            .security(SecurityParameters::platform().accept_any_certificate().without_resumption())
            .sctp_encapsulation_port(sctp.unwrap_or(9899));
        load.arrivals = ArrivalProcess::poisson(500.0);
        load.extent = LoadExtent::from_requests(SOME);
        load
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.shutdown(Duration::ZERO));
        }
    }
}

fn run_load(load: &Load) -> LoadOutcome {
    run(load, &LoadStop::default(), |_| {}).expect("a load that can be run")
}

/// Checks that all requests were answered, over this transport and version.
#[track_caller]
fn all_answered(outcome: &LoadOutcome, transport: Transport, version: &str) {
    let summary = outcome.summary();
    assert_eq!((summary.answered, summary.failed), (SOME, 0), "{summary:#?}");
    assert_eq!(summary.winners.len(), 1, "{summary:#?}");
    let winner = &summary.winners[0];
    assert_eq!((winner.transport.as_str(), winner.version.as_str()), (transport.name(), version));
}

#[test]
fn every_version_is_carried_on_fresh_and_on_kept_connections() {
    let served = Served::start(builder());
    let kept = ConnectionUse::Persistent { max_connections: 2, streams: 4 };
    for (versions, transport, version) in [
        (Versions::HTTP_1, Transport::Tcp, "HTTP/1.1"),
        (Versions::HTTP_2, Transport::Tcp, "HTTP/2"),
        (Versions::HTTP_3, Transport::Quic, "HTTP/3"),
    ] {
        for connections in [ConnectionUse::PerRequest, kept] {
            let load = Load { versions, connections, ..served.load("https", "/bytes/1024") };
            let outcome = run_load(&load);
            all_answered(&outcome, transport, version);
            assert_eq!(outcome.tally.bytes, SOME * 1024);
            let opened = if connections == kept { 1..=2 } else { SOME..=SOME };
            assert!(opened.contains(&outcome.tally.opened), "{}", outcome.tally.opened);
            assert_eq!(outcome.all_attempts().used, outcome.tally.opened);
        }
    }
}

#[test]
fn http_1_0_keeps_connections_if_configured() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/bytes/10");
    load.http1_0 = true;
    load.connections = ConnectionUse::Persistent { max_connections: 1, streams: 1 };
    let outcome = run_load(&load);
    all_answered(&outcome, Transport::Tcp, "HTTP/1.0");
    assert_eq!(outcome.tally.opened, 1);
    assert_eq!(served.running().stats().http10_requests, SOME);
}

#[test]
fn sctp_races_tcp_and_known_outcomes_do_not() {
    let served = Served::start(builder().plain().sctp(SctpService::with_free_port()));
    let mut load = served.load("http", "/bytes/10");
    load.race.transports = vec![Transport::SctpUdp, Transport::Tcp];
    load.race = load.race.naive();
    load.outcomes = vec![Transport::SctpUdp];
    let outcome = run_load(&load);
    all_answered(&outcome, Transport::SctpUdp, "HTTP/1.1");
    assert_eq!(outcome.attempts[&Transport::Tcp].started, SOME, "every request raced");
    assert_eq!(outcome.tally.hits, 0);
    load.hit_rate = 1.0;
    let outcome = run_load(&load);
    all_answered(&outcome, Transport::SctpUdp, "HTTP/1.1");
    assert!(!outcome.attempts.contains_key(&Transport::Tcp), "{:?}", outcome.attempts);
    assert_eq!(outcome.tally.hits, SOME);
}

#[test]
fn no_association_stays_at_the_server() {
    let served = Served::start(builder().plain().sctp(SctpService::with_free_port()));
    let mut load = served.load("http", "/bytes/10");
    load.race.transports = vec![Transport::SctpUdp];
    for connections in
        [ConnectionUse::PerRequest, ConnectionUse::Persistent { max_connections: 2, streams: 1 }]
    {
        load.connections = connections;
        all_answered(&run_load(&load), Transport::SctpUdp, "HTTP/1.1");
        let listener = served.running().sctp().expect("it has SCTP");
        let until = Instant::now() + LONG;
        while listener.associations() > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(listener.associations(), 0, "{connections:?}");
    }
}

#[test]
fn without_named_outcomes_the_last_winner_is_remembered() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/bytes/10");
    load.hit_rate = 1.0;
    // One after the other, so that the first has ended before the second begins.
    load.max_in_flight = 1;
    load.arrivals = ArrivalProcess::constant(20.0);
    let tally = run_load(&load).tally;
    assert_eq!((tally.answered + tally.dropped, tally.failed()), (SOME, 0));
    assert_eq!(tally.hits, tally.answered - 1);
}

#[test]
fn excess_requests_are_dropped_and_counted() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/slow?ms=2000");
    load.arrivals = ArrivalProcess::constant(1_000.0);
    load.max_in_flight = 4;
    let outcome = run_load(&load);
    let tally = &outcome.tally;
    assert_eq!(tally.intended, SOME);
    assert_eq!(tally.answered + tally.dropped, SOME);
    assert!(tally.dropped >= 1 && tally.answered >= 4, "{} dropped", tally.dropped);
    assert!(outcome.most_in_flight <= 4);
}

#[test]
fn times_count_from_the_intended_start() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/slow?ms=50");
    load.arrivals = ArrivalProcess::constant(1_000.0);
    load.extent = LoadExtent::from_requests(5);
    load.connections = ConnectionUse::Persistent { max_connections: 1, streams: 1 };
    let outcome = run_load(&load);
    // One connection, 50 ms each: the fifth request waits for the four others.
    let longest = Duration::from_nanos(outcome.tally.times.total.max());
    assert!(longest >= Duration::from_millis(240), "{longest:?}");
    assert_eq!(outcome.tally.answered, 5);
}

#[test]
fn the_warm_up_is_done_and_not_counted() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/bytes/10");
    load.arrivals = ArrivalProcess::constant(100.0);
    load.warm_up = Duration::from_millis(95);
    let outcome = run_load(&load);
    assert_eq!((outcome.warm_up_requests, outcome.tally.intended), (10, SOME - 10));
    // One request of the warm-up may still have been in flight when counting began.
    assert!((SOME - 10..=SOME).contains(&outcome.all_attempts().used));
    assert_eq!(served.running().stats().requests(), SOME);
}

#[test]
fn threads_share_the_load_and_its_connections() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/bytes/10");
    load.threads = 3;
    load.connections = ConnectionUse::Persistent { max_connections: 3, streams: 1 };
    let outcome = run_load(&load);
    all_answered(&outcome, Transport::Tcp, "HTTP/1.1");
    assert!(outcome.tally.opened <= 3);
}

#[test]
fn refusals_failures_and_statuses_are_distinguished() {
    let served = Served::start(builder().plain());
    let outcome = run_load(&served.load("http", "/status/503"));
    assert_eq!((outcome.tally.answered, outcome.tally.refused()), (SOME, SOME));
    // Bound but not listening, so that no other process can use the port.
    let held = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let held = held.expect("a socket");
    held.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
    let port = held.local_addr().ok().and_then(|at| at.as_socket()).expect("an address").port();
    let mut load = Load::new(format!("http://127.0.0.1:{port}/").parse().expect("a URL"));
    load.arrivals = ArrivalProcess::constant(100.0);
    load.extent = LoadExtent::from_requests(3);
    let summary = run_load(&load).summary();
    assert_eq!((summary.answered, summary.failed), (0, 3));
    assert_eq!(summary.errors[0].kind, "connect");
}

#[test]
fn a_stopped_load_reports_the_results_so_far() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/bytes/10");
    load.arrivals = ArrivalProcess::constant(50.0);
    load.extent = LoadExtent::lasting(Duration::from_secs(3_600));
    let stop = LoadStop::default();
    let mut seconds = 0;
    let outcome = run(&load, &stop, |progress| {
        seconds += 1;
        if progress.total.answered > 0 {
            stop.stop();
        }
    });
    let outcome = outcome.expect("it began");
    assert!(outcome.is_interrupted && seconds >= 1);
    let tally = &outcome.tally;
    assert!(tally.answered > 0);
    let known = tally.answered + tally.failed() + tally.dropped + tally.unfinished;
    assert_eq!(tally.intended, known);
}

#[test]
fn source_addresses_are_used_in_turn() {
    let served = Served::start(builder().plain());
    let mut load = served.load("http", "/echo");
    let sources = ["127.0.0.2", "127.0.0.3"].map(|text| text.parse().expect("an address"));
    load = load.from_addresses(sources);
    let outcome = run_load(&load);
    all_answered(&outcome, Transport::Tcp, "HTTP/1.1");
    let winner = outcome.tally.winners.keys().next().expect("one");
    assert_eq!(winner.security, Security::None);
    // An address that this host does not have.
    load = load.from_addresses(["192.0.2.1".parse().expect("an address")]);
    let summary = run_load(&load).summary();
    assert_eq!((summary.answered, summary.failed), (0, SOME), "{summary:#?}");
}

#[test]
fn a_load_that_makes_no_sense_is_refused_at_once() {
    let url = |text: &str| text.parse().expect("a URL");
    let ftp = run(&Load::new(url("ftp://a.example/")), &LoadStop::default(), |_| {});
    assert!(matches!(ftp, Err(LoadError::Url(_))));
    let mut endless = Load::new(url("http://a.example/"));
    endless.extent = LoadExtent { duration: None, requests: None };
    assert!(matches!(run(&endless, &LoadStop::default(), |_| {}), Err(LoadError::Endless)));
}
