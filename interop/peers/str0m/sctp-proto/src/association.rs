//! Packets, time and events of one association.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_sctp::config::{ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::{AssociationState, Endpoint};
use eyas_sctp::event::{Event as SctpEvent, ReconfigurationOutcome};
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::{Ecn, Input, Output, Received};
use eyas_sctp::snap::SnapInit;

use crate::config::{ClientConfig, TransportConfig, seed};
use crate::names::{
    AssociationError, Error, Event, Payload, PayloadProtocolIdentifier, StreamEvent, Transmit,
};
use crate::stream::{Closing, Half, Stream};

/// The SCTP port of both sides, as WebRTC has it.
const PORT: u16 = 5000;

/// A packet for the association.
#[derive(Debug)]
pub struct AssociationEvent {
    pub(crate) now: Instant,
    pub(crate) packet: Bytes,
}

/// An association sends no events to its endpoint.
#[derive(Debug)]
pub enum EndpointEvent {}

/// One association.
#[derive(Debug)]
pub struct Association {
    pub(crate) endpoint: Endpoint,
    /// None until the peer has opened it.
    pub(crate) id: Option<AssociationId>,
    remote: SocketAddr,
    epoch: Option<Instant>,
    pub(crate) now: Duration,
    timeout: Option<Duration>,
    pub(crate) events: VecDeque<Event>,
    packets: VecDeque<Bytes>,
    pub(crate) streams: BTreeMap<u16, Half>,
    pub(crate) closing: BTreeMap<u16, Closing>,
    pub(crate) max_send: usize,
    max_receive: usize,
    has_ended: bool,
}

impl Association {
    fn new(endpoint: Endpoint, transport: &TransportConfig, remote: SocketAddr) -> Self {
        Self {
            endpoint,
            id: None,
            remote,
            epoch: None,
            now: Duration::ZERO,
            timeout: None,
            events: VecDeque::new(),
            packets: VecDeque::new(),
            streams: BTreeMap::new(),
            closing: BTreeMap::new(),
            max_send: transport.max_send_message_size as usize,
            max_receive: transport.max_receive_message_size as usize,
            has_ended: false,
        }
    }

    pub(crate) fn listen(
        transport: &TransportConfig,
        max_payload: u32,
        remote: SocketAddr,
    ) -> Self {
        let mut config = EndpointConfig::default();
        config.listen_port = Some(PORT);
        config.association = transport.association(max_payload);
        Self::new(Endpoint::new(config, seed(), Duration::ZERO), transport, remote)
    }

    pub(crate) fn connect(
        config: &ClientConfig,
        max_payload: u32,
        remote: SocketAddr,
    ) -> Result<Self, Error> {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), seed(), Duration::ZERO);
        let mut options = ConnectOptions::new(remote, PORT);
        options.local_port = PORT;
        options.association = config.transport.association(max_payload);
        let id = match &config.inits {
            None => endpoint.connect(Duration::ZERO, &options)?,
            Some((local, peer)) => {
                let parse = |init: &Bytes| {
                    SnapInit::from_bytes(init).ok_or_else(|| Error::Other("not an INIT".into()))
                };
                let (local, peer) = (parse(local)?, parse(peer)?);
                endpoint.connect_out_of_band(Duration::ZERO, &options, &local, &peer)?
            }
        };
        let mut association = Self::new(endpoint, &config.transport, remote);
        association.id = Some(id);
        Ok(association)
    }

    pub fn set_max_send_message_size(&mut self, bytes: u32) {
        self.max_send = if bytes == 0 { usize::MAX } else { bytes as usize };
    }

    pub fn handle_event(&mut self, event: AssociationEvent) {
        self.advance_to(event.now);
        let received = Received {
            local: None,
            remote: self.remote,
            ecn: Ecn::NotCapable,
            peer: None,
            segment_size: event.packet.len().max(1),
            contents: event.packet,
        };
        self.endpoint.handle_input(self.now, Input::Packets(received));
        self.drain();
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance_to(now);
        self.endpoint.handle_input(self.now, Input::Tick);
        self.drain();
    }

    pub fn poll_timeout(&mut self) -> Option<Instant> {
        Some(self.epoch? + self.timeout?)
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.advance_to(now);
        self.drain();
        let packet = self.packets.pop_front()?;
        Some(Transmit { now, remote: self.remote, payload: Payload::RawEncode(vec![packet]) })
    }

    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        None
    }

    pub fn poll(&mut self) -> Option<Event> {
        self.drain();
        self.events.pop_front()
    }

    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.state().is_some_and(|state| {
            matches!(
                state,
                AssociationState::ShutdownPending
                    | AssociationState::ShutdownSent
                    | AssociationState::ShutdownReceived
                    | AssociationState::ShutdownAckSent
            )
        })
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.has_ended
    }

    pub fn shutdown(&mut self) -> Result<(), Error> {
        let id = self.id.ok_or(Error::Other("no association yet".into()))?;
        Ok(self.endpoint.shutdown(self.now, id)?)
    }

    pub fn open_stream(
        &mut self,
        id: u16,
        _: PayloadProtocolIdentifier,
    ) -> Result<Stream<'_>, Error> {
        if self.closing.contains_key(&id) {
            return Err(Error::ErrStreamResetPending);
        }
        if self.streams.contains_key(&id) {
            return Err(Error::ErrStreamAlreadyExist);
        }
        self.streams.insert(id, Half::default());
        Ok(Stream { association: self, id })
    }

    pub fn stream(&mut self, id: u16) -> Result<Stream<'_>, Error> {
        if !self.streams.contains_key(&id) {
            return Err(Error::ErrStreamNotExisted);
        }
        Ok(Stream { association: self, id })
    }

    fn state(&self) -> Option<AssociationState> {
        Some(self.endpoint.status(self.id?)?.state)
    }

    fn advance_to(&mut self, now: Instant) {
        let epoch = *self.epoch.get_or_insert(now);
        self.now = self.now.max(now.saturating_duration_since(epoch));
    }

    /// Processes all output of the endpoint.
    fn drain(&mut self) {
        loop {
            match self.endpoint.poll_output(self.now) {
                Output::Transmit(transmit) => {
                    let mut rest = transmit.contents;
                    while !rest.is_empty() {
                        let length = transmit.segment_size.min(rest.len());
                        self.packets.push_back(rest.split_to(length));
                    }
                }
                Output::Event(id, event) => self.handle_sctp_event(id, &event),
                Output::Timeout(at) => {
                    self.timeout = at;
                    self.receive_messages();
                    self.update_buffered_low();
                    if !self.reset_closing() {
                        return;
                    }
                }
                Output::TransmitStructs(_) => {}
            }
        }
    }

    fn handle_sctp_event(&mut self, id: AssociationId, event: &SctpEvent) {
        match event {
            SctpEvent::Up { .. } => {
                self.id = Some(id);
                self.events.push_back(Event::Connected);
            }
            SctpEvent::Lost(_) | SctpEvent::Closed => {
                self.receive_messages();
                self.has_ended = true;
                let reason = AssociationError(format!("{event:?}"));
                self.events.push_back(Event::AssociationLost { reason });
            }
            SctpEvent::StreamsReset { outgoing: true, streams, outcome } => {
                let done = *outcome == ReconfigurationOutcome::Performed;
                streams.iter().for_each(|stream| self.own_stream_reset(stream.0, done));
            }
            SctpEvent::StreamsReset { outgoing: false, streams, .. } => {
                self.receive_messages();
                streams.iter().for_each(|stream| self.peer_stream_reset(stream.0));
            }
            _ => {}
        }
    }

    fn receive_messages(&mut self) {
        let Some(id) = self.id else { return };
        while let Some(message) = self.endpoint.receive(self.now, id) {
            let stream = message.stream.0;
            if self.closing.contains_key(&stream) && !self.is_reopened(stream) {
                continue;
            }
            let half = self.streams.entry(stream).or_default();
            let (ppid, ends) = (message.ppid, message.ends);
            half.partial.extend_from_slice(&message.into_bytes());
            if half.partial.len() > self.max_receive.max(1 << 17) {
                half.partial.clear();
                let _ = Stream { association: self, id: stream }.close();
            } else if ends {
                let data = std::mem::take(&mut half.partial);
                half.incoming.push_back((PayloadProtocolIdentifier::of(ppid), data));
                self.events.push_back(Event::Stream(StreamEvent::Readable { id: stream }));
            }
        }
    }

    fn update_buffered_low(&mut self) {
        let Some(id) = self.id else { return };
        for (stream, half) in &mut self.streams {
            let queued = self.endpoint.stream_queue(id, StreamId(*stream));
            let queued = queued.map_or(0, |queue| queue.unsent);
            if half.is_above && queued <= half.low_threshold {
                self.events
                    .push_back(Event::Stream(StreamEvent::BufferedAmountLow { id: *stream }));
            }
            half.is_above = queued > half.low_threshold;
        }
    }
}
