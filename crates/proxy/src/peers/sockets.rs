//! UDP sockets for clients and their peers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use eyas::race::candidate::AddressFamily;
use eyas::race::io::NetworkView;
use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

/// The length of the longest datagram.
const MAX_DATAGRAM: usize = 65_535;
/// Datagrams read from a socket before the others have their turn.
const TURN: usize = 32;

thread_local! {
    /// Shared by everything on a thread, since no data stays in it between calls.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; MAX_DATAGRAM].into_boxed_slice());
}

/// The maximum number of peers behind a NAT64 whose datagrams are recognised at a time.
const MAX_TRANSLATED: usize = 1024;

/// A socket for each family, for datagrams to and from peers.
pub(crate) struct PeerSockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    network: Arc<NetworkView>,
    only_family: Option<AddressFamily>,
    /// The IPv4 peers that datagrams were sent to through a NAT64, by their addresses on the wire. The client does not
    /// see those.
    translated: BTreeMap<SocketAddr, SocketAddr>,
}

impl PeerSockets {
    /// Opens the sockets of these families, for this network. A family that this machine does not have is left out.
    /// If only IPv6 packets are wanted, a NAT64 is used even where there is an IPv4 route.
    ///
    /// # Errors
    /// If there is no socket at all.
    pub(crate) fn open(
        network: Arc<NetworkView>,
        only_family: Option<AddressFamily>,
        wanted: impl Fn(AddressFamily) -> bool,
    ) -> io::Result<Self> {
        // IPv4 peers may be behind a NAT64.
        let through_v6 = |family| family == AddressFamily::V6 && !network.pref64.is_empty();
        let wanted = |family| wanted(family) || through_v6(family);
        let open = |family, ip: IpAddr| wanted(family).then(|| bind(ip));
        let v4 = open(AddressFamily::V4, Ipv4Addr::UNSPECIFIED.into()).transpose();
        let v6 = open(AddressFamily::V6, Ipv6Addr::UNSPECIFIED.into()).transpose();
        match (v4, v6) {
            (Err(cause), Err(_) | Ok(None)) | (Ok(None), Err(cause)) => Err(cause),
            (v4, v6) => {
                let (v4, v6) = (v4.ok().flatten(), v6.ok().flatten());
                Ok(Self { v4, v6, network, only_family, translated: BTreeMap::new() })
            }
        }
    }

    /// Continues on another network.
    pub(crate) fn move_to(&mut self, network: Arc<NetworkView>) {
        self.network = network;
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// If the system refuses to.
    pub(crate) fn send(&mut self, data: &[u8], to: SocketAddr) -> io::Result<()> {
        let on_the_wire =
            SocketAddr::new(self.network.on_the_wire(to.ip(), self.only_family), to.port());
        // A scope is kept.
        let on_the_wire = if on_the_wire.ip() == to.ip() { to } else { on_the_wire };
        if on_the_wire != to {
            let Self { translated, .. } = self;
            if translated.len() >= MAX_TRANSLATED && !translated.contains_key(&on_the_wire) {
                translated.pop_first();
            }
            translated.insert(on_the_wire, to);
        }
        let socket =
            self.socket(if on_the_wire.is_ipv4() { AddressFamily::V4 } else { AddressFamily::V6 });
        let socket = socket.ok_or(io::ErrorKind::NetworkUnreachable)?;
        socket.try_send_to(data, on_the_wire).map(drop)
    }

    /// Waits until a socket is readable, and returns its family.
    pub(crate) async fn readable(&self) -> AddressFamily {
        tokio::select! {
            Ok(()) = readable(self.v4.as_ref()) => AddressFamily::V4,
            Ok(()) = readable(self.v6.as_ref()) => AddressFamily::V6,
            else => std::future::pending().await,
        }
    }

    /// Receives datagrams of this family for one turn, until `handle` returns false.
    pub(crate) fn receive(
        &self,
        family: AddressFamily,
        mut handle: impl FnMut(&[u8], SocketAddr) -> bool,
    ) {
        let Some(socket) = self.socket(family) else { return };
        let peer = |from| *self.translated.get(&from).unwrap_or(&from);
        receive(socket, |data, from| handle(data, peer(from)));
    }

    fn socket(&self, family: AddressFamily) -> Option<&UdpSocket> {
        match family {
            AddressFamily::V4 => self.v4.as_ref(),
            AddressFamily::V6 => self.v6.as_ref(),
        }
    }
}

/// Binds a socket to this address and a free port.
pub(crate) fn bind(ip: IpAddr) -> io::Result<UdpSocket> {
    let address = SocketAddr::new(ip, 0);
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if ip.is_ipv6() && !matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some()) {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Receives datagrams for one turn, until `handle` returns false.
pub(crate) fn receive(socket: &UdpSocket, mut handle: impl FnMut(&[u8], SocketAddr) -> bool) {
    SCRATCH.with_borrow_mut(|scratch| {
        for _ in 0..TURN {
            let Ok((length, from)) = socket.try_recv_from(scratch) else { return };
            if !handle(&scratch[..length], from) {
                return;
            }
        }
    });
}

async fn readable(socket: Option<&UdpSocket>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.readable().await,
        None => std::future::pending().await,
    }
}
