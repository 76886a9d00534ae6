//! Sends a request on a connection from the pool, and races where that shows no sign of life: the
//! driver of [`ReusedRequest`].

use std::{
    future::pending,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use eyas::TcpProbe;
use tokio::{
    task::coop::unconstrained,
    time::{Instant, sleep_until},
};

use super::{
    Inner, lease,
    limits::Limits,
    report::{Reuse, ReuseVerdict},
    route::Route,
};
use crate::{
    Error, Kind,
    connection_report::ConnectionReport,
    pool::{Leased, Vitals},
    protocol::{Mark, SendFailure},
    reuse::{Input, Lane, Output, ReusedRequest, Setup, Sign, delay},
};

/// What a request on a leased connection leads to; the connection comes back with it.
type Ended<T> = (Leased, Result<T, SendFailure>);

type Lease<'a> = Pin<Box<dyn Future<Output = Result<Leased, Error>> + Send + 'a>>;

/// What is known of a request and needed for another connection.
pub(super) struct Conditions<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) route: &'a Route,
    pub(super) limits: &'a Limits,
    /// Whether the request may reach the server twice.
    pub(super) may_repeat: bool,
}

/// The outcome of a request.
pub(super) struct Sent<T> {
    /// The response, with the connection that carried it.
    pub(super) outcome: Result<(Leased, T), Missed>,
    /// How the connection from the pool fared.
    pub(super) reuse: Option<Reuse>,
}

/// Why there is no response.
pub(super) enum Missed {
    /// The request failed on this connection.
    Failed(Box<Leased>, SendFailure),
    /// A limit of the caller's was reached while it was on this connection.
    NoResponse(Arc<ConnectionReport>, SendFailure),
    /// It was not sent: the connection from the pool is dead, and there is no new one.
    NoConnection(Error),
}

/// Sends a request on this connection, and perhaps on another one. `start` sends it on a given
/// connection, and is called a second time only if the request may be repeated or if nothing was
/// sent.
pub(super) async fn send<T, F, S>(
    conditions: Conditions<'_>,
    leased: Leased,
    mut start: S,
) -> Sent<T>
where
    F: Future<Output = Ended<T>>,
    S: FnMut(Leased) -> F,
{
    if leased.reused {
        let lane = pin!(None);
        return Watch::new(conditions, leased, start).run(lane).await;
    }
    let Some(limit) = conditions.limits.idle else {
        return Sent { outcome: outcome(start(leased).await), reuse: None };
    };
    let report = Arc::clone(leased.report());
    let outcome = match tokio::time::timeout(limit, start(leased)).await {
        Ok(ended) => outcome(ended),
        Err(_) => Err(Missed::NoResponse(report, silence(limit))),
    };
    Sent { outcome, reuse: None }
}

fn outcome<T>((leased, result): Ended<T>) -> Result<(Leased, T), Missed> {
    match result {
        Ok(response) => Ok((leased, response)),
        Err(failure) => Err(Missed::Failed(Box::new(leased), failure)),
    }
}

fn silence(limit: Duration) -> SendFailure {
    SendFailure::new(Error::new(Kind::IdleTimeout, format!("no response after {limit:?}")))
}

enum Event<T> {
    Ended(Lane, Ended<T>),
    Raced(Result<Leased, Error>),
    Doubted,
    Tick,
    /// The idle timeout.
    Idle(Duration),
    /// The end of the whole exchange.
    Deadline,
}

struct Watch<'a, T, F, S> {
    conditions: Conditions<'a>,
    core: ReusedRequest,
    epoch: Instant,
    start: S,
    vitals: Vitals,
    /// From when signs of life count.
    mark: Mark,
    probe: Option<TcpProbe>,
    /// The connection of the pool, until the request is sent on it.
    leased: Option<Leased>,
    race: Option<Lease<'a>>,
    race_error: Option<Error>,
    /// What the race has made.
    fresh: Option<Leased>,
    repeated: Option<Pin<Box<F>>>,
    ended: [Option<Ended<T>>; 2],
    reuse: Reuse,
}

impl<'a, T, F, S> Watch<'a, T, F, S>
where
    F: Future<Output = Ended<T>>,
    S: FnMut(Leased) -> F,
{
    fn new(conditions: Conditions<'a>, leased: Leased, start: S) -> Self {
        let (vitals, epoch) = (leased.vitals(), Instant::now());
        let (mark, rtt) = vitals.life().mark();
        let info = vitals.report().info();
        let setup = Setup {
            rtt: rtt.or(info.rtt),
            idle: leased.idle(),
            may_repeat: conditions.may_repeat,
            can_check: vitals.life().can_check(),
        };
        let reuse = Reuse {
            transport: info.transport,
            remote: info.remote,
            age: vitals.age(),
            idle: setup.idle,
            rtt: setup.rtt,
            verdict: ReuseVerdict::Alive,
        };
        Self {
            core: ReusedRequest::new(setup, Duration::ZERO),
            conditions,
            epoch,
            start,
            vitals,
            mark,
            probe: None,
            leased: Some(leased),
            race: None,
            race_error: None,
            fresh: None,
            repeated: None,
            ended: [None, None],
            reuse,
        }
    }

    async fn run(mut self, mut lane: Pin<&mut Option<F>>) -> Sent<T> {
        let limits = self.conditions.limits;
        let idle_at = limits.idle.map(|idle| (self.epoch + idle, idle));
        loop {
            let wake_at = match self.drain(lane.as_mut()) {
                Ok(wake_at) => wake_at.map(|at| self.epoch + at),
                Err(sent) => return *sent,
            };
            // The response comes first. Of the deadline, the caller takes care but for its reason.
            let deadline = limits.deadline.filter(|_| self.core.is_stuck());
            let event = tokio::select! {
                biased;
                ended = sending(lane.as_mut().as_pin_mut()) => Event::Ended(Lane::Reused, ended),
                ended = sending(self.repeated.as_mut().map(Pin::as_mut)) => Event::Ended(Lane::New, ended),
                lease = unconstrained(racing(&mut self.race)) => Event::Raced(lease),
                () = self.vitals.doubted(), if self.core.is_alive() => Event::Doubted,
                () = wait_until(deadline), if deadline.is_some() => Event::Deadline,
                () = wait_until(idle_at.map(|(at, _)| at)), if idle_at.is_some() => {
                    Event::Idle(idle_at.map_or(Duration::ZERO, |(_, idle)| idle))
                }
                () = wait_until(wake_at), if wake_at.is_some() => Event::Tick,
            };
            let input = match event {
                Event::Ended(which, ended) => {
                    match which {
                        Lane::Reused => lane.set(None),
                        Lane::New => self.repeated = None,
                    }
                    let is_answered = ended.1.is_ok();
                    self.ended[which as usize] = Some(ended);
                    if is_answered { Input::Answered(which) } else { Input::Failed(which) }
                }
                Event::Raced(lease) => self.raced(lease),
                Event::Doubted => {
                    self.mark = self.vitals.life().mark().0;
                    Input::Doubted
                }
                Event::Tick => Input::Tick,
                Event::Idle(limit) => return self.no_response(silence(limit)),
                Event::Deadline => {
                    let error = Error::new(Kind::TotalTimeout, "no response was received");
                    return self.no_response(SendFailure::new(error));
                }
            };
            self.core.handle_input(self.epoch.elapsed(), input);
        }
    }

    fn raced(&mut self, lease: Result<Leased, Error>) -> Input {
        self.race = None;
        match lease {
            Ok(leased) => {
                self.fresh = Some(leased);
                Input::RaceWon
            }
            Err(error) => {
                // Of the peer, not only of the connection, since no new one can be made either.
                if error.kind() == Kind::Connect && self.sign() != Sign::Seen {
                    let detail = format!("{}, and a new race failed", self.silence());
                    self.vitals.report().fell_silent(detail);
                }
                self.race_error = Some(error);
                Input::RaceFailed
            }
        }
    }

    /// Executes every output. Returns when to wake up, or the outcome.
    fn drain(&mut self, mut lane: Pin<&mut Option<F>>) -> Result<Option<Duration>, Box<Sent<T>>> {
        let Conditions { inner, route, .. } = self.conditions;
        loop {
            match self.core.poll_output() {
                Output::Probe => (self.mark, self.probe) = self.vitals.life().probe(),
                Output::Send(Lane::Reused) => {
                    if self.mark.is_probe() {
                        self.mark = self.vitals.life().mark().0;
                        self.probe = None;
                    }
                    lane.set(self.leased.take().map(&mut self.start));
                }
                Output::Send(Lane::New) => {
                    self.repeated = self.fresh.take().map(&mut self.start).map(Box::pin);
                }
                Output::Look => {
                    let sign = self.sign();
                    if sign == Sign::Seen {
                        self.probe = None;
                    }
                    self.core.handle_input(self.epoch.elapsed(), Input::Looked(sign));
                }
                Output::Doubt => {
                    tracing::debug!(connection = %self.vitals.report(), "{}: racing", self.silence());
                    inner.pool.doubt(&self.vitals);
                }
                Output::Trust => {
                    self.reuse.verdict = ReuseVerdict::Late;
                    inner.pool.trust(&route.key, &self.vitals);
                    self.return_fresh();
                }
                Output::StartRace => {
                    let since = Some(self.epoch);
                    let lease = lease::lease(inner, route, false, since);
                    let lease = lease::within_connect_timeout(self.conditions.limits, lease);
                    self.race = Some(Box::pin(lease));
                }
                Output::EndRace => self.race = None,
                Output::Dead => {
                    self.reuse.verdict = ReuseVerdict::Dead;
                    let deadline = self.epoch.checked_sub(self.reuse.idle).unwrap_or(self.epoch);
                    inner.pool.bury(&route.key, &self.vitals, deadline);
                    if self.core.is_stuck() {
                        self.return_fresh();
                    }
                }
                Output::Use(which) | Output::Fail(which) => return Err(Box::new(self.end(which))),
                Output::GiveUp => {
                    let error = self.race_error.take();
                    let error = error.unwrap_or_else(|| Error::new(Kind::Connect, "no connection"));
                    return Err(Box::new(self.sent(Err(Missed::NoConnection(error)))));
                }
                Output::Abandon => {
                    let silence = Error::new(Kind::Protocol, self.silence());
                    return Err(Box::new(self.no_response(SendFailure::new(silence))));
                }
                Output::Timeout(at) => return Ok(at),
            }
        }
    }

    fn sign(&self) -> Sign {
        self.vitals.life().sign_since(&self.mark)
    }

    fn silence(&self) -> String {
        let after = self.epoch.elapsed().max(delay(self.reuse.rtt));
        format!("no sign of life for {} ms", after.as_millis())
    }

    fn end(&mut self, which: Lane) -> Sent<T> {
        self.return_fresh();
        match self.ended[which as usize].take() {
            Some((leased, Err(failure))) => {
                let failure = self.explained(failure);
                self.sent(Err(Missed::Failed(Box::new(leased), failure)))
            }
            Some(ended) => self.sent(outcome(ended)),
            // The core names only a lane that has ended.
            None => self.no_response(SendFailure::new(Error::new(Kind::Closed, ""))),
        }
    }

    /// Leaves the new connection to other requests.
    fn return_fresh(&mut self) {
        if let Some(fresh) = self.fresh.take() {
            self.conditions.inner.pool.put_back(&self.conditions.route.key, fresh);
        }
    }

    fn no_response(&self, failure: SendFailure) -> Sent<T> {
        let report = Arc::clone(self.vitals.report());
        self.sent(Err(Missed::NoResponse(report, self.explained(failure))))
    }

    fn sent(&self, outcome: Result<(Leased, T), Missed>) -> Sent<T> {
        Sent { outcome, reuse: Some(self.reuse.clone()) }
    }

    /// Says of a failure on a dead connection why it was waited for.
    fn explained(&self, failure: SendFailure) -> SendFailure {
        if !self.core.is_stuck() {
            return failure;
        }
        let error = failure.error.with_note(
            "the connection had been used before and has shown no sign of life since the request \
             was sent; a new connection could be made, but the request was not repeated there, \
             because it may not reach the server twice",
        );
        SendFailure { error, ..failure }
    }
}

async fn sending<F: Future>(lane: Option<Pin<&mut F>>) -> F::Output {
    match lane {
        Some(sending) => sending.await,
        None => pending().await,
    }
}

async fn racing(race: &mut Option<Lease<'_>>) -> Result<Leased, Error> {
    match race {
        Some(race) => race.await,
        None => pending().await,
    }
}

async fn wait_until(time: Option<Instant>) {
    match time {
        // Also while a peer that sends without end uses up the task's budget.
        Some(time) => unconstrained(sleep_until(time)).await,
        None => pending().await,
    }
}
