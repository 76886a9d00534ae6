//! Connects a TCP socket, and fails on the first ICMP error that concerns it.
//!
//! Linux ends a pending connect when an ICMP error arrives after the system call has returned. An
//! error that arrives during the call (from this host, or from a namespace or virtual machine on
//! it) is only recorded: it ends the connect over IPv6 if reports are enabled on the socket, and
//! otherwise at the first retransmission, one second later. Reports must be disabled again once the
//! connection is established, because the kernel would fail its next system call with whatever a
//! router reported about a single packet (RFC 5461 §4).
//!
//! Other systems end a pending connect with the error alone.
//!
//! MPTCP sockets cannot enable reports (Linux 6.18: `EOPNOTSUPP`). An ICMP error from a router
//! still ends their connect at once, but without the router's address; one that arrives during the
//! call ends it after a second, over IPv4 too.

use std::io;
use std::net::SocketAddr;

use eyas_host::errno;
use eyas_host::fault::SocketCall;
use eyas_host::icmp::{self, IcmpReport};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel};
use socket2::{Domain, SockRef, Socket};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::failure::{connect_failure, icmp_failure, io_failure, send_failure};

/// Connects a non-blocking socket.
pub(super) async fn connect(socket: Socket, peer: SocketAddr) -> Result<TcpStream, AttemptFailure> {
    let classified = |error: io::Error| io_failure(&error, EvidenceLevel::Started);
    let family = Domain::for_address(peer);
    let reports_enabled = icmp::enable_reports(&socket, family).is_ok();
    if let Err(error) = socket.connect(&peer.into())
        && error.raw_os_error() != Some(errno::EINPROGRESS)
    {
        return Err(send_failure(&error, SocketCall::Connect, peer));
    }
    let stream = TcpStream::from_std(socket.into()).map_err(classified)?;
    let ready = stream.ready(Interest::WRITABLE | Interest::ERROR).await.map_err(classified)?;
    // The runtime was notified if there is an error or a report.
    let has_error = ready.is_error() || ready.is_write_closed();
    if has_error || !reports_enabled {
        let error = stream.take_error().map_err(classified)?;
        let report = if reports_enabled { icmp_report(&stream) } else { None };
        if let Some(error) = error
            && !(icmp::is_icmp_report(&error) && stream.peer_addr().is_ok())
        {
            return Err(
                report.map_or_else(|| connect_failure(&error), |report| icmp_failure(&report))
            );
        }
    }
    if reports_enabled {
        disable_reports(stream, family, has_error).map_err(|error| connect_failure(&error))
    } else {
        Ok(stream)
    }
}

/// Returns the first meaningful report.
fn icmp_report(stream: &TcpStream) -> Option<IcmpReport> {
    loop {
        match icmp::read(&SockRef::from(stream)) {
            // It is not about a path.
            Ok(None) => {}
            Ok(report) => return report,
            Err(_) => return None,
        }
    }
}

/// Disables ICMP reports again, so that errors only delay the connection, as usual.
fn disable_reports(
    stream: TcpStream,
    family: Domain,
    mut had_error: bool,
) -> io::Result<TcpStream> {
    icmp::disable_reports(&SockRef::from(&stream), family)?;
    // A report that arrived before that is still returned by the next call.
    if let Some(error) = stream.take_error()? {
        if !icmp::is_icmp_report(&error) {
            return Err(error);
        }
        had_error = true;
    }
    // The runtime considers a stream with an error closed for writing, permanently.
    if had_error { TcpStream::from_std(stream.into_std()?) } else { Ok(stream) }
}

#[cfg(test)]
mod tests;
