//! An endpoint with one association, and its results so far.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error as Failure;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig, MultipathConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, PathChange, ReconfigurationOutcome};
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::io::{Input, Output};
use eyas_sctp::message::{Message, SendInfo};

use crate::carrier::Carrier;
use crate::content;
use crate::options::Options;

/// The number of packets read before replies are sent.
const BATCH: usize = 64;
/// The longest wait for packets.
const IDLE: Duration = Duration::from_millis(50);
/// The longest time that a step may wait without progress.
const MAX_STALL: Duration = Duration::from_secs(40);
const BUFFER: usize = 4 << 20;

/// The received data.
#[derive(Default)]
pub(crate) struct Arrived {
    pub(crate) messages: u64,
    bytes: u64,
    bad: u64,
    disordered: u64,
    /// The number of the last message on each stream.
    last: BTreeMap<StreamId, u32>,
    /// Parts of messages, by stream, order and number.
    parts: BTreeMap<(StreamId, bool, u32), BytesMut>,
}

/// The peer.
pub(crate) struct Peer {
    pub(crate) options: Options,
    pub(crate) endpoint: Endpoint,
    pub(crate) carrier: Carrier,
    pub(crate) id: Option<AssociationId>,
    pub(crate) arrived: Arrived,
    pub(crate) events: Vec<String>,
    pub(crate) is_up: bool,
    pub(crate) has_ended: bool,
    /// The number of the next message to send.
    pub(crate) next: u32,
    epoch: Instant,
    timeout: Option<Duration>,
    /// Messages to send back.
    back: VecDeque<(SendInfo, Bytes)>,
}

fn association(options: &Options) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.outbound_streams = options.streams;
    config.send_buffer = BUFFER;
    config.receive_buffer = BUFFER;
    config.rto_initial = Duration::from_millis(500);
    config.rto_min = Duration::from_millis(200);
    config.rto_max = Duration::from_secs(2);
    config.hb_interval = Some(Duration::from_millis(500));
    config.path_max_retrans = 2;
    config.extensions.interleaving = options.interleave;
    config.extensions.dynamic_addresses = options.asconf;
    config.extensions.zero_checksum = options.zero_checksum;
    config.multipath = options.multipath.then(MultipathConfig::default);
    config
}

impl Peer {
    pub(crate) fn new(options: Options) -> Result<Self, Box<dyn Failure>> {
        let mut config = EndpointConfig::default();
        config.association = association(&options);
        if options.local.len() > 1 {
            config.addresses.clone_from(&options.local);
        }
        config.listen_port = options.listens.then_some(options.port);
        let mut seed = [0; 32];
        for (number, part) in seed.chunks_mut(8).enumerate() {
            part.copy_from_slice(&RandomState::new().hash_one(number).to_ne_bytes());
        }
        let carrier = Carrier::new(options.udp.map(|(local, _)| local), &options.local)?;
        let mut peer = Self {
            endpoint: Endpoint::new(config, seed, Duration::ZERO),
            options,
            carrier,
            id: None,
            arrived: Arrived::default(),
            events: Vec::new(),
            is_up: false,
            has_ended: false,
            next: 0,
            epoch: Instant::now(),
            timeout: None,
            back: VecDeque::new(),
        };
        if peer.options.listens {
            println!("ready");
        } else {
            peer.connect()?;
        }
        Ok(peer)
    }

    /// Opens the association, or reopens it from the same port.
    pub(crate) fn connect(&mut self) -> Result<(), Box<dyn Failure>> {
        let port = self.options.udp.map_or(0, |(_, remote)| remote);
        let remotes: Vec<_> =
            self.options.remote.iter().map(|address| SocketAddr::new(*address, port)).collect();
        let first = *remotes.first().ok_or("--remote is missing")?;
        let mut options = ConnectOptions::new(first, self.options.port);
        options.remotes = remotes;
        options.local_port = self.options.local_port;
        options.association = association(&self.options);
        self.id = Some(self.endpoint.connect(self.now(), &options)?);
        self.is_up = false;
        self.drain();
        Ok(())
    }

    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Runs until the condition holds or the association ends.
    pub(crate) fn until(
        &mut self,
        mut holds: impl FnMut(&Self) -> bool,
    ) -> Result<(), Box<dyn Failure>> {
        let mut last = (Instant::now(), self.arrived.messages);
        while !holds(self) && !self.has_ended {
            self.turn(IDLE)?;
            if self.arrived.messages != last.1 {
                last = (Instant::now(), self.arrived.messages);
            }
            if last.0.elapsed() > MAX_STALL {
                return Err(format!("no progress: {}", self.summary()).into());
            }
        }
        Ok(())
    }

    /// Sends pending packets, waits, and reads what has arrived.
    pub(crate) fn turn(&mut self, limit: Duration) -> Result<(), Box<dyn Failure>> {
        self.send_back()?;
        self.drain();
        let due = self.timeout.map_or(limit, |at| at.saturating_sub(self.now()));
        self.carrier.wait(due.min(limit))?;
        let now = self.now();
        let endpoint = &mut self.endpoint;
        self.carrier
            .receive(BATCH, |received| endpoint.handle_input(now, Input::Packets(received)));
        self.endpoint.handle_input(now, Input::Tick);
        self.drain();
        self.take_messages();
        Ok(())
    }

    /// Sends a message as soon as there is room.
    pub(crate) fn send(&mut self, info: &SendInfo, data: &Bytes) -> Result<(), Box<dyn Failure>> {
        loop {
            let Some(id) = self.id else { return Err("no association to send on".into()) };
            match self.endpoint.send(self.now(), id, info, data.clone()) {
                Ok(()) => return Ok(()),
                Err(Error::Full) => self.turn(IDLE)?,
                Err(error) => return Err(format!("{error}: {}", self.summary()).into()),
            }
        }
    }

    fn send_back(&mut self) -> Result<(), Box<dyn Failure>> {
        while let (Some(id), Some((info, data))) = (self.id, self.back.front()) {
            match self.endpoint.send(self.epoch.elapsed(), id, info, data.clone()) {
                Ok(()) => self.back.pop_front(),
                Err(Error::Full) => break,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(())
    }

    fn drain(&mut self) {
        loop {
            match self.endpoint.poll_output(self.now()) {
                Output::Transmit(transmit) => self.carrier.send(&transmit),
                Output::Event(id, event) => self.note(id, &event),
                Output::Timeout(at) => {
                    self.timeout = at;
                    return;
                }
                other => self.events.push(format!("unexpected output: {other:?}")),
            }
        }
    }

    fn note(&mut self, id: AssociationId, event: &Event) {
        // There is one association; a later one means that the peer restarted.
        if self.id.is_none() || matches!(event, Event::Up { by_peer: true, .. }) {
            self.id = Some(id);
        } else if self.id != Some(id) {
            return;
        }
        let text = match event {
            Event::Up { .. } => {
                self.is_up = true;
                "up".into()
            }
            Event::Restarted => {
                self.arrived.last.clear();
                self.arrived.parts.clear();
                "restart".into()
            }
            Event::Lost(why) => {
                self.has_ended = true;
                format!("lost {why:?}")
            }
            Event::Closed => {
                self.has_ended = true;
                "closed".into()
            }
            Event::PeerShutdown => "shutdown".into(),
            Event::Path { change, .. } => path(*change).into(),
            Event::StreamsReset { outgoing, outcome, .. } => {
                let side = if *outgoing { "outgoing" } else { "incoming" };
                let done = *outcome == ReconfigurationOutcome::Performed;
                format!("reset {side} {}", if done { "done" } else { "failed" })
            }
            Event::SendFailed { .. } => return,
            Event::Answered | Event::Readable | Event::Writable | Event::SenderDry => return,
            other => format!("{other:?}"),
        };
        self.events.push(text.replace('"', "'"));
    }

    fn take_messages(&mut self) {
        let Some(id) = self.id else { return };
        while let Some(message) = self.endpoint.receive(self.now(), id) {
            let Some((info, data)) = self.arrived.take(message) else { continue };
            if self.options.echo {
                self.back.push_back((info, data));
            }
        }
    }

    /// One line of JSON.
    pub(crate) fn summary(&self) -> String {
        let Arrived { messages, bytes, bad, disordered, .. } = &self.arrived;
        let events: Vec<_> = self.events.iter().map(|event| format!("\"{event}\"")).collect();
        let events = events.join(", ");
        let counters = format!("{:?}", self.endpoint.counters());
        format!(
            "{{\"messages\": {messages}, \"bytes\": {bytes}, \"bad\": {bad}, \
             \"disordered\": {disordered}, \"events\": [{events}], \"counters\": \"{counters}\"}}"
        )
    }
}

impl Arrived {
    /// Adds a message or a part of one; returns the message once it is complete.
    fn take(&mut self, part: Message) -> Option<(SendInfo, Bytes)> {
        let key = (part.stream, part.unordered, part.number);
        let (ppid, ends) = (part.ppid, part.ends);
        let data = if part.begins && ends {
            part.into_bytes()
        } else {
            let whole = self.parts.entry(key).or_default();
            whole.extend_from_slice(&part.into_bytes());
            if !ends {
                return None;
            }
            self.parts.remove(&key)?.freeze()
        };
        let (stream, unordered, _) = key;
        let seen = content::check(&data);
        self.messages += 1;
        self.bytes += data.len() as u64;
        self.bad += u64::from(!seen.good);
        if let Some(index) = seen.index
            && !unordered
        {
            let before = self.last.insert(stream, index);
            self.disordered += u64::from(before.is_some_and(|before| before >= index));
        }
        Some((SendInfo { stream, unordered, ppid, ..SendInfo::default() }, data))
    }
}

fn path(change: PathChange) -> &'static str {
    match change {
        PathChange::Confirmed => "path confirmed",
        PathChange::Active => "path available",
        PathChange::PotentiallyFailed => "path potentially failed",
        PathChange::Inactive => "path unreachable",
        PathChange::Added => "path added",
        PathChange::Removed => "path removed",
        PathChange::MadePrimary => "path primary",
        _ => "path changed",
    }
}
