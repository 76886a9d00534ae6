//! One server, with what is known about it.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
use super::alternative::DohServer;
use super::exchange::{over_tcp, over_udp};
#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
use super::http3::Http3Server;
#[cfg(feature = "encrypted-dns")]
use super::https::HttpsServer;
use super::message::{DnsQuestion, DnsResponse, code};
#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
use super::quic::QuicServer;
#[cfg(feature = "encrypted-dns")]
use super::shared_connection::SharedConnection;
#[cfg(feature = "encrypted-dns")]
use super::tls::TlsServer;
use super::{ServerOptions, ServerTrouble};

/// How long a server is not asked with EDNS after it did not answer with it: its operator may mend that.
const WITHOUT_EDNS: Duration = Duration::from_mins(10);
/// How long a server that did not answer in time is asked after the others.
const AFTER_OTHERS: Duration = Duration::from_secs(30);
/// After which time without a response a query is sent again, at most.
const RESEND_AFTER: Duration = Duration::from_secs(1);

/// How queries reach a server.
#[derive(Debug)]
pub(in super::super) struct QueryTransport(QueryTransportKind);

#[derive(Debug)]
enum QueryTransportKind {
    /// In datagrams, and over TCP where those are too small.
    Datagrams(SocketAddr),
    #[cfg(feature = "encrypted-dns")]
    Tls(SharedConnection<TlsServer>),
    #[cfg(feature = "encrypted-dns")]
    Https(SharedConnection<HttpsServer>),
    #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
    Quic(SharedConnection<QuicServer>),
    #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
    Http3(SharedConnection<Http3Server>),
    /// By HTTP/2, or HTTP/3 where that is announced.
    #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
    Doh(SharedConnection<DohServer>),
}

impl From<SocketAddr> for QueryTransport {
    fn from(server: SocketAddr) -> Self {
        Self(QueryTransportKind::Datagrams(server))
    }
}

#[cfg(feature = "encrypted-dns")]
impl From<TlsServer> for QueryTransport {
    fn from(server: TlsServer) -> Self {
        Self(QueryTransportKind::Tls(SharedConnection::new(server)))
    }
}

#[cfg(feature = "encrypted-dns")]
impl From<HttpsServer> for QueryTransport {
    fn from(server: HttpsServer) -> Self {
        Self(QueryTransportKind::Https(SharedConnection::new(server)))
    }
}

#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
impl From<QuicServer> for QueryTransport {
    fn from(server: QuicServer) -> Self {
        Self(QueryTransportKind::Quic(SharedConnection::new(server)))
    }
}

#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
impl From<Http3Server> for QueryTransport {
    fn from(server: Http3Server) -> Self {
        Self(QueryTransportKind::Http3(SharedConnection::new(server)))
    }
}

#[cfg(all(feature = "encrypted-dns", feature = "quic"))]
impl From<DohServer> for QueryTransport {
    fn from(server: DohServer) -> Self {
        Self(QueryTransportKind::Doh(SharedConnection::new(server)))
    }
}

impl QueryTransport {
    /// Waits until a query would leave at once, or fails if none can.
    async fn open(&self) -> Result<(), ServerTrouble> {
        match &self.0 {
            QueryTransportKind::Datagrams(_) => {}
            #[cfg(feature = "encrypted-dns")]
            QueryTransportKind::Tls(server) => _ = server.open().await?,
            #[cfg(feature = "encrypted-dns")]
            QueryTransportKind::Https(server) => _ = server.open().await?,
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Quic(server) => _ = server.open().await?,
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Http3(server) => _ = server.open().await?,
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Doh(server) => _ = server.open().await?,
        }
        Ok(())
    }

    /// Makes the next query go over a new connection, if it needs one.
    fn reconnect(&self) {
        match &self.0 {
            QueryTransportKind::Datagrams(_) => {}
            #[cfg(feature = "encrypted-dns")]
            QueryTransportKind::Tls(server) => server.replace(),
            #[cfg(feature = "encrypted-dns")]
            QueryTransportKind::Https(server) => server.replace(),
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Quic(server) => server.replace(),
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Http3(server) => server.replace(),
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Doh(server) => server.replace(),
        }
    }
}

/// A server.
#[derive(Debug)]
pub(super) struct NameServer {
    transport: QueryTransport,
    state: Mutex<NameServerState>,
}

#[derive(Debug, Default)]
struct NameServerState {
    edns: EdnsSupport,
    /// When it last did not answer in time.
    silent_at: Option<Instant>,
    /// When it last answered, whatever that was.
    answered_at: Option<Instant>,
}

/// Whether a server knows EDNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EdnsSupport {
    #[default]
    Unknown,
    Known,
    /// It did not answer queries with EDNS at this time, and those without.
    Refused(Instant),
}

impl NameServer {
    pub(super) fn new(transport: QueryTransport) -> Self {
        Self { transport, state: Mutex::default() }
    }

    /// Waits until a query would leave at once, or fails if none can.
    #[cfg(feature = "encrypted-dns")]
    pub(super) async fn open(&self) -> Result<(), ServerTrouble> {
        self.transport.open().await
    }

    pub(super) fn forget(&self) {
        self.transport.reconnect();
        *self.state() = NameServerState::default();
    }

    /// Returns whether the server recently did not answer in time.
    pub(super) fn is_silent(&self) -> bool {
        self.state().silent_at.is_some_and(|at| at.elapsed() < AFTER_OTHERS)
    }

    /// Returns whether the server has answered a question, whichever that was, since this time.
    #[cfg(feature = "encrypted-dns")]
    pub(super) fn has_answered_since(&self, at: Instant) -> bool {
        self.state().answered_at.is_some_and(|answered| answered >= at)
    }

    /// Notes that the server has not answered a question of this time. If it has answered none since, it is taken to be
    /// silent, and if it knew EDNS until then, it may be another one. Many servers are silent only about types that they
    /// do not know, such as HTTPS, and for addresses the first server may be the only right one.
    pub(super) fn set_silent(&self, since: Instant) {
        let mut state = self.state();
        if state.answered_at.is_some_and(|at| at >= since) {
            return;
        }
        state.silent_at = Some(Instant::now());
        self.transport.reconnect();
        if state.edns == EdnsSupport::Known {
            state.edns = EdnsSupport::Unknown;
        }
    }

    /// Asks the server until it answers or cannot be asked.
    pub(super) async fn ask(
        &self,
        question: &DnsQuestion,
        options: &ServerOptions,
    ) -> Result<DnsResponse, ServerTrouble> {
        let edns = self.edns();
        let response = match (options.edns, edns) {
            (false, _) | (true, EdnsSupport::Refused(_)) => {
                usable(self.send(question, options, false).await?)?
            }
            (true, EdnsSupport::Known) => {
                let response = self.send(question, options, true).await?;
                if is_complaint(&response) {
                    self.ask_without_edns(question, options).await?
                } else {
                    usable(response)?
                }
            }
            (true, EdnsSupport::Unknown) => self.ask_both_ways(question, options).await?,
        };
        Ok(response)
    }

    /// Asks with EDNS, and without it if that gets no response, or one of a server that does not know EDNS (RFC 6891
    /// §7).
    async fn ask_both_ways(
        &self,
        question: &DnsQuestion,
        options: &ServerOptions,
    ) -> Result<DnsResponse, ServerTrouble> {
        let with = self.send(question, options, true);
        let without = async {
            // The query with EDNS meets the same trouble.
            let _ = self.transport.open().await;
            tokio::time::sleep(resend_after(options)).await;
            self.send(question, options, false).await.and_then(usable)
        };
        tokio::pin!(with, without);
        tokio::select! {
            biased;
            response = &mut with => match response {
                // A server behind HTTP may report the failure of another in HTTP alone.
                Err(ServerTrouble::Refused) => {}
                Err(trouble) => return Err(trouble),
                Ok(response) if response.has_edns && !is_complaint(&response) => {
                    self.state().edns = EdnsSupport::Known;
                    return usable(response);
                }
                Ok(response) if is_answer(&response) => return Ok(response),
                Ok(_) => {}
            },
            response = &mut without => return match response {
                Ok(response) => Ok(self.without_edns(response)),
                Err(_) => with.await.and_then(usable),
            },
        }
        self.ask_without_edns(question, options).await
    }

    async fn ask_without_edns(
        &self,
        question: &DnsQuestion,
        options: &ServerOptions,
    ) -> Result<DnsResponse, ServerTrouble> {
        let response = usable(self.send(question, options, false).await?)?;
        Ok(self.without_edns(response))
    }

    /// Remembers that the server answers only without EDNS.
    fn without_edns(&self, response: DnsResponse) -> DnsResponse {
        self.state().edns = EdnsSupport::Refused(Instant::now());
        response
    }

    fn edns(&self) -> EdnsSupport {
        match self.state().edns {
            EdnsSupport::Refused(at) if at.elapsed() >= WITHOUT_EDNS => EdnsSupport::Unknown,
            edns => edns,
        }
    }

    /// Sends the query, over TCP if the response does not fit into a datagram.
    async fn send(
        &self,
        question: &DnsQuestion,
        options: &ServerOptions,
        edns: bool,
    ) -> Result<DnsResponse, ServerTrouble> {
        let response = match &self.transport.0 {
            QueryTransportKind::Datagrams(address) if options.use_tcp => {
                over_tcp(*address, question, edns).await?
            }
            QueryTransportKind::Datagrams(address) => {
                let response = over_udp(*address, question, edns, resend_after(options)).await?;
                if response.is_truncated {
                    self.has_answered();
                    return complete(*address, response, question, options, edns).await;
                }
                response
            }
            #[cfg(feature = "encrypted-dns")]
            QueryTransportKind::Tls(server) => server.ask(question, edns).await?,
            #[cfg(feature = "encrypted-dns")]
            QueryTransportKind::Https(server) => server.ask(question, edns).await?,
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Quic(server) => server.ask(question, edns).await?,
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Http3(server) => server.ask(question, edns).await?,
            #[cfg(all(feature = "encrypted-dns", feature = "quic"))]
            QueryTransportKind::Doh(server) => server.ask(question, edns).await?,
        };
        self.has_answered();
        // What does not fit into a stream does not exist.
        if response.is_truncated && is_answer(&response) && !response.has_records(question) {
            return Err(ServerTrouble::Refused);
        }
        Ok(response)
    }

    fn has_answered(&self) {
        let mut state = self.state();
        (state.silent_at, state.answered_at) = (None, Some(Instant::now()));
    }

    fn state(&self) -> MutexGuard<'_, NameServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the whole response of which this one is a part. What did fit is better than nothing if TCP is not let through.
async fn complete(
    address: SocketAddr,
    part: DnsResponse,
    question: &DnsQuestion,
    options: &ServerOptions,
    edns: bool,
) -> Result<DnsResponse, ServerTrouble> {
    let over_tcp = over_tcp(address, question, edns);
    match tokio::time::timeout(options.timeout / 2, over_tcp).await {
        Ok(Ok(complete)) if is_answer(&complete) => Ok(complete),
        _ if part.has_records(question) => Ok(part),
        Ok(Ok(failed)) => Ok(failed),
        Ok(Err(trouble)) => Err(trouble),
        Err(_) => Err(ServerTrouble::Silent),
    }
}

fn resend_after(options: &ServerOptions) -> Duration {
    RESEND_AFTER.min(options.timeout / 2)
}

/// Returns whether the server complains about the query itself.
fn is_complaint(response: &DnsResponse) -> bool {
    matches!(response.code, code::FORMAT_ERROR | code::NOT_IMPLEMENTED | code::BAD_VERSION)
}

fn is_answer(response: &DnsResponse) -> bool {
    matches!(response.code, code::NO_ERROR | code::NO_SUCH_NAME)
}

fn usable(response: DnsResponse) -> Result<DnsResponse, ServerTrouble> {
    match response.code {
        _ if is_answer(&response) => Ok(response),
        code::SERVER_FAILURE => Err(ServerTrouble::Failed),
        _ => Err(ServerTrouble::Refused),
    }
}
