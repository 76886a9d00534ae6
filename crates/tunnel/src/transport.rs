//! Runs a session over the streams of a connection.

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;
use eyas::SctpStreams;
use eyas::race::candidate::Transport;
use eyas::{Connection, ConnectionInfo, quinn};
use eyas_relay::copy::CopyStream;
use eyas_relay::via::lanes::ProxyLanes;
use eyas_sctp_tokio::protocol::identifier::StreamId;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use crate::link::SessionLink;
use crate::paths::ConnectionPaths;
use crate::session::{SessionEnd, SessionSide, TRANSMIT, TunnelLane, TunnelSession};

/// The time for the last frames to be sent, or to arrive.
const SHUTDOWN_TIME: std::time::Duration = std::time::Duration::from_secs(1);
/// Bytes read at once, which is about the size of a TLS record.
const READ: usize = 16 * 1024;

/// The connection below a session: its first stream, and the source of further ones.
pub struct SessionTransport {
    first: Box<dyn CopyStream + Send>,
    further: FurtherStreams,
    paths: ConnectionPaths,
    /// The connection to the proxy, if there is one.
    lanes: Option<ProxyLanes>,
}

/// The source of further streams. Each is as secure as the first one: QUIC, and DTLS below SCTP, protect all their
/// data, and over SCTP without DTLS each pair of streams has a TLS session with the same two keys.
#[derive(Debug)]
enum FurtherStreams {
    /// The transport has only one stream.
    None,
    Quic(quinn::Connection),
    Sctp(SctpStreams),
}

type StreamReader = Box<dyn AsyncRead + Send + Unpin>;

/// The sending side of a stream.
enum StreamWriter {
    Other(Box<dyn AsyncWrite + Send + Unpin>),
    Quic(quinn::SendStream),
}

impl SessionTransport {
    /// Uses a connection for a session.
    ///
    /// # Errors
    /// Returns the connection if it is already closed.
    pub(crate) fn new(connection: Connection) -> Result<Self, Connection> {
        let further = match (connection.quic(), connection.sctp_streams()) {
            (Some(quic), _) => FurtherStreams::Quic(quic.clone()),
            (None, Some(streams)) => FurtherStreams::Sctp(streams),
            (None, None) => FurtherStreams::None,
        };
        let paths = ConnectionPaths::from_connection(&connection);
        let first = connection.into_stream()?;
        Ok(Self { first: Box::new(first), further, paths, lanes: None })
    }

    /// Uses a stream through a proxy for a session, with a connection to that proxy.
    pub(crate) fn proxied(
        first: Box<dyn CopyStream + Send>,
        info: Arc<ConnectionInfo>,
        (proxy, lanes): (String, ProxyLanes),
    ) -> Self {
        let paths = ConnectionPaths::proxied(info, proxy);
        Self { first, further: FurtherStreams::None, paths, lanes: Some(lanes) }
    }

    /// Returns the transport.
    pub fn transport(&self) -> Transport {
        self.paths.transport()
    }
}

/// The transport and the peer's address, or the proxy.
impl fmt::Display for SessionTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.paths.proxy() {
            Some(proxy) => write!(f, "{} through {proxy}", self.transport()),
            None => write!(f, "{} to {}", self.transport(), self.paths.remote()),
        }
    }
}

impl fmt::Debug for SessionTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionTransport").field(&self.paths).finish_non_exhaustive()
    }
}

impl FurtherStreams {
    /// Returns the stream with this number, which the client opens and the server waits for, or `None` if there are
    /// no more.
    async fn stream(&self, side: SessionSide, number: u16) -> Option<(StreamReader, StreamWriter)> {
        match (self, side) {
            (Self::None, _) => None,
            (Self::Quic(quic), SessionSide::Client) => Some(of_quic(quic.open_bi().await.ok()?)),
            (Self::Quic(quic), SessionSide::Server) => Some(of_quic(quic.accept_bi().await.ok()?)),
            (Self::Sctp(streams), _) => {
                let stream = streams.stream(StreamId(number)).await;
                let stream = stream.inspect_err(|error| {
                    tracing::debug!(number, %error, "a tunnel gets no further streams");
                });
                let (mut from, to) = tokio::io::split(stream.ok()?);
                let to = StreamWriter::Other(Box::new(to));
                if side == SessionSide::Client {
                    return Some((Box::new(from), to));
                }
                // Without a handshake on the stream, its first byte shows that the client has opened it.
                let mut first = [0];
                from.read_exact(&mut first).await.ok()?;
                Some((Box::new(std::io::Cursor::new(first).chain(from)), to))
            }
        }
    }
}

fn of_quic((to, from): (quinn::SendStream, quinn::RecvStream)) -> (StreamReader, StreamWriter) {
    (Box::new(from), StreamWriter::Quic(to))
}

impl StreamWriter {
    /// Sets the priority of the stream, if the transport supports it: brief data goes first.
    fn prefer(&self, is_brief: bool) {
        if let Self::Quic(stream) = self {
            // If the stream is closed, writing fails as well.
            let _ = stream.set_priority(-i32::from(!is_brief));
        }
    }

    async fn write(&mut self, out: &mut BytesMut) -> std::io::Result<()> {
        match self {
            Self::Other(to) => write(to, out).await,
            Self::Quic(to) => write(to, out).await,
        }
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), out: &mut BytesMut) -> std::io::Result<()> {
    while !out.is_empty() {
        to.write_buf(out).await?;
    }
    to.flush().await
}

impl SessionLink {
    /// Runs the session until it is over, and returns why.
    pub(crate) async fn run(&self, side: SessionSide, transport: SessionTransport) -> SessionEnd {
        // The connection to a proxy lasts as long as the session.
        let SessionTransport { first, further, paths, lanes } = transport;
        self.set_paths(Some(paths));
        let (mut from, to) = tokio::io::split(first);
        let mut to = StreamWriter::Other(Box::new(to));
        let mut out = BytesMut::with_capacity(TRANSMIT);
        let sender = self.first_sender();
        let why = tokio::select! {
            why = self.read_frames(TunnelLane::FIRST, &mut from) => why,
            why = self.send(TunnelLane::FIRST, &sender, &mut to, &mut out) => why,
            () = self.run_timeouts() => String::new(),
            () = self.add_lanes(side, further) => String::new(),
        };
        let why = self.paths().and_then(|paths| paths.close_reason()).unwrap_or(why);
        self.change_session(|session, _| {
            session.lost(&why);
            session.poll_transmit(TunnelLane::FIRST, &mut out);
        });
        let last = async {
            to.write(&mut out).await?;
            match &mut to {
                StreamWriter::Other(to) => {
                    to.shutdown().await?;
                    // Over QUIC a connection that is dropped before the other end has it loses the rest.
                    to.flush().await?;
                    if lanes.is_some() {
                        // A stream of HTTP/2 that is dropped before the proxy has ended it is reset.
                        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
                    }
                    std::io::Result::Ok(())
                }
                StreamWriter::Quic(_) => Ok(()),
            }
        };
        // A peer that does not get it will notice the end of the connection.
        let _ = timeout(SHUTDOWN_TIME, last).await;
        // The paths have a handle of the connection.
        self.set_paths(None);
        self.end().unwrap_or(SessionEnd::Lost(why))
    }

    /// Adds streams as they become useful, and runs the session over them, too. Never returns.
    async fn add_lanes(&self, side: SessionSide, further: FurtherStreams) {
        let mut lanes = JoinSet::new();
        if self.up().await.is_ok() {
            for number in 1..u16::MAX {
                if side == SessionSide::Client {
                    self.wants_lane().await;
                }
                let lane = TunnelLane(number);
                let Some((from, to)) = further.stream(side, number).await else { break };
                let Some(sender) = self.add_lane(lane) else { break };
                let link = self.clone();
                lanes.spawn(async move { link.run_lane(lane, &sender, from, to).await });
            }
        }
        std::future::pending().await
    }

    async fn run_lane(
        &self,
        lane: TunnelLane,
        sender: &Notify,
        mut from: StreamReader,
        mut to: StreamWriter,
    ) {
        let mut out = BytesMut::new();
        let why = tokio::select! {
            why = self.read_frames(lane, &mut from) => why,
            why = self.send(lane, sender, &mut to, &mut out) => why,
        };
        if self.peek(|session| session.received_hello(lane)) {
            // If all streams have ended, the first one may still receive the reason.
            sleep(SHUTDOWN_TIME).await;
            self.give_up(&why);
        }
    }

    /// Passes received data to the session until the stream ends, and returns why.
    async fn read_frames(&self, lane: TunnelLane, from: &mut (impl AsyncRead + Unpin)) -> String {
        let mut piece = vec![0; READ];
        loop {
            let length = match from.read(&mut piece).await {
                Ok(0) => return "the other end closed it".to_owned(),
                Ok(length) => length,
                Err(error) => return error.to_string(),
            };
            let is_over = self.change_session(|session, now| {
                session.handle_bytes(now, lane, &piece[..length]);
                session.end().is_some()
            });
            self.shared.received.notify_waiters();
            if is_over {
                return String::new();
            }
        }
    }

    /// Sends the session's data until the session is over or sending fails, and returns why.
    async fn send(
        &self,
        lane: TunnelLane,
        sender: &Notify,
        to: &mut StreamWriter,
        out: &mut BytesMut,
    ) -> String {
        loop {
            let (is_over, is_brief) = {
                let mut state = self.lock();
                let is_brief = state.session.is_brief(lane);
                state.session.poll_transmit(lane, out);
                // Channels have room again.
                if state.dispatch_events() {
                    self.shared.changed.notify_waiters();
                }
                (state.session.end().is_some(), is_brief)
            };
            let was_empty = out.is_empty();
            if !was_empty {
                self.expect_life();
            }
            to.prefer(is_brief);
            if let Err(error) = to.write(out).await {
                return error.to_string();
            }
            if is_over {
                return String::new();
            }
            if was_empty {
                sender.notified().await;
            }
        }
    }

    async fn run_timeouts(&self) {
        while let Some(at) = self.peek(TunnelSession::next_timeout) {
            sleep_until(self.shared.began + at).await;
            let was_asked = self.change_session(|session, now| session.handle_timeout(now));
            if was_asked {
                self.expect_answer();
            }
        }
    }
}
