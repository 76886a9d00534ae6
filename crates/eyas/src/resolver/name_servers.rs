//! Name servers as they are: asks them until one answers.
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | `message` | queries and responses; pure | RFC 1035, RFC 6891 |
//! | `exchange` | one query and the response to it, over UDP or TCP | RFC 5452, RFC 7766 |
//! | `tls`, `https`, `http3`, `quic` | the same over connections that queries share | RFC 7858, RFC 8484, RFC 9250 |
//! | `http_message` | what HTTP/2 and HTTP/3 share | RFC 8484 |
//! | `alternative`, `announced` | a server over HTTPS that has announced HTTP/3 | RFC 7838 |
//! | `designated` | a server whose encrypted resolver is asked instead | RFC 9462 §4.1 |
//! | `discovery` | finds that resolver | RFC 9462 §4 |
//! | `opening`, `attempt` | connects to it, by the first protocol and address that works | RFC 8305 |
//! | `host_trouble` | what keeps this host from asking | |
//! | `server` | one server: with EDNS or without it | RFC 6891 §7 |
//! | `cache` | answers that still hold, and records that have expired; pure | RFC 2308, RFC 8767 |
//!
//! Servers are asked in their order, and the next one when one refuses or cannot be reached, or when it has not
//! answered for the timeout. A question to a slow server stays open meanwhile, so that a late answer counts.

use std::net::SocketAddr;
#[cfg(feature = "encrypted-dns")]
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyas_race::dns::{DnsFailure, DnsRecords, RecordType};
use futures_util::StreamExt as _;
#[cfg(feature = "encrypted-dns")]
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use hickory_proto::op::Message;
use hickory_proto::rr::{Name, RecordType as WireType};
use tokio::sync::Semaphore;

#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
pub(super) mod alternative;
#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
mod announced;
#[cfg(feature = "encrypted-dns")]
mod attempt;
mod cache;
#[cfg(feature = "encrypted-dns")]
mod designated;
#[cfg(feature = "encrypted-dns")]
mod discovery;
mod exchange;
mod host_trouble;
#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
mod http3;
#[cfg(feature = "encrypted-dns")]
mod http_message;
#[cfg(feature = "encrypted-dns")]
pub(super) mod https;
mod message;
#[cfg(feature = "encrypted-dns")]
mod opening;
#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
pub(super) mod quic;
mod server;
#[cfg(feature = "encrypted-dns")]
mod shared_connection;
#[cfg(feature = "encrypted-dns")]
pub(super) mod tls;

#[cfg(feature = "encrypted-dns")]
use super::encryption::{EncryptionSetting, ServerEncryption};
use super::records;
use cache::AnswerCache;
#[cfg(feature = "encrypted-dns")]
use designated::{DesignatedServer, UnencryptedServer};
use host_trouble::HostTrouble;
use message::{DnsQuestion, DnsResponse, MAX_ALIASES, ResponseContent};
use server::NameServer;

pub(super) use server::QueryTransport;

/// The maximum number of servers. resolv.conf(5) allows three.
const MAX_SERVERS: usize = 8;
/// The maximum of [`ServerOptions::attempts`] (resolv.conf(5)).
const MAX_ATTEMPTS: usize = 5;
/// The maximum of [`ServerOptions::timeout`] (resolv.conf(5)).
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// How servers are asked. The fields are options of resolv.conf(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerOptions {
    /// How long a server may take before the next one is asked (`timeout`).
    pub(crate) timeout: Duration,
    /// How often each server is asked (`attempts`).
    pub(crate) attempts: usize,
    /// Whether each question starts with another server (`rotate`).
    pub(crate) rotate: bool,
    /// Whether queries have an OPT record, unless the server does not take them. HTTPS records outgrow 512 octets, so
    /// this does not depend on `edns0`.
    pub(crate) edns: bool,
    /// Whether all queries go over TCP (`use-vc`).
    pub(crate) use_tcp: bool,
    /// Whether the queries for the addresses of both families are sent one after the other (`single-request`). Each
    /// query has a socket of its own in any case (`single-request-reopen`).
    pub(crate) single_request: bool,
    /// Whether the server's claim to have validated an answer counts (`trust-ad`).
    pub(crate) trust_ad: bool,
}

impl Default for ServerOptions {
    /// The defaults of resolv.conf(5).
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            attempts: 2,
            rotate: false,
            edns: true,
            use_tcp: false,
            single_request: false,
            trust_ad: false,
        }
    }
}

/// What a server has answered about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRecords {
    pub(crate) records: Result<DnsRecords, DnsFailure>,
    /// Whether a server that is trusted with it has validated the answer, or one that has proved who it is has sent it.
    pub(crate) is_authentic: bool,
}

/// Why a server was of no use. The later ones say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServerTrouble {
    OfThisHost(HostTrouble),
    Unreachable,
    Silent,
    Malformed,
    /// It tried to answer (SERVFAIL).
    Failed,
    Refused,
    /// Nothing was sent, because it would not have been encrypted.
    #[cfg(feature = "encrypted-dns")]
    Unencrypted(UnencryptedServer),
}

/// A server of the configuration.
#[derive(Debug)]
struct ConfiguredServer {
    itself: NameServer,
    /// Its encrypted resolver, if one may be asked in its place.
    #[cfg(feature = "encrypted-dns")]
    designated: Option<DesignatedServer>,
}

impl ConfiguredServer {
    fn new(transport: QueryTransport) -> Self {
        Self {
            itself: NameServer::new(transport),
            #[cfg(feature = "encrypted-dns")]
            designated: None,
        }
    }

    /// Asks the server, or its encrypted resolver, until it answers or cannot be asked.
    async fn ask(
        &self,
        question: &DnsQuestion,
        options: &ServerOptions,
    ) -> Result<DnsResponse, ServerTrouble> {
        #[cfg(feature = "encrypted-dns")]
        if let Some(designated) = &self.designated
            && let Some(response) = designated.ask(question, options).await?
        {
            return Ok(response);
        }
        self.itself.ask(question, options).await
    }

    /// Returns whether the server itself may be asked about a name.
    #[cfg_attr(
        not(feature = "encrypted-dns"),
        expect(unused_variables, clippy::unused_self, reason = "nothing is encrypted then")
    )]
    fn may_be_asked_itself(&self, name: &str) -> bool {
        #[cfg(feature = "encrypted-dns")]
        if let Some(designated) = &self.designated {
            return designated.may_be_asked_itself(name);
        }
        true
    }

    fn forget(&self) {
        #[cfg(feature = "encrypted-dns")]
        if let Some(designated) = &self.designated {
            designated.forget();
        }
        self.itself.forget();
    }
}

/// Name servers, of which any will do.
#[derive(Debug)]
pub(crate) struct NameServers {
    servers: Vec<ConfiguredServer>,
    options: ServerOptions,
    cache: Mutex<AnswerCache>,
    /// The server at which the next question starts.
    first: AtomicUsize,
    /// Held by a query for addresses if only one may be under way.
    turn: Semaphore,
}

impl NameServers {
    /// Asks these servers, in this order. IPv6 addresses keep their scope.
    pub(crate) fn new(
        servers: impl IntoIterator<Item = SocketAddr>,
        options: ServerOptions,
    ) -> Self {
        Self::from_transports(servers.into_iter().map(QueryTransport::from), options)
    }

    /// Asks these servers, in this order, or their encrypted resolvers by this setting.
    #[cfg(feature = "encrypted-dns")]
    pub(crate) fn with_encryption(
        servers: impl IntoIterator<Item = SocketAddr>,
        options: ServerOptions,
        setting: &Arc<EncryptionSetting>,
    ) -> Self {
        let server = |server: SocketAddr| ConfiguredServer {
            designated: Some(DesignatedServer::new(server, Arc::clone(setting))),
            ..ConfiguredServer::new(server.into())
        };
        Self::from_servers(servers.into_iter().map(server), options)
    }

    /// Asks these servers, in this order.
    pub(super) fn from_transports(
        servers: impl IntoIterator<Item = QueryTransport>,
        options: ServerOptions,
    ) -> Self {
        Self::from_servers(servers.into_iter().map(ConfiguredServer::new), options)
    }

    fn from_servers(
        servers: impl IntoIterator<Item = ConfiguredServer>,
        mut options: ServerOptions,
    ) -> Self {
        options.attempts = options.attempts.clamp(1, MAX_ATTEMPTS);
        options.timeout = options.timeout.clamp(Duration::from_millis(1), MAX_TIMEOUT);
        Self {
            servers: servers.into_iter().take(MAX_SERVERS).collect(),
            options,
            cache: Mutex::default(),
            first: AtomicUsize::new(0),
            turn: Semaphore::new(1),
        }
    }

    /// Returns the records of an absolute name, with or without a trailing dot.
    pub(crate) async fn query(&self, name: &str, record_type: RecordType) -> FoundRecords {
        let failed = |why| FoundRecords { records: Err(why), is_authentic: false };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if let Some(found) = self.cache().get(Instant::now(), &name, record_type) {
            return found;
        }
        let clears = self.cache().clears();
        let Some(wire_name) = wire_name(&name) else { return failed(DnsFailure::NoSuchName) };
        let mut question = DnsQuestion::new(wire_name, wire_type(record_type));
        question.authentic_data = self.options.trust_ad;
        let is_one_at_a_time = self.options.single_request && record_type != RecordType::Https;
        let turn = if is_one_at_a_time { self.turn.acquire().await.ok() } else { None };
        let (found, time_to_live) = match self.look_up(question, record_type).await {
            Ok(found) => found,
            Err(why) => {
                // Whatever failed was encrypted: RFC 9460 §3.1 asks for care with such a failure, too.
                let is_authentic = self.ask_themselves(&name).all(|itself| !itself);
                return FoundRecords { is_authentic, ..failed(why) };
            }
        };
        drop(turn);
        let mut cache = self.cache();
        if let Some(time_to_live) = time_to_live.filter(|_| cache.clears() == clears) {
            cache.insert(Instant::now(), (name, record_type), found.clone(), time_to_live);
        }
        found
    }

    /// Returns the records of an absolute name in lower case, if they have expired, but not long ago. Nothing is asked.
    pub(super) fn expired(&self, name: &str, record_type: RecordType) -> Option<FoundRecords> {
        self.cache().expired(Instant::now(), name, record_type)
    }

    /// Returns whether such a name is known to have addresses, or to have had some not long ago.
    pub(super) fn has_addresses(&self, name: &str) -> bool {
        let (cache, now) = (self.cache(), Instant::now());
        [RecordType::Aaaa, RecordType::A].iter().any(|kind| cache.has_records(now, name, *kind))
    }

    /// Keeps an answer whose time to live is over.
    #[cfg(test)]
    pub(super) fn insert_expired(&self, name: &str, found: FoundRecords, kind: RecordType) {
        let shortest = Duration::from_nanos(1);
        self.cache().insert(Instant::now(), (name.to_owned(), kind), found, shortest);
        std::thread::sleep(shortest);
    }

    /// Passes on a query of somebody else, and returns the response as it came.
    pub(crate) async fn forward(&self, query: &Message) -> Result<Vec<u8>, DnsFailure> {
        let question = DnsQuestion::from_message(query).ok_or(DnsFailure::Malformed)?;
        self.ask(&question).await.map(|response| response.octets)
    }

    /// Returns for each server whether queries about a name may go to the server itself, unencrypted. The name is in lower
    /// case and without a dot at its end.
    pub(super) fn ask_themselves(&self, name: &str) -> impl Iterator<Item = bool> {
        self.servers.iter().map(move |server| server.may_be_asked_itself(name))
    }

    /// Returns what is known of the encryption of each server.
    #[cfg(feature = "encrypted-dns")]
    pub(super) fn encryption(&self) -> Vec<ServerEncryption> {
        let designated = self.servers.iter().filter_map(|server| server.designated.as_ref());
        designated.map(DesignatedServer::encryption).collect()
    }

    /// Looks for the encrypted resolver of each server, and returns what is known then.
    #[cfg(feature = "encrypted-dns")]
    pub(super) async fn examine_encryption(&self) -> Vec<ServerEncryption> {
        let designated = self.servers.iter().filter_map(|server| server.designated.as_ref());
        join_all(designated.map(DesignatedServer::examine)).await
    }

    /// Forgets answers, and what is known about the servers: they may be others on another network.
    pub(crate) fn forget(&self) {
        self.cache().clear();
        self.servers.iter().for_each(ConfiguredServer::forget);
    }

    /// Asks about the name, and about what it is an alias for. Returns for how long the answer may be kept, too.
    async fn look_up(
        &self,
        mut question: DnsQuestion,
        record_type: RecordType,
    ) -> Result<(FoundRecords, Option<Duration>), DnsFailure> {
        let mut longest = Duration::MAX;
        let mut is_authentic = true;
        for _ in 0..=MAX_ALIASES {
            let response = self.ask(&question).await?;
            let is_validated = self.options.trust_ad && response.is_authentic;
            is_authentic &= is_validated || response.is_protected;
            let (records, time_to_live) = match response.content(&question) {
                ResponseContent::Records(found, time_to_live) => {
                    let may_be_kept = (!response.is_truncated).then_some(time_to_live);
                    (records::read(record_type, &found), may_be_kept)
                }
                ResponseContent::Alias(target, time_to_live) => {
                    longest = longest.min(time_to_live);
                    question.name = target;
                    continue;
                }
                ResponseContent::Nothing(time_to_live) => {
                    let exists = response.code == message::code::NO_ERROR;
                    let why = if exists { DnsFailure::NoData } else { DnsFailure::NoSuchName };
                    (Err(why), time_to_live)
                }
                ResponseContent::Malformed => return Err(DnsFailure::Malformed),
            };
            let time_to_live = time_to_live.map(|time_to_live| time_to_live.min(longest));
            return Ok((FoundRecords { records, is_authentic }, time_to_live));
        }
        // A circle, or as good as one.
        Err(DnsFailure::ServerFailure)
    }

    /// Asks the servers until one answers.
    async fn ask(&self, question: &DnsQuestion) -> Result<DnsResponse, DnsFailure> {
        let order = self.order();
        let mut asked = FuturesUnordered::new();
        let (mut worst, mut lame) = (None, None);
        let turns = order.iter().cycle().take(order.len() * self.options.attempts);
        for (turn, server) in turns.enumerate() {
            let since = Instant::now();
            asked.push(async move { (turn, server.ask(question, &self.options).await) });
            let timeout = tokio::time::sleep(self.options.timeout);
            tokio::pin!(timeout);
            loop {
                let (of, answer) = tokio::select! {
                    Some(answer) = asked.next() => answer,
                    () = &mut timeout => {
                        server.itself.set_silent(since);
                        worst = worst.max(Some(ServerTrouble::Silent));
                        break;
                    }
                };
                match answer {
                    Ok(response) if response.is_lame(question) => lame = Some(response),
                    Ok(response) if is_malformed(&response, question) => {
                        worst = worst.max(Some(ServerTrouble::Malformed));
                    }
                    Ok(response) => return Ok(response),
                    Err(trouble) => worst = worst.max(Some(trouble)),
                }
                // If an earlier one was of no use, this one may still be.
                if of == turn {
                    break;
                }
            }
        }
        lame.ok_or(match worst {
            None | Some(ServerTrouble::Unreachable) => DnsFailure::Unreachable,
            Some(ServerTrouble::OfThisHost(trouble)) => DnsFailure::Local(trouble.to_string()),
            Some(ServerTrouble::Silent) => DnsFailure::Timeout,
            Some(ServerTrouble::Malformed) => DnsFailure::Malformed,
            Some(ServerTrouble::Failed | ServerTrouble::Refused) => DnsFailure::ServerFailure,
            #[cfg(feature = "encrypted-dns")]
            Some(ServerTrouble::Unencrypted(UnencryptedServer { server, why })) => {
                DnsFailure::Local(format!(
                    "encrypted DNS is required, and the name server {server} has none: {why}"
                ))
            }
        })
    }

    /// Returns the servers in the order in which to ask them: those that did not answer of late come last.
    fn order(&self) -> Vec<&ConfiguredServer> {
        let mut order: Vec<&ConfiguredServer> = self.servers.iter().collect();
        if self.options.rotate && !order.is_empty() {
            let first = self.first.fetch_add(1, Ordering::Relaxed);
            let len = order.len();
            order.rotate_left(first % len);
        }
        order.sort_by_key(|server| server.itself.is_silent());
        order
    }

    fn cache(&self) -> MutexGuard<'_, AnswerCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the wanted records are there and cannot be read; another server may do better. Records of other
/// types are not read here.
fn is_malformed(response: &DnsResponse, question: &DnsQuestion) -> bool {
    [WireType::HTTPS, WireType::AAAA, WireType::A].contains(&question.kind)
        && response.content(question) == ResponseContent::Malformed
}

/// Converts a name. Labels may have any octets (RFC 2181 §11): names with underscores, or hyphens at odd places, exist.
fn wire_name(name: &str) -> Option<Name> {
    match name {
        "" => Some(Name::root()),
        name => Name::from_labels(name.split('.').map(str::as_bytes)).ok(),
    }
}

const fn wire_type(record_type: RecordType) -> WireType {
    match record_type {
        RecordType::Https => WireType::HTTPS,
        RecordType::Aaaa => WireType::AAAA,
        RecordType::A => WireType::A,
    }
}

#[cfg(test)]
mod tests;
