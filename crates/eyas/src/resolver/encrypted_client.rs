//! Sends queries over TLS and over HTTPS, and caches the answers.

use eyas_race::dns::{DnsFailure, RecordType, Records};
use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::proto::rr::{Name, RecordType as WireType};

use super::connections::Connections;
use super::{QUERY_TIMEOUT, RETRIES, failure, records};
use crate::SecurityParameters;

/// The client of a server.
pub(super) type Client = hickory_resolver::Resolver<Connections>;

/// The maximum number of answers in the cache.
const CACHED_ANSWERS: u64 = 512;

/// Returns the client of a server that is trusted by these parameters.
pub(super) fn client(
    server: NameServerConfig,
    security: &SecurityParameters,
) -> Result<Client, NetError> {
    let config = ResolverConfig::from_name_servers(vec![server]);
    let mut builder = Client::builder_with_config(config, Connections::default());
    let options = builder.options_mut();
    (options.timeout, options.attempts) = (QUERY_TIMEOUT, RETRIES);
    options.cache_size = CACHED_ANSWERS;
    // HTTPS records with hints and ECH outgrow 512 octets.
    options.edns0 = true;
    // It is read as glibc reads it.
    options.use_hosts_file = ResolveHosts::Never;
    let verifier = security.server_verifier();
    let trust = verifier.and_then(|verifier| security.client_config(verifier));
    let trust = trust.map_err(|error| NetError::Msg(error.to_string()))?;
    builder.with_tls_config(trust).build()
}

/// Sends one query about a name as it is.
pub(super) async fn look_up(
    client: &Client,
    name: &str,
    record_type: RecordType,
) -> Result<Records, DnsFailure> {
    let mut name = Name::from_ascii(name).map_err(|_| DnsFailure::NoSuchName)?;
    name.set_fqdn(true);
    let wire_type = match record_type {
        RecordType::Https => WireType::HTTPS,
        RecordType::Aaaa => WireType::AAAA,
        RecordType::A => WireType::A,
    };
    match client.lookup(name, wire_type).await {
        Ok(found) => records::read(record_type, found.answers()),
        Err(error) => Err(failure::classify(&error)),
    }
}

/// Passes on a query, and makes a response from the records of the answer.
pub(super) async fn forward(client: &Client, query: &Message) -> Result<Vec<u8>, DnsFailure> {
    let [asked] = &query.queries[..] else { return Err(DnsFailure::Malformed) };
    let mut response = Message::response(query.metadata.id, OpCode::Query);
    response.metadata.recursion_desired = query.metadata.recursion_desired;
    response.add_query(asked.clone());
    match client.lookup(asked.name().clone(), asked.query_type()).await {
        Ok(found) => _ = response.add_answers(found.answers().iter().cloned()),
        Err(error) => match failure::classify(&error) {
            DnsFailure::NoData => {}
            DnsFailure::NoSuchName => response.metadata.response_code = ResponseCode::NXDomain,
            why => return Err(why),
        },
    }
    response.to_vec().map_err(|_| DnsFailure::Malformed)
}
