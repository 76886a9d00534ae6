//! Entries of the access log.

use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::{HeaderMap, Method, Request, StatusCode, Version, header};

use super::link::Link;

/// The maximum number of bytes of a field from the client; the rest is omitted.
const MAX_FIELD_BYTES: usize = 2048;

/// One request, logged when its response has ended.
#[derive(Clone, Debug)]
pub struct Access {
    /// When the request arrived.
    pub at: SystemTime,
    /// The time from then until its response was handed over or abandoned.
    pub took: Duration,
    /// The client's address.
    pub remote: SocketAddr,
    /// The transport: `tcp`, `mptcp`, `quic` or `sctp`.
    pub transport: &'static str,
    /// The version of HTTP.
    pub version: Version,
    /// The method.
    pub method: Method,
    /// The path and query as sent; truncated if very long, like the fields below.
    pub target: String,
    /// The requested host.
    pub host: Option<String>,
    /// The status of the response; `None` if the client left before there was one.
    pub status: Option<StatusCode>,
    /// The number of bytes of the response's body handed to the protocol.
    pub bytes: u64,
    /// The `Referer` field.
    pub referer: Option<String>,
    /// The `User-Agent` field.
    pub user_agent: Option<String>,
}

/// The function that receives access log entries.
#[derive(Clone)]
pub(super) struct AccessLog(pub(super) Arc<dyn Fn(&Access) + Send + Sync>);

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessLog")
    }
}

/// A request in progress. It is logged when this is dropped, even if its response is abandoned.
#[derive(Debug)]
pub(super) struct Entry {
    log: AccessLog,
    began: Instant,
    access: Access,
}

impl Entry {
    pub(super) fn begin<B>(log: &AccessLog, link: &Link, request: &Request<B>) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        let target = uri.path_and_query().map_or_else(|| uri.to_string(), ToString::to_string);
        let authority = uri.authority().map(|authority| truncated(authority.as_str().as_bytes()));
        let access = Access {
            at: SystemTime::now(),
            took: Duration::ZERO,
            remote: link.remote,
            transport: link.transport.name(),
            version: request.version(),
            method: request.method().clone(),
            target: truncated(target.as_bytes()),
            host: authority.or_else(|| field(headers, header::HOST)),
            status: None,
            bytes: 0,
            referer: field(headers, header::REFERER),
            user_agent: field(headers, header::USER_AGENT),
        };
        Self { log: log.clone(), began: Instant::now(), access }
    }

    pub(super) fn answered(&mut self, status: StatusCode) {
        self.access.status = Some(status);
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.access.bytes += bytes as u64;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.access.took = self.began.elapsed();
        (self.log.0)(&self.access);
    }
}

fn field(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    headers.get(name).map(|value| truncated(value.as_bytes()))
}

fn truncated(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_FIELD_BYTES)]).into_owned()
}
