//! DNS over HTTPS (RFC 8484): queries are request bodies, answers are response bodies.
//!
//! The library implements this too, but gives no access to an answer before it has parsed it.

use std::future::Future;
use std::io;
use std::net::Ipv6Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use h2::client::SendRequest;
use hickory_resolver::PoolContext;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::{RuntimeProvider, Spawn};
use hickory_resolver::net::xfer::{DnsRequestSender, DnsResponseStream};
use hickory_resolver::proto::op::{DnsRequest, DnsResponse};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request, Uri, Version};
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::runtime::Runtime;
use super::service_parameters::repair;

const MEDIA_TYPE: &str = "application/dns-message";

/// The default port of `https`.
const PORT: u16 = 443;

/// The maximum length of a DNS message (RFC 8484 §6), in octets.
const MAX_MESSAGE: usize = 65_535;

/// Connects to the server with this name and port, over the connection `tcp` to its address.
pub(super) fn connect<F>(
    tcp: F,
    (name, port): (&str, u16),
    path: &str,
    pool: &PoolContext,
    runtime: &Runtime,
) -> Result<impl Future<Output = Result<Https, NetError>> + use<F>, NetError>
where
    F: Future<Output = io::Result<<Runtime as RuntimeProvider>::Tcp>>,
{
    let head = head(name, port, path).map_err(|error| NetError::from(error.to_string()))?;
    let server_name =
        ServerName::try_from(name).map_err(|error| NetError::from(error.to_string()))?;
    let server_name = server_name.to_owned();
    let mut tls = pool.tls.clone();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let (limit, mut handle) = (pool.options.timeout, runtime.create_handle());
    let connecting = async move {
        let tls = TlsConnector::from(Arc::new(tls)).connect(server_name, tcp.await?.0).await?;
        let mut builder = h2::client::Builder::new();
        let (requests, connection) = builder.enable_push(false).handshake(tls).await?;
        handle.spawn_bg(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to a DNS server ended");
            }
        });
        Ok(Https { requests, head, limit, is_shut_down: false })
    };
    Ok(async move { tokio::time::timeout(limit, connecting).await.map_err(|_| NetError::Timeout)? })
}

/// Returns a request without its body.
fn head(name: &str, port: u16, path: &str) -> Result<Request<()>, http::Error> {
    let host = match name.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => name.to_owned(),
    };
    let authority = if port == PORT { host } else { format!("{host}:{port}") };
    let uri = Uri::builder().scheme("https").authority(authority).path_and_query(path).build()?;
    let head = Request::post(uri).version(Version::HTTP_2);
    head.header(CONTENT_TYPE, MEDIA_TYPE).header(ACCEPT, MEDIA_TYPE).body(())
}

/// A connection to a DNS server.
pub(super) struct Https {
    requests: SendRequest<Bytes>,
    head: Request<()>,
    /// The timeout for each answer.
    limit: Duration,
    is_shut_down: bool,
}

impl DnsRequestSender for Https {
    fn send_message(&mut self, mut query: DnsRequest) -> DnsResponseStream {
        // The same query must be the same request to an HTTP cache (RFC 8484 §4.1).
        query.metadata.id = 0;
        let query = match query.to_vec() {
            Ok(query) => Bytes::from(query),
            Err(error) => return NetError::from(error).into(),
        };
        let mut head = self.head.clone();
        head.headers_mut().insert(CONTENT_LENGTH, query.len().into());
        let response = send(self.requests.clone(), head, query);
        let response = tokio::time::timeout(self.limit, response);
        Box::pin(async move { response.await.map_err(|_| NetError::Timeout)? }).into()
    }

    fn shutdown(&mut self) {
        self.is_shut_down = true;
    }

    fn is_shutdown(&self) -> bool {
        self.is_shut_down
    }
}

impl Stream for Https {
    type Item = Result<(), NetError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_shut_down {
            return Poll::Ready(None);
        }
        self.requests.poll_ready(cx).map(|ready| Some(ready.map_err(NetError::from)))
    }
}

/// Sends one query.
async fn send(
    requests: SendRequest<Bytes>,
    head: Request<()>,
    query: Bytes,
) -> Result<DnsResponse, NetError> {
    let (response, mut body) = requests.ready().await?.send_request(head, false)?;
    body.send_data(query, true)?;
    let (response, mut body) = response.await?.into_parts();
    if !response.status.is_success() {
        return Err(format!("the DNS server returned {}", response.status).into());
    }
    if !is_dns_message(&response.headers) {
        return Err("the DNS server returned something other than a DNS message".into());
    }
    let mut message = Vec::new();
    while let Some(piece) = body.data().await.transpose()? {
        if message.len() + piece.len() > MAX_MESSAGE {
            return Err(NetError::RequestTooLarge);
        }
        body.flow_control().release_capacity(piece.len())?;
        message.extend_from_slice(&piece);
    }
    repair(&mut message);
    Ok(DnsResponse::from_buffer(message)?)
}

/// Returns whether the body is a DNS message; a server that does not state the type sends nothing
/// else.
fn is_dns_message(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_none_or(|media_type| {
        let without_parameters = media_type.as_bytes().split(|octet| *octet == b';').next();
        without_parameters
            .unwrap_or_default()
            .trim_ascii()
            .eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_that_of_the_url() {
        let authority = |name, port| {
            let head = head(name, port, "/dns-query").unwrap();
            head.uri().authority().unwrap().to_string()
        };
        assert_eq!(authority("dns.example", 443), "dns.example");
        assert_eq!(authority("192.0.2.1", 8443), "192.0.2.1:8443");
        assert_eq!(authority("2001:db8::1", 443), "[2001:db8::1]");
    }

    #[test]
    fn the_media_type_may_have_parameters() {
        let accepts = |value: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(CONTENT_TYPE, value.parse().unwrap());
            }
            is_dns_message(&headers)
        };
        assert!(accepts(None));
        assert!(accepts(Some("Application/DNS-Message; charset=x")));
        assert!(!accepts(Some("text/html")));
    }
}
