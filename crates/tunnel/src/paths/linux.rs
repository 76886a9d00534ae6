//! `struct tcp_info` of `linux/tcp.h`, in words of four octets. For an MPTCP socket it is about the first subflow.

use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};

use super::PathReading;

/// `tcpi_snd_mss`.
const SEGMENT: usize = 4;
/// `tcpi_rtt`, in microseconds.
const RTT: usize = 17;
/// `tcpi_snd_cwnd`, in segments.
const WINDOW: usize = 20;
/// `tcpi_total_retrans`, in segments.
const RETRANSMITTED: usize = 25;
/// `tcpi_bytes_acked`, two words.
const ACKNOWLEDGED: usize = 30;

fn acknowledged(info: &[u32; 34]) -> u64 {
    // The two halves are in native byte order.
    let [low, high] = match cfg!(target_endian = "big") {
        false => [ACKNOWLEDGED, ACKNOWLEDGED + 1],
        true => [ACKNOWLEDGED + 1, ACKNOWLEDGED],
    };
    u64::from(info[low]) | u64::from(info[high]) << 32
}

// The part that every kernel since 4.1 has.
sockopt_impl!(
    /// The kernel's information about a TCP connection.
    Info,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u32; 34]
);

pub(super) fn of_tcp(socket: &socket2::Socket, only: PathReading) -> PathReading {
    let Ok(info) = getsockopt(socket, Info) else { return only };
    let number = |at: usize| u64::from(info[at]);
    let mss = number(SEGMENT);
    PathReading {
        rtt: Some(Duration::from_micros(number(RTT))),
        window: Some(number(WINDOW) * mss),
        delivered: acknowledged(&info),
        lost: number(RETRANSMITTED) * mss,
        ..only
    }
}

/// Returns the bytes acknowledged so far, and the round-trip time.
pub(super) fn tcp_signs(socket: &socket2::Socket) -> (Option<u64>, Option<Duration>) {
    let info = getsockopt(socket, Info).ok();
    let rtt = info.map(|info| Duration::from_micros(info[RTT].into()));
    (info.map(|info| acknowledged(&info)), rtt)
}
