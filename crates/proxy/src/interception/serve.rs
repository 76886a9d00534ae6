//! Serves the device and the listeners, with a race for each connection.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyas::race::dns::{DnsFailure, DnsQuery, QueryId};
use eyas::race::target::TargetHost;
use eyas_relay::accept::accept_next;
use eyas_relay::destination::{Destination, RequestRefusal};
use eyas_relay::device::{DeviceHandle, MAX_PACKET, PacketDevice};
use eyas_relay::handshake::HandshakeProtocol;
use eyas_relay::packet::UnreachableCause;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use super::addresses::{self, PEER, like};
use super::dns::{
    self, AddressQuestion, FAMILIES, ForwardedQuestion, IncomingMessage, NameExistence,
};
use super::names::RepresentedNames;
use super::translator::{FlowDenial, FlowTranslator, ProgramFlow, TranslatorOutput};
use crate::client::ClientStream;
use crate::connection::ClientState;
use crate::report::ClientEnding;
use crate::shared::SharedProxy;

/// The time for a program to complete a granted connection.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// The maximum number of DNS queries that are looked up at a time. Others wait.
const QUESTIONS: usize = 256;
/// The maximum number of DNS queries that wait or are looked up. Excess ones are dropped, and clients retry them.
const WAITING_QUESTIONS: usize = 4096;
/// How long a query waits for its turn. By then, programs have given up, or asked again (resolv.conf(5)).
const WAITING_TIME: Duration = Duration::from_secs(10);
/// The time for the next query over a TCP connection (RFC 7766 §6.2.3).
const NEXT_QUESTION: Duration = Duration::from_secs(10);
const DNS: u16 = 53;

struct RunningInterception {
    shared: Arc<SharedProxy>,
    device: PacketDevice,
    state: Mutex<InterceptionState>,
    questions: Semaphore,
    waiting_questions: Arc<Semaphore>,
    epoch: Instant,
}

struct InterceptionState {
    translator: FlowTranslator,
    names: RepresentedNames,
    /// The waiters for accepted connections, by the peer address that the listener sees.
    waiting: HashMap<SocketAddr, oneshot::Sender<TcpStream>>,
}

/// Starts to serve the packets of the device, until the proxy ends.
pub(crate) fn start(
    shared: Arc<SharedProxy>,
    device: DeviceHandle,
    listeners: Vec<std::net::TcpListener>,
) -> io::Result<()> {
    let (mut ports, mut bound) = ([0; 2], Vec::new());
    for listener in listeners {
        listener.set_nonblocking(true)?;
        // As many connections as the kernel allows (listen(2), net.core.somaxconn) wait to be accepted.
        SockRef::from(&listener).listen(i32::MAX)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        ports[usize::from(address.is_ipv6())] = address.port();
        bound.push(listener);
    }
    let state = InterceptionState {
        translator: FlowTranslator::new(ports),
        names: RepresentedNames::default(),
        waiting: HashMap::new(),
    };
    let device = PacketDevice::new(device)?;
    let interception = Arc::new(RunningInterception {
        device,
        state: Mutex::new(state),
        questions: Semaphore::new(QUESTIONS),
        waiting_questions: Arc::new(Semaphore::new(WAITING_QUESTIONS)),
        epoch: Instant::now(),
        shared,
    });
    // These end with the proxy and are not waited for.
    for listener in bound {
        let interception = Arc::clone(&interception);
        tokio::spawn(async move {
            let abort = interception.shared.abort.clone();
            abort.run_until_cancelled(interception.accept(listener)).await
        });
    }
    tokio::spawn(async move {
        let abort = interception.shared.abort.clone();
        abort.run_until_cancelled(interception.read()).await
    });
    Ok(())
}

impl RunningInterception {
    fn state(&self) -> MutexGuard<'_, InterceptionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Reads packets as long as the device exists.
    async fn read(self: &Arc<Self>) {
        let mut packet = vec![0; MAX_PACKET];
        while let Ok(length) = self.device.read(&mut packet).await {
            self.drive(|translator, now| translator.handle_packet(now, &packet[..length]));
        }
    }

    /// Changes the state of the translator, and performs its outputs.
    fn drive(self: &Arc<Self>, change: impl FnOnce(&mut FlowTranslator, Duration)) {
        let mut state = self.state();
        change(&mut state.translator, self.now());
        while let Some(output) = state.translator.poll_output() {
            self.perform(output);
        }
    }

    fn perform(self: &Arc<Self>, output: TranslatorOutput) {
        match output {
            TranslatorOutput::Packet(packet) => {
                self.device.write(&packet);
            }
            TranslatorOutput::Open(flow) => {
                _ = self.shared.tasks.spawn(Arc::clone(self).serve(flow))
            }
            TranslatorOutput::Question { from, to, message } => {
                let waiting = Arc::clone(&self.waiting_questions).try_acquire_owned();
                let Ok(waiting) = waiting else { return };
                let interception = Arc::clone(self);
                tokio::spawn(async move {
                    let turn = timeout(WAITING_TIME, interception.questions.acquire()).await;
                    if let Ok(Ok(_turn)) = turn
                        && let Some(answer) = interception.answer(&message).await
                    {
                        let answer = dns::fitted(&message, answer);
                        interception.drive(|translator, _| translator.datagram(to, from, &answer));
                    }
                    drop(waiting);
                });
            }
        }
    }

    /// Passes accepted connections to their waiters.
    async fn accept(&self, listener: TcpListener) {
        loop {
            let (tcp, peer) = accept_next(|| listener.accept(), |_| {}).await;
            if let Some(waiting) = self.state().waiting.remove(&peer) {
                // The waiter may have given up.
                let _ = waiting.send(tcp);
            }
        }
    }

    /// Serves a connection of a program until it ends.
    async fn serve(self: Arc<Self>, flow: ProgramFlow) {
        if flow.destination == SocketAddr::new(like(flow.destination.ip(), PEER), DNS) {
            if let Some(mut tcp) = self.connected(&flow).await {
                let _ = self.answer_stream(&mut tcp).await;
            }
        } else {
            self.relay(&flow).await;
        }
        self.drive(|translator, now| translator.close(now, &flow));
    }

    async fn relay(self: &Arc<Self>, flow: &ProgramFlow) {
        let shared = &self.shared;
        shared.counters.accepted();
        // The program is on this machine, whatever its address in the namespace.
        let client = match flow.client {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let permit = match shared.admission.admit_settled(client, None) {
            Ok(permit) if !shared.drain.is_cancelled() => permit,
            _ => {
                shared.counters.over_limit();
                return self.refuse(flow, FlowDenial::Reset);
            }
        };
        let mut client_state = ClientState::new(SocketAddr::new(client, flow.client.port()));
        client_state.protocol = Some(HandshakeProtocol::Intercepted);
        let ending = tokio::select! {
            ended = self.run(&mut client_state, flow) => ended.unwrap_or_else(|ending| ending),
            () = shared.abort.cancelled() => ClientEnding::Stopped,
        };
        if let ClientEnding::Refused(why) = &ending {
            self.refuse(flow, denial(why));
        }
        drop(permit);
        client_state.report(shared, ending);
    }

    async fn run(
        self: &Arc<Self>,
        client_state: &mut ClientState,
        flow: &ProgramFlow,
    ) -> Result<ClientEnding, ClientEnding> {
        let Some(destination) = self.destination(flow.destination) else {
            let why = format!("{} no longer represents a name", flow.destination.ip());
            return Err(ClientEnding::Refused(RequestRefusal::NoAddress(why)));
        };
        client_state.destination = Some(destination.clone());
        let race =
            client_state.reach(&self.shared, &destination).await.map_err(ClientEnding::from)?;
        let Some(tcp) = self.connected(flow).await else { return Err(ClientEnding::Left) };
        let _ = tcp.set_nodelay(true);
        let mut tcp = ClientStream::Plain(tcp);
        let ended = client_state.relay_bytes(&self.shared, &mut tcp, race, Bytes::new()).await;
        let (Ok(ending) | Err(ending)) = &ended;
        tcp.cut_if_broken(ending).await;
        ended
    }

    /// Returns the destination that an address in the namespace represents.
    fn destination(&self, to: SocketAddr) -> Option<Destination> {
        let host = match addresses::number(to.ip()) {
            Some(_) => TargetHost::Name(self.state().names.name(self.now(), to.ip())?),
            None => TargetHost::Literal(to.ip(), 0),
        };
        Some(Destination::new(host, to.port()))
    }

    /// Grants a connection, and returns it once the program has completed it.
    async fn connected(self: &Arc<Self>, flow: &ProgramFlow) -> Option<TcpStream> {
        let (waiting, accepted) = oneshot::channel();
        self.state().waiting.insert(flow.peer, waiting);
        self.drive(|translator, now| translator.grant(now, flow));
        let accepted = timeout(HANDSHAKE_TIME, accepted).await;
        self.state().waiting.remove(&flow.peer);
        accepted.ok()?.ok()
    }

    fn refuse(self: &Arc<Self>, flow: &ProgramFlow, why: FlowDenial) {
        self.drive(|translator, _| translator.refuse(flow, why));
    }

    /// Returns the answer to a message to the name server.
    async fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        match dns::read(message) {
            IncomingMessage::Question(question) => {
                let known = self.look_up(&question).await;
                question.answer(known)
            }
            IncomingMessage::Reverse(address, asked) => {
                let name = self.state().names.name(self.now(), address);
                match name {
                    Some(name) => asked.answer_name(&name),
                    None => self.forward(&asked).await,
                }
            }
            IncomingMessage::Forward(asked) => self.forward(&asked).await,
            IncomingMessage::Answer(answer) => Some(answer),
            IncomingMessage::Ignored => None,
        }
    }

    /// Passes a question on to the name servers. With another proxy, names are resolved there, and it resolves only
    /// addresses.
    async fn forward(&self, asked: &ForwardedQuestion) -> Option<Vec<u8>> {
        if self.shared.via.is_some() {
            return asked.refuse();
        }
        let answer = self.shared.endpoint.resolver().forward(&asked.query()?).await;
        asked.answer(answer.as_deref().ok())
    }

    /// Looks up whether a name has addresses, and assigns addresses that represent it.
    async fn look_up(&self, question: &AddressQuestion) -> NameExistence {
        let resolver = self.shared.endpoint.resolver();
        let name = question.name();
        let assign = || match self.state().names.addresses(self.now(), name) {
            Some((v4, v6)) => NameExistence::Addresses(v4, v6),
            None => NameExistence::Unknown,
        };
        // With another proxy, names are resolved there.
        if self.shared.via.is_some() || resolver.overrides(name) {
            return assign();
        }
        let look_up = |record_type| async move {
            let query = DnsQuery { id: QueryId(0), name: name.to_owned(), record_type };
            dns::has_addresses(resolver.query(&query, 0).await.records)
        };
        let mut answers: FuturesUnordered<_> = FAMILIES.into_iter().map(look_up).collect();
        let mut known = NameExistence::NoAddress;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(true) => return assign(),
                Ok(false) => {}
                Err(DnsFailure::NoSuchName) => known = NameExistence::NoSuchName,
                Err(_) if known == NameExistence::NoAddress => known = NameExistence::Unknown,
                Err(_) => {}
            }
        }
        known
    }

    /// Answers the queries of a TCP connection (RFC 1035 §4.2.2).
    async fn answer_stream(&self, tcp: &mut TcpStream) -> io::Result<()> {
        loop {
            let length = timeout(NEXT_QUESTION, tcp.read_u16()).await??;
            let mut message = vec![0; usize::from(length)];
            timeout(NEXT_QUESTION, tcp.read_exact(&mut message)).await??;
            let Some(answer) = self.answer(&message).await else { return Ok(()) };
            let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
            tcp.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await?;
        }
    }
}

/// Returns the denial for a program, which cannot get a reason as text.
fn denial(why: &RequestRefusal) -> FlowDenial {
    match why {
        RequestRefusal::NotAllowed(_) => FlowDenial::Unreachable(UnreachableCause::Prohibited),
        RequestRefusal::NetworkUnreachable(_) => FlowDenial::Unreachable(UnreachableCause::Network),
        RequestRefusal::HostUnreachable(_)
        | RequestRefusal::NoAddress(_)
        | RequestRefusal::TimedOut(_) => FlowDenial::Unreachable(UnreachableCause::Host),
        _ => FlowDenial::Reset,
    }
}
