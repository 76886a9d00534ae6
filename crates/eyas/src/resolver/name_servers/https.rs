//! Queries over HTTPS (RFC 8484): they are request bodies, and responses are response bodies.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use h2::RecvStream;
use h2::client::{ResponseFuture, SendRequest};
use http::header::{ACCEPT, AGE, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Uri, Version};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::ServerTrouble;
#[cfg(feature = "quic")]
use super::announced::AnnouncedHttp3;
use super::http_message::{MAX_MESSAGE, MEDIA_TYPE, age, authority, is_dns_message};
use super::message::{DnsQuestion, DnsResponse};
use super::shared_connection::{ConnectedServer, QueryConnection};
use super::tls;

/// The largest head of a response, in bytes.
const MAX_HEAD_BYTES: u32 = 64 * 1024;

/// The maximum number of informational responses before the final one (RFC 9110 §15.2), which the h2 crate reads
/// without a limit.
const MAX_INFORMATIONAL: usize = 16;

/// A server that is asked over HTTPS.
#[derive(Debug)]
pub(in super::super) struct HttpsServer {
    address: SocketAddr,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    head: Arc<Request<()>>,
    #[cfg(feature = "quic")]
    announced: Option<Arc<AnnouncedHttp3>>,
}

impl HttpsServer {
    /// Returns the server at this address with this name, or `None` if it is not a name of a server, or the path is
    /// none.
    pub(in super::super) fn new(
        address: SocketAddr,
        name: &str,
        path: &str,
        mut config: ClientConfig,
    ) -> Option<Self> {
        config.alpn_protocols = vec![b"h2".to_vec()];
        Some(Self {
            address,
            name: ServerName::try_from(name).ok()?.to_owned(),
            config: Arc::new(config),
            head: Arc::new(head(name, address.port(), path).ok()?),
            #[cfg(feature = "quic")]
            announced: None,
        })
    }

    /// Notes what it announces besides.
    #[cfg(feature = "quic")]
    pub(super) fn announcing(self, announced: Arc<AnnouncedHttp3>) -> Self {
        Self { announced: Some(announced), ..self }
    }
}

impl ConnectedServer for HttpsServer {
    type Connection = HttpsConnection;

    fn connect(&self) -> BoxFuture<'static, Result<HttpsConnection, ServerTrouble>> {
        let (address, name, config) = (self.address, self.name.clone(), Arc::clone(&self.config));
        let head = Arc::clone(&self.head);
        #[cfg(feature = "quic")]
        let announced = self.announced.clone();
        let connected = async move {
            let tls = tls::connect(address, name, config).await?;
            let connection = HttpsConnection::connect_tls(tls, head).await?;
            #[cfg(feature = "quic")]
            let connection = HttpsConnection { announced, ..connection };
            Ok(connection)
        };
        connected.boxed()
    }
}

/// Returns a request without its body.
fn head(name: &str, port: u16, path: &str) -> Result<Request<()>, http::Error> {
    let uri = Uri::builder().scheme("https").authority(authority(name, port)).path_and_query(path);
    let uri = uri.build()?;
    let head = Request::post(uri).version(Version::HTTP_2);
    head.header(CONTENT_TYPE, MEDIA_TYPE).header(ACCEPT, MEDIA_TYPE).body(())
}

/// A connection. It ends when nobody has it.
#[derive(Clone, Debug)]
pub(super) struct HttpsConnection {
    requests: SendRequest<Bytes>,
    head: Arc<Request<()>>,
    state: Arc<HttpsState>,
    #[cfg(feature = "quic")]
    announced: Option<Arc<AnnouncedHttp3>>,
}

#[derive(Debug, Default)]
struct HttpsState {
    has_answered: AtomicBool,
    has_ended: AtomicBool,
}

impl HttpsConnection {
    async fn connect_tls(
        tls: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        head: Arc<Request<()>>,
    ) -> Result<Self, ServerTrouble> {
        let mut builder = h2::client::Builder::new();
        builder.enable_push(false).max_header_list_size(MAX_HEAD_BYTES);
        let (requests, connection) = builder.handshake(tls).await?;
        let state: Arc<HttpsState> = Arc::default();
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to a DNS server ended");
            }
            shared.has_ended.store(true, Ordering::Relaxed);
        });
        Ok(Self {
            requests,
            head,
            state,
            #[cfg(feature = "quic")]
            announced: None,
        })
    }

    /// Sends a query, and returns the message in the response with the time for which a cache has had it.
    async fn post(&self, query: Bytes) -> Result<(Vec<u8>, Duration), ServerTrouble> {
        let mut head = Request::clone(&self.head);
        head.headers_mut().insert(CONTENT_LENGTH, query.len().into());
        let mut requests = self.requests.clone().ready().await?;
        let (response, mut body) = requests.send_request(head, false)?;
        body.send_data(query, true)?;
        let (response, mut body) = final_response(response).await?.into_parts();
        self.state.has_answered.store(true, Ordering::Relaxed);
        #[cfg(feature = "quic")]
        if let Some(announced) = &self.announced {
            announced.note(&response.headers);
        }
        let field = |name| response.headers.get(name).map(HeaderValue::as_bytes);
        if !response.status.is_success() || !is_dns_message(field(CONTENT_TYPE)) {
            tracing::debug!(status = %response.status, "a DNS server did not answer");
            return Err(ServerTrouble::Refused);
        }
        let mut message = Vec::new();
        while let Some(piece) = body.data().await.transpose()? {
            if message.len() + piece.len() > MAX_MESSAGE {
                return Err(ServerTrouble::Malformed);
            }
            body.flow_control().release_capacity(piece.len())?;
            message.extend_from_slice(&piece);
        }
        Ok((message, age(field(AGE))))
    }
}

/// Waits for the final response, after a limited number of informational ones.
async fn final_response(
    mut response: ResponseFuture,
) -> Result<http::Response<RecvStream>, ServerTrouble> {
    for _ in 0..=MAX_INFORMATIONAL {
        match poll_fn(|cx| response.poll_informational(cx)).await.transpose()? {
            Some(_) => {}
            None => return Ok(response.await?),
        }
    }
    tracing::debug!("a DNS server sends informational responses without end");
    Err(ServerTrouble::Malformed)
}

impl QueryConnection for HttpsConnection {
    async fn ask(&self, question: &DnsQuestion, edns: bool) -> Result<DnsResponse, ServerTrouble> {
        let (_, mut query) = question.padded_query(edns).ok_or(ServerTrouble::Malformed)?;
        // The same query must be the same request to an HTTP cache (RFC 8484 §4.1).
        query.splice(..2, [0, 0]);
        let (message, age) = self.post(query.into()).await.inspect_err(|trouble| {
            // A server that wants no further requests ends the connection later.
            if *trouble == ServerTrouble::Unreachable {
                self.state.has_ended.store(true, Ordering::Relaxed);
            }
        })?;
        let mut response =
            DnsResponse::read(message, 0, question).ok_or(ServerTrouble::Malformed)?;
        response.age = age;
        Ok(response)
    }

    fn is_open(&self) -> bool {
        !self.state.has_ended.load(Ordering::Relaxed)
    }

    fn has_answered(&self) -> bool {
        self.state.has_answered.load(Ordering::Relaxed)
    }
}

impl From<h2::Error> for ServerTrouble {
    fn from(error: h2::Error) -> Self {
        tracing::debug!(%error, "a DNS server did not answer");
        Self::Unreachable
    }
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
}
