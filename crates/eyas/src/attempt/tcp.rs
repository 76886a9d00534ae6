//! TCP (RFC 9293), and MPTCP, which behaves the same for the client.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_host::fault::SocketCall;
use eyas_race::candidate::{Security, Transport};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel};
use socket2::{Domain, Socket, TcpKeepalive};
use tokio::net::TcpStream;

use super::event::{AttemptEvent, EstablishedTransport};
use super::{AttemptReporter, CandidateAttempt, tcp_connect, tcp_hello, tls};
use crate::byte_stream::ByteTransport;
use crate::connector::EndpointConnector;
use crate::failure::open_failure;
use crate::kernel_tcp;
use crate::tcp_status::KEEP_ALIVE_AFTER;

/// The time between two probes.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The number of unanswered probes after which the connection is closed.
const KEEP_ALIVE_TRIES: u32 = 4;
/// How long sent data may remain unacknowledged before the kernel closes the connection (RFC 5482):
/// as long as it takes to notice a silent peer of an idle connection. RFC 9293 §3.8.3 (R2) asks for
/// at least 100 seconds; Linux would take 15 minutes and more.
const USER_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) async fn run(
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    reporter: &AttemptReporter,
) -> Result<EstablishedTransport, AttemptFailure> {
    let mut info = attempt.info();
    let is_planned = attempt.candidate.transport == Transport::Mptcp;
    let wants_mptcp = is_planned || connector.mptcp();
    let fast_open = attempt.is_unraced && connector.fast_open();
    let start = Instant::now();
    let stream = connected(attempt, connector, wants_mptcp, fast_open).await?;
    // With TCP Fast Open the call returns before the peer has responded, so there is no round-trip
    // time.
    let rtt = (!fast_open).then(|| start.elapsed());
    let reached = if fast_open { EvidenceLevel::Started } else { EvidenceLevel::Transport };
    if !fast_open {
        info.timings.answered = Some(attempt.origin.elapsed());
        info.timings.transport = info.timings.answered;
    }
    info.rtt = rtt;
    info.local = stream.local_addr().ok();
    if wants_mptcp {
        let is_mptcp = kernel_tcp::is_mptcp(&stream);
        info.transport = if is_mptcp { Transport::Mptcp } else { Transport::Tcp };
        if is_planned && !is_mptcp {
            info.fell_back = true;
            // Before any other event, so that those are evidence about TCP.
            reporter.report(AttemptEvent::FellBack).await;
        }
    }
    reporter.progress(reached, rtt).await;
    match attempt.candidate.security {
        Security::None | Security::Dtls => Ok(EstablishedTransport {
            transport: ByteTransport::Tcp(stream),
            info,
            read_ahead: Bytes::new(),
        }),
        Security::Tls => {
            // Without MPTCP and Fast Open, which devices remove or drop as well.
            let reopen = || connected(attempt, connector, false, false);
            let stream =
                tcp_hello::secure(stream, attempt, reporter, connector, reached, rtt, reopen)
                    .await?;
            info.timings.security = Some(attempt.origin.elapsed());
            tls::describe(&mut info, stream.get_ref().1);
            let transport = ByteTransport::Tls(Box::new(stream.into()));
            Ok(EstablishedTransport { transport, info, read_ahead: Bytes::new() })
        }
    }
}

/// Connects a socket.
async fn connected(
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    mptcp: bool,
    fast_open: bool,
) -> Result<TcpStream, AttemptFailure> {
    let address = attempt.candidate.address;
    let socket =
        open(address, mptcp, fast_open).map_err(|error| open_failure(&error, SocketCall::Open))?;
    connector
        .local_addresses()
        .bind(&socket, address)
        .map_err(|error| open_failure(&error, SocketCall::Bind))?;
    tcp_connect::connect(socket, address).await
}

/// Opens a socket for a connection to `address`.
fn open(address: SocketAddr, mptcp: bool, fast_open: bool) -> io::Result<Socket> {
    let socket = kernel_tcp::open(Domain::for_address(address), mptcp)?;
    socket.set_tcp_nodelay(true)?;
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE_AFTER)
        .with_interval(KEEP_ALIVE_INTERVAL)
        .with_retries(KEEP_ALIVE_TRIES);
    // Windows has the number of tries since version 10 1703 alone; a connection works without.
    let _ = socket.set_tcp_keepalive(&keep_alive);
    // MPTCP sockets of some kernels do not have it, nor do other systems, and wait longer then.
    let _ = kernel_tcp::set_user_timeout(&socket, USER_TIMEOUT);
    if fast_open {
        kernel_tcp::enable_fast_open(&socket)?;
    }
    Ok(socket)
}
