//! The kernel's Multipath TCP, and its TCP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::sync_channel;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use super::network::Network;
use super::shared::{Pair, Shared, run_until_finished};
use crate::emulator::Host;
use crate::live::LiveError;
use crate::situation::live::{MultipathSetup, Stack};

const PORT: u16 = 5001;
/// The size of a write, in bytes.
const BLOCK: usize = 64 * 1024;
/// The backlog of the listener; there is only one connection.
const BACKLOG: u32 = 8;

/// Starts a receiver on the server's host and a sender on the client's host.
pub(super) fn start(
    network: &Network,
    setup: &MultipathSetup,
    pair: &mut Pair,
) -> Result<(), LiveError> {
    for host in Host::ALL {
        prepare(network, host, setup)?;
    }
    let to = SocketAddr::new(network.server()?, PORT);
    // Subflows connect to the other addresses.
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT);
    let multipath = setup.stack == Stack::Mptcp;
    let (sender, listening) = sync_channel(1);
    let shared = pair.shared.clone();
    pair.threads.push(network.thread(Host::Server, move || {
        run_until_finished(&shared, "the receiver", async {
            let listener = listen(any, multipath)?;
            let _ = sender.send(());
            receive(&shared, &listener).await
        });
    })?);
    let _ = listening.recv();
    let shared = pair.shared.clone();
    pair.threads.push(network.thread(Host::Client, move || {
        run_until_finished(&shared, "the sender", send(to, multipath));
    })?);
    Ok(())
}

/// Configures the kernel of a host.
fn prepare(network: &Network, host: Host, setup: &MultipathSetup) -> Result<(), LiveError> {
    let congestion = setup.tcp.clone();
    let set = move || -> io::Result<()> {
        std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", &congestion)
    };
    let refused = |cause: &dyn std::fmt::Display| {
        LiveError::Missing(format!("TCP with {} as congestion control: {cause}", setup.tcp))
    };
    let done = network.namespace(host).run_in(set).map_err(|cause| refused(&cause))?;
    done.map_err(|cause| refused(&cause))?;
    if setup.stack != Stack::Mptcp {
        return Ok(());
    }
    let missing = |cause: LiveError| LiveError::Missing(format!("MPTCP: {cause}"));
    let limits = ["mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"];
    network.program(host, "ip", &limits).map_err(missing)?;
    if host == Host::Server {
        // The client opens a subflow to each address announced to it; routing sends it over the
        // right path.
        for address in network.addresses_of(host).iter().skip(1) {
            signal(network, *address).map_err(missing)?;
        }
    }
    Ok(())
}

fn signal(network: &Network, address: IpAddr) -> Result<(), LiveError> {
    let address = address.to_string();
    network.program(Host::Server, "ip", &["mptcp", "endpoint", "add", &address, "signal"])
}

fn socket(multipath: bool) -> io::Result<TcpSocket> {
    let protocol = if multipath { ipproto::MPTCP } else { ipproto::TCP };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(protocol))?;
    Ok(TcpSocket::from_std_stream(socket.into()))
}

fn listen(at: SocketAddr, multipath: bool) -> io::Result<TcpListener> {
    let socket = socket(multipath)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

async fn receive(shared: &Shared, listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept().await?;
    let mut buffer = vec![0; BLOCK];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Err(io::Error::other("the sender has closed")),
            length => shared.arrived(length),
        }
    }
}

async fn send(to: SocketAddr, multipath: bool) -> io::Result<()> {
    let mut stream = socket(multipath)?.connect(to).await?;
    let block = vec![0x5a; BLOCK];
    loop {
        stream.write_all(&block).await?;
    }
}
