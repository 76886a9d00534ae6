//! One trial: a first request, a pause, a second request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eyas::race::io::RaceOutput;
use eyas::race::policy::Policy;
use eyas::race::trace::{Trace, TraceEvent};
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};
use eyas_http::{Client, Error, Proxy, Response};
use http::Version;
use tokio::time::{Instant, sleep, timeout};

use super::LiveError;
use crate::situation::live::ClientStrategy;

/// The requested path.
pub(super) const OBJECT: &str = "/bytes/100";
/// How often to check for HTTP/3 if a client learns of it only from a response.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How long to keep checking for HTTP/3.
const CHECK_FOR: Duration = Duration::from_secs(10);
/// How soon a run ends after it was asked to stop.
const TIME_TO_STOP: Duration = Duration::from_millis(200);

/// The parameters of a client.
#[derive(Clone, Debug)]
pub(super) struct TrialParameters {
    pub(super) strategy: ClientStrategy,
    pub(super) policy: Policy,
    pub(super) give_up: Duration,
    pub(super) url: String,
    pub(super) security: SecurityParameters,
    /// The system's resolver, which is not used if the URL contains an address.
    pub(super) resolver: Resolver,
}

/// The outcome of one trial.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrialOutcome {
    /// `None` if there was no connection in time.
    pub(super) first: Option<FirstRequest>,
    /// `None` if there was no second response.
    pub(super) second_over_http3: Option<bool>,
    /// When a connection over HTTP/3 could be used, if there was one.
    pub(super) arrival: Option<Duration>,
}

/// The first request.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstRequest {
    /// When its connection could carry it.
    pub(super) usable: Duration,
    pub(super) over_http3: bool,
    /// The attempts that its race started, including those after the win.
    pub(super) attempts: u32,
    /// The attempts whose connections were handed over.
    pub(super) used: u32,
}

/// Runs trials concurrently, started at the given pace, and returns their outcomes with their
/// numbers.
pub(super) async fn run_concurrently<F>(
    trials: impl IntoIterator<Item = F>,
    pace: Duration,
    stop: &AtomicBool,
) -> Result<Vec<(usize, TrialOutcome)>, LiveError>
where
    F: Future<Output = TrialOutcome> + Send + 'static,
{
    let mut running = tokio::task::JoinSet::new();
    let mut ticks = tokio::time::interval(pace.max(Duration::from_millis(1)));
    // Late trials are not started in a burst.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for (number, trial) in trials.into_iter().enumerate() {
        ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            return Err(LiveError::Stopped);
        }
        running.spawn(async move { (number, trial.await) });
    }
    let mut outcomes = Vec::new();
    let mut checks = tokio::time::interval(TIME_TO_STOP);
    loop {
        tokio::select! {
            ended = running.join_next() => match ended {
                Some(Ok(ended)) => outcomes.push(ended),
                Some(Err(cause)) => return Err(LiveError::Inside(cause.to_string())),
                None => return Ok(outcomes),
            },
            _ = checks.tick() => if stop.load(Ordering::Relaxed) {
                return Err(LiveError::Stopped);
            },
        }
    }
}

/// Creates a runtime on the calling thread.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, LiveError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| LiveError::Inside(cause.to_string()))
}

impl TrialParameters {
    /// Creates a separate client with its own sockets.
    fn client(&self, memory: &MemoryStore) -> Result<Client, LiveError> {
        let endpoint = Endpoint::builder()
            .security(self.security.clone())
            .resolver(self.resolver.clone())
            .memory(memory.clone())
            .build()
            .map_err(|cause| LiveError::Inside(cause.to_string()))?;
        Client::builder()
            .endpoint(endpoint)
            .policy(self.strategy.http())
            .race(self.policy.clone())
            .proxy(Proxy::none())
            .build()
            .map_err(|cause| LiveError::Inside(cause.to_string()))
    }

    /// Sends one request. Its response is read completely and returned for its information.
    async fn request(&self, client: &Client) -> Result<Response, Error> {
        let mut response = client.get(&self.url).send().await?;
        while response.chunk().await?.is_some() {}
        Ok(response)
    }

    /// Lets a memory learn from one connection that stays open for this time.
    pub(super) async fn warm_up(
        &self,
        memory: &MemoryStore,
        open_for: Duration,
    ) -> Result<(), LiveError> {
        let client = self.client(memory)?;
        let inside_error = |cause: &dyn std::fmt::Display| {
            LiveError::Inside(format!("to warm the memory: {cause}"))
        };
        let done = timeout(self.give_up, self.request(&client)).await;
        done.map_err(|cause| inside_error(&cause))?.map_err(|cause| inside_error(&cause))?;
        sleep(open_for).await;
        Ok(())
    }

    /// Runs one trial, with this pause between the first response and the second request.
    pub(super) async fn run(self, memory: MemoryStore, pause: Duration) -> TrialOutcome {
        let mut outcome = TrialOutcome::default();
        let Ok(client) = self.client(&memory) else { return outcome };
        let Ok(Ok(response)) = timeout(self.give_up, self.request(&client)).await else {
            return outcome;
        };
        let ready = response.connection().timings.security.unwrap_or_default();
        let over_http3 = response.version() == Version::HTTP_3;
        sleep(pause).await;
        let second = timeout(self.give_up, self.request(&client)).await;
        let mut second = second.ok().and_then(Result::ok);
        outcome.second_over_http3 = second.as_ref().map(is_over_http3);
        if self.strategy == ClientStrategy::PublishedAltSvc && pause.is_zero() {
            second = self.until_http3(&client, second).await;
        }
        let race = RaceTimes::from_trace(&response.trace());
        let Some(usable) = race.usable else { return outcome };
        let usable = usable.max(ready);
        let used = 1 + u32::from(race.better.is_some());
        outcome.first = Some(FirstRequest { usable, over_http3, attempts: race.attempts, used });
        outcome.arrival = match (over_http3, race.better) {
            (true, _) => Some(usable),
            (false, Some(better)) => Some(better),
            // The connection came from a separate race after the announcement.
            (false, None) => {
                second.filter(is_over_http3).filter(|_| pause.is_zero()).and_then(|second| {
                    let later = second.trace();
                    let began = response.trace().header.started_at;
                    let after = later.header.started_at.checked_sub(began)?;
                    Some(after + RaceTimes::from_trace(&later).usable?)
                })
            }
        };
        outcome
    }

    /// Sends requests until a response arrives over HTTP/3.
    async fn until_http3(&self, client: &Client, first: Option<Response>) -> Option<Response> {
        let until = Instant::now() + CHECK_FOR;
        let mut last = first;
        while !last.as_ref().is_some_and(is_over_http3) && Instant::now() < until {
            sleep(CHECK_INTERVAL).await;
            last = timeout(self.give_up, self.request(client)).await.ok().and_then(Result::ok);
        }
        last
    }
}

fn is_over_http3(response: &Response) -> bool {
    response.version() == Version::HTTP_3
}

/// When the events of a race happened, since its start.
#[derive(Clone, Copy, Debug, Default)]
struct RaceTimes {
    usable: Option<Duration>,
    better: Option<Duration>,
    attempts: u32,
}

impl RaceTimes {
    fn from_trace(trace: &Trace) -> Self {
        let mut times = Self::default();
        for step in &trace.steps {
            let at = step.at.saturating_sub(trace.header.started_at);
            let TraceEvent::Output(output) = &step.event else { continue };
            match **output {
                RaceOutput::Usable(_) => times.usable = Some(at),
                RaceOutput::Better(_) => times.better = Some(at),
                RaceOutput::Start { .. } => times.attempts += 1,
                _ => {}
            }
        }
        times
    }
}
