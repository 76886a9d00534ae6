//! Examines each name server by itself: which of its answers a user depends on arrive?

use std::net::{Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use eyas_race::dns::{DnsFailure, DnsRecords, RecordType, https_owner};
use futures_util::future::join_all;

use super::Resolver;
use super::name_servers::{NameServers, ServerOptions};
use super::overrides::normalised;
use crate::network::nat64_prefixes;

/// The ports whose HTTPS records are owned by the host's own name (RFC 9460 §9.1, §9.5).
const DEFAULT_PORTS: [u16; 2] = [443, 80];

/// What one name server (RFC 1034 §2.4) answers about a host, as [`Resolver::examine_servers`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerExamination {
    /// The server.
    pub server: SocketAddr,
    /// The IPv4 addresses. Like the next two, they are asked for in a datagram, and over TCP as well only if the
    /// answer does not fit into one.
    pub a: ServerAnswer,
    /// The IPv6 addresses.
    pub aaaa: ServerAnswer,
    /// The HTTPS records (RFC 9460).
    pub https: ServerAnswer,
    /// The IPv4 addresses, asked for over TCP (RFC 7766).
    pub over_tcp: ServerAnswer,
}

/// The answer of a name server to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerAnswer {
    /// The records, or why there are none.
    pub records: Result<DnsRecords, DnsFailure>,
    /// How long the server took, or was waited for.
    pub took: Duration,
}

impl ServerExamination {
    /// Returns the NAT64 prefixes that the server's DNS64 has used for the IPv6 addresses (RFC 7050 §3), if the host
    /// is `ipv4only.arpa`.
    pub fn nat64_prefixes(&self) -> Vec<(Ipv6Addr, u8)> {
        match &self.aaaa.records {
            Ok(DnsRecords::Aaaa(addresses)) => nat64_prefixes(addresses),
            _ => Vec::new(),
        }
    }
}

impl Resolver {
    /// Asks each server that queries go to about `host`, all at the same time, and waits at most this long for each
    /// answer. The search list, the hosts file and the cache have no part in it; HTTPS records are those of a service
    /// at `port`. These questions are unencrypted: empty where that must not be, and over TLS, QUIC or HTTPS.
    pub async fn examine_servers(
        &self,
        host: &str,
        port: u16,
        limit: Duration,
    ) -> Vec<ServerExamination> {
        let servers = self.shared.unencrypted_servers(&normalised(host)).await;
        let service = match DEFAULT_PORTS.contains(&port) {
            true => host.to_owned(),
            false => https_owner(host, port),
        };
        join_all(servers.into_iter().map(|server| examine(server, host, &service, limit))).await
    }
}

async fn examine(
    server: SocketAddr,
    host: &str,
    service: &str,
    limit: Duration,
) -> ServerExamination {
    let options = |use_tcp| ServerOptions {
        timeout: limit,
        attempts: 1,
        use_tcp,
        ..ServerOptions::default()
    };
    let datagrams = NameServers::new([server], options(false));
    let stream = NameServers::new([server], options(true));
    let (a, aaaa, https, over_tcp) = tokio::join!(
        ask(&datagrams, host, RecordType::A, limit),
        ask(&datagrams, host, RecordType::Aaaa, limit),
        ask(&datagrams, service, RecordType::Https, limit),
        ask(&stream, host, RecordType::A, limit),
    );
    ServerExamination { server, a, aaaa, https, over_tcp }
}

async fn ask(
    servers: &NameServers,
    name: &str,
    record_type: RecordType,
    limit: Duration,
) -> ServerAnswer {
    let since = Instant::now();
    // Each alias of a name is a question of its own.
    let found = tokio::time::timeout(limit, servers.query(name, record_type)).await;
    let records = found.map_or(Err(DnsFailure::Timeout), |found| found.records);
    ServerAnswer { records, took: since.elapsed() }
}
