//! What the kernel of this host tells a program about its sockets, for implementations of transport
//! protocols on tokio.
//!
//! | module | contents | source |
//! | --- | --- | --- |
//! | [`icmp`] | ICMP errors about packets that a socket has sent | RFC 792, RFC 4443, ip(7) |
//! | [`datagram_socket`] | a UDP or raw socket of the runtime that reports them | |
//! | [`udp_offload`] | trains of datagrams and ECN, as far as the system has them | udp(7) |
//! | [`fault`] | errors of system calls that this host is to blame for | |
//! | [`addresses`] | the addresses of this host, and the one that routing would choose | RFC 6724 §4 |
//! | [`interfaces`] | its interfaces by name and by number | RFC 4007 §11 |
//! | [`routes`] | its routes | |
//! | [`neighbours`] | the hardware addresses of its gateways | |
//! | [`watcher`] | changes of links, addresses and routes | rtnetlink(7), route(4) |
//! | [`limits`] | the descriptors that a process may have, and its CPU time | getrlimit(2), getrusage(2) |
//! | [`unix_socket`] | sockets of the file system | unix(7) |
//! | [`errno`] | error numbers by their POSIX names, on every platform | |
//!
//! Each has one file for each platform below it: Linux has all of it; on FreeBSD, macOS and Windows ICMP errors have no
//! senders ([`icmp::ABSENT`]), and routes are those of the interfaces.
//!
//! A client that learns of an ICMP error at once need not wait for a timeout:
//!
//! ```no_run
//! use eyas_host::datagram_socket::DatagramSocket;
//! use socket2::{Domain, Socket, Type};
//!
//! # async fn ask(server: std::net::SocketAddr) -> std::io::Result<()> {
//! let socket = DatagramSocket::new(Socket::new(Domain::for_address(server), Type::DGRAM, None)?)?;
//! socket.send(|| socket.get().send_to(b"question", &server.into()).map(drop))?;
//! let ready = socket.readable().await?;
//! if ready.is_error() {
//!     socket.take_reports(8, |report| println!("{}: {report}", report.remote))?;
//! }
//! # Ok(())
//! # }
//! ```

pub mod addresses;
pub mod datagram_socket;
pub mod errno;
pub mod fault;
pub mod icmp;
pub mod interfaces;
pub mod limits;
#[cfg(windows)]
pub mod name_servers;
pub mod neighbours;
pub mod routes;
pub mod udp_offload;
pub mod unix_socket;
pub mod watcher;

#[cfg(all(test, target_os = "linux"))]
#[path = "../../eyas/tests/namespace/mod.rs"]
mod test_namespace;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
