//! The service that implements SCTP: `eyas-sockets` over the sockets of `eyas-sctp-tokio`.

mod calls;
mod other_stacks;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use eyas_sctp::config::AssociationConfig;
use eyas_sctp::io::Input as Arrival;
use eyas_sctp_tokio::{ReceiveBuffers, Wires};
use eyas_sockets::{SocketId, Stack, StackConfig, StackInput, StackOutput};
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::sync::Notify;

use crate::capture::CaptureFile;
use crate::local::Op;
use crate::place::SupervisorPlace;
use crate::random::bytes;
use crate::service::{
    CallAnswer, CallOutcome, SocketCall, SocketClosing, SocketNotice, SocketService,
};
use crate::status::SupervisorStatus;
use crate::supervisor::Supervisor;
pub use calls::StackCalls;
use other_stacks::OtherStacks;

/// The part of the send buffer that a program may fill by writing, and its limits: enough for
/// several messages per switch between processes, and whole pages.
const WRITTEN_PART: usize = 4;
const MIN_WRITTEN_ROOM: usize = 16 * 1024;
const MAX_WRITTEN_ROOM: usize = 256 * 1024;
/// The sizes of the common header of a packet and of that of a chunk, and the type of the chunk
/// (RFC 9260 §3).
const PACKET_HEADER: usize = 12;
const CHUNK_HEADER: usize = 4;
const SHUTDOWN: u8 = 7;

/// The maximum number of times that local packets are processed within one call.
const MAX_ROUNDS: u32 = 16;

/// How packets are encapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SctpEncapsulation {
    /// In UDP (RFC 6951). Packets to peers are sent to this port, which is also the local port
    /// unless another process on this host uses it.
    Udp(u16),
    /// Directly in IP, as protocol 132.
    Ip,
}

/// The settings of sockets.
#[derive(Clone, Debug)]
pub struct SctpSettings {
    /// How packets are encapsulated.
    pub encapsulation: SctpEncapsulation,
    /// The addresses to use; all if empty.
    pub addresses: Vec<IpAddr>,
    /// The configuration of associations, unless options of a socket override it.
    pub association: AssociationConfig,
    /// A description of what is served: a command, or a path.
    pub serves: String,
}

/// SCTP sockets, their timers and their packets.
#[derive(Debug)]
pub struct SctpSockets {
    settings: SctpSettings,
    calls: StackCalls,
    wires: Arc<Wires>,
    start: Instant,
    /// When the timer task polls the stack again: never later than necessary, but often earlier,
    /// because most timers are cancelled before they expire.
    alarm: Option<Duration>,
    /// Notifies the timer task that this time is now earlier.
    wake: Arc<Notify>,
    other_stacks: OtherStacks,
    /// Whether there is an unread packet that this host has sent to itself.
    has_local_packets: bool,
    /// How many more times local packets may be processed before the current call ends.
    rounds: u32,
    buffers: ReceiveBuffers,
    /// Sockets whose programs write messages to the descriptor.
    writing: BTreeSet<u64>,
    /// Packets that may end an association, and those after them.
    ending: Ending,
}

/// Packets that wait until what programs have written before has been passed in.
#[derive(Debug, Default)]
struct Ending {
    inputs: Vec<StackInput>,
    /// The sockets that have not been announced, once the others have been.
    unannounced: Option<Vec<u64>>,
}

impl SctpSockets {
    /// Opens the carrier, and serves programs; packets are also captured. Must be called inside a
    /// tokio runtime.
    ///
    /// # Errors
    /// If the carrier's sockets cannot be opened, or the place is in use.
    pub fn serve(
        settings: &SctpSettings,
        place: &SupervisorPlace,
        capture: Option<&CaptureFile>,
    ) -> io::Result<Arc<Supervisor<Self>>> {
        let (wires, port) = match settings.encapsulation {
            SctpEncapsulation::Ip => (Wires::raw(&settings.addresses)?, 0),
            SctpEncapsulation::Udp(port) => match Wires::udp(&settings.addresses, port) {
                // Most likely used by another eyas. Any local port will do, because peers reply to
                // the source port.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    (Wires::udp(&settings.addresses, 0)?, port)
                }
                wires => (wires?, port),
            },
        };
        let wires = Arc::new(match capture {
            Some(capture) => wires.with_tap(capture.recorder()),
            None => wires,
        });
        let config = StackConfig {
            encapsulation_port: port,
            addresses: wires.addresses(),
            association: settings.association.clone(),
            ..StackConfig::default()
        };
        let config = StackConfig {
            max_send_buffer: kernel_limit("wmem_max").unwrap_or(config.max_send_buffer),
            max_receive_buffer: kernel_limit("rmem_max").unwrap_or(config.max_receive_buffer),
            ..config
        };
        let wake = Arc::new(Notify::new());
        let service = Self {
            settings: settings.clone(),
            calls: StackCalls::new(Stack::new(config, bytes()?, Duration::ZERO)),
            wires: Arc::clone(&wires),
            start: Instant::now(),
            alarm: None,
            wake: Arc::clone(&wake),
            other_stacks: OtherStacks::new(wires.count()),
            has_local_packets: false,
            rounds: 0,
            buffers: ReceiveBuffers::default(),
            writing: BTreeSet::new(),
            ending: Ending::default(),
        };
        let supervisor = Supervisor::start(service, place)?;
        let weak = || (Arc::clone(&wires), Arc::downgrade(&supervisor));
        for index in 0..wires.count() {
            tokio::spawn(read(index, weak()));
        }
        tokio::spawn(flush(weak()));
        tokio::spawn(watch_addresses(weak()));
        tokio::spawn(run_timers(wake, Arc::downgrade(&supervisor)));
        Ok(supervisor)
    }

    /// Returns the state.
    pub fn status(&self) -> SupervisorStatus {
        SupervisorStatus {
            udp_port: self.wires.udp_port(),
            addresses: self.wires.addresses(),
            up_ms: self.now().as_micros() as f64 / 1e3,
            ..SupervisorStatus::new(&self.settings, self.calls.stack.status())
        }
    }

    /// Returns the number of associations that have not ended yet, including those without a
    /// socket.
    pub fn associations(&self) -> usize {
        self.calls.stack.status().associations.len()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn handle_input(&mut self, input: StackInput) {
        let waits = !self.ending.inputs.is_empty()
            || (!self.writing.is_empty() && contains_shutdown(&input));
        if waits {
            self.ending.inputs.push(input);
        } else {
            self.calls.stack.handle_input(self.now(), input);
        }
    }

    /// Returns the next socket whose written messages have to be passed in before packets that may
    /// end its association, and processes these after the last one. A kernel has the messages at
    /// this point, and still sends them.
    fn next_ending(&mut self) -> Option<u64> {
        if self.ending.inputs.is_empty() {
            return None;
        }
        let all = || self.writing.iter().copied().collect();
        let next = self.ending.unannounced.get_or_insert_with(all).pop();
        if next.is_none() {
            let ending = std::mem::take(&mut self.ending);
            for input in ending.inputs {
                self.calls.stack.handle_input(self.now(), input);
            }
        }
        next
    }

    /// Returns whether a packet to this address is received by this process: over IP if the address
    /// belongs to this host, inside UDP only if the port is ours as well.
    fn is_looped_back(&self, remote: SocketAddr) -> bool {
        self.wires.udp_port().is_none_or(|port| port == remote.port())
            && self.calls.stack.is_local(remote.ip())
    }

    /// Processes packets that this host has sent to itself, and returns whether there were any. A
    /// kernel processes such packets before the call that sent them returns, and programs that
    /// communicate with themselves rely on it.
    fn process_local_packets(&mut self) -> bool {
        if self.rounds == 0 || !std::mem::take(&mut self.has_local_packets) {
            return false;
        }
        self.rounds -= 1;
        let mut any = false;
        for index in 0..self.wires.count() {
            let arrivals = self.wires.receive_at_once(index, &mut self.buffers);
            for input in arrivals.unwrap_or_default().into_iter().filter_map(input) {
                any = true;
                self.handle_input(input);
            }
        }
        any
    }
}

impl SocketService for SctpSockets {
    fn call(&mut self, call: &SocketCall) -> CallOutcome {
        self.rounds = match call.request.op {
            // Enough for the message and the reply to it. Calls without data, such as those that
            // end one association of a one-to-many socket, get the maximum.
            Op::Send if !call.data.is_empty() => 2,
            _ => MAX_ROUNDS,
        };
        match call.request.op {
            Op::Status => {
                let status = serde_json::to_vec(&self.status()).unwrap_or_default();
                CallOutcome::Done(CallAnswer { data: status.into(), ..CallAnswer::default() })
            }
            Op::SetOption if marks(call) && !may_mark() => CallOutcome::Failed(libc::EPERM),
            _ => self.calls.call(self.now(), call),
        }
    }

    fn retry(&mut self, call: &SocketCall) -> CallOutcome {
        self.calls.retry(self.now(), call)
    }

    fn is_opening(&mut self, socket: u64, association: i32) -> bool {
        self.calls.is_opening(self.now(), socket, association)
    }

    fn call_cancelled(&mut self, call: &SocketCall) {
        self.calls.call_cancelled(call);
    }

    fn begin_writing(&mut self, socket: u64) -> Option<usize> {
        let stack = &mut self.calls.stack;
        let room = (stack.send_buffer(socket_id(socket)) / WRITTEN_PART).min(MAX_WRITTEN_ROOM);
        let room = room / MIN_WRITTEN_ROOM * MIN_WRITTEN_ROOM;
        if room == 0 || !stack.accepts_plain_messages(socket_id(socket)) {
            return None;
        }
        stack.reserve_room(socket_id(socket), room);
        self.writing.insert(socket);
        Some(room)
    }

    fn end_writing(&mut self, socket: u64) {
        self.writing.remove(&socket);
        self.calls.stack.reserve_room(socket_id(socket), 0);
    }

    fn accepts_written(&mut self, socket: u64) -> bool {
        self.calls.stack.can_send(socket_id(socket))
    }

    fn send_written(&mut self, call: &SocketCall, uses_reserve: bool) -> CallOutcome {
        self.rounds = 2;
        // The error of its end is for the program's next call.
        if !self.accepts_written(call.socket) {
            return CallOutcome::Failed(libc::EPIPE);
        }
        self.calls.send(self.now(), call, uses_reserve)
    }

    fn close(&mut self, socket: u64) -> SocketClosing {
        self.writing.remove(&socket);
        self.rounds = MAX_ROUNDS;
        self.calls.close(self.now(), socket)
    }

    fn notice(&mut self) -> Option<SocketNotice> {
        loop {
            if let Some(socket) = self.next_ending() {
                return Some(SocketNotice::Ending(socket));
            }
            match self.calls.stack.poll_output(self.now()) {
                StackOutput::Transmit(transmit) => {
                    self.has_local_packets |= self.is_looped_back(transmit.remote);
                    let events = self.wires.send(transmit);
                    events.into_iter().filter_map(input).for_each(|input| self.handle_input(input));
                }
                StackOutput::OutOfTheBlue(received) => {
                    if self.other_stacks.may_refuse(Instant::now()) {
                        self.handle_input(StackInput::Refused(received));
                    }
                }
                StackOutput::Readiness(socket, bits) => {
                    return Some(SocketNotice::Ready(socket.0, bits.0));
                }
                StackOutput::Arrived(socket) => return Some(SocketNotice::Arrived(socket.0)),
                StackOutput::Retry(socket) => return Some(SocketNotice::Retry(socket.0)),
                StackOutput::Closed(socket) => return Some(SocketNotice::Closed(socket.0)),
                StackOutput::Timeout(_) if self.process_local_packets() => {}
                StackOutput::Timeout(time) => {
                    self.rounds = 0;
                    if time.is_some_and(|time| self.alarm.is_none_or(|alarm| time < alarm)) {
                        self.alarm = time;
                        self.wake.notify_one();
                    }
                    return None;
                }
            }
        }
    }
}

fn socket_id(socket: u64) -> SocketId {
    SocketId(socket)
}

/// Returns whether packets contain a SHUTDOWN chunk.
fn contains_shutdown(input: &StackInput) -> bool {
    let StackInput::Packets(received) = input else { return false };
    let size = received.segment_size.max(1);
    received.contents.chunks(size).any(|packet| {
        let mut rest = packet.get(PACKET_HEADER..).unwrap_or_default();
        while let &[kind, _, high, low, ..] = rest {
            if kind == SHUTDOWN {
                return true;
            }
            let length = usize::from(u16::from_be_bytes([high, low])).max(CHUNK_HEADER);
            rest = rest.get(length.next_multiple_of(CHUNK_HEADER)..).unwrap_or_default();
        }
        false
    })
}

/// Returns a limit of the kernel on the size of a socket's buffer. In a network namespace some
/// kernels show none.
fn kernel_limit(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?;
    Some(text.trim().parse::<usize>().ok()?.min(StackConfig::default().max_forced_buffer))
}

/// Returns whether a call sets a mark for packets.
fn marks(call: &SocketCall) -> bool {
    (call.request.a, call.request.b) == (libc::SOL_SOCKET, libc::SO_MARK)
        && call.data.iter().any(|byte| *byte != 0)
}

/// Returns whether this process may mark packets.
fn may_mark() -> bool {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0));
    socket.is_ok_and(|socket| setsockopt(&socket, sockopt::Mark, &1).is_ok())
}

/// The carrier, and the supervisor that processes its packets, while that exists.
type CarrierTask = (Arc<Wires>, Weak<Supervisor<SctpSockets>>);

/// Reads one socket of the carrier.
async fn read(index: usize, (wires, supervisor): CarrierTask) {
    let mut buffers = ReceiveBuffers::default();
    while deliver(&supervisor, wires.receive(index, &mut buffers).await) {}
}

/// Sends what did not fit into full sockets before.
async fn flush((wires, supervisor): CarrierTask) {
    while deliver(&supervisor, wires.flush().await) {}
}

/// Reports addresses of this host as they are added and removed.
async fn watch_addresses((wires, supervisor): CarrierTask) {
    let mut changes = wires.changes();
    loop {
        let present = wires.changed(&mut changes).await;
        if !deliver(&supervisor, vec![Arrival::LocalAddresses(present)]) {
            return;
        }
    }
}

/// Passes packets to the supervisor, and returns whether it still exists.
fn deliver(supervisor: &Weak<Supervisor<SctpSockets>>, arrivals: Vec<Arrival>) -> bool {
    let Some(supervisor) = supervisor.upgrade() else { return false };
    supervisor.with_service(|sockets| {
        arrivals.into_iter().filter_map(input).for_each(|input| sockets.handle_input(input));
    });
    true
}

fn input(arrival: Arrival) -> Option<StackInput> {
    match arrival {
        Arrival::Packets(received) => Some(StackInput::Packets(received)),
        Arrival::Unreachable { remote, reason, quoted } => {
            Some(StackInput::Unreachable { remote, reason, quoted })
        }
        Arrival::LocalAddresses(addresses) => Some(StackInput::LocalAddresses(addresses)),
        _ => None,
    }
}

/// Polls the stack when it is due.
async fn run_timers(wake: Arc<Notify>, supervisor: Weak<Supervisor<SctpSockets>>) {
    loop {
        let Some(strong) = supervisor.upgrade() else { return };
        let due = strong.with_service(|sockets| sockets.alarm.map(|time| sockets.start + time));
        drop(strong);
        let time = async {
            match due {
                // A timer rounds up to the next millisecond, so do not sleep if something is due.
                Some(time) if time <= Instant::now() => {}
                Some(time) => tokio::time::sleep_until(time.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            () = wake.notified() => continue,
        }
        let Some(strong) = supervisor.upgrade() else { return };
        // After this the next due time is reported.
        strong.with_service(|sockets| {
            sockets.alarm = None;
            sockets.handle_input(StackInput::Tick);
        });
    }
}
