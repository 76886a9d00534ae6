//! A data channel over the long path of `link`, as a WebRTC stack sets it up, without DTLS.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{ConnectOptions, EndpointConfig};
use eyas_sctp::data_channel::{
    ChannelError, ChannelEvent, ChannelOptions, ChannelSettings, DataChannelOutput, DataChannels,
    DtlsRole, MessageKind,
};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::io::{Ecn, Input, Output as EndpointOutput, Received, Transmit};

use crate::link::{Direction, MESSAGE, RUN, share_of};
use crate::side::{CLIENT, SERVER};

const PORT: u16 = 5000;

/// One side.
struct End {
    endpoint: Endpoint,
    channels: DataChannels,
    packets: VecDeque<Transmit>,
    timeout: Option<Duration>,
    /// The bytes of the received messages.
    bytes: usize,
}

impl End {
    /// Handles pending work until the next timeout.
    fn drain(&mut self, now: Duration) {
        loop {
            match self.channels.poll_output(now, &mut self.endpoint) {
                DataChannelOutput::Endpoint(EndpointOutput::Transmit(packets)) => {
                    self.packets.push_back(packets);
                }
                DataChannelOutput::Endpoint(EndpointOutput::Timeout(at)) => {
                    return self.timeout = at;
                }
                DataChannelOutput::Channel(ChannelEvent::Message { data, .. }) => {
                    self.bytes += data.len()
                }
                DataChannelOutput::Endpoint(_) | DataChannelOutput::Channel(_) => {}
            }
        }
    }

    fn handle(&mut self, now: Duration, from: std::net::SocketAddr, packet: Transmit) {
        self.endpoint.handle_input(
            now,
            Input::Packets(Received {
                local: None,
                remote: from,
                ecn: Ecn::NotCapable,
                peer: None,
                contents: packet.contents,
                segment_size: packet.segment_size,
            }),
        );
    }

    /// Sends messages until the buffer is full.
    fn fill(&mut self, now: Duration, id: StreamId, message: &Bytes) -> Result<(), ChannelError> {
        loop {
            let data = message.clone();
            match self.channels.send(now, &mut self.endpoint, id, MessageKind::Binary, data) {
                Ok(()) => {}
                Err(ChannelError::Full) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Both sides, established with INITs exchanged out of band.
fn ends() -> Result<[End; 2], Box<dyn std::error::Error>> {
    let settings = [ChannelSettings::new(DtlsRole::Client), ChannelSettings::new(DtlsRole::Server)];
    let mut endpoints =
        [1, 2].map(|seed| Endpoint::new(EndpointConfig::default(), [seed; 32], Duration::ZERO));
    let config = || {
        let mut config = settings[0].association();
        // The same packets as in the other benchmarks here, without DTLS.
        (config.mtu, config.packet_overhead) = (1500, 0);
        config
    };
    let inits = [0, 1].map(|end: usize| endpoints[end].init_out_of_band(&config()));
    let mut made = Vec::new();
    for (end, mut endpoint) in endpoints.into_iter().enumerate() {
        let peer = [SERVER, CLIENT][end];
        let mut options = ConnectOptions::new(peer, PORT);
        (options.local_port, options.association) = (PORT, config());
        let (own, theirs) = (&inits[end], &inits[1 - end]);
        let id = endpoint.connect_out_of_band(Duration::ZERO, &options, own, theirs)?;
        let channels = DataChannels::new(&endpoint, id, settings[end].clone());
        made.push(End { endpoint, channels, packets: VecDeque::new(), timeout: None, bytes: 0 });
    }
    made.try_into().map_err(|_| "two ends are made".into())
}

/// The share of the link that messages on a channel achieve, as JSON.
pub(crate) fn share() -> Result<String, Box<dyn std::error::Error>> {
    let [mut client, mut server] = ends()?;
    let (mut there, mut back) = (Direction::new(0x9e37_79b9), Direction::new(0x7f4a_7c15));
    let message = Bytes::from(vec![0x5a; MESSAGE]);
    let mut now = Duration::ZERO;
    let options = ChannelOptions::new("bulk");
    let id = client.channels.open(now, &mut client.endpoint, &options)?;
    while now < RUN {
        client.fill(now, id, &message)?;
        client.drain(now);
        client.packets.drain(..).for_each(|transmit| there.take(now, &transmit));
        server.drain(now);
        server.packets.drain(..).for_each(|transmit| back.take(now, &transmit));
        let timeouts = [client.timeout, server.timeout].into_iter().flatten();
        let arrivals = [&there, &back].into_iter().filter_map(Direction::next);
        now = timeouts.chain(arrivals).min().ok_or("the transfer stalled")?.max(now);
        while let Some(packet) = there.arrived(now) {
            server.handle(now, CLIENT, packet);
        }
        while let Some(packet) = back.arrived(now) {
            client.handle(now, SERVER, packet);
        }
        client.endpoint.handle_input(now, Input::Tick);
        server.endpoint.handle_input(now, Input::Tick);
    }
    Ok(share_of(server.bytes))
}
