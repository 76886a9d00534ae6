//! The same odd request over HTTP/1.1, HTTP/2 and HTTP/3: it is refused over all of them, or means the same to the
//! upstream.

mod clients;
mod request;
mod upstream;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;

use eyas_gateway::Gateway;
use eyas_http::serve::{Running, Server};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use self::clients::{Answer, Http3Client, http1, http2};
use self::request::{OddRequest, Oddity, each_oddity, oddities};
use self::upstream::{Received, RecordingUpstream};
use crate::stage::TIMEOUT;

/// The number of requests, unless `PROPTEST_CASES` says another.
const CASES: u32 = 200;

/// A gateway over all versions, and what its upstream has received.
struct Servers {
    upstream: RecordingUpstream,
    plain: Running,
    secure: Running,
    http3: Option<Http3Client>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Refused,
    Passed(Received),
}

impl Servers {
    async fn start() -> Self {
        let upstream = RecordingUpstream::start().await;
        let url = format!("http://{}", upstream.address).parse().expect("an upstream");
        let gateway = Gateway::builder(url).build().expect("a gateway");
        let builder = || Server::builder().extended_connect(["websocket"]).service(gateway.clone());
        let plain = builder().plain().start().await.expect("a server");
        let secure = builder().start().await.expect("a server");
        Self { upstream, plain, secure, http3: None }
    }

    fn plain_address(&self) -> SocketAddr {
        self.plain.local_addr()
    }

    /// Sends a request over every version that can express it, and returns the outcomes.
    async fn outcomes(&mut self, request: &OddRequest) -> Vec<(&'static str, Answer, Outcome)> {
        let mut outcomes = Vec::new();
        if let Some(bytes) = request.http1() {
            let answer = within("HTTP/1.1", http1(self.plain_address(), &bytes)).await;
            outcomes.push(self.outcome("HTTP/1.1", answer));
        }
        if request.is_visible_over_http2() {
            let answer = within("HTTP/2", http2(self.plain_address(), request)).await;
            outcomes.push(self.outcome("HTTP/2", answer));
        }
        let mut client = match self.http3.take() {
            Some(client) => client,
            None => within("HTTP/3", Http3Client::connect(&self.secure)).await,
        };
        let answer = within("HTTP/3", client.send(request)).await;
        if answer != Answer::Closed {
            self.http3 = Some(client);
        }
        outcomes.push(self.outcome("HTTP/3", answer));
        outcomes
    }

    fn outcome(
        &mut self,
        version: &'static str,
        answer: Answer,
    ) -> (&'static str, Answer, Outcome) {
        let outcome = match self.upstream.received() {
            Some(received) => Outcome::Passed(received),
            None => Outcome::Refused,
        };
        (version, answer, outcome)
    }

    async fn check(&mut self, oddities: &[Oddity]) -> Result<(), String> {
        let request = OddRequest::with(oddities);
        let outcomes = self.outcomes(&request).await;
        let agree = outcomes.windows(2).all(|pair| pair[0].2 == pair[1].2);
        let fits = outcomes.iter().all(|(_, answer, outcome)| match (answer, outcome) {
            (Answer::Status(200), Outcome::Passed(_)) => true,
            // "Tunnels are not supported", TRACE, codings, and what is too large have codes of their own.
            (Answer::Status(400 | 405 | 414 | 417 | 431 | 501), Outcome::Refused) => true,
            (Answer::Malformed | Answer::Closed, Outcome::Refused) => true,
            _ => false,
        });
        match agree && fits {
            true => Ok(()),
            false => Err(format!("{oddities:?}: {outcomes:?}")),
        }
    }
}

async fn within<T>(version: &str, exchange: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, exchange).await.unwrap_or_else(|_| panic!("{version}: no end"))
}

/// Checks the guide's sentence that what two programs could read differently gets 400.
//= hostile gateway
//# a request that is read differently over another version
//= bound: 400, or the same request
#[test]
fn an_odd_request_is_refused_or_means_the_same_over_every_version() {
    let runtime = Runtime::new().expect("a runtime");
    let mut servers = runtime.block_on(Servers::start());
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let config = Config {
        cases: cases.unwrap_or(CASES),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let servers = AssertUnwindSafe(std::cell::RefCell::new(&mut servers));
    let outcome = TestRunner::new(config).run(&oddities(), |oddities| {
        let checked = runtime.block_on(servers.borrow_mut().check(&oddities));
        checked.map_err(TestCaseError::fail)
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_oddity_alone_is_refused_or_means_the_same() {
    let mut servers = Servers::start().await;
    let mut wrong = Vec::new();
    for oddity in each_oddity() {
        wrong.extend(servers.check(&[oddity]).await.err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
