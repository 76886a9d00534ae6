//! The load generator: requests that arrive on schedule, independently of the previous ones, or
//! clients that each wait for their response before they send the next request ([`Load::clients`]).
//!
//! An open loop (Schroeder, Wierman, Harchol-Balter 2006): arrivals are an independent process, and
//! every time is measured from the intended start, so that nothing is hidden behind a slow response
//! (Tene's "coordinated omission"). Requests that cannot be started, because too many are in
//! flight, are counted as dropped.
//!
//! | file | purpose |
//! | --- | --- |
//! | `arrivals`, `draw` | when requests arrive, and their random choices: pure |
//! | `tally` | the counters: pure, of bounded size |
//! | `attempts` | the outcomes of attempts |
//! | `outcome` | the summary of a run, also as data |
//! | `prepare` | values derived from a load |
//! | `closed_loop` | clients that wait for their responses |
//! | `worker`, `request` | one thread: starts requests, executes them, counts their outcomes |
//! | `pool` | persistent connections |
//! | `timer` | a timer with microsecond resolution |
//! | `series`, `histogram_log` | results second by second, as CSV and as an HDR histogram log |
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use eyas_lab::load::{Arrivals, Extent, Load, Stop, run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut load = Load::new("http://127.0.0.1:8080/bytes/1024".parse()?);
//! load.arrivals = Arrivals::poisson(400.0);
//! load.extent = Extent::lasting(Duration::from_secs(60));
//! let outcome = run(&load, &Stop::default(), |_| {})?;
//! println!("{:.1}/s answered", outcome.answered_per_second());
//! # Ok(())
//! # }
//! ```
//!
//! [`run`] creates threads, which start in the network namespace of its caller and on the cores
//! that the caller is pinned to: an experiment enters a namespace on a thread and runs the load
//! there.

mod arrivals;
mod attempts;
mod closed_loop;
mod draw;
mod histogram_log;
mod outcome;
mod pool;
mod prepare;
mod request;
mod series;
mod tally;
mod timer;
mod worker;

use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas::race::candidate::Transport;
use eyas::race::policy::{Policy, PolicyError};
use eyas::{Endpoint, EndpointBuilder, MemoryStore, SecurityParameters};
use eyas_http::{Direct, Versions};
use http::{HeaderMap, HeaderValue, Method, header::ACCEPT, header::USER_AGENT};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use url::Url;

pub use arrivals::{Arrivals, Extent, Rate, Schedule, Spacing};
pub use attempts::Attempts;
pub use draw::{Draw, Draws};
pub use histogram_log::HistogramLog;
pub use outcome::{ErrorRow, Outcome, Percentiles, Summary, WinnerRow};
pub use series::Series;
pub use tally::{Answer, ErrorGroup, Exchange, Opening, RequestError, Tally, Times, Winner};

use prepare::Prepared;
use worker::{Report, Worker};

/// The use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Each request opens and closes its own.
    PerRequest,
    /// They are kept open, and opened as needed.
    Persistent {
        /// The maximum number of connections; further requests wait.
        max_connections: usize,
        /// Concurrent requests on an HTTP/2 or HTTP/3 connection.
        streams: usize,
    },
}

/// The parameters of a load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The destination: an `http` or `https` URL.
    pub url: Url,
    /// Paths to request instead of the URL's, one chosen at random for each request.
    pub objects: Vec<String>,
    /// The arrival process.
    pub arrivals: Arrivals,
    /// A closed loop in place of the arrivals: this many clients, each of which sends a request once
    /// the last one has ended. Times are then measured from sending.
    pub clients: Option<usize>,
    /// When arrivals end.
    pub extent: Extent,
    /// How long requests in flight at the end of [`Extent::duration`] may take before they are
    /// cancelled and count as unfinished; `None` is as long as their timeout.
    pub patience: Option<Duration>,
    /// Requests that arrive before this time are sent but not counted.
    pub warm_up: Duration,
    /// The use of connections.
    pub connections: Connections,
    /// The allowed versions of HTTP.
    pub versions: Versions,
    /// HTTP/1.0 with its Keep-Alive option (RFC 2068 §19.7.1) where HTTP/1 is spoken.
    pub http1_0: bool,
    /// The endpoint: security, resolver, memory, local addresses. Each thread has an endpoint of
    /// its own; the memory is shared.
    pub endpoint: EndpointBuilder,
    /// The race for a connection. With a single transport there is no race.
    pub race: Policy,
    /// The share of connections, 0 to 1, for which the memory is made to know the outcome: they go
    /// straight to it, the others race. Without [`outcomes`](Self::outcomes) the outcome is that of
    /// the last race.
    pub hit_rate: f64,
    /// The transports that should win, one chosen at random for each connection; if empty,
    /// whichever wins. A race waits for the chosen one as long as a policy allows
    /// ([`Policy::grace`]).
    pub outcomes: Vec<Transport>,
    /// Whether only the transports race, and the race ends before TLS (Papastergiou et al. 2016):
    /// each connection whose outcome is unknown goes straight to it, and in addition a handshake of
    /// every other transport of the race is completed and closed. Requires
    /// [`outcomes`](Self::outcomes).
    pub races_below_tls: bool,
    /// The method of every request.
    pub method: Method,
    /// Header fields of every request.
    pub headers: HeaderMap,
    /// The body of every request; empty is none.
    pub body: Bytes,
    /// The time limit of a request, up to the last byte of its response.
    pub timeout: Duration,
    /// The maximum number of requests in flight; further ones are dropped.
    pub max_in_flight: usize,
    /// The number of threads; each arrival is handled by one of them.
    pub threads: usize,
    /// The seed of the arrivals, hits, outcomes and objects.
    pub seed: u64,
}

impl Load {
    /// Returns the defaults: ten requests per second for ten seconds, each on its own connection,
    /// by a race without memory and without resumption.
    pub fn new(url: Url) -> Self {
        let agent = HeaderValue::from_static(concat!("eyas/", env!("CARGO_PKG_VERSION")));
        let any = HeaderValue::from_static("*/*");
        Self {
            url,
            objects: Vec::new(),
            arrivals: Arrivals::poisson(10.0),
            clients: None,
            extent: Extent::lasting(Duration::from_secs(10)),
            patience: None,
            warm_up: Duration::ZERO,
            connections: Connections::PerRequest,
            versions: Versions::ALL,
            http1_0: false,
            endpoint: Endpoint::builder()
                .security(SecurityParameters::platform().without_resumption())
                .memory(MemoryStore::none()),
            race: Policy::default(),
            hit_rate: 0.0,
            outcomes: Vec::new(),
            races_below_tls: false,
            method: Method::GET,
            headers: HeaderMap::from_iter([(USER_AGENT, agent), (ACCEPT, any)]),
            body: Bytes::new(),
            timeout: Duration::from_secs(30),
            max_in_flight: 4_096,
            threads: 1,
            seed: 1,
        }
    }

    /// Uses these local addresses in turn.
    #[must_use]
    pub fn from_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.endpoint = self.endpoint.local_addresses(addresses);
        self
    }

    fn check(&self) -> Result<(), LoadError> {
        if self.extent.duration.is_some_and(|duration| duration.is_zero()) {
            return Err(LoadError::NoTime);
        }
        if self.clients.is_none() && !self.arrivals.rate.is_usable() {
            return Err(LoadError::Rate);
        }
        if self.extent.duration.is_none() && self.extent.requests.is_none() {
            return Err(LoadError::Endless);
        }
        if !(0.0..=1.0).contains(&self.hit_rate) {
            return Err(LoadError::HitRate(self.hit_rate));
        }
        if self.extent.duration.is_some_and(|duration| duration <= self.warm_up) {
            return Err(LoadError::WarmUp);
        }
        if self.races_below_tls && self.outcomes.is_empty() {
            return Err(LoadError::NoOutcome);
        }
        self.race.clone().validated()?;
        Ok(())
    }
}

/// Why a load cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The rate is 0, negative, or not a number.
    #[error("no request would ever arrive: give a rate above 0, such as 100 a second")]
    Rate,
    /// The duration is 0.
    #[error("the load lasts no time: give it a duration above 0")]
    NoTime,
    /// There is neither a duration nor a number of requests.
    #[error("the load has no end: give it a duration or a number of requests")]
    Endless,
    /// The hit rate is not between 0 and 1.
    #[error("a hit rate of {0} is not a share: give a number from 0 to 1")]
    HitRate(f64),
    /// A race of transports only needs an outcome.
    #[error("a race that ends below TLS needs to know its outcomes: name at least one transport")]
    NoOutcome,
    /// The warm-up leaves nothing to measure.
    #[error("the warm-up takes all the time: make it shorter than the load")]
    WarmUp,
    /// An object cannot be requested.
    #[error("cannot request this object: {0}")]
    Object(String),
    /// The policy is invalid.
    #[error("{0}")]
    Race(#[from] PolicyError),
    /// The URL cannot be used.
    #[error("{0}")]
    Url(#[from] eyas_http::Error),
    /// The endpoint cannot be built.
    #[error("{0}")]
    Endpoint(#[from] eyas::Error),
    /// A thread or timer cannot be created.
    #[error("cannot start: {0}")]
    Machine(#[from] std::io::Error),
}

/// Stops a load early; the results so far are still returned. Clones stop the same load.
#[derive(Clone, Debug, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// Starts no further requests and cancels those in flight.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Returns whether the load has been stopped.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// The progress of a load, reported every second.
#[derive(Debug)]
pub struct Progress<'a> {
    /// The time since the start.
    pub elapsed: Duration,
    /// The time covered by the tally.
    pub interval: Duration,
    /// What happened since the last report, without the warm-up.
    pub tally: &'a Tally,
    /// What happened so far.
    pub total: &'a Tally,
    /// Requests in flight.
    pub in_flight: usize,
    /// Whether the load is still warming up.
    pub is_warming_up: bool,
}

/// Runs the load and waits until it is over. `progress` is called every second, on this thread.
///
/// # Errors
/// What prevents it from starting. Later failures are part of the [`Outcome`].
pub fn run(
    load: &Load,
    stop: &Stop,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<Outcome, LoadError> {
    let prepared = Arc::new(Prepared::new(load)?);
    let workers = workers(&prepared, stop)?;
    let (sender, reports) = mpsc::channel();
    let start = Instant::now();
    let threads: Vec<_> = workers
        .into_iter()
        .map(|(worker, runtime)| {
            let sender = sender.clone();
            let name = thread::Builder::new().name("eyas-load".to_owned());
            name.spawn(move || {
                worker.run(&runtime, start, &sender);
                // Requests that are still in flight end here.
                runtime.shutdown_background();
            })
        })
        .collect::<Result<_, _>>()
        .inspect_err(|_| stop.stop())?;
    drop(sender);
    let outcome = collect(&prepared, &reports, start, stop, &mut progress);
    for thread in threads {
        // A worker that panicked has reported nothing, and its panic has been printed.
        let _ = thread.join();
    }
    outcome
}

fn workers(prepared: &Arc<Prepared>, stop: &Stop) -> Result<Vec<(Worker, Runtime)>, LoadError> {
    let load = &prepared.load;
    let most_in_flight = load.max_in_flight.max(load.clients.unwrap_or_default());
    let attempts = most_in_flight.saturating_mul(load.race.max_in_flight);
    (0..load.threads.max(1))
        .map(|number| {
            let endpoint = load.endpoint.clone().max_attempts_in_flight(attempts).build()?;
            let direct = Direct::new(endpoint.clone(), load.url.as_str(), load.versions)?;
            let plain = Direct::new(endpoint.clone(), without_tls(&load.url), Versions::HTTP_1)?;
            let runtime = Builder::new_current_thread().enable_all().build()?;
            Ok((Worker::new(prepared, number, endpoint, [direct, plain], &stop.0), runtime))
        })
        .collect()
}

/// Returns the same URL without TLS.
fn without_tls(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("http://{host}:{port}/"),
        _ => url.to_string(),
    }
}

/// Adds up the reports of the workers until all are done.
fn collect(
    prepared: &Prepared,
    reports: &mpsc::Receiver<Report>,
    start: Instant,
    stop: &Stop,
    progress: &mut impl FnMut(&Progress<'_>),
) -> Result<Outcome, LoadError> {
    let workers = prepared.load.threads.max(1);
    let mut outcome = Outcome::new(&prepared.load);
    let (mut tally, mut reported, mut in_flight) = (Tally::default(), 0, 0);
    let mut failed = None;
    let mut last = Duration::ZERO;
    for report in reports {
        match report {
            Report::Interval { tally: part, in_flight: now } => {
                tally.add(&part);
                (reported, in_flight) = (reported + 1, in_flight + now);
            }
            Report::Finished(Ok(finished)) => outcome.add(&finished),
            Report::Finished(Err(cause)) => {
                stop.stop();
                failed = Some(cause);
            }
        }
        if reported >= workers {
            let elapsed = start.elapsed();
            outcome.tally.add(&tally);
            progress(&Progress {
                elapsed,
                interval: elapsed.saturating_sub(last),
                tally: &tally,
                total: &outcome.tally,
                in_flight,
                is_warming_up: elapsed < prepared.load.warm_up,
            });
            (tally, reported, in_flight, last) = (Tally::default(), 0, 0, elapsed);
        }
    }
    outcome.tally.add(&tally);
    outcome.is_interrupted = stop.is_requested();
    match failed {
        Some(cause) => Err(cause.into()),
        None => Ok(outcome),
    }
}
