//! eyas-sctp.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, ReconfigurationOutcome};
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::{Ecn, Input, Output, Received};
use eyas_sctp::message::{Message, MessageReliability, SendInfo};

use crate::side::{BUFFER, Failure, Incoming, Outgoing, PORT, Side, SideEvent, SideOptions};

const PEER: ([u8; 4], u16) = ([192, 0, 2, 2], 9899);

/// An endpoint with one association.
pub struct Ours {
    endpoint: Endpoint,
    config: AssociationConfig,
    id: Option<AssociationId>,
    timeout: Option<Duration>,
    packets: Vec<Bytes>,
    side_events: VecDeque<SideEvent>,
    /// Parts of messages, by stream, order and number.
    parts: BTreeMap<(StreamId, bool, u32), BytesMut>,
}

fn peer() -> SocketAddr {
    PEER.into()
}

impl Ours {
    pub fn new(options: SideOptions, seed: u64) -> Self {
        let mut config = AssociationConfig::default();
        config.outbound_streams = options.streams;
        config.send_buffer = BUFFER;
        config.receive_buffer = BUFFER;
        config.extensions.interleaving = options.interleaving;
        config.extensions.zero_checksum = options.zero_checksum;
        let mut endpoint = EndpointConfig::default();
        endpoint.listen_port = Some(PORT);
        endpoint.association = config.clone();
        let mut secret = [0x45; 32];
        secret[..8].copy_from_slice(&seed.to_be_bytes());
        Self {
            endpoint: Endpoint::new(endpoint, secret, Duration::ZERO),
            config,
            id: None,
            timeout: None,
            packets: Vec::new(),
            side_events: VecDeque::new(),
            parts: BTreeMap::new(),
        }
    }

    fn id(&self) -> Result<AssociationId, Failure> {
        self.id.ok_or_else(|| "no association".into())
    }

    fn drain(&mut self, now: Duration) {
        loop {
            match self.endpoint.poll_output(now) {
                Output::Transmit(transmit) => {
                    let mut contents = transmit.contents;
                    while !contents.is_empty() {
                        let length = transmit.segment_size.min(contents.len());
                        self.packets.push(contents.split_to(length));
                    }
                }
                Output::Event(id, event) => {
                    self.id.get_or_insert(id);
                    self.handle_event(event);
                }
                Output::Timeout(at) => {
                    self.timeout = at;
                    return;
                }
                _ => {}
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        let performed = ReconfigurationOutcome::Performed;
        self.side_events.push_back(match event {
            Event::Up { .. } => SideEvent::Up,
            Event::StreamsReset { outgoing, outcome, .. } if outcome == performed => {
                if outgoing {
                    SideEvent::OurStreamsReset
                } else {
                    SideEvent::TheirStreamsReset
                }
            }
            Event::Closed => SideEvent::Closed,
            Event::Lost(why) => SideEvent::Lost(format!("{why:?}")),
            _ => return,
        });
    }

    /// Adds a message or a part of one; returns the message once it is complete.
    fn reassemble(&mut self, part: Message) -> Option<Incoming> {
        let key = (part.stream, part.unordered, part.number);
        let (begins, ends) = (part.begins, part.ends);
        let mut data = part.into_bytes();
        if !(begins && ends) {
            self.parts.entry(key).or_default().extend_from_slice(&data);
            if !ends {
                return None;
            }
            data = self.parts.remove(&key)?.freeze();
        }
        Some(Incoming { stream: key.0.0, data })
    }
}

impl Side for Ours {
    fn connect(&mut self, now: Duration) -> Result<(), Failure> {
        let mut options = ConnectOptions::new(peer(), PORT);
        options.local_port = PORT;
        options.association = self.config.clone();
        self.id = Some(self.endpoint.connect(now, &options)?);
        self.drain(now);
        Ok(())
    }

    fn handle(&mut self, now: Duration, packet: Bytes) {
        let segment_size = packet.len().max(1);
        let (remote, contents) = (peer(), packet);
        let received =
            Received { local: None, remote, ecn: Ecn::NotCapable, contents, segment_size, peer: None };
        self.endpoint.handle_input(now, Input::Packets(received));
        self.drain(now);
    }

    fn tick(&mut self, now: Duration) {
        self.endpoint.handle_input(now, Input::Tick);
        self.drain(now);
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn transmit(&mut self, now: Duration, packets: &mut Vec<Bytes>) {
        self.drain(now);
        packets.append(&mut self.packets);
    }

    fn poll(&mut self) -> Option<SideEvent> {
        self.side_events.pop_front()
    }

    fn send(&mut self, now: Duration, message: &Outgoing) -> Result<bool, Failure> {
        let info = SendInfo {
            stream: StreamId(message.stream),
            unordered: message.unordered,
            reliability: match message.retransmissions {
                Some(times) => MessageReliability::Retransmissions(times),
                None => MessageReliability::Reliable,
            },
            ..SendInfo::default()
        };
        match self.endpoint.send(now, self.id()?, &info, message.data.clone()) {
            Ok(()) => Ok(true),
            Err(Error::Full) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self, now: Duration) -> Option<Incoming> {
        let id = self.id?;
        loop {
            let part = self.endpoint.receive(now, id)?;
            if let Some(message) = self.reassemble(part) {
                return Some(message);
            }
        }
    }

    fn is_dry(&self) -> bool {
        let status = self.id.and_then(|id| self.endpoint.status(id));
        status.is_none_or(|status| status.queued == 0)
    }

    fn reset(&mut self, now: Duration, streams: &[u16]) -> Result<(), Failure> {
        let streams: Vec<_> = streams.iter().copied().map(StreamId).collect();
        let id = self.id()?;
        Ok(self.endpoint.association_mut(now, id)?.reset_streams(true, &streams)?)
    }

    fn shutdown(&mut self, now: Duration) -> Result<(), Failure> {
        Ok(self.endpoint.shutdown(now, self.id()?)?)
    }

    fn abort(&mut self, now: Duration) -> Result<(), Failure> {
        Ok(self.endpoint.abort(now, self.id()?, Bytes::from_static(b"requested by the case"))?)
    }
}
