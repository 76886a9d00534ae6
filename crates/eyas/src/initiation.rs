//! A race in progress (RFC 9622 §7.1).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use eyas_race::io::RaceFailure;
use eyas_race::plan::Plan;
use eyas_race::trace::{Journal, Trace};
use tokio::sync::{mpsc, oneshot, watch};

use crate::abort_on_drop::AbortOnDrop;
use crate::attempt::opening::{Opening, OpeningOfRace};
use crate::clock::Clock;
use crate::driver::{self, AttemptOptions, Outlets};
use crate::preconnection::Wanted;
use crate::record::Record;
use crate::{ConnectError, Connection, Endpoint};

/// Better connections that wait for the caller; a race has few transports to climb.
const MAX_BETTER: usize = 4;

/// A race in progress: first await [`usable`](Self::usable), then perhaps [`better`](Self::better).
/// Dropping it ends the race and closes everything except the connections that were handed out.
#[derive(Debug)]
pub struct Initiation {
    usable: Option<oneshot::Receiver<Result<Connection, RaceFailure>>>,
    /// What came while [`transport_up`](Self::transport_up) was awaited.
    outcome: Option<Connection>,
    /// Boxed, for the channel has room for many, and few races send even one.
    better: mpsc::Receiver<Box<Connection>>,
    /// What came while [`finished`](Self::finished) was awaited; as few as there are transports.
    kept: VecDeque<Box<Connection>>,
    record: Record,
    task: Option<AbortOnDrop>,
    conversation: Option<Conversation>,
}

/// The opening sent by all attempts of a race that lasts until the peer has spoken.
#[derive(Debug)]
struct Conversation {
    opening: watch::Sender<Opening>,
    is_up: watch::Sender<bool>,
}

impl Conversation {
    fn new() -> (Self, OpeningOfRace) {
        let opening = watch::Sender::new(Opening::Awaited);
        let is_up = watch::Sender::new(false);
        let of_race = OpeningOfRace { opening: opening.subscribe(), is_up: is_up.clone() };
        (Self { opening, is_up }, of_race)
    }
}

/// The record of a race, which can be read while the race runs and afterwards. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recording(Record);

impl Recording {
    /// Returns the trace of the race so far.
    pub fn trace(&self) -> Trace {
        self.0.copy().trace()
    }
}

impl Initiation {
    pub(crate) fn start(endpoint: Endpoint, wanted: Wanted) -> Self {
        let (usable_sender, usable) = oneshot::channel();
        let (better_sender, better) = mpsc::channel(MAX_BETTER);
        let (opening, opening_of_race) = Conversation::new();
        let clock = Clock::start();
        let record = Record::new(Journal::new(Arc::new(wanted.setup), clock.now()));
        let outlets =
            Outlets { usable: Some(usable_sender), better: better_sender, record: record.clone() };
        let options = AttemptOptions {
            peer: wanted.peer,
            opening: wanted.until_spoken.then_some(opening_of_race),
            allowed: wanted.allowed,
        };
        let task = Some(AbortOnDrop::spawn(driver::run(endpoint, options, clock, outlets)));
        let conversation = wanted.until_spoken.then_some(opening);
        let usable = Some(usable);
        Self { usable, outcome: None, better, kept: VecDeque::new(), record, task, conversation }
    }

    /// Waits until the transport of some attempt is established or all attempts have failed, in a
    /// race that runs [until the peer has spoken](crate::Preconnection::until_spoken). Cancel-safe.
    ///
    /// # Errors
    /// Lists every candidate with its cause of failure.
    pub async fn transport_up(&mut self) -> Result<(), ConnectError> {
        // Both live as long as this.
        let up = self.conversation.as_ref().map(|conversation| conversation.is_up.subscribe());
        let is_up = async {
            match up {
                Some(mut up) => _ = up.wait_for(|is_up| *is_up).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = is_up => Ok(()),
            decided = self.decided() => decided,
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
    /// [`Timings::opened`](crate::Timings::opened) of the connection says whether they have been
    /// sent.
    pub fn open_with(&self, opening: Bytes) {
        self.settle(Opening::Said(opening));
    }

    /// Declares that nothing can be sent to several peers: the race is then decided like any other.
    pub fn open_without(&self) {
        self.settle(Opening::Nothing);
    }

    fn settle(&self, opening: Opening) {
        if let Some(conversation) = &self.conversation {
            conversation.opening.send_replace(opening);
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
            // The driver only leaves without a word if the runtime is being shut down.
            Some(usable) => usable.await.unwrap_or(Err(RaceFailure::Cancelled)),
            None => Err(RaceFailure::Cancelled),
        };
        self.usable = None;
        outcome.map_err(|failure| ConnectError::new(failure, self.trace()))
    }

    /// Waits for a connection over a more preferred transport than that of the last one returned.
    /// Returns `None` once there will be no more. It may return several connections, each better
    /// than the last. Cancel-safe.
    pub async fn better(&mut self) -> Option<Connection> {
        let next = match self.kept.pop_front() {
            Some(kept) => Some(kept),
            None => self.better.recv().await,
        };
        next.map(|connection| *connection)
    }

    /// Waits until the race is over and the memory has stored everything it learnt. Cancel-safe.
    pub async fn finished(&mut self) {
        // The driver lets go of its end when it has finished.
        while let Some(connection) = self.better.recv().await {
            self.kept.push_back(connection);
        }
    }

    /// Returns whether the race is over and [`better`](Self::better) has nothing left to return.
    pub fn is_over(&self) -> bool {
        self.better.is_closed() && self.better.is_empty() && self.kept.is_empty()
    }

    /// Returns the trace of the race so far, at any time, including after a failure.
    pub fn trace(&self) -> Trace {
        self.record.copy().trace()
    }

    /// Returns a handle to the record of the race, which outlives `self`.
    pub fn recording(&self) -> Recording {
        Recording(self.record.clone())
    }

    /// Returns the current plan, with the reasons of every entry.
    pub fn plan(&self) -> Plan {
        self.record.copy().race().plan().clone()
    }

    /// Lets the race continue in the background: it re-tests and learns within the budgets of the
    /// policy, and closes the connections it still makes.
    pub fn detach(mut self) {
        if let Some(task) = self.task.take() {
            task.detach();
        }
    }
}
