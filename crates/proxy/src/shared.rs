//! The state that all clients of a proxy share.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use eyas::Endpoint;
use eyas::race::policy::Policy;
use eyas::sockets::ReportThrottle;
use eyas_relay::destination::{Destination, RefusedRequest, RequestRefusal};
use eyas_relay::handshake::ClientCredentials;
use eyas_relay::proxy_status::ErrorType;
use eyas_relay::rules::{ClientRules, DestinationRules};
use eyas_relay::via::lanes::ProxyLanes;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::ClientAdmission;
use crate::guesses::GuessBrake;
use crate::stats::{ProxyCounters, ProxyStats};
use crate::unanswered::UnansweredDestinations;
use crate::users::ProxyUsers;
use crate::{ProxyClientReport, ProxyLimits};

type ProxyObserver<T> = Option<Arc<dyn Fn(T) + Send + Sync>>;

/// The caller's functions for reports and notices.
#[derive(Clone, Default)]
pub(crate) struct ProxyObservers {
    pub(crate) reports: ProxyObserver<ProxyClientReport>,
    pub(crate) notices: ProxyObserver<String>,
}

impl std::fmt::Debug for ProxyObservers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyObservers").finish_non_exhaustive()
    }
}

/// The state that all clients share.
pub(crate) struct SharedProxy {
    pub(crate) endpoint: Endpoint,
    pub(crate) policy: Policy,
    pub(crate) rules: Arc<DestinationRules>,
    /// Who may use it, at the moment.
    pub(crate) users: RwLock<Option<Arc<ProxyUsers>>>,
    /// The wrong passwords of clients, with times since `epoch`.
    pub(crate) guesses: Mutex<GuessBrake>,
    /// The other proxy through which destinations are reached.
    pub(crate) via: Option<ProxyLanes>,
    pub(crate) limits: ProxyLimits,
    pub(crate) admission: Arc<ClientAdmission>,
    /// One permit for each UDP association or CONNECT-UDP tunnel that may still be opened.
    pub(crate) associations: Semaphore,
    /// Destinations that have not answered QUIC, with times since `epoch`.
    pub(crate) unanswered: Mutex<UnansweredDestinations>,
    pub(crate) epoch: Instant,
    pub(crate) counters: ProxyCounters,
    pub(crate) observers: ProxyObservers,
    /// Limits the notices about clients that cannot be accepted.
    pub(crate) throttle: ReportThrottle,
    /// Cancelled when no new clients are to be accepted.
    pub(crate) drain: CancellationToken,
    /// Cancelled when everything is to end now.
    pub(crate) abort: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl std::fmt::Debug for SharedProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedProxy").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl SharedProxy {
    /// Returns the counters so far.
    pub(crate) fn stats(&self) -> ProxyStats {
        let free = self.associations.available_permits();
        let associations = self.limits.associations.saturating_sub(free);
        self.counters.snapshot(self.admission.open(), associations)
    }

    /// Returns the user that these credentials name, or `None` if there need not be one.
    pub(crate) fn authenticate(
        &self,
        client: IpAddr,
        given: Option<&ClientCredentials>,
    ) -> Result<Option<String>, RequestRefusal> {
        let Some(users) = self.users() else { return Ok(None) };
        let given = given.ok_or(RequestRefusal::NoUser)?;
        let now = self.epoch.elapsed();
        let mut guesses = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = guesses.wait(now, client, &given.name) {
            return Err(RequestRefusal::TooManyGuesses(wait));
        }
        let is_user = users.contains(given);
        guesses.note(now, client, &given.name, is_user);
        match is_user {
            true => Ok(Some(String::from_utf8_lossy(&given.name).into_owned())),
            false => Err(RequestRefusal::NoUser),
        }
    }

    /// Returns the rules for a client at this address, on the present network.
    pub(crate) async fn rules_for(&self, client: IpAddr) -> ClientRules {
        ClientRules::new(&self.rules, client, self.endpoint.network_view().await)
    }

    /// Returns who may use it; `None` is anybody.
    pub(crate) fn users(&self) -> Option<Arc<ProxyUsers>> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns for how much longer datagrams to a destination are refused because it has not answered QUIC.
    pub(crate) fn unanswered_for(&self, destination: &Destination) -> Option<Duration> {
        let unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        unanswered.refused_for(self.epoch.elapsed(), destination)
    }

    /// Notes whether a QUIC connection that a client began this long ago was answered.
    pub(crate) fn note_quic(&self, destination: &Destination, age: Duration, is_answered: bool) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        unanswered.ended(self.epoch.elapsed(), destination, age, is_answered);
    }

    /// Returns the permit for one more UDP association or CONNECT-UDP tunnel.
    pub(crate) fn admit_udp(&self) -> Result<SemaphorePermit<'_>, RefusedRequest> {
        self.associations.try_acquire().map_err(|_| {
            let most = self.limits.associations;
            let text = format!("the proxy serves UDP to {most} clients, which is the limit");
            RefusedRequest::new(ErrorType::ConnectionLimitReached, RequestRefusal::Failed(text))
        })
    }

    /// Returns whether somebody is told how each client fared.
    pub(crate) fn has_reports(&self) -> bool {
        self.observers.reports.is_some()
    }

    pub(crate) fn report(&self, report: ProxyClientReport) {
        self.counters.note(&report);
        if let Some(observer) = &self.observers.reports {
            observer(report);
        }
    }

    pub(crate) fn notify(&self, notice: String) {
        if let Some(observer) = &self.observers.notices {
            observer(notice);
        }
    }
}
