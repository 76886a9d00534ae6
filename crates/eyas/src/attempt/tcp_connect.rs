//! Connects a TCP socket, and fails on the first ICMP error that concerns it.
//!
//! Linux ends a pending connect when an ICMP error arrives after the system call has returned. An
//! error that arrives during the call (from this host, or from a namespace or virtual machine on
//! it) is only recorded: it ends the connect over IPv6 if the socket has asked for reports, and
//! otherwise at the first retransmission, one second later. Reports must be switched off again once
//! the connection is up, because the kernel would fail its next system call with whatever a router
//! said about a single packet (RFC 5461 §4).
//!
//! MPTCP sockets cannot ask for reports (Linux 6.18: `EOPNOTSUPP`). An ICMP error from a router
//! still ends their connect at once, but without the router's address; one that arrives during the
//! call ends it after a second, over IPv4 too.

use std::io;
use std::net::SocketAddr;

use eyas_race::candidate::Family;
use eyas_race::evidence::{Failure, Level};
use nix::libc;
use socket2::Socket;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::failure::{of_connect, of_io, of_report};
use crate::icmp::{self, Report};

/// Connects a socket that does not block.
pub(super) async fn connect(socket: Socket, to: SocketAddr) -> Result<TcpStream, Failure> {
    let local = |error: io::Error| of_io(&error, Level::Started);
    let family = Family::of(to.ip());
    let hears = icmp::ask_for_reports(&socket, family).is_ok();
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
            return Err(of_connect(&error));
        }
        Ok(()) | Err(_) => {}
    }
    let stream = TcpStream::from_std(socket.into()).map_err(local)?;
    let ready = stream.ready(Interest::WRITABLE | Interest::ERROR).await.map_err(local)?;
    // Where there is an error or a report, the runtime was told that there is.
    let is_told = ready.is_error() || ready.is_write_closed();
    if is_told || !hears {
        let error = stream.take_error().map_err(local)?;
        let report = if hears { icmp_report(&stream) } else { None };
        if let Some(error) = error
            && !(icmp::is_icmp_report(&error) && stream.peer_addr().is_ok())
        {
            return Err(report.map_or_else(|| of_connect(&error), |report| of_report(&report)));
        }
    }
    if hears {
        deafen(stream, family, is_told).map_err(|error| of_connect(&error))
    } else {
        Ok(stream)
    }
}

/// Returns the first meaningful report.
fn icmp_report(stream: &TcpStream) -> Option<Report> {
    loop {
        match icmp::read(stream) {
            Ok(None) => {}
            Ok(report) => return report,
            Err(_) => return None,
        }
    }
}

/// Switches ICMP reports off again, so that errors only make the connection wait, as usual.
fn deafen(stream: TcpStream, family: Family, mut heard: bool) -> io::Result<TcpStream> {
    icmp::stop_reports(&stream, family)?;
    // What came before that is still the error of the next call.
    if let Some(error) = stream.take_error()? {
        if !icmp::is_icmp_report(&error) {
            return Err(error);
        }
        heard = true;
    }
    // To the runtime a stream with an error is closed for writing, and remains so.
    if heard { TcpStream::from_std(stream.into_std()?) } else { Ok(stream) }
}

#[cfg(test)]
mod tests;
