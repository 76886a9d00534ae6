//! One thread of the generator: starts requests when they are due and counts their outcomes.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use eyas::Endpoint;
use eyas::race::candidate::{AddressFamily, Transport};
use eyas_http::Direct;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::arrivals::{Extent, Schedule};
use super::attempts::Attempts;
use super::draw::{Draw, Draws};
use super::pool::Pool;
use super::prepare::Prepared;
use super::tally::{Exchange, RequestError, Tally};
use super::timer::Timer;

/// How often a worker reports.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);
/// How long the last associations may take to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// A generator whose last request was started later than this has fallen behind; shorter pauses of
/// the machine are no lack of speed.
const MAX_LAG: Duration = Duration::from_millis(200);
/// Requests started in a row while the generator is late, before other tasks run.
const BURST: usize = 16;

/// A report of a worker.
pub(super) enum Report {
    /// What has happened since the last report.
    Interval { tally: Box<Tally>, in_flight: usize },
    /// The worker is done.
    Finished(Result<Finished, io::Error>),
}

/// The final report.
pub(super) struct Finished {
    pub(super) attempts: BTreeMap<Transport, Attempts>,
    pub(super) most_in_flight: usize,
    pub(super) warm_up: u64,
    /// When arrivals ended.
    pub(super) arriving_until: Duration,
    pub(super) last_end: Duration,
    /// Whether requests could not be started as fast as they arrived.
    pub(super) fell_behind: bool,
}

/// A worker before its start.
pub(super) struct Worker {
    prepared: Arc<Prepared>,
    number: usize,
    endpoint: Endpoint,
    direct: Direct,
    plain: Direct,
    stop: CancellationToken,
}

/// A running worker.
pub(super) struct Running {
    pub(super) prepared: Arc<Prepared>,
    pub(super) direct: Direct,
    /// The same destination without TLS.
    pub(super) plain: Direct,
    pub(super) pool: Option<Arc<Pool>>,
    /// The winner of the last race.
    pub(super) known: Mutex<Option<(Transport, AddressFamily)>>,
    endpoint: Endpoint,
    start: Instant,
    tally: Mutex<Tally>,
    in_flight: AtomicUsize,
    /// Of the requests in flight, those that are counted.
    counted: AtomicUsize,
    most_in_flight: AtomicUsize,
    ended: Notify,
    warm_up: AtomicU64,
    attempts_before: OnceLock<BTreeMap<Transport, Attempts>>,
    last_end: Mutex<Duration>,
}

impl Worker {
    pub(super) fn new(
        prepared: &Arc<Prepared>,
        number: usize,
        endpoint: Endpoint,
        [direct, plain]: [Direct; 2],
        stop: &CancellationToken,
    ) -> Self {
        let (prepared, stop) = (Arc::clone(prepared), stop.clone());
        Self { prepared, number, endpoint, direct, plain, stop }
    }

    /// Runs on this thread until the end of the load.
    pub(super) fn run(self, runtime: &Runtime, start: Instant, sender: &mpsc::Sender<Report>) {
        let finished = runtime.block_on(self.work(start, sender));
        // If the run was abandoned, there is no receiver.
        let _ = sender.send(Report::Finished(finished));
    }

    async fn work(self, start: Instant, sender: &mpsc::Sender<Report>) -> io::Result<Finished> {
        let pool = self.prepared.pool(self.number);
        let running = Arc::new(Running {
            prepared: Arc::clone(&self.prepared),
            direct: self.direct.clone(),
            plain: self.plain.clone(),
            pool,
            known: Mutex::default(),
            endpoint: self.endpoint.clone(),
            start,
            tally: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
            ended: Notify::new(),
            warm_up: AtomicU64::new(0),
            attempts_before: OnceLock::new(),
            last_end: Mutex::default(),
        });
        let reporter = tokio::spawn(report_intervals(Arc::clone(&running), sender.clone()));
        let generated = match self.prepared.clients(self.number) {
            Some(clients) => Ok(running.run_clients((self.number, clients), &self.stop).await),
            None => self.generate(&running).await,
        };
        tokio::select! {
            () = running.wait_until_drained() => {}
            () = self.stop.cancelled() => {}
            () = running.patience() => {}
        }
        reporter.abort();
        running.record_unfinished();
        running.report(sender);
        let attempts = running.attempts_since_warm_up();
        let last_end = *lock(&running.last_end);
        let Generated { arriving_until, fell_behind } = generated?;
        let finished = Finished {
            attempts,
            most_in_flight: running.most_in_flight.load(Relaxed),
            warm_up: running.warm_up.load(Relaxed),
            arriving_until,
            last_end,
            fell_behind,
        };
        // This closes the pool's connections as well.
        drop(running);
        self.shut_down_connections().await;
        Ok(finished)
    }

    /// Lets associations and QUIC connections end gracefully, so that the server does not wait for a
    /// peer that is gone.
    async fn shut_down_connections(&self) {
        if !self.stop.is_cancelled() {
            let ended = self.endpoint.connections_ended();
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await;
        }
    }

    /// Starts every request of this worker when it is due. Returns when arrivals have ended.
    async fn generate(&self, running: &Arc<Running>) -> io::Result<Generated> {
        let load = &self.prepared.load;
        let schedule = Schedule::new(load.arrivals, load.extent, load.seed);
        let draws = Draws::new(
            load.hit_rate,
            self.prepared.choices.len(),
            self.prepared.objects.len(),
            load.seed,
        );
        let timer = Timer::new()?;
        let (mut last, mut late_requests) = (Duration::ZERO, 0);
        let requests =
            schedule.zip(draws).skip(self.number).step_by(self.prepared.load.threads.max(1));
        let end = load.extent.duration.unwrap_or(Duration::MAX);
        for (at, draw) in requests {
            // What is due by now cannot be started any more in the time that the load has.
            if running.now() > end.saturating_add(MAX_LAG) {
                return Ok(Generated { arriving_until: running.now(), fell_behind: true });
            }
            let wait = (running.start + at).saturating_duration_since(Instant::now());
            if wait.is_zero() {
                late_requests += 1;
                if late_requests % BURST == 0 {
                    tokio::task::yield_now().await;
                }
            } else {
                tokio::select! {
                    expired = timer.after(wait) => expired?,
                    () = self.stop.cancelled() => {}
                }
            }
            if self.stop.is_cancelled() {
                return Ok(Generated { arriving_until: running.now(), fell_behind: false });
            }
            last = at;
            running.start_request(at, draw);
        }
        Ok(Generated {
            fell_behind: running.now().saturating_sub(last) > MAX_LAG && late_requests > 0,
            arriving_until: match load.extent {
                Extent { duration: Some(end), requests: None } => end,
                _ => last,
            },
        })
    }
}

/// How the arrivals of a worker ended.
pub(super) struct Generated {
    pub(super) arriving_until: Duration,
    pub(super) fell_behind: bool,
}

/// Reports every second what has happened.
async fn report_intervals(running: Arc<Running>, sender: mpsc::Sender<Report>) {
    let mut ticks = tokio::time::interval_at((running.start + INTERVAL).into(), INTERVAL);
    loop {
        ticks.tick().await;
        running.report(&sender);
    }
}

impl Running {
    /// Returns when the load started.
    pub(super) const fn start(&self) -> Instant {
        self.start
    }

    /// Returns the time since the start.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns whether a request that begins now is counted; the first that is ends the warm-up.
    pub(super) fn is_counted(&self, at: Duration) -> bool {
        let is_counted = at >= self.prepared.load.warm_up;
        if is_counted {
            self.attempts_before.get_or_init(|| self.attempts());
        } else {
            self.warm_up.fetch_add(1, Relaxed);
        }
        is_counted
    }

    fn start_request(self: &Arc<Self>, at: Duration, draw: Draw) {
        let is_counted = self.is_counted(at);
        let in_flight = self.in_flight.load(Relaxed);
        if in_flight >= self.prepared.most_in_flight() {
            if is_counted {
                lock(&self.tally).record_dropped();
            }
            return;
        }
        let in_flight = InFlight::new(self, is_counted);
        let running = Arc::clone(self);
        tokio::spawn(async move {
            running.exchange(at, draw, is_counted).await;
            drop(in_flight);
        });
    }

    /// Waits as long as requests in flight may take after the end of the duration; forever if that
    /// is not limited.
    async fn patience(&self) {
        let load = &self.prepared.load;
        match (load.extent.duration, load.patience) {
            (Some(duration), Some(patience)) => {
                tokio::time::sleep_until((self.start + duration + patience).into()).await;
            }
            _ => std::future::pending().await,
        }
    }

    /// Executes one request from its intended start to its end. Returns whether it was answered.
    pub(super) async fn exchange(&self, at: Duration, draw: Draw, is_counted: bool) -> bool {
        let began = self.now();
        let mut is_hit = false;
        let limit = self.prepared.load.timeout;
        let result = self.execute(at, draw, &mut is_hit);
        let result = match tokio::time::timeout(limit, result).await {
            Ok(result) => result,
            Err(_) => {
                let detail = format!("no whole response within {} s", limit.as_secs_f64());
                Err(RequestError { kind: "timeout", detail })
            }
        };
        let ended = self.now();
        let is_answered = result.is_ok();
        let (result, lease) = match result {
            Ok((answer, lease)) => (Ok(answer), Some(lease)),
            Err(error) => (Err(error), None),
        };
        if is_counted {
            let (late, total) = (began.saturating_sub(at), ended.saturating_sub(at));
            lock(&self.tally).record(Exchange { late, total, is_hit, result });
            *lock(&self.last_end) = ended;
        }
        if let Some(lease) = lease {
            lease.release().await;
        }
        is_answered
    }

    async fn wait_until_drained(&self) {
        loop {
            let ended = self.ended.notified();
            if self.in_flight.load(Relaxed) == 0 {
                return;
            }
            ended.await;
        }
    }

    fn record_unfinished(&self) {
        lock(&self.tally).record_unfinished(self.counted.load(Relaxed) as u64);
    }

    fn report(&self, reports: &mpsc::Sender<Report>) {
        let tally = Box::new(std::mem::take(&mut *lock(&self.tally)));
        let in_flight = self.in_flight.load(Relaxed);
        // If the run was abandoned, there is no receiver.
        let _ = reports.send(Report::Interval { tally, in_flight });
    }

    fn attempts(&self) -> BTreeMap<Transport, Attempts> {
        let counted = |transport| (transport, Attempts::from(self.endpoint.attempts(transport)));
        Transport::ALL.map(counted).into()
    }

    fn attempts_since_warm_up(&self) -> BTreeMap<Transport, Attempts> {
        let mut attempts = self.attempts();
        for (transport, before) in self.attempts_before.get().into_iter().flatten() {
            if let Some(now) = attempts.get_mut(transport) {
                *now = now.since(before);
            }
        }
        attempts.retain(|_, attempts| attempts.started > 0);
        attempts
    }
}

/// Counts a request as in flight until it is dropped.
pub(super) struct InFlight {
    running: Arc<Running>,
    is_counted: bool,
}

impl InFlight {
    pub(super) fn new(running: &Arc<Running>, is_counted: bool) -> Self {
        let now = running.in_flight.fetch_add(1, Relaxed) + 1;
        running.most_in_flight.fetch_max(now, Relaxed);
        running.counted.fetch_add(usize::from(is_counted), Relaxed);
        Self { running: Arc::clone(running), is_counted }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.running.counted.fetch_sub(usize::from(self.is_counted), Relaxed);
        if self.running.in_flight.fetch_sub(1, Relaxed) == 1 {
            self.running.ended.notify_waiters();
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
