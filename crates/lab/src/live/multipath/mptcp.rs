//! The kernel's Multipath TCP, and its TCP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::sync_channel;

use eyas_emulator::HostRole;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket};

use super::network::EmulatedNetwork;
use super::shared::{RunningPair, run_until_finished};
use crate::live::LiveError;
use crate::situation::live::{MultipathSetup, MultipathStack};

const PORT: u16 = 5001;
/// The size of a write, in bytes.
const BLOCK: usize = 64 * 1024;
/// The backlog of the listener; there is only one connection.
const BACKLOG: u32 = 8;

/// Starts a receiver on the server's host and a sender on the client's host.
pub(super) fn start(
    network: &EmulatedNetwork,
    setup: &MultipathSetup,
    pair: &mut RunningPair,
) -> Result<(), LiveError> {
    for host in HostRole::ALL {
        prepare(network, host, setup)?;
    }
    let to = SocketAddr::new(network.server()?, PORT);
    // Subflows connect to the other addresses.
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
    let kind = SocketKind {
        multipath: setup.stack == MultipathStack::Mptcp,
        congestion: setup.tcp.clone(),
    };
    let (sender, listening) = sync_channel(1);
    let (shared, both_ways) = (pair.shared.clone(), setup.application.both_ways);
    let listener = kind.clone();
    pair.threads.push(network.thread(HostRole::Server, move || {
        run_until_finished(&shared, "the receiver", async {
            let listener = listener.listen(any)?;
            let _ = sender.send(());
            let (stream, _) = listener.accept().await?;
            let (input, output) = stream.into_split();
            let receiving = receive(input, |length| shared.arrived(length));
            match both_ways {
                true => tokio::try_join!(receiving, send(output)).map(drop),
                false => receiving.await,
            }
        });
    })?);
    let _ = listening.recv();
    let shared = pair.shared.clone();
    pair.threads.push(network.thread(HostRole::Client, move || {
        run_until_finished(&shared, "the sender", async {
            let stream = kind.open()?.connect(to).await?;
            let (input, output) = stream.into_split();
            let receiving = receive(input, |length| shared.arrived_back(length));
            match both_ways {
                true => tokio::try_join!(send(output), receiving).map(drop),
                false => send(output).await,
            }
        });
    })?);
    Ok(())
}

/// Configures the kernel of a host.
fn prepare(
    network: &EmulatedNetwork,
    host: HostRole,
    setup: &MultipathSetup,
) -> Result<(), LiveError> {
    let kind = SocketKind { multipath: false, congestion: setup.tcp.clone() };
    let refused = |cause: &dyn std::fmt::Display| {
        LiveError::Missing(format!("TCP with {} as congestion control: {cause}", setup.tcp))
    };
    let opened = network.namespace(host).run_in(move || kind.open().map(drop));
    opened.map_err(|cause| refused(&cause))?.map_err(|cause| refused(&cause))?;
    if setup.stack != MultipathStack::Mptcp {
        return Ok(());
    }
    let missing = |cause: LiveError| LiveError::Missing(format!("MPTCP: {cause}"));
    let limits = ["mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"];
    network.program(host, "ip", &limits).map_err(missing)?;
    if host == HostRole::Server {
        // The client opens a subflow to each address announced to it; routing sends it over the
        // right path.
        for address in network.addresses_of(host).iter().skip(1) {
            signal(network, *address).map_err(missing)?;
        }
    }
    Ok(())
}

fn signal(network: &EmulatedNetwork, address: IpAddr) -> Result<(), LiveError> {
    let address = address.to_string();
    network.program(HostRole::Server, "ip", &["mptcp", "endpoint", "add", &address, "signal"])
}

/// Sockets of TCP or MPTCP, with this congestion control.
#[derive(Clone, Debug)]
struct SocketKind {
    multipath: bool,
    congestion: String,
}

impl SocketKind {
    fn open(&self) -> io::Result<TcpSocket> {
        let protocol = if self.multipath { ipproto::MPTCP } else { ipproto::TCP };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(protocol))?;
        // Of a new namespace, only the controls that every user of the machine may choose can be the
        // default; a socket of a privileged process may have any.
        sockopt::set_tcp_congestion(&socket, &self.congestion)?;
        Ok(TcpSocket::from_std_stream(socket.into()))
    }

    fn listen(&self, at: SocketAddr) -> io::Result<TcpListener> {
        let socket = self.open()?;
        socket.bind(at)?;
        socket.listen(BACKLOG)
    }
}

async fn receive(mut input: OwnedReadHalf, arrived: impl Fn(usize)) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    loop {
        match input.read(&mut buffer).await? {
            0 => return Err(io::Error::other("the other end has closed")),
            length => arrived(length),
        }
    }
}

async fn send(mut output: OwnedWriteHalf) -> io::Result<()> {
    let block = vec![0x5a; BLOCK];
    loop {
        output.write_all(&block).await?;
    }
}
