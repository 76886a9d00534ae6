//! The service that speaks SCTP: `eyas-sockets` with the carriers of `eyas`.

mod calls;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas::sctp::{Buffers, Wires, is_without_way};
use eyas_sctp::config::AssociationConfig;
use eyas_sctp::io::{Transmit, Unreachable};
use eyas_sockets::{AssocId, Input, Output, SocketId, Stack, StackConfig, StackStatus};
use tokio::sync::Notify;

use crate::service::{Call, Closing, Notice, Outcome, Service};
use crate::supervisor::{Place, Supervisor, random};

/// Trains that a full socket has not taken yet; more are lost, as on any path.
const MAX_OUTBOX: usize = 1024;
/// The pause after a socket failed in a way that says nothing about a packet.
const BROKEN_PAUSE: Duration = Duration::from_millis(50);
/// How often the addresses of this host are looked at.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP; peers are spoken to at this port, and it is ours, too, unless somebody of this host has it.
    Udp(u16),
    /// IP, protocol 132.
    Ip,
}

/// What sockets are to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What carries the packets.
    pub carrier: Carrier,
    /// The addresses to use; all if there are none.
    pub addresses: Vec<IpAddr>,
    /// What associations are like where no option of a socket says otherwise.
    pub association: AssociationConfig,
}

/// SCTP sockets, their time and their packets.
#[derive(Debug)]
pub struct Sockets {
    stack: Stack,
    wires: Arc<Wires>,
    start: Instant,
    outbox: VecDeque<Transmit>,
    /// When the stack wants to be asked again.
    timeout: Option<Duration>,
    /// Tells the driver that this is sooner, or that a socket is full.
    wake: Arc<Notify>,
    /// Calls that wait for an association: which, and what they return then.
    opening: BTreeMap<(SocketId, Bytes), (AssocId, i32)>,
}

impl Sockets {
    /// Opens what carries the packets, and serves programs. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the carrier's sockets cannot be had, or the place is taken.
    pub fn serve(settings: &Settings, place: &Place) -> io::Result<Arc<Supervisor<Self>>> {
        let (wires, port) = match settings.carrier {
            Carrier::Ip => (Wires::raw(&settings.addresses)?, 0),
            Carrier::Udp(port) => match Wires::udp(&settings.addresses, port) {
                // Another one of us, most likely: peers answer to where packets come from.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    (Wires::udp(&settings.addresses, 0)?, port)
                }
                wires => (wires?, port),
            },
        };
        let wires = Arc::new(wires);
        let config = StackConfig {
            encapsulation_port: port,
            addresses: wires.addresses(),
            association: settings.association.clone(),
            ..StackConfig::default()
        };
        let wake = Arc::new(Notify::new());
        let service = Self {
            stack: Stack::new(config, random()?, Duration::ZERO),
            wires: Arc::clone(&wires),
            start: Instant::now(),
            outbox: VecDeque::new(),
            timeout: None,
            wake: Arc::clone(&wake),
            opening: BTreeMap::new(),
        };
        let supervisor = Supervisor::start(service, place)?;
        for index in 0..wires.count() {
            tokio::spawn(read(index, Arc::clone(&wires), Arc::downgrade(&supervisor)));
        }
        tokio::spawn(drive(wake, Arc::clone(&wires), Arc::downgrade(&supervisor)));
        Ok(supervisor)
    }

    /// All that there is to be shown.
    pub fn status(&self) -> StackStatus {
        self.stack.status()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn handle(&mut self, input: Input) {
        self.stack.handle_input(self.now(), input);
    }

    /// Sends, or keeps for later what a full socket does not take.
    fn send(&mut self, transmit: Transmit) {
        if !self.outbox.is_empty() {
            if self.outbox.len() < MAX_OUTBOX {
                self.outbox.push_back(transmit);
            }
            return;
        }
        match self.wires.try_send(&transmit) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.outbox.push_back(transmit);
                self.wake.notify_one();
            }
            Err(error) => {
                let remote = transmit.remote;
                tracing::debug!(%remote, %error, "cannot send");
                if is_without_way(&error) {
                    let reason = Unreachable::Route;
                    self.handle(Input::Unreachable { remote, reason, quoted: None });
                }
            }
        }
    }

    /// Sends what had to wait.
    fn flush(&mut self) {
        for transmit in std::mem::take(&mut self.outbox) {
            self.send(transmit);
        }
    }
}

impl Service for Sockets {
    fn call(&mut self, call: &Call) -> Outcome {
        self.make(call)
    }

    fn again(&mut self, call: &Call) -> Outcome {
        self.make_again(call)
    }

    fn close(&mut self, socket: u64) -> Closing {
        let id = SocketId(socket);
        self.opening.retain(|(one, _), _| *one != id);
        match self.stack.close(self.now(), id) {
            eyas_sockets::Closing::Done => Closing::Done,
            eyas_sockets::Closing::Lingers(time) => Closing::Lingers(time),
        }
    }

    fn notice(&mut self) -> Option<Notice> {
        loop {
            match self.stack.poll_output(self.now()) {
                Output::Transmit(transmit) => self.send(transmit),
                Output::Readiness(socket, bits) => return Some(Notice::Ready(socket.0, bits.0)),
                Output::Retry(socket) => return Some(Notice::Retry(socket.0)),
                Output::Closed(socket) => return Some(Notice::Closed(socket.0)),
                Output::Timeout(time) => {
                    if time != self.timeout {
                        self.timeout = time;
                        self.wake.notify_one();
                    }
                    return None;
                }
            }
        }
    }
}

/// Reads one socket of the carrier for as long as anybody serves.
async fn read(index: usize, wires: Arc<Wires>, supervisor: Weak<Supervisor<Sockets>>) {
    let mut buffers = Buffers::default();
    loop {
        let arrivals = match wires.receive(index, &mut buffers).await {
            Ok(arrivals) => arrivals,
            Err(error) => {
                tracing::warn!(%error, "cannot receive SCTP packets for the moment");
                tokio::time::sleep(BROKEN_PAUSE).await;
                continue;
            }
        };
        let Some(supervisor) = supervisor.upgrade() else { return };
        supervisor.with(|sockets| {
            arrivals.into_iter().filter_map(input).for_each(|input| sockets.handle(input));
        });
    }
}

fn input(arrival: eyas_sctp::io::Input) -> Option<Input> {
    match arrival {
        eyas_sctp::io::Input::Packets(received) => Some(Input::Packets(received)),
        eyas_sctp::io::Input::Unreachable { remote, reason, quoted } => {
            Some(Input::Unreachable { remote, reason, quoted })
        }
        _ => None,
    }
}

/// Keeps the time, and sends what full sockets did not take.
async fn drive(wake: Arc<Notify>, wires: Arc<Wires>, supervisor: Weak<Supervisor<Sockets>>) {
    let mut addresses = wires.addresses();
    let mut look = tokio::time::interval(LOOK_AGAIN_AFTER);
    loop {
        let Some(serving) = supervisor.upgrade() else { return };
        let (due, full) = serving.with(|sockets| {
            let full = sockets.outbox.front().map(|transmit| transmit.remote);
            (sockets.timeout.map(|time| sockets.start + time), full)
        });
        drop(serving);
        let time = async {
            match due {
                Some(time) if time <= Instant::now() => {}
                Some(time) => tokio::time::sleep_until(time.into()).await,
                None => std::future::pending().await,
            }
        };
        let writable = async {
            match full {
                Some(remote) => wires.writable(remote).await,
                None => std::future::pending().await,
            }
        };
        let woken = tokio::select! {
            () = time => Woken::Due,
            writable = writable => { drop(writable); Woken::Writable }
            _ = look.tick() => Woken::Look,
            () = wake.notified() => continue,
        };
        let Some(serving) = supervisor.upgrade() else { return };
        match woken {
            Woken::Due => serving.with(|sockets| sockets.handle(Input::Tick)),
            Woken::Writable => serving.with(Sockets::flush),
            Woken::Look => {
                let now = wires.addresses();
                if now != addresses {
                    addresses.clone_from(&now);
                    serving.with(|sockets| sockets.handle(Input::LocalAddresses(now)));
                }
            }
        }
    }
}

/// What woke the driver.
enum Woken {
    Due,
    Writable,
    Look,
}
