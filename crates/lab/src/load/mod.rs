//! The load generator: requests that arrive when they are due, whatever becomes of those before.
//!
//! An open loop (Schroeder, Wierman, Harchol-Balter 2006): arrivals are a process of their own, and
//! every time counts from the intended start, so that nothing hides behind a slow reply (Tene's
//! "coordinated omission"). What cannot be begun, for too much is in flight, is counted as dropped.
//!
//! | file | job |
//! | --- | --- |
//! | `arrivals`, `draw` | when requests arrive, and what chance decides of each: pure |
//! | `tally` | what happened, counted: pure, of bounded size |
//! | `attempts` | what became of the attempts |
//! | `outcome` | the sum of a run, and as data |
//! | `prepare` | what follows from a load |
//! | `worker`, `request` | one thread: begins requests, carries them, counts how they end |
//! | `kept` | connections kept from request to request |
//! | `wake` | an alarm clock of microseconds |
//! | `series`, `histogram_log` | what happened second by second, as CSV and as an HDR histogram log |
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
//! [`run`] has threads of its own, which begin in the network namespace of its caller and on the cores
//! that the caller is bound to: an experiment enters a namespace on a thread and runs the load there.

mod arrivals;
mod attempts;
mod draw;
mod histogram_log;
mod kept;
mod outcome;
mod prepare;
mod request;
mod series;
mod tally;
mod wake;
mod worker;

use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use eyas::race::candidate::Transport;
use eyas::race::policy::{Policy, PolicyError};
use eyas::{Endpoint, EndpointBuilder, MemoryStore, SecurityParameters};
use eyas_http::{Direct, Versions};
use http::{HeaderMap, HeaderValue, header::ACCEPT, header::USER_AGENT};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use url::Url;

pub use arrivals::{Arrivals, Extent, Rate, Schedule, Spacing};
pub use attempts::Attempts;
pub use draw::{Draw, Draws};
pub use histogram_log::HistogramLog;
pub use outcome::{Outcome, Percentiles, Summary, TroubleRow, WinnerRow};
pub use series::Series;
pub use tally::{Answer, Exchange, Opening, Tally, Times, Trouble, Troubles, Winner};

use prepare::Prepared;
use worker::{Report, Worker};

/// How connections are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Each request opens its own, and closes it.
    Fresh,
    /// They are kept, and opened as they are needed.
    Kept {
        /// How many there are at most; requests beyond what they carry wait.
        most: usize,
        /// Requests at once on a connection of HTTP/2 or 3.
        streams: usize,
    },
}

/// What is to be asked for, when, and how.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where requests go: an `http` or `https` URL.
    pub url: Url,
    /// Paths to ask for instead of the URL's, one of them for each request, each as likely.
    pub objects: Vec<String>,
    /// When requests arrive.
    pub arrivals: Arrivals,
    /// When no more arrive.
    pub extent: Extent,
    /// Requests that arrive before this time are made, and not counted.
    pub warm_up: Duration,
    /// How connections are used.
    pub connections: Connections,
    /// The versions of HTTP that may be spoken.
    pub versions: Versions,
    /// HTTP/1.0 with its Keep-Alive option (RFC 2068 §19.7.1) where HTTP/1 is spoken.
    pub http1_0: bool,
    /// What connections are made with: security, resolver, memory, addresses to leave from. Each
    /// thread has an endpoint of its own; a memory is shared by all.
    pub endpoint: EndpointBuilder,
    /// The race for a connection. One transport alone is no race.
    pub race: Policy,
    /// The share of connections, 0 to 1, for which the memory is made to know the outcome: they go
    /// straight there, the others race. Without [`outcomes`](Self::outcomes) the outcome is that of
    /// the last race.
    pub hit_rate: f64,
    /// The transports that are to win, one of them for each connection, each as likely; whatever
    /// comes, if there are none. A race for one waits for it as long as a policy allows
    /// ([`Policy::grace`]).
    pub outcomes: Vec<Transport>,
    /// Whether a race is one of transports alone, and ends before TLS (Papastergiou et al. 2016):
    /// each connection whose outcome is not known goes straight there, and beside it a handshake of
    /// every other transport of the race is carried to its end and closed. It takes
    /// [`outcomes`](Self::outcomes).
    pub races_below_tls: bool,
    /// Header fields of every request.
    pub headers: HeaderMap,
    /// How long a request may take from its beginning to the last byte of its response.
    pub timeout: Duration,
    /// Requests in flight at once, in all; what arrives beyond is dropped.
    pub max_in_flight: usize,
    /// Threads that share the load; each arrival is that of one of them.
    pub threads: usize,
    /// What chance decides: the arrivals, the hits, the outcomes, the objects.
    pub seed: u64,
}

impl Load {
    /// Ten requests a second for ten seconds, each on a connection of its own, by a race that knows
    /// nothing, without resumption.
    pub fn new(url: Url) -> Self {
        let agent = HeaderValue::from_static(concat!("eyas/", env!("CARGO_PKG_VERSION")));
        let any = HeaderValue::from_static("*/*");
        Self {
            url,
            objects: Vec::new(),
            arrivals: Arrivals::poisson(10.0),
            extent: Extent::lasting(Duration::from_secs(10)),
            warm_up: Duration::ZERO,
            connections: Connections::Fresh,
            versions: Versions::ALL,
            http1_0: false,
            endpoint: Endpoint::builder()
                .security(SecurityParameters::platform().without_resumption())
                .memory(MemoryStore::none()),
            race: Policy::default(),
            hit_rate: 0.0,
            outcomes: Vec::new(),
            races_below_tls: false,
            headers: HeaderMap::from_iter([(USER_AGENT, agent), (ACCEPT, any)]),
            timeout: Duration::from_secs(30),
            max_in_flight: 4_096,
            threads: 1,
            seed: 1,
        }
    }

    /// Connections leave from these addresses in turn.
    #[must_use]
    pub fn from_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.endpoint = self.endpoint.local_addresses(addresses);
        self
    }

    fn check(&self) -> Result<(), LoadError> {
        if !self.arrivals.rate.is_usable() {
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

/// Why a load cannot be put on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The rate is 0, negative, or no number.
    #[error("no request would ever arrive: give a rate above 0, such as 100 a second")]
    Rate,
    /// Neither a duration nor a number of requests.
    #[error("the load has no end: give it a duration or a number of requests")]
    Endless,
    /// The hit rate is no share.
    #[error("a hit rate of {0} is not a share: give a number from 0 to 1")]
    HitRate(f64),
    /// A race of transports alone has no winner by itself.
    #[error("a race that ends below TLS needs to know its outcomes: name at least one transport")]
    NoOutcome,
    /// Nothing would be measured.
    #[error("the warm-up takes all the time: make it shorter than the load")]
    WarmUp,
    /// An object cannot be asked for.
    #[error("cannot ask for this: {0}")]
    Object(String),
    /// The race makes no sense.
    #[error("{0}")]
    Race(#[from] PolicyError),
    /// The URL cannot be used.
    #[error("{0}")]
    Url(#[from] eyas_http::Error),
    /// There is nothing to connect with.
    #[error("{0}")]
    Endpoint(#[from] eyas::Error),
    /// The machine gives no thread, or no timer.
    #[error("cannot start: {0}")]
    Machine(#[from] std::io::Error),
}

/// Ends a load early; what has happened so far is still told. Clones end the same load.
#[derive(Clone, Debug, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// No request begins any more; those in flight are given up.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Whether it has been asked for.
    pub fn is_asked(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// How a load goes, told every second.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Time since its beginning.
    pub elapsed: Duration,
    /// The time that the tally is about.
    pub interval: Duration,
    /// What happened since the last time; the warm-up is not in it.
    pub tally: &'a Tally,
    /// What happened so far.
    pub total: &'a Tally,
    /// Requests in flight.
    pub in_flight: usize,
    /// Whether the warm-up still goes on.
    pub is_warming_up: bool,
}

/// Puts the load on and waits until it is over. `progress` is told every second, on this thread.
///
/// # Errors
/// What keeps it from beginning. What fails later is part of the [`Outcome`].
pub fn run(
    load: &Load,
    stop: &Stop,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<Outcome, LoadError> {
    let prepared = Arc::new(Prepared::new(load)?);
    let workers = workers(&prepared, stop)?;
    let (told, reports) = mpsc::channel();
    let start = Instant::now();
    let threads: Vec<_> = workers
        .into_iter()
        .map(|(worker, runtime)| {
            let told = told.clone();
            let name = thread::Builder::new().name("eyas-load".to_owned());
            name.spawn(move || {
                worker.run(&runtime, start, &told);
                // What is still in flight ends here.
                runtime.shutdown_background();
            })
        })
        .collect::<Result<_, _>>()
        .inspect_err(|_| stop.stop())?;
    drop(told);
    let outcome = collect(&prepared, &reports, start, stop, &mut progress);
    for thread in threads {
        // A worker that panicked has told nothing, and its panic was printed.
        let _ = thread.join();
    }
    outcome
}

fn workers(prepared: &Arc<Prepared>, stop: &Stop) -> Result<Vec<(Worker, Runtime)>, LoadError> {
    let load = &prepared.load;
    let attempts = load.max_in_flight.saturating_mul(load.race.max_in_flight);
    (0..load.threads.max(1))
        .map(|number| {
            let endpoint = load.endpoint.clone().max_attempts_in_flight(attempts).build()?;
            let direct = Direct::new(endpoint.clone(), load.url.as_str(), load.versions)?;
            let bare = Direct::new(endpoint.clone(), without_tls(&load.url), Versions::HTTP_1)?;
            let runtime = Builder::new_current_thread().enable_all().build()?;
            Ok((Worker::new(prepared, number, endpoint, [direct, bare], &stop.0), runtime))
        })
        .collect()
}

/// The same place, asked without TLS.
fn without_tls(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("http://{host}:{port}/"),
        _ => url.to_string(),
    }
}

/// Adds up what the workers tell, until all are done.
fn collect(
    prepared: &Prepared,
    reports: &mpsc::Receiver<Report>,
    start: Instant,
    stop: &Stop,
    progress: &mut impl FnMut(&Progress<'_>),
) -> Result<Outcome, LoadError> {
    let workers = prepared.load.threads.max(1);
    let mut outcome = Outcome::new(&prepared.load);
    let (mut tally, mut heard, mut in_flight) = (Tally::default(), 0, 0);
    let mut failed = None;
    let mut last = Duration::ZERO;
    for report in reports {
        match report {
            Report::Interval { tally: part, in_flight: now } => {
                tally.add(&part);
                (heard, in_flight) = (heard + 1, in_flight + now);
            }
            Report::Finished(Ok(finished)) => outcome.take(&finished),
            Report::Finished(Err(cause)) => {
                stop.stop();
                failed = Some(cause);
            }
        }
        if heard >= workers {
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
            (tally, heard, in_flight, last) = (Tally::default(), 0, 0, elapsed);
        }
    }
    outcome.tally.add(&tally);
    outcome.is_interrupted = stop.is_asked();
    match failed {
        Some(cause) => Err(cause.into()),
        None => Ok(outcome),
    }
}
