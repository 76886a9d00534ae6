//! A connection without the content of its requests: unidirectional streams, settings, field
//! compression, the end of the connection, priorities and datagrams (RFC 9114 §5, §6.2, §7.2).
//!
//! A driver keeps one [`Connection`] behind one lock, which it takes for heads and control streams
//! alone; each request's stream has [halves](crate::request) of its own. The contract: call
//! [`handle_input`](Connection::handle_input) or another method, then
//! [`poll_output`](Connection::poll_output) until it returns [`Output::Timeout`].

mod control;
mod incoming;
mod io;
mod origins;
mod outgoing;
mod pending;
mod section;
#[cfg(test)]
mod tests;

pub use control::MAX_CONTROL_FRAME;
pub use incoming::MAX_UNDETERMINED_STREAMS;
pub use io::{Event, Input, Output, UniStream};
pub use origins::MAX_ORIGINS;
pub use outgoing::MAX_UNSENT;
pub use pending::MAX_PENDING_PRIORITIES;
pub use section::Section;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::code::ErrorCode;
use crate::datagram;
use crate::fault::{ConnectionFault, Fault, StreamFault};
use crate::frame_type::FrameType;
use crate::misuse::Misuse;
use crate::priority::Priority;
use crate::settings::Settings;
use crate::stream::{CriticalStream, Role, StreamId};
use crate::varint;
use control::{Control, ControlReceiver};
use incoming::{Incoming, IncomingStreams};
use origins::OriginSet;
use outgoing::OutgoingStreams;
use pending::PendingPriorities;
use section::Compression;

/// What a connection offers its peer, and its own limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// The largest field section that is accepted, in bytes as RFC 9114 §4.2.2 counts them.
    pub max_field_section_size: u64,
    /// The largest table of fields that the peer may fill here, in bytes; 0 for none.
    pub qpack_max_table_capacity: u64,
    /// The number of streams that may wait here for entries of that table.
    pub qpack_blocked_streams: u64,
    /// The largest table of fields that this endpoint fills at the peer, in bytes; 0 for none.
    pub qpack_encoder_capacity: u64,
    /// The number of streams that this endpoint lets wait at the peer for entries of that table; 0 if a
    /// message must never wait for another.
    pub qpack_encoder_blocked_streams: u64,
    /// Whether requests may be extended CONNECT (RFC 9220); for servers.
    pub extended_connect: bool,
    /// Whether HTTP Datagrams are received in QUIC DATAGRAM frames (RFC 9297 §2.1.1), which QUIC has to
    /// allow then.
    pub datagrams: bool,
    /// Whether reserved settings, frames and streams are sent, so that peers go on ignoring unknown ones
    /// (RFC 9114 §6.2.3, §7.2.4.1, §7.2.8).
    pub grease: bool,
}

impl Default for ConnectionConfig {
    /// 64 KiB of fields, tables of 4 KiB, 16 streams that may wait here and none at the peer, and reserved
    /// types; no extensions.
    fn default() -> Self {
        Self {
            max_field_section_size: 64 * 1024,
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 16,
            qpack_encoder_capacity: 4096,
            qpack_encoder_blocked_streams: 0,
            extended_connect: false,
            datagrams: false,
            grease: true,
        }
    }
}

impl ConnectionConfig {
    const fn settings(&self) -> Settings {
        Settings {
            max_field_section_size: Some(self.max_field_section_size),
            qpack_max_table_capacity: self.qpack_max_table_capacity,
            qpack_blocked_streams: self.qpack_blocked_streams,
            extended_connect: self.extended_connect,
            datagrams: self.datagrams,
        }
    }
}

/// What a connection begins with.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSetup {
    /// Which end this is.
    pub role: Role,
    /// What it offers.
    pub config: ConnectionConfig,
    /// What reserved numbers are drawn from.
    pub seed: u64,
    /// At a client that sends 0-RTT data: the server's settings of the earlier connection, which bind
    /// both (RFC 9114 §7.2.4.2). If the server rejects 0-RTT, all of its streams are lost: begin with
    /// another connection, without them.
    pub remembered: Option<Settings>,
}

/// How a server ends a connection gracefully (RFC 9114 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shutdown {
    /// The client is asked to send no further requests; those that are on their way are still accepted.
    Announce,
    /// Requests that have not arrived yet are rejected.
    Refuse,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    /// Whether HTTP Datagrams are received.
    datagrams: bool,
    incoming: IncomingStreams,
    outgoing: OutgoingStreams,
    control: ControlReceiver,
    compression: Compression,
    pending: PendingPriorities,
    origins: OriginSet,
    /// The peer's settings: those that it has sent, or until then those that were remembered.
    peer_settings: Option<Settings>,
    /// The identifier of the last GOAWAY that was sent.
    sent_goaway: Option<u64>,
    /// The stream after the last request that has arrived.
    next_request: StreamId,
    /// The stream after the last that QUIC allows, if known.
    request_limit: Option<StreamId>,
    outputs: VecDeque<Output>,
    is_closed: bool,
}

impl Connection {
    /// Creates a connection, whose first outputs open its streams and send its settings.
    #[must_use]
    pub fn new(setup: ConnectionSetup, _now: Duration) -> Self {
        let ConnectionSetup { role, config, seed, remembered } = setup;
        let mut compression = Compression::new(&config);
        let remembered = remembered.filter(|_| role == Role::Client);
        if let Some(settings) = &remembered {
            // The first limits of an encoder are as good as any.
            let _ = compression.set_peer_settings(settings);
        }
        Self {
            role,
            datagrams: config.datagrams,
            incoming: IncomingStreams::default(),
            outgoing: OutgoingStreams::new(&config.settings(), config.grease.then_some(seed)),
            control: ControlReceiver::default(),
            compression,
            pending: PendingPriorities::default(),
            origins: OriginSet::default(),
            peer_settings: remembered,
            sent_goaway: None,
            next_request: StreamId(0),
            request_limit: None,
            outputs: VecDeque::new(),
            is_closed: false,
        }
    }

    /// Handles what happened.
    pub fn handle_input(&mut self, _now: Duration, input: Input) {
        if self.is_closed {
            return;
        }
        if let Err(fault) = self.dispatch_input(input) {
            self.close(fault);
        }
    }

    /// Returns what to do next.
    pub fn poll_output(&mut self, _now: Duration) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        // Events are rare: an idle connection keeps no room for them.
        self.outputs = VecDeque::new();
        if !self.is_closed {
            let instructions = self.compression.take_instructions();
            for (stream, data) in instructions {
                if let Err(fault) = self.outgoing.push(stream, &data) {
                    self.is_closed = true;
                    return Output::Close(fault);
                }
            }
            if let Some(output) = self.outgoing.poll_output() {
                return output;
            }
        }
        Output::Timeout(None)
    }

    /// Ends the connection because of a violation, also one that a half of a request's stream found.
    pub fn close(&mut self, fault: ConnectionFault) {
        if !self.is_closed {
            self.is_closed = true;
            self.outputs.push_back(Output::Close(fault));
        }
    }

    /// Returns whether the connection has ended because of a violation.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn dispatch_input(&mut self, input: Input) -> Result<(), ConnectionFault> {
        match input {
            Input::Tick => Ok(()),
            Input::Stream { stream, data, fin } => self.handle_stream(stream, data, fin),
            Input::Reset { stream } => self.incoming.reset(stream),
            Input::Opened(stream) | Input::Written(stream) => {
                self.outgoing.set_ready(stream);
                Ok(())
            }
            Input::Stopped(UniStream::Critical(critical)) => {
                Err(ConnectionFault::StreamClosed(critical))
            }
            Input::Stopped(UniStream::Reserved) => Ok(()),
            Input::Datagram(frame) => self.handle_datagram(&frame),
        }
    }

    fn handle_stream(
        &mut self,
        stream: StreamId,
        data: Bytes,
        fin: bool,
    ) -> Result<(), ConnectionFault> {
        match self.incoming.receive(self.role, stream, data, fin)? {
            Incoming::Undetermined => return Ok(()),
            Incoming::Unknown => {
                if !fin {
                    let code = ErrorCode::StreamCreationError;
                    self.outputs.push_back(Output::StopSending { stream, code });
                }
                return Ok(());
            }
            Incoming::Critical(CriticalStream::Control, data) => self.handle_control(data, fin)?,
            Incoming::Critical(CriticalStream::QpackEncoder, data) => {
                let executed = self.compression.handle_encoder_stream(&data);
                // Also what arrived before an instruction that is invalid.
                while let Some(event) = self.compression.next_unblocked()? {
                    self.push_event(event);
                }
                executed?;
            }
            Incoming::Critical(CriticalStream::QpackDecoder, data) => {
                self.compression.handle_decoder_stream(&data)?;
            }
        }
        // "If either control stream is closed at any point, this MUST be treated as a connection error of
        // type H3_CLOSED_CRITICAL_STREAM" (RFC 9114 §6.2.1); RFC 9204 §4.2 for the other two.
        match self.incoming.reset(stream) {
            Err(fault) if fin => Err(fault),
            _ => Ok(()),
        }
    }

    fn handle_control(&mut self, mut data: Bytes, fin: bool) -> Result<(), ConnectionFault> {
        while let Some(control) = self.control.read(self.role, &mut data)? {
            match control {
                Control::Settings(settings) => self.handle_settings(settings)?,
                Control::GoAway(id) => self.push_event(Event::GoAway { id }),
                Control::Priority(stream, priority) => self.handle_priority(stream, priority)?,
                Control::Origins(entries) => {
                    let origins = self.origins.add(entries);
                    if !origins.is_empty() {
                        self.push_event(Event::Origins(origins));
                    }
                }
                Control::Nothing => {}
            }
        }
        if fin && !self.control.is_at_boundary() {
            return Err(ConnectionFault::FrameTruncated);
        }
        Ok(())
    }

    fn handle_settings(&mut self, settings: Settings) -> Result<(), ConnectionFault> {
        // They come once: what is there was remembered.
        if let Some(remembered) = &self.peer_settings {
            settings.check_against(remembered)?;
        }
        self.compression.set_peer_settings(&settings)?;
        self.peer_settings = Some(settings);
        self.push_event(Event::Settings(settings));
        Ok(())
    }

    fn handle_priority(
        &mut self,
        stream: StreamId,
        priority: Priority,
    ) -> Result<(), ConnectionFault> {
        if self.request_limit.is_some_and(|limit| stream >= limit) {
            return Err(ConnectionFault::PriorityOfOtherStream(stream.0));
        }
        if stream >= self.next_request {
            self.pending.insert(stream, priority);
        } else {
            self.push_event(Event::Priority { stream, priority });
        }
        Ok(())
    }

    fn handle_datagram(&mut self, frame: &Bytes) -> Result<(), ConnectionFault> {
        let (stream, payload) = datagram::parse(frame)?;
        if self.request_limit.is_some_and(|limit| stream >= limit) {
            return Err(ConnectionFault::DatagramOfOtherStream(stream));
        }
        // Without this endpoint's setting the peer had no reason to send it: it is dropped.
        if self.datagrams {
            self.push_event(Event::Datagram { stream, payload });
        }
        Ok(())
    }

    fn push_frame(&mut self, frame: FrameType, payload: &[u8]) {
        if let Err(fault) = self.outgoing.push_frame(frame, payload) {
            self.close(fault);
        }
    }

    fn push_event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Returns the peer's settings: those that it has sent, or until then those that were remembered for
    /// 0-RTT.
    #[must_use]
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.peer_settings.as_ref()
    }

    /// Returns whether both ends have offered HTTP Datagrams; until then none must be sent (RFC 9297
    /// §2.1.1).
    #[must_use]
    pub fn may_send_datagrams(&self) -> bool {
        self.datagrams && self.peer_settings().is_some_and(|peer| peer.datagrams)
    }

    /// States how many request streams QUIC allows in total, so that identifiers beyond them are
    /// refused (RFC 9218 §7.2, RFC 9297 §2.1).
    pub fn set_request_limit(&mut self, streams: u64) {
        let index = streams.min(varint::MAX >> 2);
        self.request_limit = Some(StreamId::from_request_index(index));
    }

    /// Takes note of a bidirectional stream that the peer opened, and returns the priority that it has by
    /// a PRIORITY_UPDATE frame, which counts more than a Priority field (RFC 9218 §7).
    ///
    /// # Errors
    /// At a server [`StreamFault::AfterGoAway`] for a request that [`Shutdown::Refuse`] excludes; reset
    /// its stream. At a client any such stream ends the connection (RFC 9114 §6.1).
    pub fn accept_request(&mut self, stream: StreamId) -> Result<Option<Priority>, Fault> {
        if self.role == Role::Client {
            let fault = ConnectionFault::ServerOpenedRequest(stream);
            self.close(fault);
            return Err(fault.into());
        }
        let priority = self.pending.remove(stream);
        if self.sent_goaway.is_some_and(|id| stream.0 >= id) {
            return Err(StreamFault::AfterGoAway.into());
        }
        self.next_request = self.next_request.max(StreamId(stream.0.saturating_add(4)));
        Ok(priority)
    }

    /// Checks that a client may send a request.
    ///
    /// # Errors
    /// [`Misuse::GoingAway`] after the server's GOAWAY ("Endpoints MUST NOT initiate new requests ... after
    /// receipt of a GOAWAY frame", RFC 9114 §5.2), [`Misuse::Closed`], [`Misuse::OtherRole`] at a server.
    pub fn check_new_request(&self) -> Result<(), Misuse> {
        match (self.role, self.control.goaway()) {
            (Role::Server, _) => Err(Misuse::OtherRole),
            _ if self.is_closed => Err(Misuse::Closed),
            (Role::Client, Some(_)) => Err(Misuse::GoingAway),
            (Role::Client, None) => Ok(()),
        }
    }

    /// Tells the peer that the connection ends. A server announces it and, at least a round trip later,
    /// refuses what has not arrived; a client's one message has no stages. Repetitions are left out.
    pub fn shut_down(&mut self, shutdown: Shutdown) {
        let id = match (self.role, shutdown) {
            // A push ID: none has been allowed.
            (Role::Client, _) => 0,
            // "An endpoint that is attempting to gracefully shut down a connection can send a GOAWAY frame
            // with a value set to the maximum possible value (2^62-4 for servers, 2^62-1 for clients)"
            // (RFC 9114 §5.2).
            (Role::Server, Shutdown::Announce) => StreamId::MAX_REQUEST.0,
            (Role::Server, Shutdown::Refuse) => self.next_request.0.min(StreamId::MAX_REQUEST.0),
        };
        if self.is_closed || self.sent_goaway.is_some_and(|earlier| id >= earlier) {
            return;
        }
        self.sent_goaway = Some(id);
        let mut payload = Vec::new();
        varint::write(id, &mut payload);
        self.push_frame(FrameType::GoAway, &payload);
    }

    /// Changes the priority of a request that has been sent or will be (RFC 9218 §7.2).
    ///
    /// # Errors
    /// [`Misuse::OtherRole`] at a server, [`Misuse::NoSuchStream`] if the stream is not a request's.
    pub fn update_priority(&mut self, stream: StreamId, priority: Priority) -> Result<(), Misuse> {
        if self.role == Role::Server {
            return Err(Misuse::OtherRole);
        }
        if !stream.is_request() {
            return Err(Misuse::NoSuchStream);
        }
        let mut payload = Vec::new();
        varint::write(stream.0, &mut payload);
        payload.extend_from_slice(priority.to_value().as_bytes());
        self.push_frame(FrameType::PriorityUpdateOfRequest, &payload);
        Ok(())
    }

    /// Tells the client which origins the server has authority for (RFC 9412).
    ///
    /// # Errors
    /// [`Misuse::OtherRole`] at a client.
    pub fn send_origins<'a>(
        &mut self,
        origins: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Misuse> {
        if self.role == Role::Client {
            return Err(Misuse::OtherRole);
        }
        let mut payload = Vec::new();
        for origin in origins {
            // An origin is a scheme, a name of at most 255 bytes, and a port.
            let Ok(length) = u16::try_from(origin.len()) else { continue };
            payload.extend_from_slice(&length.to_be_bytes());
            payload.extend_from_slice(origin.as_bytes());
        }
        self.push_frame(FrameType::Origin, &payload);
        Ok(())
    }
}
