//! What the kernel of this host tells a program about its sockets, for implementations of transport
//! protocols on tokio.
//!
//! | module | contents | source |
//! | --- | --- | --- |
//! | [`icmp`] | ICMP errors about packets that a socket has sent | RFC 792, RFC 4443, ip(7) |
//! | [`datagram_socket`] | a UDP or raw socket of the runtime that reports them | |
//! | [`fault`] | errors of system calls that this host is to blame for | |
//! | [`addresses`] | the addresses of this host, and the one that routing would choose | RFC 6724 §4 |
//! | [`routes`] | its routes | |
//! | [`watcher`] | changes of links, addresses and routes | rtnetlink(7) |
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
pub mod fault;
pub mod icmp;
pub mod routes;
pub mod watcher;

#[cfg(test)]
#[path = "../../eyas/tests/namespace/mod.rs"]
mod test_namespace;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
