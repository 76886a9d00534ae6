//! Queries over TLS (RFC 7858): messages as over TCP, of several queries at once on one connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::ServerTrouble;
use super::exchange::{STRAY_MESSAGES, connected, framed, read_message};
use super::message::{DnsQuestion, DnsResponse};
use super::shared_connection::{ConnectedServer, QueryConnection};

/// How long a connection without queries is kept: the next one is soon, or it is another matter (RFC 7766 §6.2.3).
const IDLE: Duration = Duration::from_secs(30);
/// The maximum number of queries that wait to be written.
const UNWRITTEN: usize = 64;

/// A server that is asked over TLS.
#[derive(Debug)]
pub(in super::super) struct TlsServer {
    address: SocketAddr,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl TlsServer {
    /// The certificate must be valid for `name`, which is not sent: a DNS server on its own port needs none.
    pub(in super::super) fn new(
        address: SocketAddr,
        name: ServerName<'static>,
        mut config: ClientConfig,
    ) -> Self {
        config.enable_sni = false;
        Self { address, name, config: Arc::new(config) }
    }

    /// Returns a server that was designated, whose name is sent: its address and port may be those of others, too.
    pub(in super::super) fn designated(
        address: SocketAddr,
        name: ServerName<'static>,
        mut config: ClientConfig,
    ) -> Self {
        config.alpn_protocols = vec![b"dot".to_vec()];
        Self { address, name, config: Arc::new(config) }
    }
}

impl ConnectedServer for TlsServer {
    type Connection = TlsConnection;

    fn connect(&self) -> BoxFuture<'static, Result<TlsConnection, ServerTrouble>> {
        let (address, name, config) = (self.address, self.name.clone(), Arc::clone(&self.config));
        async move { connect(address, name, config).await.map(TlsConnection::new) }.boxed()
    }
}

/// Connects to a server over TLS.
pub(super) async fn connect(
    address: SocketAddr,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, ServerTrouble> {
    let tcp = connected(address).await?;
    let tls = TlsConnector::from(config).connect(name, tcp).await.inspect_err(|error| {
        tracing::warn!(%address, %error, "no TLS connection to the DNS server");
    })?;
    Ok(tls)
}

/// A connection. It ends when nobody has it.
#[derive(Clone, Debug)]
pub(super) struct TlsConnection {
    queries: mpsc::Sender<Vec<u8>>,
    waiting: Arc<Mutex<WaitingQueries>>,
}

/// The queries without an answer, by identifier.
#[derive(Debug, Default)]
struct WaitingQueries {
    queries: BTreeMap<u16, (DnsQuestion, oneshot::Sender<DnsResponse>)>,
    has_answered: bool,
    has_ended: bool,
}

impl TlsConnection {
    fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (queries, unwritten) = mpsc::channel(UNWRITTEN);
        let waiting: Arc<Mutex<WaitingQueries>> = Arc::default();
        let end = ConnectionEnd(Arc::clone(&waiting));
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(stream);
            tokio::select! {
                () = read(reader, &end.0) => {}
                () = write(writer, unwritten, &end.0) => {}
            }
        });
        Self { queries, waiting }
    }

    /// Takes a free identifier for a query.
    fn enter(
        &self,
        question: &DnsQuestion,
        mut id: u16,
    ) -> Option<(QueryPlace<'_>, oneshot::Receiver<DnsResponse>)> {
        let (sender, response) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if waiting.has_ended || waiting.queries.len() >= usize::from(u16::MAX) {
            return None;
        }
        while waiting.queries.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        waiting.queries.insert(id, (question.clone(), sender));
        Some((QueryPlace { waiting: &self.waiting, id }, response))
    }
}

impl QueryConnection for TlsConnection {
    async fn ask(&self, question: &DnsQuestion, edns: bool) -> Result<DnsResponse, ServerTrouble> {
        let (id, mut query) = question.padded_query(edns).ok_or(ServerTrouble::Malformed)?;
        let (place, response) = self.enter(question, id).ok_or(ServerTrouble::Unreachable)?;
        query.splice(..2, place.id.to_be_bytes());
        let query = framed(&query).ok_or(ServerTrouble::Malformed)?;
        self.queries.send(query).await.map_err(|_| ServerTrouble::Unreachable)?;
        response.await.map_err(|_| ServerTrouble::Unreachable)
    }

    fn is_open(&self) -> bool {
        !lock(&self.waiting).has_ended
    }

    fn has_answered(&self) -> bool {
        lock(&self.waiting).has_answered
    }
}

/// Tells whoever waits that the connection has ended, also when its runtime has.
struct ConnectionEnd(Arc<Mutex<WaitingQueries>>);

impl Drop for ConnectionEnd {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0);
        waiting.has_ended = true;
        waiting.queries.clear();
    }
}

/// A query's place among those that wait.
struct QueryPlace<'a> {
    waiting: &'a Mutex<WaitingQueries>,
    id: u16,
}

impl Drop for QueryPlace<'_> {
    fn drop(&mut self) {
        lock(self.waiting).queries.remove(&self.id);
    }
}

fn lock(waiting: &Mutex<WaitingQueries>) -> MutexGuard<'_, WaitingQueries> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands responses to those that wait for them, in whatever order they come, until the connection ends.
async fn read(mut stream: impl AsyncRead + Unpin, waiting: &Mutex<WaitingQueries>) {
    let mut strays = 0;
    while strays <= STRAY_MESSAGES
        && let Ok(octets) = read_message(&mut stream).await
    {
        let mut waiting = lock(waiting);
        let id = octets.first_chunk().copied().map(u16::from_be_bytes);
        let of_query = id.and_then(|id| {
            let (question, _) = waiting.queries.get(&id)?;
            let response = DnsResponse::read(octets, id, question)?;
            Some((waiting.queries.remove(&id)?.1, response))
        });
        match of_query {
            Some((asker, response)) => {
                waiting.has_answered = true;
                // Whoever asked may be gone.
                let _ = asker.send(response);
            }
            // It may be a late one; a server that goes on so is of no use.
            None => strays += 1,
        }
    }
}

/// Writes queries until nobody asks any more.
async fn write(
    mut stream: impl AsyncWrite + Unpin,
    mut unwritten: mpsc::Receiver<Vec<u8>>,
    waiting: &Mutex<WaitingQueries>,
) {
    loop {
        match tokio::time::timeout(IDLE, unwritten.recv()).await {
            Ok(Some(query)) => {
                if stream.write_all(&query).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Err(_) if !lock(waiting).queries.is_empty() => {}
            Ok(None) | Err(_) => {
                let _ = tokio::time::timeout(IDLE, stream.shutdown()).await;
                return;
            }
        }
    }
}
