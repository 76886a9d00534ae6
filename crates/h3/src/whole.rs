//! A connection and all of its requests in one type (RFC 9114), for whoever wants no parts: simulations,
//! fuzzers, and drivers that need neither separate locks nor content without a copy in a queue.
//!
//! The contract: call [`handle_input`](WholeConnection::handle_input) or another method, then
//! [`poll_output`](WholeConnection::poll_output) until it returns [`Output::Timeout`].
//!
//! ```
//! use core::time::Duration;
//! use eyas_h3::connection::{ConnectionConfig, ConnectionSetup};
//! use eyas_h3::qpack::Sensitivity;
//! use eyas_h3::stream::{Role, StreamId};
//! use eyas_h3::whole::{Event, Input, Output, WholeConnection};
//!
//! let now = Duration::ZERO;
//! let end = |role| {
//!     let config = ConnectionConfig::default();
//!     WholeConnection::new(ConnectionSetup { role, config, seed: 1, remembered: None }, now)
//! };
//! let (mut client, mut server) = (end(Role::Client), end(Role::Server));
//! let field = |name: &'static str, value: &'static str| {
//!     (name.as_bytes(), value.as_bytes(), Sensitivity::Ordinary)
//! };
//! let request = [
//!     field(":method", "GET"),
//!     field(":scheme", "https"),
//!     field(":authority", "example.com"),
//!     field(":path", "/"),
//! ];
//! let stream = client.send_request(request.into_iter(), true).unwrap();
//!
//! // What one end writes, the other reads. QUIC is in between.
//! fn carry(from: &mut WholeConnection, to: &mut WholeConnection) -> Vec<Event> {
//!     let mut events = Vec::new();
//!     loop {
//!         match from.poll_output(Duration::ZERO) {
//!             Output::Write { stream, data, fin } => {
//!                 to.handle_input(Duration::ZERO, Input::Stream { stream, data, fin });
//!             }
//!             Output::Event(event) => events.push(event),
//!             Output::Timeout(_) => return events,
//!             _ => {}
//!         }
//!     }
//! }
//! carry(&mut client, &mut server);
//! let events = carry(&mut server, &mut client);
//! assert!(events.contains(&Event::End { stream }));
//!
//! server.send_response(stream, [field(":status", "204")].into_iter(), true).unwrap();
//! carry(&mut server, &mut client);
//! let events = carry(&mut client, &mut server);
//! assert!(events.iter().any(|event| matches!(event, Event::Head { fields, .. }
//!     if fields[0].value == "204")));
//! ```

mod exchange;
mod io;
#[cfg(test)]
mod tests;

pub use io::{Event, Failure, Input, Output};

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;

use bytes::Bytes;

use crate::code::ErrorCode;
use crate::connection::{self, Connection, ConnectionSetup, Shutdown, UniStream};
use crate::datagram;
use crate::fault::{ConnectionFault, Fault};
use crate::message::{self, Content, RequestMethod, RequestOptions};
use crate::misuse::Misuse;
use crate::priority::Priority;
use crate::qpack::Sensitivity;
use crate::settings::Settings;
use crate::stream::{Role, StreamId};
use exchange::Exchange;

/// The number of the peer's streams of one direction that may be open at once. The transport has to
/// allow no more; what arrives on further ones is dropped.
pub const MAX_OPEN_STREAMS: usize = 256;

/// A connection with its requests.
#[derive(Debug)]
pub struct WholeConnection {
    role: Role,
    max_section: u64,
    extended_connect: bool,
    connection: Connection,
    /// The requests that have not ended.
    exchanges: BTreeMap<StreamId, Exchange>,
    /// The stream of the next request.
    next_request: StreamId,
    /// The unidirectional streams of the peer that have not ended and are read.
    peer_streams: BTreeSet<StreamId>,
    /// The next unidirectional stream of the peer, and of this endpoint.
    next_peer_stream: StreamId,
    next_stream: StreamId,
    own_streams: BTreeMap<UniStream, StreamId>,
    outputs: VecDeque<Output>,
}

impl WholeConnection {
    /// Creates a connection, whose first outputs open its streams and send its settings.
    #[must_use]
    pub fn new(setup: ConnectionSetup, now: Duration) -> Self {
        let (client, server) = (StreamId(2), StreamId(3));
        let (next_stream, next_peer_stream) = match setup.role {
            Role::Client => (client, server),
            Role::Server => (server, client),
        };
        Self {
            role: setup.role,
            max_section: setup.config.max_field_section_size,
            extended_connect: setup.config.extended_connect,
            connection: Connection::new(setup, now),
            exchanges: BTreeMap::new(),
            next_request: StreamId(0),
            peer_streams: BTreeSet::new(),
            next_peer_stream,
            next_stream,
            own_streams: BTreeMap::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Handles what happened.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        if self.connection.is_closed() {
            return;
        }
        match input {
            Input::Tick => self.connection.handle_input(now, connection::Input::Tick),
            Input::Stream { stream, data, fin } if stream.is_unidirectional() => {
                if self.admit_peer_stream(stream) {
                    if fin {
                        self.peer_streams.remove(&stream);
                    }
                    let input = connection::Input::Stream { stream, data, fin };
                    self.connection.handle_input(now, input);
                }
            }
            Input::Stream { stream, data, fin } => {
                if self.admit_request(stream)
                    && let Some(exchange) = self.exchanges.get_mut(&stream)
                    && !exchange.is_received
                {
                    exchange.receiver.handle_input(data, fin);
                    self.read(now, stream);
                }
            }
            Input::Reset { stream, .. } if stream.is_unidirectional() => {
                if self.admit_peer_stream(stream) {
                    self.peer_streams.remove(&stream);
                    self.connection.handle_input(now, connection::Input::Reset { stream });
                }
            }
            Input::Reset { stream, code } => self.handle_reset(stream, code),
            Input::Stopped { stream, code } => self.handle_stopped(now, stream, code),
            Input::Datagram(frame) => {
                self.connection.handle_input(now, connection::Input::Datagram(frame));
            }
        }
        self.forward(now);
    }

    /// Returns what to do next.
    pub fn poll_output(&mut self, now: Duration) -> Output {
        self.forward(now);
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }

    /// Sends the head of a request; with `end`, all of it. Returns its stream.
    ///
    /// # Errors
    /// What [`Connection::check_new_request`] and [`Connection::encode_section`] return, and
    /// [`Misuse::Malformed`] for a request that the server would refuse to read.
    pub fn send_request<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8], Sensitivity)> + Clone,
        end: bool,
    ) -> Result<StreamId, Misuse> {
        self.connection.check_new_request()?;
        let extended_connect = self.peer_settings().is_some_and(|peer| peer.extended_connect);
        let pairs = fields.clone().map(|(name, value, _)| (name, value));
        let head = message::check_request(pairs, RequestOptions { extended_connect })
            .map_err(Misuse::Malformed)?;
        let stream = self.next_request;
        let section = self.connection.encode_section(stream, fields)?;
        let method = RequestMethod::from_name(head.method);
        let mut exchange = Exchange::new(self.role, self.max_section, method);
        let data = exchange.sender.head(&section, head.content)?;
        if end {
            exchange.finish()?;
        }
        self.exchanges.insert(stream, exchange);
        self.next_request = StreamId(stream.0 + 4);
        self.outputs.push_back(Output::Open(stream));
        self.outputs.push_back(Output::Write { stream, data, fin: end });
        Ok(stream)
    }

    /// Sends the head of a response, an interim or the final one; with `end`, all of it.
    ///
    /// # Errors
    /// [`Misuse::NoSuchStream`], [`Misuse::Malformed`], and what [`Connection::encode_section`] and
    /// [`RequestSender`](crate::request::RequestSender) return.
    pub fn send_response<'a>(
        &mut self,
        stream: StreamId,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8], Sensitivity)> + Clone,
        end: bool,
    ) -> Result<(), Misuse> {
        if self.role == Role::Client {
            return Err(Misuse::OtherRole);
        }
        let exchange = self.exchanges.get_mut(&stream).ok_or(Misuse::NoSuchStream)?;
        let pairs = fields.clone().map(|(name, value, _)| (name, value));
        let head = message::check_response(pairs, exchange.method).map_err(Misuse::Malformed)?;
        if end {
            exchange.check_end_after(head.content)?;
        }
        let section = self.connection.encode_section(stream, fields)?;
        let data = exchange.sender.head(&section, head.content)?;
        self.write(stream, data, end)
    }

    /// Sends a part of the content; with `end`, the last.
    ///
    /// # Errors
    /// [`Misuse::NoSuchStream`], and what [`RequestSender`](crate::request::RequestSender) returns.
    pub fn send_data(&mut self, stream: StreamId, data: Bytes, end: bool) -> Result<(), Misuse> {
        let exchange = self.exchanges.get_mut(&stream).ok_or(Misuse::NoSuchStream)?;
        let header = exchange.sender.data(data.len() as u64)?;
        let header = Bytes::copy_from_slice(header.as_ref());
        self.outputs.push_back(Output::Write { stream, data: header, fin: false });
        self.write(stream, data, end)
    }

    /// Sends the trailers and ends the message.
    ///
    /// # Errors
    /// [`Misuse::NoSuchStream`], [`Misuse::Malformed`], and what [`Connection::encode_section`] and
    /// [`RequestSender`](crate::request::RequestSender) return.
    pub fn send_trailers<'a>(
        &mut self,
        stream: StreamId,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8], Sensitivity)> + Clone,
    ) -> Result<(), Misuse> {
        let exchange = self.exchanges.get_mut(&stream).ok_or(Misuse::NoSuchStream)?;
        let pairs = fields.clone().map(|(name, value, _)| (name, value));
        message::check_trailers(pairs).map_err(Misuse::Malformed)?;
        let section = self.connection.encode_section(stream, fields)?;
        let data = exchange.sender.trailers(&section)?;
        self.write(stream, data, true)
    }

    /// Gives up a request in both directions.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        if let Some(exchange) = self.exchanges.remove(&stream) {
            self.abort(stream, &exchange, code);
        }
    }

    /// Sends an HTTP Datagram (RFC 9297 §2.1).
    ///
    /// # Errors
    /// [`Misuse::NotNegotiated`] unless both ends have offered them, [`Misuse::NoSuchStream`].
    pub fn send_datagram(&mut self, stream: StreamId, payload: &[u8]) -> Result<(), Misuse> {
        if !self.connection.may_send_datagrams() {
            return Err(Misuse::NotNegotiated);
        }
        if !self.exchanges.contains_key(&stream) {
            return Err(Misuse::NoSuchStream);
        }
        let mut frame = alloc::vec::Vec::new();
        datagram::write_header(stream, &mut frame);
        frame.extend_from_slice(payload);
        self.outputs.push_back(Output::Datagram(frame.into()));
        Ok(())
    }

    /// Tells the peer that the connection ends ([`Connection::shut_down`]).
    pub fn shut_down(&mut self, shutdown: Shutdown) {
        self.connection.shut_down(shutdown);
    }

    /// Changes the priority of a request ([`Connection::update_priority`]).
    ///
    /// # Errors
    /// As there.
    pub fn update_priority(&mut self, stream: StreamId, priority: Priority) -> Result<(), Misuse> {
        self.connection.update_priority(stream, priority)
    }

    /// Returns the peer's settings ([`Connection::peer_settings`]).
    #[must_use]
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.connection.peer_settings()
    }

    /// Returns the number of requests that have not ended.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.exchanges.len()
    }

    fn write(&mut self, stream: StreamId, data: Bytes, fin: bool) -> Result<(), Misuse> {
        if fin && let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.finish()?;
        }
        self.outputs.push_back(Output::Write { stream, data, fin });
        self.remove_if_over(stream);
        Ok(())
    }

    /// Returns whether a stream of the peer is open, and opens it and those before it (RFC 9000 §2.1).
    fn admit_peer_stream(&mut self, stream: StreamId) -> bool {
        if stream.initiator() == self.role {
            return false;
        }
        while self.next_peer_stream <= stream && self.peer_streams.len() < MAX_OPEN_STREAMS {
            self.peer_streams.insert(self.next_peer_stream);
            self.next_peer_stream.0 += 4;
        }
        self.peer_streams.contains(&stream)
    }

    /// Returns whether a request is open, and opens it and those before it.
    fn admit_request(&mut self, stream: StreamId) -> bool {
        if self.role == Role::Client && !stream.is_request() {
            self.connection.close(ConnectionFault::ServerOpenedRequest(stream));
            return false;
        }
        let opens = self.role == Role::Server && stream.is_request();
        while opens && self.next_request <= stream && self.exchanges.len() < MAX_OPEN_STREAMS {
            let next = self.next_request;
            self.next_request.0 += 4;
            match self.connection.accept_request(next) {
                Ok(priority) => {
                    let exchange =
                        Exchange::new(self.role, self.max_section, RequestMethod::default());
                    self.exchanges.insert(next, exchange);
                    if let Some(priority) = priority {
                        let event = connection::Event::Priority { stream: next, priority };
                        self.push_event(Event::Connection(event));
                    }
                }
                Err(fault) => {
                    let code = fault.code();
                    self.outputs.push_back(Output::StopSending { stream: next, code });
                    self.outputs.push_back(Output::Reset { stream: next, code });
                }
            }
        }
        self.exchanges.contains_key(&stream)
    }

    fn handle_reset(&mut self, stream: StreamId, code: u64) {
        if !self.admit_request(stream) {
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        if !exchange.is_received {
            exchange.is_received = true;
            self.connection.cancel(stream);
            let failure = Failure::Reset(ErrorCode::from_received(code));
            self.push_event(Event::Failed { stream, failure });
            self.remove_if_over(stream);
        }
    }

    fn handle_stopped(&mut self, now: Duration, stream: StreamId, code: u64) {
        let own = self.own_streams.iter().find(|(_, own)| **own == stream);
        if let Some((&uni, _)) = own {
            self.connection.handle_input(now, connection::Input::Stopped(uni));
            return;
        }
        if !self.admit_request(stream) {
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(&stream)
            && !exchange.is_sent
        {
            exchange.is_sent = true;
            let code = ErrorCode::from_received(code);
            self.outputs.push_back(Output::Reset { stream, code });
            self.push_event(Event::Failed { stream, failure: Failure::Stopped(code) });
            self.remove_if_over(stream);
        }
    }

    /// Passes on what the connection has to say.
    fn forward(&mut self, now: Duration) {
        loop {
            match self.connection.poll_output(now) {
                connection::Output::OpenUni(uni) => {
                    let stream = self.next_stream;
                    self.next_stream.0 += 4;
                    self.own_streams.insert(uni, stream);
                    self.outputs.push_back(Output::Open(stream));
                    self.connection.handle_input(now, connection::Input::Opened(uni));
                }
                connection::Output::Write { stream: uni, data, fin } => {
                    if let Some(&stream) = self.own_streams.get(&uni) {
                        self.outputs.push_back(Output::Write { stream, data, fin });
                    }
                    self.connection.handle_input(now, connection::Input::Written(uni));
                }
                connection::Output::StopSending { stream, code } => {
                    self.peer_streams.remove(&stream);
                    self.outputs.push_back(Output::StopSending { stream, code });
                }
                connection::Output::Close(fault) => {
                    self.exchanges.clear();
                    self.outputs.push_back(Output::Close(fault));
                }
                connection::Output::Event(event) => self.handle_event(now, event),
                connection::Output::Timeout(_) => return,
            }
        }
    }

    fn push_event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

/// What follows a head that is checked, or the fault of the peer.
type Checked = Result<Content, Fault>;
