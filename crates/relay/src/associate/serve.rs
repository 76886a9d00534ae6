//! The sockets of an association.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyas::Endpoint;
use eyas::race::candidate::Family;
use eyas::race::dns::{Query, QueryId, RecordType, Records};
use eyas::race::policy::Policy;
use eyas::race::target::Host;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use socket2::{Domain, Socket, Type};
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until, timeout};

use super::association::{Association, Output, Setup};
use crate::client::Client;
use crate::copy::Passed;
use crate::handshake::Destination;
use crate::report::{Datagrams, Ending};
use crate::shared::Shared;

/// The longest datagram of UDP.
const LONGEST: usize = 65_535;
/// Datagrams read from a socket before the others have their turn.
const TURN: usize = 32;
/// For the addresses of the second family (RFC 8305 §3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

thread_local! {
    /// Shared by all associations of a thread: nothing stays in it.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; LONGEST].into_boxed_slice());
}

/// The sockets of an association: one that the client sends to, and one for each family.
pub(crate) struct Sockets {
    client: UdpSocket,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Sockets {
    /// Opens them; the client's is at the address at which it has found the proxy.
    pub(crate) fn open(proxy: IpAddr) -> io::Result<Self> {
        let client = bind(proxy)?;
        // A family that this machine does not have is no way to anywhere.
        let (v4, v6) = (bind(Ipv4Addr::UNSPECIFIED.into()), bind(Ipv6Addr::UNSPECIFIED.into()));
        match (v4, v6) {
            (Err(cause), Err(_)) => Err(cause),
            (v4, v6) => Ok(Self { client, v4: v4.ok(), v6: v6.ok() }),
        }
    }

    /// Where the client is to send.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.client.local_addr()
    }
}

fn bind(ip: IpAddr) -> io::Result<UdpSocket> {
    let address = SocketAddr::new(ip, 0);
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if ip.is_ipv6() && !matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some()) {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// An association at work.
struct Running<'a> {
    shared: &'a Shared,
    association: Association,
    sockets: Sockets,
    resolving: FuturesUnordered<BoxFuture<'static, (Destination, Vec<IpAddr>)>>,
    epoch: Instant,
    moved_at: Instant,
    passed: &'a mut Passed,
    datagrams: &'a mut Datagrams,
}

/// Passes datagrams on until the client's connection ends, or nothing has moved for long.
pub(crate) async fn serve(
    shared: &Shared,
    tcp: &mut Client,
    (client, port): (SocketAddr, Option<u16>),
    sockets: Sockets,
    (passed, datagrams): (&mut Passed, &mut Datagrams),
) -> Ending {
    let setup = Setup {
        client: client.ip(),
        port,
        rules: Arc::clone(&shared.rules),
        destinations: shared.limits.association_destinations,
    };
    let now = Instant::now();
    let mut running = Running {
        shared,
        association: Association::new(setup),
        sockets,
        resolving: FuturesUnordered::new(),
        epoch: now,
        moved_at: now,
        passed,
        datagrams,
    };
    let ending = running.run(tcp).await;
    running.datagrams.dropped = running.association.dropped();
    ending
}

impl Running<'_> {
    async fn run(&mut self, tcp: &mut Client) -> Ending {
        let mut said = [0; 64];
        loop {
            let idle = sleep_until(self.moved_at + self.shared.limits.idle_time);
            tokio::select! {
                // What it says is of no meaning; that it is there is.
                read = tcp.read(&mut said) => match read {
                    Ok(0) => return Ending::Done,
                    Ok(_) => {}
                    Err(error) => return Ending::Client(error.to_string()),
                },
                ready = self.sockets.client.readable() => match ready {
                    Ok(()) => self.hear_client(),
                    Err(error) => return Ending::Client(error.to_string()),
                },
                Ok(()) = readable(self.sockets.v4.as_ref()) => self.hear_peers(Family::V4),
                Ok(()) = readable(self.sockets.v6.as_ref()) => self.hear_peers(Family::V6),
                Some((to, ips)) = self.resolving.next() => {
                    self.association.handle_addresses(self.epoch.elapsed(), &to, ips);
                }
                () = idle => return Ending::Idle,
            }
            self.perform();
        }
    }

    fn hear_client(&mut self) {
        SCRATCH.with_borrow_mut(|scratch| {
            for _ in 0..TURN {
                let Ok((length, from)) = self.sockets.client.try_recv_from(scratch) else { return };
                let now = self.epoch.elapsed();
                self.association.handle_client(now, from, &scratch[..length]);
            }
        });
    }

    fn hear_peers(&mut self, family: Family) {
        let socket = match family {
            Family::V4 => self.sockets.v4.as_ref(),
            Family::V6 => self.sockets.v6.as_ref(),
        };
        let Some(socket) = socket else { return };
        SCRATCH.with_borrow_mut(|scratch| {
            for _ in 0..TURN {
                let Ok((length, from)) = socket.try_recv_from(scratch) else { return };
                self.association.handle_peer(from, &scratch[..length]);
            }
        });
    }

    /// Does what there is to do. What a socket does not take at once is lost, as on any line.
    fn perform(&mut self) {
        while let Some(output) = self.association.poll_output() {
            match output {
                Output::Send { to, data, left } => self.send(to, data, left),
                Output::Deliver { to, datagram, length } => {
                    if self.sockets.client.try_send_to(&datagram, to).is_ok() {
                        self.moved_at = Instant::now();
                        self.passed.received += length as u64;
                        self.datagrams.received += 1;
                    }
                }
                Output::Resolve(to) => {
                    let Shared { endpoint, policy, limits, .. } = self.shared;
                    let resolving =
                        resolve(endpoint.clone(), policy.clone(), limits.connect_time, to);
                    self.resolving.push(Box::pin(resolving));
                }
            }
        }
    }

    fn send(&mut self, to: SocketAddr, data: Bytes, left: usize) {
        let socket = match to {
            SocketAddr::V4(_) => self.sockets.v4.as_ref(),
            SocketAddr::V6(_) => self.sockets.v6.as_ref(),
        };
        let sent = match socket {
            Some(socket) => socket.try_send_to(&data, to),
            None => Err(io::ErrorKind::NetworkUnreachable.into()),
        };
        match sent {
            Ok(_) => {
                self.moved_at = Instant::now();
                self.passed.sent += data.len() as u64;
                self.datagrams.sent += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.association.refused(self.epoch.elapsed(), to, data, left),
        }
    }
}

async fn readable(socket: Option<&UdpSocket>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.readable().await,
        None => std::future::pending().await,
    }
}

/// The addresses of a destination, IPv6 first; none if there are none in time.
async fn resolve(
    endpoint: Endpoint,
    policy: Policy,
    patience: Duration,
    to: Destination,
) -> (Destination, Vec<IpAddr>) {
    let Host::Name(name) = &to.host else { return (to, Vec::new()) };
    if to.host.is_localhost() {
        return (to, vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]);
    }
    let ask = async |record_type: RecordType, family: Family| {
        if policy.only_family.is_some_and(|only| only != family) {
            return Vec::new();
        }
        let query = Query { id: QueryId(0), name: name.clone(), record_type };
        let asked = timeout(patience, endpoint.resolver().query(&query, to.port)).await;
        match asked.map(|answer| answer.records) {
            Ok(Ok(Records::Aaaa(ips))) => ips.into_iter().map(IpAddr::V6).collect(),
            Ok(Ok(Records::A(ips))) => ips.into_iter().map(IpAddr::V4).collect(),
            _ => Vec::new(),
        }
    };
    let (v6, v4) = (ask(RecordType::Aaaa, Family::V6), ask(RecordType::A, Family::V4));
    let (mut ips, v4) = match select(pin!(v6), pin!(v4)).await {
        Either::Left((v6, v4)) => {
            let v4 = soon(v4, v6.is_empty()).await;
            (v6, v4)
        }
        Either::Right((v4, v6)) => (soon(v6, v4.is_empty()).await, v4),
    };
    ips.extend(v4);
    (to, ips)
}

/// What the later of two answers has, which is waited for a moment only, unless it is all that there
/// can be.
async fn soon(answer: impl Future<Output = Vec<IpAddr>>, is_needed: bool) -> Vec<IpAddr> {
    match is_needed {
        true => answer.await,
        false => timeout(RESOLUTION_DELAY, answer).await.unwrap_or_default(),
    }
}
