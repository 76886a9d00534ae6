//! Two sides with two data channels between them, in memory: what a WebRTC stack does once DTLS is
//! connected. `cargo run -p eyas-sctp --example data-channels`
#![allow(clippy::disallowed_macros, reason = "a program, not a core: it prints")]

use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use eyas_sctp::config::{ConnectOptions, EndpointConfig};
use eyas_sctp::data_channel::{
    ChannelEvent, ChannelOptions, ChannelSettings, DataChannelOutput, DataChannels, DtlsRole,
    MessageKind,
};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::io::{Ecn, Input, Output as EndpointOutput, Received, Transmit};
use eyas_sctp::message::MessageReliability;
use eyas_sctp::snap::SnapInit;

const PORT: u16 = 5000;

struct Side {
    name: &'static str,
    endpoint: Endpoint,
    settings: ChannelSettings,
}

impl Side {
    fn new(name: &'static str, role: DtlsRole, seed: u8) -> Self {
        let endpoint = Endpoint::new(EndpointConfig::default(), [seed; 32], Duration::ZERO);
        Self { name, endpoint, settings: ChannelSettings::new(role) }
    }

    /// The SDP attribute of this side.
    fn attribute(&mut self) -> String {
        self.endpoint.init_out_of_band(&self.settings.association()).to_attribute()
    }

    /// Connects once DTLS is established; `peer` stands for the session.
    fn connect(
        &mut self,
        peer: SocketAddr,
        own: &str,
        theirs: &str,
    ) -> Result<DataChannels, Box<dyn Error>> {
        let (Some(own), Some(theirs)) =
            (SnapInit::from_attribute(own), SnapInit::from_attribute(theirs))
        else {
            return Err("no INIT in the description: connect with a handshake".into());
        };
        let mut options = ConnectOptions::new(peer, PORT);
        options.local_port = PORT;
        options.association = self.settings.association();
        let endpoint = &mut self.endpoint;
        let id = endpoint.connect_out_of_band(Duration::ZERO, &options, &own, &theirs)?;
        Ok(DataChannels::new(endpoint, id, self.settings.clone()))
    }

    /// Handles pending work: sends packets to the other side and appends events to `log`.
    fn drive(
        &mut self,
        now: Duration,
        channels: &mut DataChannels,
        wire: &mut VecDeque<Transmit>,
        log: &mut Vec<String>,
    ) -> Result<(), Box<dyn Error>> {
        loop {
            match channels.poll_output(now, &mut self.endpoint) {
                DataChannelOutput::Endpoint(EndpointOutput::Transmit(transmit)) => {
                    wire.push_back(transmit)
                }
                DataChannelOutput::Endpoint(EndpointOutput::Timeout(_)) => return Ok(()),
                DataChannelOutput::Channel(ChannelEvent::Opened { id, by_peer: true }) => {
                    let label = channels.get(id).map_or("", |channel| channel.label());
                    log.push(format!("{}: the peer opened \"{label}\"", self.name));
                    let words = format!("welcome to {label}");
                    channels.send(now, &mut self.endpoint, id, MessageKind::Text, words.into())?;
                }
                DataChannelOutput::Channel(ChannelEvent::Message {
                    id,
                    kind: MessageKind::Text,
                    data,
                }) => {
                    let (text, id) = (String::from_utf8_lossy(&data).into_owned(), id.0);
                    log.push(format!("{}: \"{text}\" on {id}", self.name));
                }
                DataChannelOutput::Channel(ChannelEvent::Closed { id }) => {
                    log.push(format!("{}: {} is closed", self.name, id.0));
                }
                _ => {}
            }
        }
    }
}

fn exchange_messages() -> Result<Vec<String>, Box<dyn Error>> {
    let (mut client, mut server) =
        (Side::new("client", DtlsRole::Client, 1), Side::new("server", DtlsRole::Server, 2));
    let addresses: [SocketAddr; 2] = ["192.0.2.1:9".parse()?, "192.0.2.2:9".parse()?];
    let (offer, answer) = (client.attribute(), server.attribute());
    let mut of_client = client.connect(addresses[1], &offer, &answer)?;
    let mut of_server = server.connect(addresses[0], &answer, &offer)?;

    let mut now = Duration::ZERO;
    let chat = of_client.open(now, &mut client.endpoint, &ChannelOptions::new("chat"))?;
    let mut lossy = ChannelOptions::new("positions");
    (lossy.ordered, lossy.reliability) = (false, MessageReliability::Retransmissions(0));
    let positions = of_client.open(now, &mut client.endpoint, &lossy)?;
    of_client.send(now, &mut client.endpoint, chat, MessageKind::Text, "hello".into())?;
    of_client.send(now, &mut client.endpoint, positions, MessageKind::Text, "1,2".into())?;

    let (mut there, mut back, mut log) = (VecDeque::new(), VecDeque::new(), Vec::new());
    for round in 0..20 {
        if round == 10 {
            of_client.close(now, &mut client.endpoint, chat)?;
        }
        client.drive(now, &mut of_client, &mut there, &mut log)?;
        server.drive(now, &mut of_server, &mut back, &mut log)?;
        now += Duration::from_millis(20);
        for transmit in there.drain(..) {
            server.endpoint.handle_input(now, Input::Packets(arrived(transmit, addresses[0])));
        }
        for transmit in back.drain(..) {
            client.endpoint.handle_input(now, Input::Packets(arrived(transmit, addresses[1])));
        }
    }
    Ok(log)
}

/// The packet as the other side of DTLS receives it.
fn arrived(transmit: Transmit, from: SocketAddr) -> Received {
    Received {
        local: None,
        remote: from,
        ecn: Ecn::NotCapable,
        peer: None,
        contents: transmit.contents,
        segment_size: transmit.segment_size,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in exchange_messages()? {
        println!("{line}");
    }
    Ok(())
}

#[test]
fn both_channels_carry_messages_and_one_is_closed() {
    assert_eq!(
        exchange_messages().unwrap(),
        [
            "server: the peer opened \"chat\"",
            "server: the peer opened \"positions\"",
            "server: \"hello\" on 0",
            "server: \"1,2\" on 2",
            "client: \"welcome to chat\" on 0",
            "client: \"welcome to positions\" on 2",
            "client: 0 is closed",
            "server: 0 is closed",
        ]
    );
}
