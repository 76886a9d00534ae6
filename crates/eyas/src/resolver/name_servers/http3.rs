//! Queries over HTTP/3 (RFC 8484 over RFC 9114): one task drives the connection for all of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_h3::connection::{ConnectionConfig, ConnectionSetup};
use eyas_h3::message::Content;
use eyas_h3::qpack::{FieldLine, Sensitivity};
use eyas_h3::whole::{Event, Input, Output, WholeConnection};
use eyas_h3::{ErrorCode, Role, StreamId};
use futures_util::future::{BoxFuture, FutureExt as _};
use quinn::{RecvStream, SendStream, VarInt};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::ServerTrouble;
use super::http_message::{MAX_MESSAGE, MEDIA_TYPE, age, authority, is_dns_message};
use super::message::{DnsQuestion, DnsResponse};
use super::quic::QuicServer;
use super::shared_connection::{ConnectedServer, QueryConnection};

/// The protocol's name (RFC 9114 §3.1).
const ALPN: &[u8] = b"h3";
/// The maximum number of queries that wait to be sent.
const UNSENT: usize = 64;
/// How many pieces of streams wait for the connection, and their length in bytes.
const PIECES: usize = 16;
const PIECE: usize = 16 * 1024;
/// How long a server may keep a query from being written.
const WRITTEN: Duration = Duration::from_secs(5);

/// A server that is asked over HTTP/3.
#[derive(Debug)]
pub(in super::super) struct Http3Server {
    quic: QuicServer,
    authority: Arc<str>,
    path: Arc<str>,
}

impl Http3Server {
    /// Returns the server at this address with this name, or `None` if this configuration cannot be used for QUIC.
    pub(in super::super) fn new(
        address: SocketAddr,
        name: &ServerName<'_>,
        path: &str,
        config: ClientConfig,
    ) -> Option<Self> {
        Self::at_alternative(address, name, address.port(), path, config)
    }

    /// Returns such a server, whose URL has another port than the address.
    pub(super) fn at_alternative(
        address: SocketAddr,
        name: &ServerName<'_>,
        port: u16,
        path: &str,
        config: ClientConfig,
    ) -> Option<Self> {
        let authority = authority(&name.to_str(), port).into();
        // Its control stream, and those of QPACK (RFC 9114 §6.2); more are none of its business.
        let quic = QuicServer::with_alpn(address, name, ALPN, 8, config)?;
        Some(Self { quic, authority, path: path.into() })
    }
}

impl ConnectedServer for Http3Server {
    type Connection = Http3Connection;

    fn connect(&self) -> BoxFuture<'static, Result<Http3Connection, ServerTrouble>> {
        let connecting = self.quic.connected();
        let (authority, path) = (Arc::clone(&self.authority), Arc::clone(&self.path));
        async move {
            let quic = connecting.await?;
            let (requests, unsent) = mpsc::channel(UNSENT);
            let has_answered = Arc::default();
            let driver = Http3Driver::new(quic.clone(), authority, path, Arc::clone(&has_answered));
            tokio::spawn(async move {
                let end = driver.run(unsent).await;
                quic.close(end, b"");
            });
            Ok(Http3Connection { requests, has_answered })
        }
        .boxed()
    }
}

/// A query, and where its response goes: the message, and for how long a cache has had it.
struct Http3Request {
    query: Bytes,
    response: oneshot::Sender<Result<(Vec<u8>, Duration), ServerTrouble>>,
}

/// A connection. It ends when nobody has it.
#[derive(Clone, Debug)]
pub(super) struct Http3Connection {
    requests: mpsc::Sender<Http3Request>,
    has_answered: Arc<AtomicBool>,
}

impl QueryConnection for Http3Connection {
    async fn ask(&self, question: &DnsQuestion, edns: bool) -> Result<DnsResponse, ServerTrouble> {
        let (_, mut query) = question.padded_query(edns).ok_or(ServerTrouble::Malformed)?;
        // The same query must be the same request to an HTTP cache (RFC 8484 §4.1).
        query.splice(..2, [0, 0]);
        let (response, received) = oneshot::channel();
        let request = Http3Request { query: query.into(), response };
        self.requests.send(request).await.map_err(|_| ServerTrouble::Unreachable)?;
        let (message, age) = received.await.map_err(|_| ServerTrouble::Unreachable)??;
        let mut response =
            DnsResponse::read(message, 0, question).ok_or(ServerTrouble::Malformed)?;
        response.age = age;
        Ok(response)
    }

    fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }
}

/// What has arrived of a response.
struct PendingResponse {
    response: oneshot::Sender<Result<(Vec<u8>, Duration), ServerTrouble>>,
    age: Duration,
    message: Vec<u8>,
}

/// Drives a connection.
struct Http3Driver {
    core: WholeConnection,
    quic: quinn::Connection,
    authority: Arc<str>,
    path: Arc<str>,
    has_answered: Arc<AtomicBool>,
    since: Instant,
    inputs: mpsc::Receiver<Input>,
    arrivals: mpsc::Sender<Input>,
    writers: BTreeMap<StreamId, SendStream>,
    /// A stream whose reader ends is stopped.
    readers: BTreeMap<StreamId, AbortHandle>,
    pending: BTreeMap<StreamId, PendingResponse>,
}

/// The connection has ended; with the code to close it with.
type DriverEnd = VarInt;

impl Http3Driver {
    fn new(
        quic: quinn::Connection,
        authority: Arc<str>,
        path: Arc<str>,
        has_answered: Arc<AtomicBool>,
    ) -> Self {
        let config = ConnectionConfig::default();
        // It only chooses reserved numbers.
        let seed = quic.stable_id() as u64;
        let setup = ConnectionSetup { role: Role::Client, config, seed, remembered: None };
        let (arrivals, inputs) = mpsc::channel(PIECES);
        Self {
            core: WholeConnection::new(setup, Duration::ZERO),
            quic,
            authority,
            path,
            has_answered,
            since: Instant::now(),
            inputs,
            arrivals,
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Drives the connection until nobody asks any more, or it ends.
    async fn run(mut self, mut unsent: mpsc::Receiver<Http3Request>) -> DriverEnd {
        let mut is_over = false;
        loop {
            if let Err(end) = self.carry_out().await {
                return end;
            }
            if is_over && self.pending.is_empty() {
                return code(ErrorCode::NoError);
            }
            tokio::select! {
                request = unsent.recv(), if !is_over => match request {
                    Some(request) => if !self.send(request) {
                        // Whoever asks next finds it closed.
                        unsent.close();
                    },
                    None => is_over = true,
                },
                Some(input) = self.inputs.recv() => self.pass_on(input),
                stream = self.quic.accept_uni() => match stream {
                    Ok(stream) => self.read(stream),
                    Err(error) => return lost(error),
                },
            }
        }
    }

    /// Sends a request, unless the server takes no more.
    fn send(&mut self, request: Http3Request) -> bool {
        let length = request.query.len().to_string();
        let fields = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", &*self.authority),
            (":path", &*self.path),
            ("content-type", MEDIA_TYPE),
            ("accept", MEDIA_TYPE),
            ("content-length", &length),
        ];
        let fields = fields
            .into_iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes(), Sensitivity::Ordinary));
        let Ok(stream) = self.core.send_request(fields, false) else { return false };
        let (response, age) = (request.response, Duration::ZERO);
        self.pending.insert(stream, PendingResponse { response, age, message: Vec::new() });
        self.core.send_data(stream, request.query, true).is_ok()
    }

    /// Passes what has arrived to the core.
    fn pass_on(&mut self, input: Input) {
        if let Input::Stream { stream, fin: true, .. } | Input::Reset { stream, .. } = &input {
            self.readers.remove(stream);
        }
        self.core.handle_input(self.since.elapsed(), input);
    }

    /// Does what the core asks for.
    async fn carry_out(&mut self) -> Result<(), DriverEnd> {
        loop {
            match self.core.poll_output(self.since.elapsed()) {
                Output::Event(event) => self.note_event(event),
                Output::Close(fault) => {
                    tracing::debug!(%fault, "a DNS server broke a rule of HTTP/3");
                    return Err(code(fault.code()));
                }
                Output::Open(stream) if stream.is_unidirectional() => {
                    let send = written(self.quic.open_uni()).await?.map_err(lost)?;
                    self.writers.insert(stream, send);
                }
                Output::Open(stream) => {
                    let (send, receive) = written(self.quic.open_bi()).await?.map_err(lost)?;
                    self.writers.insert(stream, send);
                    self.read(receive);
                }
                Output::Write { stream, data, fin } => self.write(stream, data, fin).await?,
                Output::Reset { stream, code: reason } => {
                    if let Some(mut writer) = self.writers.remove(&stream) {
                        // It has ended by itself.
                        let _ = writer.reset(code(reason));
                    }
                }
                Output::StopSending { stream, .. } => {
                    if let Some(reader) = self.readers.remove(&stream) {
                        reader.abort();
                    }
                }
                Output::Datagram(_) => {}
                Output::Timeout(_) => return Ok(()),
            }
        }
    }

    async fn write(&mut self, stream: StreamId, data: Bytes, fin: bool) -> Result<(), DriverEnd> {
        let Some(writer) = self.writers.get_mut(&stream) else { return Ok(()) };
        let result = written(writer.write_chunk(data)).await?;
        if fin || result.is_err() {
            // A server may answer before it has read all.
            let _ = writer.finish();
            self.writers.remove(&stream);
        }
        Ok(())
    }

    fn note_event(&mut self, event: Event) {
        match event {
            Event::Head { stream, fields, content } if content != Content::Interim => {
                self.note_head(stream, &fields);
            }
            Event::Data { stream, data } => {
                let Some(pending) = self.pending.get_mut(&stream) else { return };
                if pending.message.len() + data.len() > MAX_MESSAGE {
                    self.fail(stream, ServerTrouble::Malformed);
                } else {
                    pending.message.extend_from_slice(&data);
                }
            }
            Event::End { stream } => {
                if let Some(PendingResponse { response, age, message }) =
                    self.pending.remove(&stream)
                {
                    self.has_answered.store(true, Ordering::Relaxed);
                    // Whoever asked may be gone.
                    let _ = response.send(Ok((message, age)));
                }
            }
            Event::Failed { stream, .. } => self.fail(stream, ServerTrouble::Unreachable),
            _ => {}
        }
    }

    fn note_head(&mut self, stream: StreamId, fields: &[FieldLine]) {
        let field = |name: &str| {
            let found = fields.iter().find(|field| field.name == name);
            found.map(|field| &field.value[..])
        };
        let is_success = field(":status").is_some_and(|status| status.starts_with(b"2"));
        if !is_success || !is_dns_message(field("content-type")) {
            tracing::debug!("a DNS server did not answer over HTTP/3");
            self.has_answered.store(true, Ordering::Relaxed);
            self.fail(stream, ServerTrouble::Refused);
        } else if let Some(pending) = self.pending.get_mut(&stream) {
            pending.age = age(field("age"));
        }
    }

    fn fail(&mut self, stream: StreamId, trouble: ServerTrouble) {
        if let Some(pending) = self.pending.remove(&stream) {
            let _ = pending.response.send(Err(trouble));
            self.core.reset(stream, ErrorCode::RequestCancelled);
        }
    }

    /// Reads a stream.
    fn read(&mut self, mut receive: RecvStream) {
        let stream = StreamId(VarInt::from(receive.id()).into_inner());
        let arrivals = self.arrivals.clone();
        let reader = tokio::spawn(async move {
            loop {
                let input = match receive.read_chunk(PIECE, true).await {
                    Ok(Some(chunk)) => Input::Stream { stream, data: chunk.bytes, fin: false },
                    Ok(None) => Input::Stream { stream, data: Bytes::new(), fin: true },
                    Err(quinn::ReadError::Reset(code)) => {
                        Input::Reset { stream, code: code.into_inner() }
                    }
                    // The driver learns it, too.
                    Err(_) => return,
                };
                let is_last = !matches!(input, Input::Stream { fin: false, .. });
                if arrivals.send(input).await.is_err() || is_last {
                    return;
                }
            }
        });
        self.readers.insert(stream, reader.abort_handle());
    }
}

/// Waits for something that a server could delay for ever.
async fn written<T>(done: impl Future<Output = T>) -> Result<T, DriverEnd> {
    let limited = tokio::time::timeout(WRITTEN, done).await;
    limited.map_err(|_| code(ErrorCode::NoError))
}

fn lost(error: quinn::ConnectionError) -> DriverEnd {
    tracing::debug!(%error, "the connection to a DNS server ended");
    code(ErrorCode::NoError)
}

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
