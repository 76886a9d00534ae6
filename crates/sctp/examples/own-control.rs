//! An association with a custom congestion controller and scheduler, between two endpoints in
//! memory. `cargo run -p eyas-sctp --example own-control`
#![allow(clippy::disallowed_macros, reason = "a program, not a core: it prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use eyas_sctp::config::{AlgorithmSelection, AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::congestion::{
    AcknowledgedData, CongestionControl, CongestionControlFactory, CongestionEvent,
};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::io::{Ecn, Input, Output, Received, Transmit};
use eyas_sctp::message::SendInfo;
use eyas_sctp::scheduler::{Scheduler, SchedulerFactory, StreamSlot, StreamTurn};

/// A fixed window, the known capacity of a leased line, regardless of losses.
#[derive(Clone, Copy, Debug)]
struct FixedWindow {
    bytes: usize,
}

impl CongestionControlFactory for FixedWindow {
    fn build(&self, _config: &AssociationConfig, _mtu: usize) -> Box<dyn CongestionControl> {
        Box::new(*self)
    }
}

impl CongestionControl for FixedWindow {
    fn window(&self) -> usize {
        self.bytes
    }

    fn on_acknowledged(&mut self, _acknowledged: &AcknowledgedData) {}

    fn on_congestion(&mut self, _event: &CongestionEvent) {}

    fn on_timeout(&mut self, _event: &CongestionEvent) {}
}

/// Strict priority: the pending stream with the lowest number.
#[derive(Debug)]
struct LowestFirst;

impl SchedulerFactory for LowestFirst {
    fn build(&self, _by_chunk: bool) -> Box<dyn Scheduler> {
        Box::<Waiting>::default()
    }
}

#[derive(Debug, Default)]
struct Waiting {
    numbers: BTreeMap<StreamSlot, StreamId>,
    streams: BTreeMap<StreamId, StreamSlot>,
}

impl Scheduler for Waiting {
    fn on_opened(&mut self, stream: StreamSlot, id: StreamId) {
        self.numbers.insert(stream, id);
    }

    fn on_queued(&mut self, stream: StreamSlot) {
        self.streams.insert(self.numbers[&stream], stream);
    }

    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.streams.values().copied().find(|stream| eligible(*stream))
    }

    fn on_sent(&mut self, turn: &StreamTurn) {
        if turn.ends_stream {
            self.streams.remove(&self.numbers[&turn.stream]);
        }
    }
}

/// Handles pending work; returns the packets to send, and appends received messages to `log`.
fn drive(
    endpoint: &mut Endpoint,
    now: Duration,
    log: &mut Vec<String>,
) -> Result<Vec<Transmit>, Box<dyn Error>> {
    let mut packets = Vec::new();
    loop {
        match endpoint.poll_output(now) {
            Output::Transmit(transmit) => packets.push(transmit),
            Output::Event(id, Event::Readable) => {
                while let Some(message) = endpoint.receive(now, id) {
                    let stream = message.stream.0;
                    let bytes = message.into_bytes();
                    log.push(format!("stream {stream}: {}", String::from_utf8_lossy(&bytes)));
                }
            }
            Output::Event(_, Event::Lost(why)) => return Err(format!("lost: {why:?}").into()),
            Output::Timeout(_) => return Ok(packets),
            _ => {}
        }
    }
}

fn exchange_messages() -> Result<Vec<String>, Box<dyn Error>> {
    let [client_address, server_address]: [SocketAddr; 2] =
        ["192.0.2.1:9899".parse()?, "192.0.2.2:9899".parse()?];
    let mut options = ConnectOptions::new(server_address, 7);
    options.association.congestion_control =
        AlgorithmSelection::Custom(Arc::new(FixedWindow { bytes: 250_000 }));
    options.association.scheduler = AlgorithmSelection::Custom(Arc::new(LowestFirst));

    let mut now = Duration::ZERO;
    let mut client = Endpoint::new(EndpointConfig::default(), [1; 32], now);
    let mut listening = EndpointConfig::default();
    listening.listen_port = Some(7);
    let mut server = Endpoint::new(listening, [2; 32], now);

    let id = client.connect(now, &options)?;
    for (stream, text) in [(7, "a log line"), (3, "a picture"), (0, "a command")] {
        let info = SendInfo { stream: StreamId(stream), ..SendInfo::default() };
        client.send(now, id, &info, text.into())?;
    }
    let mut log = Vec::new();
    for _ in 0..10 {
        let there = drive(&mut client, now, &mut log)?;
        let back = drive(&mut server, now, &mut log)?;
        now += Duration::from_millis(20);
        for transmit in there {
            server.handle_input(now, Input::Packets(arrived(transmit, client_address)));
        }
        for transmit in back {
            client.handle_input(now, Input::Packets(arrived(transmit, server_address)));
        }
    }
    let status = client.status(id).ok_or("the association has ended")?;
    log.push(format!("the window is {} bytes", status.paths[0].congestion_window));
    Ok(log)
}

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
fn the_command_goes_first_and_the_window_stays() {
    assert_eq!(
        exchange_messages().unwrap(),
        [
            "stream 0: a command",
            "stream 3: a picture",
            "stream 7: a log line",
            "the window is 250000 bytes",
        ]
    );
}
