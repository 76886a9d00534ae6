//! rtc-sctp (webrtc-rs), driven like its own example.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rival_sctp::command::{self, Failure, Measurement, Start, resident};
use rival_sctp::end::{End, PACKET, WINDOW};
use rtc_sctp::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event,
    Payload, PayloadProtocolIdentifier, ServerConfig, TransportConfig, max_payload_size_for_mtu,
};
use rtc_shared::TransportProtocol;

/// The limit for the send buffer in its own example. With 4 MiB, more than 65,536 messages of 64 bytes would be in
/// flight, and their stream sequence numbers would be ambiguous.
const SEND_BUFFER: usize = 1 << 20;
const CLIENT: &str = "127.0.0.1:5000";
const SERVER: &str = "127.0.0.1:5001";

fn transport() -> TransportConfig {
    TransportConfig::default().with_max_receive_buffer_size(WINDOW as u32)
}

fn endpoint(local: &str, accepts: bool) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.max_payload_size(max_payload_size_for_mtu(PACKET as u32));
    let server = accepts.then(|| Arc::new(ServerConfig::new(transport())));
    Endpoint::new(address(local), TransportProtocol::UDP, Arc::new(config), server)
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// An endpoint with a single association.
struct Node {
    endpoint: Endpoint,
    peer: SocketAddr,
    handle: Option<AssociationHandle>,
    association: Option<Association>,
    is_established: bool,
    has_stream: bool,
}

impl Node {
    fn poll_events(&mut self) {
        let Some(association) = self.association.as_mut() else { return };
        while let Some(event) = association.poll() {
            self.is_established |= matches!(event, Event::Connected);
        }
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(handle) = self.handle {
                self.endpoint.handle_event(handle, event);
            }
        }
    }
}

impl End for Node {
    fn client(now: Instant) -> Self {
        let mut endpoint = endpoint(CLIENT, false);
        let peer = address(SERVER);
        let (handle, association) =
            endpoint.connect(now, ClientConfig::new(transport()), peer).expect("connect");
        let (handle, association) = (Some(handle), Some(association));
        Self { endpoint, peer, handle, association, is_established: false, has_stream: false }
    }

    fn server(_: Instant) -> Self {
        let (endpoint, peer) = (endpoint(SERVER, true), address(CLIENT));
        Self {
            endpoint,
            peer,
            handle: None,
            association: None,
            is_established: false,
            has_stream: false,
        }
    }

    fn handle(&mut self, now: Instant, packet: Bytes) {
        match self.endpoint.handle(now, self.peer, None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                (self.handle, self.association) = (Some(handle), Some(association));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some(association) = self.association.as_mut() {
                    association.handle_event(event);
                }
            }
            _ => {}
        }
    }

    fn tick(&mut self, now: Instant) {
        if self.timeout().is_some_and(|at| at <= now)
            && let Some(association) = self.association.as_mut()
        {
            association.handle_timeout(now);
        }
        self.poll_events();
    }

    fn timeout(&self) -> Option<Instant> {
        self.association.as_ref().and_then(Association::poll_timeout)
    }

    fn transmit(&mut self, now: Instant, packets: &mut VecDeque<Bytes>) {
        let Some(association) = self.association.as_mut() else { return };
        while let Some(transmit) = association.poll_transmit(now) {
            if let Payload::RawEncode(contents) = transmit.message {
                packets.extend(contents);
            }
        }
    }

    fn is_established(&mut self) -> bool {
        self.poll_events();
        self.is_established
    }

    fn send(&mut self, now: Instant, message: &Bytes) -> bool {
        let association = self.association.as_mut().expect("an association");
        if !self.has_stream {
            association.open_stream(0, PayloadProtocolIdentifier::Binary).expect("a stream");
            self.has_stream = true;
        }
        let mut stream = association.stream(0).expect("a stream");
        if stream.buffered_amount().expect("a stream") + message.len() > SEND_BUFFER {
            return false;
        }
        stream.write_sctp(now, message, PayloadProtocolIdentifier::Binary).expect("a write");
        true
    }

    fn receive(&mut self) -> Option<usize> {
        let association = self.association.as_mut()?;
        if !self.has_stream {
            self.has_stream = association.accept_stream().is_some();
        }
        let chunks = association.stream(0).ok()?.read_sctp().ok()??;
        Some(std::hint::black_box(chunks).len())
    }

    fn is_dry(&mut self) -> bool {
        let stream = self.association.as_mut().and_then(|it| it.stream(0).ok());
        stream.is_none_or(|stream| stream.buffered_amount().is_ok_and(|bytes| bytes == 0))
    }
}

/// An endpoint with many associations.
struct Many {
    endpoint: Endpoint,
    peer: SocketAddr,
    associations: HashMap<AssociationHandle, Association>,
}

impl Many {
    fn handle(&mut self, now: Instant, packet: Bytes) -> Option<AssociationHandle> {
        match self.endpoint.handle(now, self.peer, None, packet)? {
            (handle, DatagramEvent::NewAssociation(association)) => {
                self.associations.insert(handle, association);
                Some(handle)
            }
            (handle, DatagramEvent::AssociationEvent(event)) => {
                self.associations.get_mut(&handle)?.handle_event(event);
                Some(handle)
            }
            _ => None,
        }
    }

    fn transmit(&mut self, now: Instant, handle: AssociationHandle, packets: &mut Vec<Bytes>) {
        let Some(association) = self.associations.get_mut(&handle) else { return };
        while association.poll().is_some() {}
        while let Some(transmit) = association.poll_transmit(now) {
            if let Payload::RawEncode(contents) = transmit.message {
                packets.extend(contents);
            }
        }
    }
}

/// Opens associations one after another, and sends one message on each.
fn associations(count: usize) -> Result<Measurement, Failure> {
    let many = |local, peer, accepts| Many {
        endpoint: endpoint(local, accepts),
        peer: address(peer),
        associations: HashMap::new(),
    };
    let mut client = many(CLIENT, SERVER, false);
    let mut server = many(SERVER, CLIENT, true);
    let config = ClientConfig::new(transport());
    let message = Bytes::from_static(&[0x5a; 64]);
    let mut handles = Vec::new();
    let before = resident();
    let start = Start::now();
    for _ in 0..count {
        let now = Instant::now();
        let (handle, association) =
            client.endpoint.connect(now, config.clone(), address(SERVER))?;
        client.associations.insert(handle, association);
        exchange(now, handle, &mut client, &mut server);
        handles.push(handle);
    }
    let mut measurement = start.finish(count as u64, 0);
    for handle in handles {
        let now = Instant::now();
        let association = client.associations.get_mut(&handle).ok_or("an association was lost")?;
        association.open_stream(0, PayloadProtocolIdentifier::Binary)?;
        association.stream(0)?.write_sctp(now, &message, PayloadProtocolIdentifier::Binary)?;
        exchange(now, handle, &mut client, &mut server);
    }
    measurement.memory = (resident() - before) / count as f64;
    let mut received = 0;
    for association in server.associations.values_mut() {
        received += usize::from(association.accept_stream().is_some());
    }
    if received == count {
        Ok(measurement)
    } else {
        Err(format!("{received} of {count} messages arrived").into())
    }
}

/// Exchanges packets in both directions until there are none.
fn exchange(now: Instant, client_handle: AssociationHandle, client: &mut Many, server: &mut Many) {
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut server_handle = None;
    loop {
        client.transmit(now, client_handle, &mut to_server);
        if to_server.is_empty() {
            return;
        }
        for packet in to_server.drain(..) {
            server_handle = server.handle(now, packet).or(server_handle);
        }
        if let Some(handle) = server_handle {
            server.transmit(now, handle, &mut to_client);
        }
        for packet in to_client.drain(..) {
            client.handle(now, packet);
        }
    }
}

fn main() -> Result<(), Failure> {
    command::main::<Node>(associations)
}
