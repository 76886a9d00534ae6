//! DNS, with one query per record type (HEv3 §4).
//!
//! ```text
//! Resolver ─▶ overrides ─▶ system::hosts ─▶ name_servers   our queries: one for each record type
//!                               └─────────▶ system::host_resolver   getaddrinfo, in threads of its own
//! ```
//!
//! The race asks for records of one type each and does not know who answers. `system` decides that
//! for each name, from files that it looks at before each query; `NameSource` says who answers, and
//! why. `encryption` decides which queries to servers are encrypted that the caller has not named so. NAT64 prefixes belong to a network, not to a resolver: see `network::pref64` and
//! `network::advertisements`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eyas_race::dns::{DnsAnswer, DnsFailure, DnsQuery};
use eyas_race::policy::AddressTable;
use hickory_proto::op::Message;
use tokio::sync::OnceCell;

use crate::{Error, Target};

#[cfg(feature = "encrypted-dns")]
mod encrypted;
#[cfg(feature = "encrypted-dns")]
mod encryption;
mod encryption_choice;
mod examination;
mod name_servers;
mod name_source;
mod overrides;
mod records;
mod service_parameters;
mod system;

#[cfg(feature = "encrypted-dns")]
pub(crate) use encryption::ResolverMemory;
use encryption_choice::EncryptionChoice;
use name_servers::{FoundRecords, NameServers, QueryTransport, ServerOptions};
use overrides::{AddressOverrides, normalised};
use system::SystemResolver;

#[cfg(feature = "encrypted-dns")]
pub use encryption::{
    DesignatedResolver, DnsProtocol, EncryptedDnsPolicy, EncryptedDnsPolicyError, ServerEncryption,
    UnencryptedReason,
};
pub use examination::{ServerAnswer, ServerExamination};
pub use name_source::NameSource;

/// How long a server that the caller names may take to answer before the query is retried.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// How often such a query is retried. The system's configuration has its own values.
const RETRIES: usize = 2;
/// The maximum number of records read from one answer; further ones are ignored.
pub(crate) const MAX_RECORDS: usize = 256;

/// A DNS resolver. Cheap to clone; clones share the cache and the connections.
#[derive(Clone, Debug)]
pub struct Resolver {
    shared: Arc<SharedResolver>,
    overrides: Arc<AddressOverrides>,
    is_optimistic: bool,
}

#[derive(Debug)]
struct SharedResolver {
    source: ResolverSource,
    /// What this host is configured with.
    system: SystemResolver,
    encryption: EncryptionChoice,
    /// The server that the caller named, at its addresses, once it was needed.
    named: Mutex<Arc<OnceCell<NameServers>>>,
}

/// The servers to query.
#[derive(Clone, Debug)]
enum ResolverSource {
    System,
    Server(SocketAddr),
    #[cfg(feature = "encrypted-dns")]
    Tls(SocketAddr, String),
    #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
    Quic(SocketAddr, String),
    #[cfg(feature = "encrypted-dns")]
    Https(encrypted::HttpsUrl),
}

impl Default for Resolver {
    fn default() -> Self {
        Self::system()
    }
}

impl Resolver {
    /// Resolves names as this host does: by its hosts file, its name servers and its search list, in
    /// the order of its `nsswitch.conf`, all of which are read again when they change; and by
    /// getaddrinfo(3) where that configuration is not understood whole.
    pub fn system() -> Self {
        Self::new(ResolverSource::System)
    }

    /// Uses this server, over UDP, and over TCP for answers that do not fit. Neither it nor the
    /// servers below are asked for names in the host's hosts file.
    pub fn server(address: SocketAddr) -> Self {
        Self::new(ResolverSource::Server(address))
    }

    /// Uses this server over TLS (DoT, RFC 7858; usually port 853). Its certificate must be valid
    /// for `name`.
    #[cfg(feature = "encrypted-dns")]
    pub fn tls(address: SocketAddr, name: impl Into<String>) -> Self {
        Self::new(ResolverSource::Tls(address, name.into()))
    }

    /// Uses this server over QUIC (DoQ, RFC 9250; usually port 853). Its certificate must be valid for `name`.
    #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
    pub fn quic(address: SocketAddr, name: impl Into<String>) -> Self {
        Self::new(ResolverSource::Quic(address, name.into()))
    }

    /// Sets the trust in encrypted resolvers. The default is the platform's trust. No other security parameters are
    /// used.
    #[cfg(feature = "encrypted-dns")]
    #[must_use]
    pub fn with_security(self, security: crate::SecurityParameters) -> Self {
        let encryption = EncryptionChoice { security, ..self.shared.encryption.clone() };
        self.with_encryption(encryption)
    }

    /// Sets whether queries to the system's name servers, or to [`Self::server`], are encrypted where that is not the
    /// caller's choice of a transport. The default is [`EncryptedDnsPolicy::System`].
    #[cfg(feature = "encrypted-dns")]
    #[must_use]
    pub fn with_encrypted_dns(self, policy: EncryptedDnsPolicy) -> Self {
        let encryption = EncryptionChoice { policy, ..self.shared.encryption.clone() };
        self.with_encryption(encryption)
    }

    #[cfg(feature = "encrypted-dns")]
    fn with_encryption(self, encryption: EncryptionChoice) -> Self {
        let shared = SharedResolver::new(self.shared.source.clone(), encryption);
        Self { shared: Arc::new(shared), ..self }
    }

    /// Sets whether a race to a peer that is authenticated may begin with records whose time to live is over, for a day
    /// at most, while they are asked for again (optimistic DNS, HEv3 §4.4, draft-gakiwate-dnsop-optimistic-dns). It is
    /// on by default: such a race handles answers that change, and a wrong address fails the handshake.
    #[must_use]
    pub fn with_optimistic_dns(self, is_optimistic: bool) -> Self {
        Self { is_optimistic, ..self }
    }

    /// Uses this server over HTTPS (DoH, RFC 8484), such as `https://dns.example/dns-query`. A host
    /// name in the URL is resolved by the system's resolver.
    #[cfg(feature = "encrypted-dns")]
    pub fn https(url: &str) -> Result<Self, Error> {
        encrypted::HttpsUrl::parse(url).map(|server| Self::new(ResolverSource::Https(server)))
    }

    fn new(source: ResolverSource) -> Self {
        let shared = SharedResolver::new(source, EncryptionChoice::default());
        let (shared, overrides) = (Arc::new(shared), Arc::default());
        Self { shared, overrides, is_optimistic: true }
    }

    /// Resolves `host` at `port` to these addresses without asking DNS, like curl's `--resolve`. A
    /// later call for the same host and port replaces the earlier one.
    #[must_use]
    pub fn overriding(self, host: &str, port: u16, addresses: Vec<IpAddr>) -> Self {
        let addresses = addresses.into_iter().map(|address| (address, 0)).collect();
        self.overriding_on_interfaces(host, port, addresses)
    }

    /// Like [`Self::overriding`], with the index of the interface for each address; 0 is none. Only
    /// link-local addresses need one.
    #[must_use]
    pub fn overriding_on_interfaces(
        mut self,
        host: &str,
        port: u16,
        addresses: Vec<(IpAddr, u32)>,
    ) -> Self {
        Arc::make_mut(&mut self.overrides).set(host, port, addresses);
        self
    }

    /// Returns the index of the interface on which the caller said that this address of a host is.
    pub(crate) fn scope_of(&self, host: &str, port: u16, ip: IpAddr) -> Option<u32> {
        self.overrides.scope_of(host, port, ip)
    }

    /// Returns whether there are override addresses for `host` at any port ([`Self::overriding`]).
    pub fn overrides(&self, host: &str) -> bool {
        self.overrides.has(host)
    }

    /// Returns the answer that is known without a query, if there is one.
    pub(crate) fn known(&self, query: &DnsQuery, port: u16) -> Option<DnsAnswer> {
        let records = self.overrides.answer(query, port)?;
        Some(DnsAnswer { id: query.id, records, protected: true, expired: false })
    }

    /// Returns an expired answer to a query, if there is one that may be used. Nothing is queried.
    pub(crate) fn expired(
        &self,
        query: &DnsQuery,
        port: u16,
        is_absolute: bool,
    ) -> Option<DnsAnswer> {
        if !self.is_optimistic {
            return None;
        }
        let FoundRecords { records, is_authentic } =
            self.shared.expired(query, port, is_absolute)?;
        Some(DnsAnswer { id: query.id, records, protected: is_authentic, expired: true })
    }

    /// Sends one query about a target with this port. A name with a dot at the end is not searched.
    /// Dropping the future cancels it.
    pub async fn query(&self, query: &DnsQuery, port: u16) -> DnsAnswer {
        self.query_as(query, port, query.name.ends_with('.')).await
    }

    /// Returns whether the name of this query of a race is taken as it is. So are all names that
    /// records refer to, which are complete in DNS.
    pub(crate) fn is_absolute(target: &Target, query: &DnsQuery) -> bool {
        let (_, host) = overrides::split_owner(&query.name, target.port);
        target.absolute || target.host.name() != Some(host)
    }

    /// Sends one query, about a name that is searched or not.
    pub(crate) async fn query_as(
        &self,
        query: &DnsQuery,
        port: u16,
        is_absolute: bool,
    ) -> DnsAnswer {
        if let Some(answer) = self.known(query, port) {
            return answer;
        }
        let answer = self.shared.answer(query, port, is_absolute);
        let FoundRecords { records, is_authentic } = answer.await;
        DnsAnswer { id: query.id, records, protected: is_authentic, expired: false }
    }

    /// Returns who answers for `host`, and why, as the configuration is now. A host with a dot at the
    /// end is not searched. Nothing is queried.
    pub fn source_of(&self, host: &str) -> NameSource {
        let name = normalised(host);
        if self.overrides.has(&name) {
            return NameSource::Override;
        }
        let system = self.shared.system.source_of(&name, host.ends_with('.'));
        match (&self.shared.source, system) {
            (ResolverSource::System, system) => system,
            (_, system @ (NameSource::HostsFile { .. } | NameSource::Localhost)) => system,
            (source, _) => NameSource::Server { server: source.to_string() },
        }
    }

    /// Returns the names that this host's search list makes of `host`, besides itself: those that a
    /// query may be answered for in its place. There are none for a host with a dot at the end, and
    /// where other servers than the system's are asked. Nothing is queried.
    pub fn searched_names(&self, host: &str) -> Vec<String> {
        let name = normalised(host);
        match self.shared.source {
            ResolverSource::System if !host.ends_with('.') && !self.overrides.has(&name) => {
                self.shared.system.searched_names(&name)
            }
            _ => Vec::new(),
        }
    }

    /// Passes on a DNS query of somebody else, in wire format, to the servers. Returns the response
    /// in the same format; its identifier is another one. A search list does not apply. Fails as a
    /// query of [`Self::query`] does, except that an absence of records is a response.
    pub async fn forward(&self, query: &[u8]) -> Result<Vec<u8>, DnsFailure> {
        let query = Message::from_vec(query).map_err(|_| DnsFailure::Malformed)?;
        self.shared.forward(&query).await
    }

    /// Returns what is known of the encryption of queries to each name server. Nothing is queried.
    #[cfg(feature = "encrypted-dns")]
    pub async fn encryption(&self) -> Vec<(SocketAddr, ServerEncryption)> {
        self.shared.encryption(false).await
    }

    /// Asks each name server for the encrypted resolver that it designates (RFC 9462), whatever the policy, connects to
    /// it, and returns what is known then. Names of the network and the policy decide which queries go there.
    #[cfg(feature = "encrypted-dns")]
    pub async fn examine_encryption(&self) -> Vec<(SocketAddr, ServerEncryption)> {
        self.shared.encryption(true).await
    }

    /// Remembers on which networks which encrypted resolvers work, unless another endpoint's memory has it already.
    #[cfg(feature = "encrypted-dns")]
    pub(crate) fn remember(&self, memory: ResolverMemory) {
        // The first one stays.
        let _ = self.shared.encryption.memory.set(memory);
    }

    /// Returns the resolver that the network provides, which knows about the network itself.
    pub(crate) fn of_network(&self) -> Self {
        if self.is_system() { self.clone() } else { Self::system() }
    }

    /// Returns whether the system's servers are used.
    pub(crate) fn is_system(&self) -> bool {
        matches!(self.shared.source, ResolverSource::System)
    }

    /// Returns the host's own table of address preferences, if it has one.
    pub(crate) fn address_table(&self) -> Option<Arc<AddressTable>> {
        self.shared.system.address_table()
    }

    /// Clears the cache, for example after a change of network.
    pub(crate) fn clear_cache(&self) {
        self.shared.forget_named();
        self.shared.system.clear_cache();
    }
}

impl SharedResolver {
    fn new(source: ResolverSource, encryption: EncryptionChoice) -> Self {
        // A server's own name has to be looked up before anything can be encrypted.
        let of_system = match source {
            ResolverSource::System => encryption.clone(),
            _ => EncryptionChoice::default(),
        };
        let system = SystemResolver::new(of_system);
        Self { source, system, encryption, named: Mutex::default() }
    }

    /// Returns the answer to a query, which is authentic if it came over a protected channel.
    async fn answer(&self, query: &DnsQuery, port: u16, is_absolute: bool) -> FoundRecords {
        let name = normalised(&query.name);
        let (prefix, host) = overrides::split_owner(&name, port);
        if matches!(self.source, ResolverSource::System) {
            let asked = system::AskedName { host, prefix, is_absolute };
            return self.system.query(asked, query.record_type).await;
        }
        if let Some(found) = self.system.hosts_answer(host, query.record_type) {
            return found;
        }
        let named = self.named();
        let found = match named.get_or_try_init(|| self.find()).await {
            Ok(servers) => servers.query(&name, query.record_type).await,
            Err(why) => FoundRecords { records: Err(why), is_authentic: false },
        };
        self.check(&named, found.records.as_ref().err());
        FoundRecords { is_authentic: self.source.is_protected() || found.is_authentic, ..found }
    }

    /// Returns an expired answer to a query.
    fn expired(&self, query: &DnsQuery, port: u16, is_absolute: bool) -> Option<FoundRecords> {
        let name = normalised(&query.name);
        let (prefix, host) = overrides::split_owner(&name, port);
        if matches!(self.source, ResolverSource::System) {
            let asked = system::AskedName { host, prefix, is_absolute };
            return self.system.expired(asked, query.record_type);
        }
        if self.system.hosts_answer(host, query.record_type).is_some() {
            return None;
        }
        let found = self.named().get()?.expired(&name, query.record_type)?;
        Some(FoundRecords {
            is_authentic: self.source.is_protected() || found.is_authentic,
            ..found
        })
    }

    /// Passes on a query of somebody else.
    async fn forward(&self, query: &Message) -> Result<Vec<u8>, DnsFailure> {
        if matches!(self.source, ResolverSource::System) {
            return self.system.forward(query).await;
        }
        let named = self.named();
        let response = match named.get_or_try_init(|| self.find()).await {
            Ok(servers) => servers.forward(query).await,
            Err(why) => Err(why),
        };
        self.check(&named, response.as_ref().err());
        response
    }

    /// Returns what is known of the encryption of each name server, after a look at what it designates if so wished.
    #[cfg(feature = "encrypted-dns")]
    async fn encryption(&self, examines: bool) -> Vec<(SocketAddr, ServerEncryption)> {
        let ResolverSource::Server(address) = self.source else {
            return match self.source {
                ResolverSource::System => self.system.encryption(examines).await,
                _ => Vec::new(),
            };
        };
        let named = self.named();
        let Ok(servers) = named.get_or_try_init(|| self.find()).await else { return Vec::new() };
        let known = match examines {
            true => servers.examine_encryption().await,
            false => servers.encryption(),
        };
        known.into_iter().map(|known| (address, known)).collect()
    }

    /// Returns the name servers that may be asked about a name unencrypted.
    async fn unencrypted_servers(&self, name: &str) -> Vec<SocketAddr> {
        let address = match self.source {
            ResolverSource::System => return self.system.unencrypted_servers(name),
            ResolverSource::Server(address) => address,
            #[cfg(feature = "encrypted-dns")]
            _ => return Vec::new(),
        };
        let named = self.named();
        let Ok(servers) = named.get_or_try_init(|| self.find()).await else { return Vec::new() };
        servers.ask_themselves(name).filter(|itself| *itself).map(|_| address).collect()
    }

    /// Returns the place of the server that the caller named.
    fn named(&self) -> Arc<OnceCell<NameServers>> {
        Arc::clone(&self.named.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the next query find the server that the caller named, and know nothing about it.
    fn forget_named(&self) {
        *self.named.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    }

    /// Finds the server that the caller named.
    async fn find(&self) -> Result<NameServers, DnsFailure> {
        let (timeout, attempts) = (QUERY_TIMEOUT, RETRIES + 1);
        let options = ServerOptions { timeout, attempts, ..ServerOptions::default() };
        if let ResolverSource::Server(address) = &self.source {
            return Ok(self.encryption.named_server(*address, options));
        }
        let transports = self.transports().await.map_err(|error| {
            tracing::warn!(%error, "no resolver");
            DnsFailure::Unreachable
        })?;
        Ok(NameServers::from_transports(transports, options))
    }

    /// Returns how to ask the server that the caller named, at each of its addresses.
    async fn transports(&self) -> Result<Vec<QueryTransport>, Error> {
        match &self.source {
            // Their servers are not those of the caller's transport.
            ResolverSource::System | ResolverSource::Server(_) => Ok(Vec::new()),
            #[cfg(feature = "encrypted-dns")]
            ResolverSource::Tls(address, name) => {
                Ok(vec![encrypted::over_tls(*address, name, &self.encryption.security)?])
            }
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            ResolverSource::Quic(address, name) => {
                Ok(vec![encrypted::over_quic(*address, name, &self.encryption.security)?])
            }
            #[cfg(feature = "encrypted-dns")]
            ResolverSource::Https(url) => {
                let EncryptionChoice { security, memory, .. } = &self.encryption;
                url.servers(&self.system, security, memory).await
            }
        }
    }

    /// Looks up the name of a server again before the next query if none of its addresses can be reached.
    fn check(&self, used: &Arc<OnceCell<NameServers>>, failure: Option<&DnsFailure>) {
        let is_lost = matches!(failure, Some(DnsFailure::Unreachable | DnsFailure::Timeout));
        if is_lost && self.source.is_looked_up() && Arc::ptr_eq(used, &self.named()) {
            self.forget_named();
        }
    }
}

impl fmt::Display for ResolverSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("the host's resolver"),
            Self::Server(address) => write!(f, "{address}"),
            #[cfg(feature = "encrypted-dns")]
            Self::Tls(address, name) => write!(f, "{address} over TLS as {name}"),
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            Self::Quic(address, name) => write!(f, "{address} over QUIC as {name}"),
            #[cfg(feature = "encrypted-dns")]
            Self::Https(server) => write!(f, "{server}"),
        }
    }
}

impl ResolverSource {
    /// Returns whether the server's address is that of a name.
    fn is_looked_up(&self) -> bool {
        match self {
            #[cfg(feature = "encrypted-dns")]
            Self::Https(url) => url.has_name(),
            _ => false,
        }
    }

    fn is_protected(&self) -> bool {
        match self {
            Self::System | Self::Server(_) => false,
            #[cfg(feature = "encrypted-dns")]
            Self::Tls(..) | Self::Https(_) => true,
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            Self::Quic(..) => true,
        }
    }
}

#[cfg(test)]
mod tests;
