//! DNS, with one query per record type (HEv3 §4).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas_race::dns::{Answer, DnsFailure, Query, RecordType, Records};
use hickory_resolver::config::ResolverOpts;
#[cfg(feature = "encrypted-dns")]
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::proto::rr::{Name, RecordType as WireType};
use tokio::sync::OnceCell;

mod connections;
#[cfg(feature = "encrypted-dns")]
mod encrypted;
mod failure;
#[cfg(feature = "encrypted-dns")]
mod https;
mod name_servers;
mod overrides;
mod records;
mod runtime;
mod service_parameters;

use connections::Connections;
use name_servers::{Found, NameServers, ServerOptions};
use overrides::Overrides;

/// Sends queries, and caches answers.
type Client = hickory_resolver::Resolver<Connections>;

/// How long a server that the caller names may take to answer before the query is retried.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// How often such a query is retried. The system's configuration has its own values.
const RETRIES: usize = 2;
/// The maximum number of answers in the cache.
const CACHED_ANSWERS: u64 = 512;
/// The maximum number of records read from one answer; further ones are ignored.
pub(crate) const MAX_RECORDS: usize = 256;

/// A DNS resolver. Cheap to clone; clones share the cache and the connections.
#[derive(Clone, Debug)]
pub struct Resolver {
    shared: Arc<Shared>,
    overrides: Arc<Overrides>,
}

#[derive(Debug)]
struct Shared {
    source: Source,
    #[cfg(feature = "encrypted-dns")]
    security: crate::SecurityParameters,
    client: OnceCell<Asked>,
}

/// Whom to ask.
#[derive(Debug)]
enum Asked {
    Servers(NameServers),
    Client(Client),
}

/// The servers to query.
#[derive(Clone, Debug)]
enum Source {
    System,
    Server(SocketAddr),
    #[cfg(feature = "encrypted-dns")]
    Tls(SocketAddr, String),
    #[cfg(feature = "encrypted-dns")]
    Https(encrypted::HttpsServer),
}

impl Default for Resolver {
    fn default() -> Self {
        Self::system()
    }
}

impl Resolver {
    /// Uses the servers that the system is configured with, and its hosts file.
    pub fn system() -> Self {
        Self::new(Source::System)
    }

    /// Uses this server, over UDP, and over TCP for answers that do not fit.
    pub fn server(address: SocketAddr) -> Self {
        Self::new(Source::Server(address))
    }

    /// Uses this server over TLS (DoT, RFC 7858; usually port 853). Its certificate must be valid
    /// for `name`.
    #[cfg(feature = "encrypted-dns")]
    pub fn tls(address: SocketAddr, name: impl Into<String>) -> Self {
        Self::new(Source::Tls(address, name.into()))
    }

    /// Sets the trust in DoT and DoH servers. The default is the platform's trust. No other
    /// security parameters are used.
    #[cfg(feature = "encrypted-dns")]
    #[must_use]
    pub fn with_security(self, security: crate::SecurityParameters) -> Self {
        let source = self.shared.source.clone();
        let shared = Arc::new(Shared { source, security, client: OnceCell::new() });
        Self { shared, ..self }
    }

    /// Uses this server over HTTPS (DoH, RFC 8484), such as `https://dns.example/dns-query`. A host
    /// name in the URL is resolved by the system's resolver.
    #[cfg(feature = "encrypted-dns")]
    pub fn https(url: &str) -> Result<Self, crate::Error> {
        encrypted::HttpsServer::parse(url).map(|server| Self::new(Source::Https(server)))
    }

    fn new(source: Source) -> Self {
        let shared = Shared {
            source,
            #[cfg(feature = "encrypted-dns")]
            security: crate::SecurityParameters::platform(),
            client: OnceCell::new(),
        };
        Self { shared: Arc::new(shared), overrides: Arc::new(Overrides::default()) }
    }

    /// Resolves `host` at `port` to these addresses without asking DNS, like curl's `--resolve`. A
    /// later call for the same host and port replaces the earlier one.
    #[must_use]
    pub fn overriding(mut self, host: &str, port: u16, addresses: Vec<IpAddr>) -> Self {
        Arc::make_mut(&mut self.overrides).set(host, port, addresses);
        self
    }

    /// Returns whether there are override addresses for `host` at any port ([`Self::overriding`]).
    pub fn overrides(&self, host: &str) -> bool {
        self.overrides.has(host)
    }

    /// Returns the answer that is known without a query, if there is one.
    pub(crate) fn known(&self, query: &Query, port: u16) -> Option<Answer> {
        let records = self.overrides.answer(query, port)?;
        Some(Answer { id: query.id, records, protected: true })
    }

    /// Sends one query about a target with this port. Dropping the future cancels it.
    pub async fn query(&self, query: &Query, port: u16) -> Answer {
        if let Some(answer) = self.known(query, port) {
            return answer;
        }
        let protected = self.shared.source.is_protected();
        let (records, is_authentic) = match self.client().await {
            Ok(Asked::Servers(servers)) => {
                let Found { records, is_authentic } =
                    servers.query(&query.name, query.record_type).await;
                (records, is_authentic)
            }
            Ok(Asked::Client(client)) => (lookup(client, query).await, false),
            Err(error) => {
                tracing::warn!(%error, "no resolver");
                (Err(DnsFailure::Unreachable), false)
            }
        };
        Answer { id: query.id, records, protected: protected || is_authentic }
    }

    /// Clears the cache, for example after a change of network.
    pub(crate) fn clear_cache(&self) {
        match self.shared.client.get() {
            Some(Asked::Servers(servers)) => servers.forget(),
            Some(Asked::Client(client)) => client.clear_cache(),
            None => {}
        }
    }

    async fn client(&self) -> Result<&Asked, NetError> {
        self.shared.client.get_or_try_init(|| self.shared.connect()).await
    }
}

impl Shared {
    async fn connect(&self) -> Result<Asked, NetError> {
        let mut builder = match &self.source {
            Source::System => Client::builder(Connections::default())?,
            Source::Server(address) => {
                let attempts = RETRIES + 1;
                let options =
                    ServerOptions { timeout: QUERY_TIMEOUT, attempts, ..ServerOptions::default() };
                return Ok(Asked::Servers(NameServers::new([*address], options)));
            }
            #[cfg(feature = "encrypted-dns")]
            Source::Tls(address, name) => builder_for(encrypted::tls_server(*address, name)),
            #[cfg(feature = "encrypted-dns")]
            Source::Https(server) => builder_for(server.resolve().await?),
        };
        configure(builder.options_mut());
        #[cfg(feature = "encrypted-dns")]
        if self.source.is_protected() {
            let verifier = self.security.server_verifier();
            let trust = verifier.and_then(|verifier| self.security.client_config(verifier));
            let trust = trust.map_err(|error| NetError::Msg(error.to_string()))?;
            builder = builder.with_tls_config(trust);
        }
        builder.build().map(Asked::Client)
    }
}

impl Source {
    fn is_protected(&self) -> bool {
        match self {
            Self::System | Self::Server(_) => false,
            #[cfg(feature = "encrypted-dns")]
            Self::Tls(..) | Self::Https(_) => true,
        }
    }
}

#[cfg(feature = "encrypted-dns")]
fn builder_for(server: NameServerConfig) -> hickory_resolver::ResolverBuilder<Connections> {
    let config = ResolverConfig::from_name_servers(vec![server]);
    let mut builder = Client::builder_with_config(config, Connections::default());
    builder.options_mut().timeout = QUERY_TIMEOUT;
    builder.options_mut().attempts = RETRIES;
    builder
}

fn configure(options: &mut ResolverOpts) {
    options.cache_size = CACHED_ANSWERS;
    // HTTPS records with hints and ECH outgrow 512 octets.
    options.edns0 = true;
}

async fn lookup(client: &Client, query: &Query) -> Result<Records, DnsFailure> {
    let name = owner_name(&query.name)?;
    let wire_type = match query.record_type {
        RecordType::Https => WireType::HTTPS,
        RecordType::Aaaa => WireType::AAAA,
        RecordType::A => WireType::A,
    };
    match client.lookup(name, wire_type).await {
        Ok(found) => records::read(query.record_type, found.answers()),
        Err(error) => Err(failure::classify(&error)),
    }
}

/// Converts a name. Search lists apply only to single labels: a name with a dot is looked up as it
/// is.
fn owner_name(name: &str) -> Result<Name, DnsFailure> {
    let mut name = Name::from_ascii(name).map_err(|_| DnsFailure::NoSuchName)?;
    if name.num_labels() > 1 {
        name.set_fqdn(true);
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
