//! A server whose queries go to the encrypted resolver that it designates, as far as the policy has it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _, Shared};

use super::super::encryption::way::{EncryptionMode, QueryWay, ResolverState};
use super::super::encryption::{
    DesignatedResolver, EncryptionSetting, ServerEncryption, UnencryptedReason,
};
use super::discovery::{DiscoveryPurpose, ResolverDiscovery, discover};
use super::message::{DnsQuestion, DnsResponse};
use super::opening::FoundResolver;
use super::{ServerOptions, ServerTrouble};

/// For how long a query that may go unencrypted waits for the discovery: as long as one question of a network's own
/// server and three round trips to its neighbour usually take.
const WAIT: Duration = Duration::from_millis(300);
/// How long an encrypted resolver may be silent before a query that may go unencrypted does, at most.
const SILENCE: Duration = Duration::from_secs(2);
/// How long a resolver that did not answer is not asked if queries may go unencrypted.
const WITHOUT_RESOLVER: Duration = Duration::from_mins(5);

/// A discovery that is under way or over, for everybody who waits for it.
type SharedDiscovery = Shared<BoxFuture<'static, Arc<ResolverDiscovery>>>;

/// A server, with what is known of its encrypted resolver.
#[derive(Debug)]
pub(super) struct DesignatedServer {
    server: SocketAddr,
    setting: Arc<EncryptionSetting>,
    mode: EncryptionMode,
    state: Mutex<DesignatedState>,
}

#[derive(Debug, Default)]
struct DesignatedState {
    /// The latest discovery, and when it began.
    discovery: Option<(Instant, SharedDiscovery)>,
    /// When the encrypted resolver last failed to answer.
    silent_at: Option<Instant>,
}

impl DesignatedState {
    /// Returns whether the encrypted resolver did not answer of late.
    fn is_silent(&self) -> bool {
        self.silent_at.is_some_and(|at| at.elapsed() < WITHOUT_RESOLVER)
    }
}

/// Returns whether a resolver with this trouble has to be looked for again.
const fn is_gone(trouble: &ServerTrouble) -> bool {
    !matches!(trouble, ServerTrouble::Refused | ServerTrouble::Failed | ServerTrouble::Malformed)
}

/// Why a query was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnencryptedServer {
    pub(super) server: SocketAddr,
    pub(super) why: UnencryptedReason,
}

/// A query to an encrypted resolver, from which follows whether that is lost: also if whoever asks gives up.
struct WaitingQuery<'a> {
    server: &'a DesignatedServer,
    discovery: &'a Arc<ResolverDiscovery>,
    found: &'a FoundResolver,
    since: Instant,
    is_over: bool,
}

impl<'a> WaitingQuery<'a> {
    fn new(
        server: &'a DesignatedServer,
        discovery: &'a Arc<ResolverDiscovery>,
        found: &'a FoundResolver,
    ) -> Self {
        Self { server, discovery, found, since: Instant::now(), is_over: false }
    }

    /// Notes that there is an answer, or trouble.
    fn end(&mut self, trouble: Option<&ServerTrouble>) {
        self.is_over = true;
        if trouble.is_some_and(is_gone) {
            self.lose();
        }
    }

    /// Takes the resolver to be lost if it has answered nothing meanwhile. It may be silent about one name alone, because
    /// somebody behind it is.
    fn lose(&self) {
        if !self.found.server.has_answered_since(self.since) {
            self.found.note_silence();
            self.server.has_lost_resolver(self.discovery);
        }
    }
}

impl Drop for WaitingQuery<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.since.elapsed() >= SILENCE {
            self.lose();
        }
    }
}

impl DesignatedServer {
    pub(super) fn new(server: SocketAddr, setting: Arc<EncryptionSetting>) -> Self {
        let mode = setting.mode(server);
        Self { server, setting, mode, state: Mutex::default() }
    }

    /// Forgets what was found: it may be another server on another network.
    pub(super) fn forget(&self) {
        *self.state() = DesignatedState::default();
    }

    /// Returns whether the server itself may be asked about a name, which is in lower case and without a dot at its end.
    pub(super) fn may_be_asked_itself(&self, name: &str) -> bool {
        let way = self.mode.way(self.setting.owner(name), ResolverState::Absent);
        self.setting.is_encrypting_stub(self.server) || way == QueryWay::Clear
    }

    /// Asks the encrypted resolver, or returns `None` if the server itself is to be asked.
    pub(super) async fn ask(
        &self,
        question: &DnsQuestion,
        options: &ServerOptions,
    ) -> Result<Option<DnsResponse>, ServerTrouble> {
        let name = question.name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
        let (mode, owner) = (self.mode, self.setting.owner(&name));
        if self.setting.is_encrypting_stub(self.server) || !mode.asks_resolver(owner) {
            return Ok(None);
        }
        let discovery = self.discovered().await;
        let found = discovery.as_ref().and_then(|discovery| discovery.found.as_ref().ok());
        let state = match (&discovery, found) {
            (None, _) => ResolverState::Sought,
            (Some(_), None) => ResolverState::Absent,
            (_, Some(found)) => ResolverState::Found { is_verified: found.proof.is_verified() },
        };
        match (mode.way(owner, state), &discovery, found) {
            (QueryWay::Clear, ..) => Ok(None),
            (QueryWay::Encrypted, Some(discovery), Some(found)) => {
                let mut waiting = WaitingQuery::new(self, discovery, found);
                let answer = self.ask_resolver(found, question, options).await;
                waiting.end(answer.as_ref().err());
                match (answer, mode) {
                    // "It SHOULD NOT use unencrypted DNS until the SVCB record expires, unless verification of the
                    // resolver fails" (RFC 9462 §7): asked in the clear, a name whose signatures are wrong would even
                    // get the answer that this resolver has rejected.
                    (Err(trouble @ ServerTrouble::Failed), _) if found.proof.is_verified() => {
                        Err(trouble)
                    }
                    (Err(_), EncryptionMode::Auto | EncryptionMode::Off) => Ok(None),
                    (answer, _) => answer.map(Some),
                }
            }
            (QueryWay::Refused | QueryWay::Encrypted, ..) => {
                let why = discovery.and_then(|discovery| discovery.found.as_ref().err().copied());
                let why = why.unwrap_or(UnencryptedReason::NotVerified);
                Err(ServerTrouble::Unencrypted(UnencryptedServer { server: self.server, why }))
            }
        }
    }

    /// Looks for the encrypted resolver, whatever the policy says, and returns what is known then.
    pub(super) async fn examine(&self) -> ServerEncryption {
        self.discovery(DiscoveryPurpose::Examination).1.await;
        self.encryption()
    }

    /// Returns what is known of the encryption of queries.
    pub(super) fn encryption(&self) -> ServerEncryption {
        let state = self.state();
        let discovery = state.discovery.as_ref().and_then(|(_, discovery)| discovery.peek());
        match discovery.map(|discovery| &discovery.found) {
            None if self.mode == EncryptionMode::Off => ServerEncryption::Off,
            None if state.is_silent() => ServerEncryption::Absent(UnencryptedReason::NotReachable),
            None => ServerEncryption::Unknown,
            Some(Err(why)) => ServerEncryption::Absent(*why),
            Some(Ok(found)) => ServerEncryption::Designated(DesignatedResolver {
                name: found.endpoint.name.clone(),
                protocol: found.endpoint.protocol,
                address: found.endpoint.address,
                is_verified: found.proof.is_verified(),
                is_remembered: found.is_remembered,
            }),
        }
    }

    /// Asks the encrypted resolver.
    async fn ask_resolver(
        &self,
        found: &FoundResolver,
        question: &DnsQuestion,
        options: &ServerOptions,
    ) -> Result<DnsResponse, ServerTrouble> {
        let answer = found.server.ask(question, options);
        let mut response = match self.mode {
            EncryptionMode::Required => answer.await?,
            EncryptionMode::Auto | EncryptionMode::Off => {
                let limit = SILENCE.min(options.timeout / 2);
                let answer = tokio::time::timeout(limit, answer).await;
                answer.unwrap_or(Err(ServerTrouble::Silent))?
            }
        };
        found.note_answer();
        response.is_protected = found.proof.is_verified();
        Ok(response)
    }

    /// Makes the next query look for the resolver again; after a while if queries may go unencrypted. Does nothing if
    /// another one is known or looked for since: the network may have changed.
    fn has_lost_resolver(&self, lost: &Arc<ResolverDiscovery>) {
        let mut state = self.state();
        let latest = state.discovery.as_ref().and_then(|(_, discovery)| discovery.peek());
        if latest.is_some_and(|latest| Arc::ptr_eq(latest, lost)) {
            tracing::debug!(server = %self.server, "the encrypted resolver does not answer");
            *state = DesignatedState { discovery: None, silent_at: Some(Instant::now()) };
        }
    }

    /// Returns what was found. `None` if it is not known in time, where queries may go unencrypted.
    async fn discovered(&self) -> Option<Arc<ResolverDiscovery>> {
        if self.mode == EncryptionMode::Required {
            return Some(self.discovery(DiscoveryPurpose::Query).1.await);
        }
        if self.state().is_silent() {
            return None;
        }
        let (began, discovery) = self.discovery(DiscoveryPurpose::Query);
        // Only the queries of its first moments wait.
        tokio::time::timeout_at((began + WAIT).into(), discovery).await.ok()
    }

    /// Returns the discovery, which goes on when nobody waits for it, and when it began.
    fn discovery(&self, purpose: DiscoveryPurpose) -> (Instant, SharedDiscovery) {
        let mut state = self.state();
        let latest = state.discovery.as_ref();
        let holds = |(_, discovery): &&(Instant, SharedDiscovery)| {
            discovery.peek().is_none_or(|discovery| Instant::now() < discovery.until)
        };
        if let Some(latest) = latest.filter(holds) {
            return latest.clone();
        }
        let task = tokio::spawn(discover(self.server, Arc::clone(&self.setting), purpose));
        // Without its runtime nobody asks any more.
        let found = |found: Result<_, _>| {
            let lost = |_| ResolverDiscovery::failed(UnencryptedReason::NotAnswered);
            Arc::new(found.unwrap_or_else(lost))
        };
        let discovery = task.map(found).boxed().shared();
        state.discovery.insert((Instant::now(), discovery)).clone()
    }

    fn state(&self) -> MutexGuard<'_, DesignatedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
