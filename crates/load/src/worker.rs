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

use super::arrivals::{ArrivalSchedule, LoadExtent};
use super::attempts::TransportAttempts;
use super::draw::{RequestDraw, RequestDraws};
use super::load_tally::{LoadExchange, LoadTally, RequestError};
use super::pool::WorkerPool;
use super::prepare::PreparedLoad;
use super::timer::KernelTimer;

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
pub(super) enum WorkerReport {
    /// What has happened since the last report.
    Interval { tally: Box<LoadTally>, in_flight: usize },
    /// The worker is done.
    Finished(Result<FinalReport, io::Error>),
}

/// The final report.
pub(super) struct FinalReport {
    pub(super) attempts: BTreeMap<Transport, TransportAttempts>,
    pub(super) most_in_flight: usize,
    pub(super) warm_up: u64,
    /// When arrivals ended.
    pub(super) arriving_until: Duration,
    pub(super) last_end: Duration,
    /// Whether requests could not be started as fast as they arrived.
    pub(super) fell_behind: bool,
}

/// A worker before its start.
pub(super) struct LoadWorker {
    prepared: Arc<PreparedLoad>,
    number: usize,
    endpoint: Endpoint,
    direct: Direct,
    plain: Direct,
    stop: CancellationToken,
}

/// A running worker.
pub(super) struct RunningWorker {
    pub(super) prepared: Arc<PreparedLoad>,
    pub(super) direct: Direct,
    /// The same destination without TLS.
    pub(super) plain: Direct,
    pub(super) pool: Option<Arc<WorkerPool>>,
    /// The winner of the last race.
    pub(super) known: Mutex<Option<(Transport, AddressFamily)>>,
    endpoint: Endpoint,
    start: Instant,
    tally: Mutex<LoadTally>,
    in_flight: AtomicUsize,
    /// Of the requests in flight, those that are counted.
    counted: AtomicUsize,
    most_in_flight: AtomicUsize,
    ended: Notify,
    warm_up: AtomicU64,
    attempts_before: OnceLock<BTreeMap<Transport, TransportAttempts>>,
    last_end: Mutex<Duration>,
}

impl LoadWorker {
    pub(super) fn new(
        prepared: &Arc<PreparedLoad>,
        number: usize,
        endpoint: Endpoint,
        [direct, plain]: [Direct; 2],
        stop: &CancellationToken,
    ) -> Self {
        let (prepared, stop) = (Arc::clone(prepared), stop.clone());
        Self { prepared, number, endpoint, direct, plain, stop }
    }

    /// Runs on this thread until the end of the load.
    pub(super) fn run(
        self,
        runtime: &Runtime,
        start: Instant,
        sender: &mpsc::Sender<WorkerReport>,
    ) {
        let finished = runtime.block_on(self.work(start, sender));
        // If the run was abandoned, there is no receiver.
        let _ = sender.send(WorkerReport::Finished(finished));
    }

    async fn work(
        self,
        start: Instant,
        sender: &mpsc::Sender<WorkerReport>,
    ) -> io::Result<FinalReport> {
        let pool = self.prepared.pool(self.number);
        let running = Arc::new(RunningWorker {
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
        let ArrivalsEnd { arriving_until, fell_behind } = generated?;
        let finished = FinalReport {
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
    async fn generate(&self, running: &Arc<RunningWorker>) -> io::Result<ArrivalsEnd> {
        let load = &self.prepared.load;
        let schedule = ArrivalSchedule::new(load.arrivals, load.extent, load.seed);
        let draws = RequestDraws::new(
            load.hit_rate,
            self.prepared.choices.len(),
            self.prepared.objects.len(),
            load.seed,
        );
        let timer = KernelTimer::new()?;
        let (mut last, mut late_requests) = (Duration::ZERO, 0);
        let requests =
            schedule.zip(draws).skip(self.number).step_by(self.prepared.load.threads.max(1));
        let end = load.extent.duration.unwrap_or(Duration::MAX);
        for (at, draw) in requests {
            // What is due by now cannot be started any more in the time that the load has.
            if running.now() > end.saturating_add(MAX_LAG) {
                return Ok(ArrivalsEnd { arriving_until: running.now(), fell_behind: true });
            }
            let wait = (running.start + at).saturating_duration_since(Instant::now());
            if wait.is_zero() {
                late_requests += 1;
                if late_requests % BURST == 0 {
                    tokio::task::yield_now().await;
                }
            } else {
                tokio::select! {
                    expired = timer.sleep(wait) => expired?,
                    () = self.stop.cancelled() => {}
                }
            }
            if self.stop.is_cancelled() {
                return Ok(ArrivalsEnd { arriving_until: running.now(), fell_behind: false });
            }
            last = at;
            running.start_request(at, draw);
        }
        Ok(ArrivalsEnd {
            fell_behind: running.now().saturating_sub(last) > MAX_LAG && late_requests > 0,
            arriving_until: match load.extent {
                LoadExtent { duration: Some(end), requests: None } => end,
                _ => last,
            },
        })
    }
}

/// How the arrivals of a worker ended.
pub(super) struct ArrivalsEnd {
    pub(super) arriving_until: Duration,
    pub(super) fell_behind: bool,
}

/// Reports every second what has happened.
async fn report_intervals(running: Arc<RunningWorker>, sender: mpsc::Sender<WorkerReport>) {
    let mut ticks = tokio::time::interval_at((running.start + INTERVAL).into(), INTERVAL);
    loop {
        ticks.tick().await;
        running.report(&sender);
    }
}

impl RunningWorker {
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

    fn start_request(self: &Arc<Self>, at: Duration, draw: RequestDraw) {
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
    pub(super) async fn exchange(&self, at: Duration, draw: RequestDraw, is_counted: bool) -> bool {
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
            lock(&self.tally).record(LoadExchange { late, total, is_hit, result });
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

    fn report(&self, reports: &mpsc::Sender<WorkerReport>) {
        let tally = Box::new(std::mem::take(&mut *lock(&self.tally)));
        let in_flight = self.in_flight.load(Relaxed);
        // If the run was abandoned, there is no receiver.
        let _ = reports.send(WorkerReport::Interval { tally, in_flight });
    }

    fn attempts(&self) -> BTreeMap<Transport, TransportAttempts> {
        let counted =
            |transport| (transport, TransportAttempts::from(self.endpoint.attempts(transport)));
        Transport::ALL.map(counted).into()
    }

    fn attempts_since_warm_up(&self) -> BTreeMap<Transport, TransportAttempts> {
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
    running: Arc<RunningWorker>,
    is_counted: bool,
}

impl InFlight {
    pub(super) fn new(running: &Arc<RunningWorker>, is_counted: bool) -> Self {
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
