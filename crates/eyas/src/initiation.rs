//! A race in progress (RFC 9622 §7.1).

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyas_race::evidence::NetworkId;
use eyas_race::io::{NetworkView, RaceFailure};
use eyas_race::memory::MemoryView;
use eyas_race::plan::Plan;
use eyas_race::policy::Policy;
use eyas_race::race::RaceSetup;
use eyas_race::target::Target;
use eyas_race::trace::{RaceJournal, Trace};
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{mpsc, oneshot, watch};

use crate::abort_on_drop::AbortOnDrop;
use crate::attempt::opening::{OpeningBytes, RaceOpening};
use crate::clock::RaceClock;
use crate::driver::{self, AttemptOptions, ResultChannels};
use crate::preconnection::RaceParameters;
use crate::shared_journal::SharedJournal;
use crate::{ConnectError, Connection, Endpoint, MemoryStore};

/// The maximum number of better connections that wait for the caller; a race has few transports.
const MAX_BETTER: usize = 4;

/// A race in progress: first await [`usable`](Self::usable), then perhaps [`better`](Self::better).
/// Dropping it ends the race and closes everything except the connections that were handed out.
#[derive(Debug)]
pub struct Initiation {
    usable: Option<oneshot::Receiver<Result<Connection, RaceFailure>>>,
    /// The connection that became usable while [`transport_up`](Self::transport_up) was awaited.
    outcome: Option<Connection>,
    /// Boxed, because the channel has space for several, and few races send even one.
    better: mpsc::Receiver<Box<Connection>>,
    /// Better connections received while [`finished`](Self::finished) was awaited, at most one for
    /// each transport.
    buffered: VecDeque<Box<Connection>>,
    record: SharedJournal,
    memory: MemoryStore,
    driver: RaceDriving,
    opening: Option<OpeningControl>,
}

/// Who lets a race proceed.
enum RaceDriving {
    /// A task of its own.
    Task(AbortOnDrop),
    /// Whoever awaits the race. Never locked: it makes the future `Sync`.
    Caller(Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>),
    /// Nobody, since the race is over.
    Over,
}

impl RaceDriving {
    /// Waits for something that the race brings about.
    async fn race_until<T>(&mut self, mut outcome: impl Future<Output = T> + Unpin) -> T {
        poll_fn(|cx| {
            if let Self::Caller(driver) = self {
                let driver = driver.get_mut().unwrap_or_else(PoisonError::into_inner);
                if driver.as_mut().poll(cx).is_ready() {
                    *self = Self::Over;
                }
            }
            Pin::new(&mut outcome).poll(cx)
        })
        .await
    }
}

impl fmt::Debug for RaceDriving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Task(_) => "Task",
            Self::Caller(_) => "Caller",
            Self::Over => "Over",
        })
    }
}

/// Controls the opening of a race that runs until a peer has sent something.
#[derive(Debug)]
struct OpeningControl {
    opening: watch::Sender<OpeningBytes>,
    is_up: watch::Sender<bool>,
}

impl OpeningControl {
    fn new() -> (Self, RaceOpening) {
        let opening = watch::Sender::new(OpeningBytes::Pending);
        let is_up = watch::Sender::new(false);
        let race_opening = RaceOpening { opening: opening.subscribe(), is_up: is_up.clone() };
        (Self { opening, is_up }, race_opening)
    }
}

/// The record of a race, which can be read while the race runs and afterwards. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RaceRecording(SharedJournal);

impl RaceRecording {
    /// Returns the recording of a connection to this target for which nothing was raced, such as one to
    /// a socket of the file system.
    pub fn empty(target: Target) -> Self {
        let network = NetworkView {
            id: NetworkId("".into()),
            sources: Vec::new(),
            pref64: Vec::new(),
            lacking: Vec::new(),
        };
        let (policy, view) = (Policy::default(), MemoryView::empty());
        let setup = RaceSetup { target, policy, view, network, seed: 0 };
        Self(SharedJournal::new(RaceJournal::new(Arc::new(setup), Duration::ZERO)))
    }

    /// Returns the trace of the race so far.
    pub fn trace(&self) -> Trace {
        self.0.copy().trace()
    }
}

impl Initiation {
    pub(crate) fn start(endpoint: Endpoint, parameters: RaceParameters) -> Self {
        let (usable_sender, usable) = oneshot::channel();
        let (better_sender, better) = mpsc::channel(MAX_BETTER);
        let (control, race_opening) = OpeningControl::new();
        let clock = RaceClock::start();
        let record = SharedJournal::new(RaceJournal::new(Arc::new(parameters.setup), clock.now()));
        let results = ResultChannels {
            usable: Some(usable_sender),
            better: better_sender,
            record: record.clone(),
        };
        let options = AttemptOptions {
            peer: parameters.peer,
            opening: parameters.until_spoken.then_some(race_opening),
            allowed: parameters.allowed,
        };
        let memory = endpoint.memory().clone();
        let driver = driver::run(endpoint, options, clock, results);
        let driver = match parameters.has_task {
            true => RaceDriving::Task(AbortOnDrop::spawn(driver)),
            false => RaceDriving::Caller(Mutex::new(Box::pin(driver))),
        };
        let opening = parameters.until_spoken.then_some(control);
        let usable = Some(usable);
        let (outcome, buffered) = (None, VecDeque::new());
        Self { usable, outcome, better, buffered, record, memory, driver, opening }
    }

    /// Waits until the transport of some attempt is established or all attempts have failed, in a
    /// race that runs [until the peer has spoken](crate::Preconnection::until_spoken). Cancel-safe.
    ///
    /// # Errors
    /// Lists every candidate with its cause of failure.
    pub async fn transport_up(&mut self) -> Result<(), ConnectError> {
        let (Some(usable), None) = (&mut self.usable, &self.outcome) else {
            return self.decided().await;
        };
        let risen = {
            // The sender lives as long as `self`.
            let up = self.opening.as_ref().map(|control| control.is_up.subscribe());
            let is_up = async {
                match up {
                    Some(mut up) => _ = up.wait_for(|is_up| *is_up).await,
                    None => std::future::pending().await,
                }
            };
            let up = async {
                tokio::select! {
                    biased;
                    () = is_up => None,
                    outcome = usable => Some(outcome),
                }
            };
            self.driver.race_until(pin!(up)).await
        };
        match risen {
            None => Ok(()),
            Some(outcome) => {
                self.outcome = Some(self.settled(outcome)?);
                Ok(())
            }
        }
    }

    /// Waits until the race is decided: either [`usable`](Self::usable) returns the connection
    /// immediately, or the race has failed. Cancel-safe.
    ///
    /// # Errors
    /// Lists every candidate with its cause of failure.
    pub async fn decided(&mut self) -> Result<(), ConnectError> {
        if self.outcome.is_none() {
            self.outcome = Some(self.usable().await?);
        }
        Ok(())
    }

    /// Sets the bytes that every attempt sends once its transport and security are established; the
    /// first peer that answers wins. They must be safe to send to several peers. Has no effect
    /// unless the race runs [until the peer has spoken](crate::Preconnection::until_spoken).
    /// [`ConnectionTimings::opened`](crate::ConnectionTimings::opened) of the connection says whether they have been
    /// sent.
    pub fn open_with(&self, opening: Bytes) {
        self.set_opening(OpeningBytes::Send(opening));
    }

    /// Declares that nothing can be sent to several peers: the race is then decided like any other.
    pub fn open_without(&self) {
        self.set_opening(OpeningBytes::None);
    }

    fn set_opening(&self, opening: OpeningBytes) {
        if let Some(control) = &self.opening {
            control.opening.send_replace(opening);
        }
    }

    /// Waits for the first working connection. It returns a connection only once. Cancel-safe.
    ///
    /// # Errors
    /// Lists every candidate with its cause of failure.
    pub async fn usable(&mut self) -> Result<Connection, ConnectError> {
        if let Some(connection) = self.outcome.take() {
            return Ok(connection);
        }
        let outcome = match &mut self.usable {
            Some(usable) => self.driver.race_until(usable).await,
            None => Ok(Err(RaceFailure::Cancelled)),
        };
        self.settled(outcome)
    }

    /// Returns the connection that the race has won, if it has.
    fn settled(
        &mut self,
        outcome: Result<Result<Connection, RaceFailure>, RecvError>,
    ) -> Result<Connection, ConnectError> {
        self.usable = None;
        // The driver drops the sender only if the runtime is being shut down.
        let outcome = outcome.unwrap_or(Err(RaceFailure::Cancelled));
        outcome.map_err(|failure| ConnectError::new(failure, self.trace()))
    }

    /// Waits for a connection over a more preferred transport than that of the last one returned.
    /// Returns `None` once there will be no more. It may return several connections, each better
    /// than the last. Cancel-safe.
    pub async fn better(&mut self) -> Option<Connection> {
        let next = match self.buffered.pop_front() {
            Some(buffered) => Some(buffered),
            None => self.driver.race_until(pin!(self.better.recv())).await,
        };
        next.map(|connection| *connection)
    }

    /// Waits until the race is over and the memory has stored everything it learnt. Cancel-safe.
    pub async fn finished(&mut self) {
        // The driver drops its end when it has finished.
        while let Some(connection) = self.driver.race_until(pin!(self.better.recv())).await {
            self.buffered.push_back(connection);
        }
        self.memory.flush().await;
    }

    /// Returns whether the race is over and [`better`](Self::better) has nothing left to return.
    pub fn is_over(&self) -> bool {
        self.better.is_closed() && self.better.is_empty() && self.buffered.is_empty()
    }

    /// Returns the trace of the race so far, at any time, including after a failure.
    pub fn trace(&self) -> Trace {
        self.record.copy().trace()
    }

    /// Returns a handle to the record of the race, which outlives `self`.
    pub fn recording(&self) -> RaceRecording {
        RaceRecording(self.record.clone())
    }

    /// Returns the current plan, with the reasons of every entry.
    pub fn plan(&self) -> Plan {
        self.record.copy().race().plan().clone()
    }

    /// Lets the race continue in the background: it re-tests and learns within the budgets of the
    /// policy, and closes the connections it still makes.
    pub fn detach(self) {
        match self.driver {
            RaceDriving::Task(task) => task.detach(),
            RaceDriving::Caller(driver) => {
                let driver = driver.into_inner().unwrap_or_else(PoisonError::into_inner);
                drop(tokio::spawn(driver));
            }
            RaceDriving::Over => {}
        }
    }
}
