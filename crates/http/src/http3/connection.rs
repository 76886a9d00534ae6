//! What the streams of a connection share.

use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use eyas_h3::{
    code::ErrorCode,
    connection::{
        Connection, ConnectionConfig, ConnectionSetup, Event, Input, Output, Section, UniStream,
    },
    fault::{ConnectionFault, Fault, StreamFault},
    qpack::FieldLine,
    settings::Settings,
    stream::{Role, StreamId},
};
use tokio::sync::Notify;

use super::{
    error::{ConnectionEnd, StreamError},
    message::SentField,
    transport::{QuicConnection, QuicConnectionEnd, QuicStreamEnd},
};

/// The largest table of fields for either direction (RFC 9204 §3.2.3), in bytes.
const TABLE_BYTES: u64 = 4096;

/// The number of streams that may wait for entries of the table (RFC 9204 §2.1.2).
const BLOCKED_STREAMS: u64 = 16;

/// What a connection offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionOptions {
    /// The largest head of a message, in bytes as RFC 9114 §4.2.2 counts them.
    pub(crate) head_bytes: u64,
    /// Extended CONNECT (RFC 9220), on a server.
    pub(crate) extended_connect: bool,
    /// HTTP Datagrams (RFC 9297).
    pub(crate) datagrams: bool,
    /// What a client that sends 0-RTT data remembers of the server (RFC 9114 §7.2.4.2).
    pub(crate) remembered: Option<Settings>,
}

/// The settings of a server, once they have arrived.
pub(crate) type ServerSettings = Arc<OnceLock<Settings>>;

/// What the halves of requests' streams and the side streams share.
pub(crate) struct Shared<Q> {
    quic: Q,
    role: Role,
    /// The largest head of a message that is accepted, in bytes.
    head_bytes: u64,
    /// Whether requests may be extended CONNECT.
    #[cfg(feature = "server")]
    extended_connect: bool,
    epoch: Instant,
    core: Mutex<Core>,
    /// Wakes the task of the side streams.
    work: Notify,
    /// The rule that the peer broke, if that is why the connection ends.
    violation: OnceLock<ConnectionFault>,
    /// The identifier in the peer's last GOAWAY (RFC 9114 §5.2).
    goaway: AtomicU64,
    /// The peer's settings, which may be remembered for longer than the connection.
    received: ServerSettings,
    has_ended: AtomicBool,
    /// Wakes those who wait for one of these three.
    told: Notify,
}

/// No GOAWAY has arrived.
const NO_GOAWAY: u64 = u64::MAX;

struct Core {
    connection: Connection,
    /// The streams with a field section that waits for the table.
    blocked: BTreeMap<u64, BlockedSection>,
    /// What the task of the side streams has to do.
    work: Vec<Work>,
    /// Why the connection has ended.
    end: Option<ConnectionEnd>,
}

#[derive(Default)]
struct BlockedSection {
    waker: Option<Waker>,
    decoded: Option<Result<Vec<FieldLine>, StreamFault>>,
}

/// What the task of the side streams has to do.
#[derive(Debug)]
pub(super) enum Work {
    Open(UniStream),
    Write { stream: UniStream, data: Bytes, fin: bool },
    StopSending { stream: u64, code: ErrorCode },
}

/// A field section that was received.
pub(super) enum Decoded {
    Fields(Vec<FieldLine>),
    /// It waits for entries of the table.
    Blocked,
}

impl<Q: QuicConnection> Shared<Q> {
    pub(super) fn new(quic: Q, role: Role, options: ConnectionOptions) -> Self {
        let config = ConnectionConfig {
            max_field_section_size: options.head_bytes,
            qpack_max_table_capacity: TABLE_BYTES,
            qpack_blocked_streams: BLOCKED_STREAMS,
            qpack_encoder_capacity: TABLE_BYTES,
            // A message never waits for another.
            qpack_encoder_blocked_streams: 0,
            extended_connect: options.extended_connect,
            datagrams: options.datagrams,
            // A peer that grants few streams could delay what is necessary with others.
            grease: false,
        };
        let setup = ConnectionSetup { role, config, seed: 0, remembered: options.remembered };
        let connection = Connection::new(setup, Duration::ZERO);
        let core = Core { connection, blocked: BTreeMap::new(), work: Vec::new(), end: None };
        let shared = Self {
            quic,
            role,
            head_bytes: options.head_bytes,
            #[cfg(feature = "server")]
            extended_connect: options.extended_connect,
            epoch: Instant::now(),
            core: Mutex::new(core),
            work: Notify::new(),
            violation: OnceLock::new(),
            goaway: AtomicU64::new(NO_GOAWAY),
            received: ServerSettings::default(),
            has_ended: AtomicBool::new(false),
            told: Notify::new(),
        };
        shared.with_core(|_, _| ());
        shared
    }

    pub(super) fn quic(&self) -> &Q {
        &self.quic
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }

    /// Returns the largest head of a message that is accepted, in bytes.
    pub(super) fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// Calls the core, and carries out what it asks for.
    fn with_core<T>(&self, call: impl FnOnce(&mut Core, Duration) -> T) -> T {
        let now = self.epoch.elapsed();
        let mut core = self.lock();
        let had_work = !core.work.is_empty();
        let result = call(&mut core, now);
        self.poll_outputs(&mut core, now);
        let has_work = !core.work.is_empty();
        drop(core);
        // Whoever left work before has woken the task.
        if has_work && !had_work {
            self.work.notify_one();
        }
        result
    }

    /// Carries out what the core asks for, but for what the task of the side streams has to do.
    fn poll_outputs(&self, core: &mut Core, now: Duration) {
        loop {
            let work = match core.connection.poll_output(now) {
                Output::OpenUni(stream) => Work::Open(stream),
                Output::Write { stream, data, fin } => Work::Write { stream, data, fin },
                Output::StopSending { stream, code } => {
                    Work::StopSending { stream: stream.0, code }
                }
                Output::Event(event) => {
                    self.handle_event(core, event);
                    continue;
                }
                Output::Close(fault) => {
                    self.close(fault);
                    continue;
                }
                Output::Timeout(_) => return,
            };
            core.work.push(work);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle_event(&self, core: &mut Core, event: Event) {
        match event {
            Event::Settings(settings) => {
                // They come once.
                let _ = self.received.set(settings);
                self.told.notify_waiters();
            }
            Event::Section { stream, fields } => {
                if let Some(blocked) = core.blocked.get_mut(&stream.0) {
                    blocked.decoded = Some(fields);
                    if let Some(waker) = blocked.waker.take() {
                        waker.wake();
                    }
                }
            }
            // One from a client has a push ID, and nothing is pushed.
            Event::GoAway { id } if self.role == Role::Client => {
                // A later one has a lower identifier.
                self.goaway.store(id, Ordering::Release);
                self.told.notify_waiters();
            }
            _ => {}
        }
    }

    fn close(&self, fault: ConnectionFault) {
        let reason = fault.to_string();
        let code = fault.code();
        tracing::debug!(%code, reason, "the peer violated HTTP/3");
        let _ = self.violation.set(fault);
        self.quic.close(code, &reason);
    }

    /// Takes note of what happened on the side streams, and returns what there is to do on them now.
    pub(super) fn handle_input(&self, input: Input) -> Vec<Work> {
        let now = self.epoch.elapsed();
        let mut core = self.lock();
        core.connection.handle_input(now, input);
        self.poll_outputs(&mut core, now);
        mem::take(&mut core.work)
    }

    /// Waits until there is something to do on the side streams.
    pub(super) async fn next_work(&self) -> Vec<Work> {
        loop {
            let work = mem::take(&mut self.lock().work);
            if !work.is_empty() {
                return work;
            }
            self.work.notified().await;
        }
    }

    /// Takes note of the end of the connection: nothing that is waited for will come.
    pub(super) fn ended(&self, end: &ConnectionEnd) {
        let mut core = self.lock();
        core.end = Some(end.clone());
        core.blocked.values_mut().filter_map(|blocked| blocked.waker.take()).for_each(Waker::wake);
        drop(core);
        self.has_ended.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    /// Ends the connection of a client whose server has opened a bidirectional stream (RFC 9114 §6.1).
    pub(super) fn server_opened(&self, stream: u64) {
        // Returns why it ends, which the core asks for, too.
        let _ = self.with_core(|core, _| core.connection.accept_request(StreamId(stream)));
    }

    /// Encodes a field section.
    pub(super) fn encode(
        &self,
        stream: u64,
        fields: &[SentField<'_>],
    ) -> Result<Bytes, StreamError> {
        let fields = fields.iter().copied();
        Ok(self.with_core(|core, _| core.connection.encode_section(StreamId(stream), fields))?)
    }

    /// Decodes a field section. If it is blocked, [`poll_unblocked`](Self::poll_unblocked) has to follow.
    pub(super) fn decode(&self, stream: u64, section: Bytes) -> Result<Decoded, StreamError> {
        let decoded = self.with_core(|core, now| {
            let decoded = core.connection.decode_section(now, StreamId(stream), section);
            if let Ok(Section::Blocked) = decoded {
                core.blocked.insert(stream, BlockedSection::default());
            }
            decoded
        });
        match decoded {
            Ok(Section::Ready(lines)) => Ok(Decoded::Fields(lines)),
            Ok(Section::Blocked) => Ok(Decoded::Blocked),
            Err(Fault::Stream(fault)) => Err(StreamError::Malformed(fault)),
            Err(Fault::Connection(fault)) => Err(StreamError::Violation(fault)),
        }
    }

    /// Ready once the field section of a stream that was blocked is decoded.
    pub(super) fn poll_unblocked(
        &self,
        cx: &mut Context<'_>,
        stream: u64,
    ) -> Poll<Result<Vec<FieldLine>, StreamError>> {
        let mut core = self.lock();
        let blocked = core.blocked.entry(stream).or_default();
        if let Some(decoded) = blocked.decoded.take() {
            core.blocked.remove(&stream);
            return Poll::Ready(decoded.map_err(StreamError::Malformed));
        }
        blocked.waker = Some(cx.waker().clone());
        match &core.end {
            Some(end) => Poll::Ready(Err(StreamError::Ended(end.clone()))),
            None => Poll::Pending,
        }
    }

    /// Gives up the field sections of a stream that is read no more.
    pub(super) fn cancel(&self, stream: u64) {
        self.with_core(|core, _| {
            core.blocked.remove(&stream);
            core.connection.cancel(StreamId(stream));
        });
    }

    /// Ends the connection because of what a half of a request's stream has found.
    pub(super) fn violated(&self, fault: ConnectionFault) -> StreamError {
        self.with_core(|core, _| core.connection.close(fault));
        StreamError::Violation(fault)
    }

    /// Returns why a half of a stream carries no more.
    pub(super) fn explain(&self, end: QuicStreamEnd) -> StreamError {
        match end {
            QuicStreamEnd::Connection(end) => StreamError::Ended(self.explain_end(end)),
            QuicStreamEnd::Aborted(code) => StreamError::Aborted(code),
            QuicStreamEnd::Unusable(failure) => StreamError::Unusable(failure),
        }
    }

    /// Returns why the connection has ended.
    pub(super) fn explain_end(&self, end: QuicConnectionEnd) -> ConnectionEnd {
        match (end, self.violation.get()) {
            (QuicConnectionEnd::ClosedHere, Some(fault)) => ConnectionEnd::Violation(*fault),
            (end, _) => ConnectionEnd::Quic(end),
        }
    }
}

/// A client's part.
#[cfg(feature = "client")]
impl<Q: QuicConnection> Shared<Q> {
    /// Returns whether the peer accepts no further requests (RFC 9114 §5.2).
    pub(crate) fn is_going_away(&self) -> bool {
        self.goaway.load(Ordering::Acquire) != NO_GOAWAY
    }

    /// Returns whether the peer does not process the request on this stream.
    pub(crate) fn excludes(&self, stream: u64) -> bool {
        stream >= self.goaway.load(Ordering::Acquire)
    }

    /// Waits until it is known that the peer does not process the request on this stream.
    pub(crate) async fn excluded(&self, stream: u64) {
        self.wait_until(|| self.excludes(stream).then_some(())).await;
    }

    /// Waits for the peer's settings. There are none if the connection ends before.
    pub(crate) async fn peer_settings(&self) -> Option<Settings> {
        self.wait_until(|| match self.received.get() {
            Some(settings) => Some(Some(*settings)),
            None => self.has_ended.load(Ordering::Acquire).then_some(None),
        })
        .await
    }

    /// Waits until something is found in what the peer has told.
    async fn wait_until<T>(&self, found: impl Fn() -> Option<T>) -> T {
        loop {
            // It counts from here on, so that nothing is missed between the look and the wait.
            let told = self.told.notified();
            if let Some(found) = found() {
                return found;
            }
            told.await;
        }
    }

    /// Returns the peer's settings, once they have arrived.
    pub(crate) fn received_settings(&self) -> ServerSettings {
        Arc::clone(&self.received)
    }

    /// Returns whether both ends are known to offer HTTP Datagrams (RFC 9297 §2.1.1).
    pub(crate) fn has_datagrams(&self) -> bool {
        self.lock().connection.may_send_datagrams()
    }
}

/// A server's part.
#[cfg(feature = "server")]
impl<Q: QuicConnection> Shared<Q> {
    /// Returns what a request may have.
    pub(super) fn request_options(&self) -> eyas_h3::message::RequestOptions {
        eyas_h3::message::RequestOptions { extended_connect: self.extended_connect }
    }

    /// Takes note of a new stream of a request. Returns false if it came after the GOAWAY.
    pub(super) fn accept_request(&self, stream: u64) -> bool {
        self.with_core(|core, _| core.connection.accept_request(StreamId(stream)).is_ok())
    }

    /// Sends GOAWAY with the stream after the last accepted request (RFC 9114 §5.2).
    pub(super) fn go_away(&self) {
        self.with_core(|core, _| core.connection.shut_down(eyas_h3::connection::Shutdown::Refuse));
    }
}
