//! One endpoint and its outgoing packets.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::error::Error;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Ecn, Input, Output, Received, Transmit};
use eyas_sctp::message::SendInfo;

/// The receive window and the send buffer, in bytes.
pub(crate) const WINDOW: usize = 4 << 20;
/// The SCTP port of the server.
const PORT: u16 = 5000;

/// The addresses of both sides, with the encapsulation port: packets of 1,472 bytes.
pub(crate) const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9899);
pub(crate) const SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 9899);

/// The configuration of all associations here.
pub(crate) fn config() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.send_buffer = WINDOW;
    config.receive_buffer = WINDOW;
    config.path_mtu_discovery = false;
    config
}

/// One endpoint.
pub(crate) struct Side {
    pub(crate) endpoint: Endpoint,
    address: SocketAddr,
    config: AssociationConfig,
    /// The most recently established association.
    pub(crate) up: Option<AssociationId>,
    /// Packets to send, in order.
    pub(crate) packets: VecDeque<Transmit>,
    /// The time of the endpoint's next timeout.
    pub(crate) timeout: Option<Duration>,
    /// The bytes received so far of an incomplete message.
    partial: usize,
}

impl Side {
    pub(crate) fn new(address: SocketAddr, config: &AssociationConfig) -> Self {
        let mut options = EndpointConfig::default();
        options.association = config.clone();
        if address == SERVER {
            options.listen_port = Some(PORT);
        }
        let endpoint = Endpoint::new(options, [address.port() as u8; 32], Duration::ZERO);
        let config = config.clone();
        let packets = VecDeque::new();
        Self { endpoint, address, config, up: None, packets, timeout: None, partial: 0 }
    }

    /// Opens an association to the server.
    pub(crate) fn connect(&mut self, now: Duration) -> Result<AssociationId, Error> {
        let mut options = ConnectOptions::new(SERVER, PORT);
        options.association = self.config.clone();
        self.endpoint.connect(now, &options)
    }

    /// Processes a packet from the other side.
    pub(crate) fn handle(&mut self, now: Duration, from: SocketAddr, transmit: Transmit) {
        let received = Received {
            local: Some(self.address.ip()),
            remote: from,
            ecn: Ecn::NotCapable,
            peer: None,
            contents: transmit.contents,
            segment_size: transmit.segment_size,
        };
        self.endpoint.handle_input(now, Input::Packets(received));
    }

    /// Collects all outputs.
    pub(crate) fn drain(&mut self, now: Duration) -> Result<(), String> {
        loop {
            match self.endpoint.poll_output(now) {
                Output::Transmit(transmit) => self.packets.push_back(transmit),
                Output::Event(id, Event::Up { .. }) => self.up = Some(id),
                Output::Event(_, Event::Lost(why)) => return Err(format!("lost: {why:?}")),
                Output::Event(..) => {}
                Output::Timeout(at) => {
                    self.timeout = at;
                    return Ok(());
                }
                other => return Err(format!("unexpected output: {other:?}")),
            }
        }
    }

    /// Queues a message; `false` if there is no room.
    pub(crate) fn send(
        &mut self,
        now: Duration,
        id: AssociationId,
        message: &Bytes,
    ) -> Result<bool, Error> {
        match self.endpoint.send(now, id, &SendInfo::default(), message.clone()) {
            Ok(()) => Ok(true),
            Err(Error::Full) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a complete message, and returns its length.
    pub(crate) fn receive(&mut self, now: Duration, id: AssociationId) -> Option<usize> {
        while let Some(part) = self.endpoint.receive(now, id) {
            self.partial += part.len();
            if part.ends {
                return Some(std::mem::take(&mut self.partial));
            }
        }
        None
    }
}
