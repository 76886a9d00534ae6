//! One WebRTC session: packets and time for str0m, and the messages of all channels.

use std::collections::HashMap;
use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use str0m::change::SdpOffer;
use str0m::channel::{ChannelConfig, ChannelData, ChannelId};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};

use crate::traffic::{Totals, Traffic};

/// The channel on which each message is echoed unchanged.
const ECHO: &str = "echo";
/// The channel that this side opens.
const OWN: &str = "unordered:65536:8";
/// The attribute of a session description with an INIT.
const SNAP: &str = "a=sctp-init:";
/// More than the largest message.
const MAX_BUFFERED: usize = 1 << 20;

pub struct Session {
    rtc: Rtc,
    socket: UdpSocket,
    start: Instant,
    /// Whether both INITs were in the descriptions.
    has_snap: bool,
    own: Option<ChannelId>,
    closes_own: bool,
    traffic: HashMap<ChannelId, Traffic>,
    opened: usize,
    closed: usize,
    echoed: usize,
    /// Channels whose ordering does not match their label.
    mistaken: usize,
    /// Messages to be echoed.
    echoes: Vec<ChannelData>,
}

impl Session {
    /// Starts a session from the offer of a page; returns its answer.
    pub fn new(offer: &str) -> Result<(Self, String), Box<dyn Error>> {
        let start = Instant::now();
        let config = RtcConfig::new().set_sctp_max_buffered_amount(MAX_BUFFERED);
        // Used if the page offers it.
        let mut rtc = config.set_snap_enabled(true).build(start);
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        rtc.add_local_candidate(Candidate::host(socket.local_addr()?, "udp")?);
        let answer = rtc.sdp_api().accept_offer(SdpOffer::from_sdp_string(offer)?)?;
        let answer = answer.to_sdp_string();
        let session = Self {
            rtc,
            socket,
            start,
            has_snap: offer.contains(SNAP) && answer.contains(SNAP),
            own: None,
            closes_own: false,
            traffic: HashMap::new(),
            opened: 0,
            closed: 0,
            echoed: 0,
            mistaken: 0,
            echoes: Vec::new(),
        };
        Ok((session, answer))
    }

    /// Sends all pending packets, and waits for one packet.
    pub fn step(&mut self, patience: Duration) -> Result<(), Box<dyn Error>> {
        let due = loop {
            match self.rtc.poll_output()? {
                Output::Timeout(at) => break at,
                Output::Transmit(transmit) => {
                    self.socket.send_to(&transmit.contents, transmit.destination)?;
                }
                Output::Event(event) => self.handle_event(event),
            }
        };
        if self.write()? {
            return Ok(());
        }
        let wait = due.saturating_duration_since(Instant::now()).min(patience);
        self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        let mut buffer = [0; 2048];
        let destination = self.socket.local_addr()?;
        let input = match self.socket.recv_from(&mut buffer) {
            Ok((length, source)) => {
                let contents = buffer[..length].try_into()?;
                let packet = Receive { proto: Protocol::Udp, source, destination, contents };
                Input::Receive(Instant::now(), packet)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Input::Timeout(Instant::now())
            }
            Err(error) => return Err(error.into()),
        };
        Ok(self.rtc.handle_input(input)?)
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::ChannelOpen(id, label) => self.open(id, &label),
            Event::ChannelData(message) => match self.traffic.get_mut(&message.id) {
                Some(traffic) => traffic.receive(&message.data),
                None => self.echoes.push(message),
            },
            Event::ChannelClose(_) => self.closed += 1,
            _ => {}
        }
    }

    fn open(&mut self, id: ChannelId, label: &str) {
        self.opened += 1;
        if let Some(traffic) = Traffic::of(label) {
            let is_ordered =
                self.rtc.channel(id).and_then(|channel| Some(channel.config()?.ordered));
            self.mistaken += usize::from(is_ordered != Some(traffic.is_ordered));
            self.traffic.insert(id, traffic);
        } else if label != ECHO {
            self.mistaken += 1;
        }
        if self.own.is_none() {
            let config = ChannelConfig { label: OWN.into(), ordered: false, ..Default::default() };
            self.own = Some(self.rtc.direct_api().create_data_channel(config));
        }
    }

    /// Writes as much as the channels accept; returns whether that was anything.
    fn write(&mut self) -> Result<bool, Box<dyn Error>> {
        let mut wrote = false;
        for (id, traffic) in &mut self.traffic {
            while let Some(message) = traffic.next()
                && let Some(mut channel) = self.rtc.channel(*id)
                && channel.write(true, message)?
            {
                traffic.note_sent();
                wrote = true;
            }
        }
        for message in self.echoes.drain(..) {
            let mut channel = self.rtc.channel(message.id).ok_or("a message without a channel")?;
            if !channel.write(message.binary, &message.data)? {
                return Err("no room for an echo".into());
            }
            self.echoed += 1;
            wrote = true;
        }
        if let Some(own) = self.own.filter(|_| !self.closes_own)
            && self.traffic.get(&own).is_some_and(Traffic::is_complete)
        {
            self.rtc.direct_api().close_data_channel(own);
            self.closes_own = true;
            wrote = true;
        }
        Ok(wrote)
    }

    /// Returns the report as JSON.
    pub fn report(&self) -> String {
        let mut totals = Totals::default();
        self.traffic.values().for_each(|traffic| traffic.add_to(&mut totals));
        let Totals { messages, bytes, bad, disordered } = totals;
        let Self { opened, closed, echoed, mistaken, has_snap, .. } = self;
        let ms = self.start.elapsed().as_millis();
        format!(
            "{{\"messages\":{messages},\"bytes\":{bytes},\"bad\":{bad},\"disordered\":{disordered},\"opened\":{opened},\
             \"closed\":{closed},\"echoed\":{echoed},\"mistaken\":{mistaken},\"snap\":{has_snap},\"ms\":{ms}}}"
        )
    }
}
