//! rtc-sctp (webrtc-rs).

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rtc_sctp::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier, ReliabilityType, ServerConfig, StreamEvent,
    TransportConfig, max_payload_size_for_mtu,
};
use rtc_shared::TransportProtocol;

use crate::link::LARGEST;
use crate::side::{
    BUFFER, Failure, Incoming, LARGEST_MESSAGE, Outgoing, PORT, Side, SideEvent, SideOptions,
};

/// The send buffer size of its own example, which has room for the largest message.
const SEND_BUFFER: usize = LARGEST_MESSAGE;
const SHUTDOWN_COMPLETE: u8 = 14;
const LOCAL: ([u8; 4], u16) = ([192, 0, 2, 2], 9899);
const PEER: ([u8; 4], u16) = ([192, 0, 2, 1], 9899);
const PPID: PayloadProtocolIdentifier = PayloadProtocolIdentifier::Binary;

/// An endpoint with one association: the one that is established, or the first so far. The endpoint
/// creates one for each INIT, even for a duplicated packet.
pub struct Rtc {
    endpoint: Endpoint,
    transport: TransportConfig,
    epoch: Instant,
    associations: Vec<(AssociationHandle, Association)>,
    current: usize,
    /// Streams that may have a message.
    readable: BTreeSet<u16>,
    /// Bytes written and not yet acknowledged or abandoned.
    buffered: usize,
    is_up: bool,
    has_ended: bool,
    /// Whether this side has requested a graceful shutdown.
    is_shutting_down: bool,
    side_events: VecDeque<SideEvent>,
}

impl Rtc {
    pub fn new(options: SideOptions) -> Self {
        let transport = TransportConfig::default()
            .with_sctp_port(PORT)
            .with_max_receive_buffer_size(BUFFER as u32)
            .with_max_message_size(LARGEST_MESSAGE as u32)
            .with_max_num_outbound_streams(options.streams);
        let mut config = EndpointConfig::default();
        config.max_payload_size(max_payload_size_for_mtu(LARGEST as u32));
        let server = Some(Arc::new(ServerConfig::new(transport.clone())));
        let (local, config) = (SocketAddr::from(LOCAL), Arc::new(config));
        Self {
            endpoint: Endpoint::new(local, TransportProtocol::UDP, config, server),
            transport,
            epoch: Instant::now(),
            associations: Vec::new(),
            current: 0,
            readable: BTreeSet::new(),
            buffered: 0,
            is_up: false,
            has_ended: false,
            is_shutting_down: false,
            side_events: VecDeque::new(),
        }
    }

    fn association(&mut self) -> Result<&mut Association, Failure> {
        let current = self.associations.get_mut(self.current).map(|(_, association)| association);
        current.ok_or_else(|| "no association".into())
    }

    fn poll_events(&mut self) {
        let mut reason_text = String::new();
        for (number, (_, association)) in self.associations.iter_mut().enumerate() {
            // Events for the endpoint are discarded: the association reports itself as drained when
            // the shutdown begins, after which the endpoint would pass it no more packets.
            while association.poll_endpoint_event().is_some() {}
            while let Some(event) = association.poll() {
                match event {
                    Event::Connected => {
                        (self.is_up, self.current) = (true, number);
                        self.side_events.push_back(SideEvent::Up);
                    }
                    Event::Stream(StreamEvent::Readable { id } | StreamEvent::Opened { id }) => {
                        self.readable.insert(id);
                    }
                    Event::Stream(StreamEvent::BufferedAmountReleased { n_bytes, .. }) => {
                        self.buffered = self.buffered.saturating_sub(n_bytes);
                    }
                    Event::AssociationLost { reason, .. } | Event::HandshakeFailed { reason } => {
                        reason_text = format!("{reason:?}");
                        if !association.is_closed() {
                            self.side_events.push_back(SideEvent::TheirStreamsReset);
                        }
                    }
                    _ => {}
                }
            }
        }
        let closed = |(_, association): &(_, Association)| association.is_closed();
        if self.is_up && !self.has_ended && self.associations.get(self.current).is_some_and(closed)
        {
            let graceful = reason_text.contains("AssociationClosed");
            self.end(if graceful { SideEvent::Closed } else { SideEvent::Lost(reason_text) });
        }
    }

    fn end(&mut self, how: SideEvent) {
        self.has_ended = true;
        self.side_events.push_back(how);
    }
}

impl Side for Rtc {
    fn connect(&mut self, now: Duration) -> Result<(), Failure> {
        let config = ClientConfig::new(self.transport.clone());
        self.associations.push(self.endpoint.connect(self.epoch + now, config, PEER.into())?);
        Ok(())
    }

    fn handle(&mut self, now: Duration, packet: Bytes) {
        let reflected =
            matches!(packet.get(12..14), Some([SHUTDOWN_COMPLETE, flags]) if flags & 1 == 1);
        match self.endpoint.handle(self.epoch + now, PEER.into(), None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.associations.push((handle, association));
            }
            Some((handle, DatagramEvent::AssociationEvent(event))) => {
                let known = self.associations.iter_mut().find(|(known, _)| *known == handle);
                if let Some((_, association)) = known {
                    association.handle_event(event);
                }
            }
            _ => {}
        }
        self.poll_events();
        // It ignores the T bit (RFC 9260 §8.5.1), and would send SHUTDOWN ACK endlessly after the
        // SHUTDOWN COMPLETE was lost.
        if reflected && self.is_up && !self.has_ended {
            self.associations.clear();
            self.end(SideEvent::Closed);
        }
    }

    fn tick(&mut self, now: Duration) {
        let now = self.epoch + now;
        for (_, association) in &mut self.associations {
            if association.poll_timeout().is_some_and(|at| at <= now) {
                association.handle_timeout(now);
            }
        }
        self.poll_events();
    }

    fn timeout(&self) -> Option<Duration> {
        let at = self.associations.iter().filter_map(|(_, it)| it.poll_timeout()).min()?;
        Some(at.saturating_duration_since(self.epoch))
    }

    fn transmit(&mut self, now: Duration, packets: &mut Vec<Bytes>) {
        let before = packets.len();
        for (_, association) in &mut self.associations {
            while let Some(transmit) = association.poll_transmit(self.epoch + now) {
                if let Payload::RawEncode(contents) = transmit.message {
                    packets.extend(contents);
                }
            }
        }
        self.poll_events();
        // It does not report the completion of its own shutdown, so its last packet is detected.
        let last = |packet: &Bytes| packet.get(12) == Some(&SHUTDOWN_COMPLETE);
        if self.is_shutting_down && !self.has_ended && packets.iter().skip(before).any(last) {
            self.end(SideEvent::Closed);
        }
    }

    fn poll(&mut self) -> Option<SideEvent> {
        self.side_events.pop_front()
    }

    fn send(&mut self, now: Duration, message: &Outgoing) -> Result<bool, Failure> {
        if self.buffered > 0 && self.buffered + message.data.len() > SEND_BUFFER {
            return Ok(false);
        }
        let now = self.epoch + now;
        let association = self.association()?;
        if association.stream(message.stream).is_err() {
            association.open_stream(message.stream, PPID)?;
        }
        let mut stream = association.stream(message.stream)?;
        let (kind, value) = match message.retransmissions {
            Some(times) => (ReliabilityType::Rexmit, u32::from(times)),
            None => (ReliabilityType::Reliable, 0),
        };
        stream.set_reliability_params(message.unordered, kind, value)?;
        stream.write_chunk_with_ppi(now, &message.data, PPID)?;
        self.buffered += message.data.len();
        Ok(true)
    }

    fn receive(&mut self, _: Duration) -> Option<Incoming> {
        let (_, association) = self.associations.get_mut(self.current)?;
        while association.accept_stream().is_some() {}
        while let Some(stream) = self.readable.first().copied() {
            let read = association.stream(stream).and_then(|mut it| it.read_sctp());
            if let Ok(Some(chunks)) = read
                && let Ok(data) = chunks.to_payload(BUFFER)
            {
                return Some(Incoming { stream, data: data.freeze() });
            }
            self.readable.remove(&stream);
        }
        None
    }

    fn is_dry(&self) -> bool {
        self.buffered == 0
    }

    fn reset(&mut self, now: Duration, streams: &[u16]) -> Result<(), Failure> {
        let now = self.epoch + now;
        let association = self.association()?;
        for stream in streams {
            // A stream that the other side has reset is closed in both directions already.
            if let Ok(mut open) = association.stream(*stream) {
                open.close(now)?;
            }
        }
        Ok(())
    }

    fn shutdown(&mut self, _: Duration) -> Result<(), Failure> {
        self.is_shutting_down = true;
        Ok(self.association()?.shutdown()?)
    }

    fn abort(&mut self, _: Duration) -> Result<(), Failure> {
        Ok(self.association()?.abort()?)
    }
}
