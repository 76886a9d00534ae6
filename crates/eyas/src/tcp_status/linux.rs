//! `TCP_INFO` of tcp(7).

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::{getsockopt_impl, libc, sockopt_impl};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use super::{KEEP_ALIVE_AFTER, TcpReading};

/// A handle to a TCP connection that asks the kernel about it, wherever its stream is. It does not
/// keep the connection open. Cheap to clone.
#[derive(Clone)]
pub struct TcpStatus(Arc<DescriptorSlot>);

/// The descriptor, until its owner closes it. Whoever uses it holds the lock.
struct DescriptorSlot(Mutex<Option<RawFd>>);

impl TcpStatus {
    /// The silence after which [`probe`](Self::probe) has an effect: the shortest that the kernel
    /// knows.
    pub const PROBE_AFTER: Duration = Duration::from_secs(1);

    /// Returns what the kernel knows, or `None` if the connection is closed.
    pub fn read(&self) -> Option<TcpReading> {
        self.0.with_descriptor(read)?
    }

    /// Has the kernel send a keep-alive probe (RFC 9293 §3.8.4) now, unless something was received
    /// within [`PROBE_AFTER`](Self::PROBE_AFTER). [`read`](Self::read) says when the peer has answered it. The usual
    /// time until such probes applies again once the value is dropped.
    pub fn probe(&self) -> TcpProbe {
        self.0.with_descriptor(|socket| probe_after(socket, Self::PROBE_AFTER));
        TcpProbe(self.clone())
    }
}

/// Returns approximately how many bytes the peer has not acknowledged.
pub(crate) fn undelivered(stream: &TcpStream) -> Option<u64> {
    undelivered_of(stream.as_fd())
}

/// A keep-alive probe that was sent early.
#[derive(Debug)]
#[must_use = "the next probes follow the usual time once this is dropped"]
pub struct TcpProbe(TcpStatus);

impl Drop for TcpProbe {
    fn drop(&mut self) {
        self.0.0.with_descriptor(|socket| probe_after(socket, KEEP_ALIVE_AFTER));
    }
}

impl DescriptorSlot {
    fn with_descriptor<T>(&self, ask: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let descriptor = (*slot)?;
        #[expect(unsafe_code, reason = "the stream is owned by whoever reads it")]
        // SAFETY: `TcpGuard` empties the slot, which is locked here, before its stream is closed.
        let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
        Some(ask(socket))
    }
}

/// Kept beside a stream and dropped before it: from then on nobody can ask about it.
pub(crate) struct TcpGuard(TcpStatus);

impl TcpGuard {
    pub(crate) fn new(stream: &TcpStream) -> Option<Self> {
        let slot = DescriptorSlot(Mutex::new(Some(stream.as_raw_fd())));
        Some(Self(TcpStatus(Arc::new(slot))))
    }

    pub(crate) fn status(&self) -> TcpStatus {
        self.0.clone()
    }
}

impl Drop for TcpGuard {
    fn drop(&mut self) {
        *self.0.0.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl fmt::Debug for TcpStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TcpStatus").field(&self.read()).finish()
    }
}

/// `struct tcp_info` of `linux/tcp.h`, in words of four octets. The octets of this one are the
/// state, that of congestion control, `tcpi_retransmits` and `tcpi_probes`.
const COUNTS: usize = 0;
/// `tcpi_snd_mss`, in bytes.
const SEGMENT: usize = 4;
/// `tcpi_unacked`, in segments, with the FIN.
const UNACKNOWLEDGED: usize = 6;
/// `tcpi_last_ack_recv`, in milliseconds.
const SINCE_ACKNOWLEDGEMENT: usize = 14;
/// `tcpi_rtt`, in microseconds.
const RTT: usize = 17;
/// `tcpi_rttvar`, in microseconds.
const RTT_VARIANCE: usize = 18;
/// `tcpi_total_retrans`, in segments.
const RETRANSMITTED: usize = 25;
/// `tcpi_notsent_bytes`: what a firewall of this host drops counts as not sent.
const NOT_SENT: usize = 36;

/// For how long a peer may delay an acknowledgement, as Linux assumes (`TCP_RTO_MIN`).
const ACKNOWLEDGEMENT_DELAY: Duration = Duration::from_millis(200);

// The part that every kernel since 4.6 has.
sockopt_impl!(
    /// The kernel's information about a TCP connection.
    Info,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u32; 37]
);

fn read(socket: BorrowedFd<'_>) -> Option<TcpReading> {
    let info = getsockopt(&socket, Info).ok()?;
    let micros = |at: usize| Duration::from_micros(info[at].into());
    let [_, _, retransmits, probes] = info[COUNTS].to_ne_bytes();
    Some(TcpReading {
        has_unacknowledged: info[UNACKNOWLEDGED] > 0 || info[NOT_SENT] > 0,
        since_acknowledgement: Duration::from_millis(info[SINCE_ACKNOWLEDGEMENT].into()),
        patience: micros(RTT) + (4 * micros(RTT_VARIANCE)).max(ACKNOWLEDGEMENT_DELAY),
        rtt: micros(RTT),
        retransmitted: info[RETRANSMITTED].into(),
        unanswered: u32::from(retransmits) + u32::from(probes),
    })
}

fn undelivered_of(socket: BorrowedFd<'_>) -> Option<u64> {
    let info = getsockopt(&socket, Info).ok()?;
    let [segment, unacknowledged, not_sent] =
        [SEGMENT, UNACKNOWLEDGED, NOT_SENT].map(|field| u64::from(info[field]));
    Some(unacknowledged * segment + not_sent)
}

/// Linux starts its timer anew when the time is set, less what has passed already.
fn probe_after(socket: BorrowedFd<'_>, time: Duration) {
    // A connection that has ended has nothing to probe.
    let _ = SockRef::from(&socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(time));
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::undelivered;

    #[tokio::test]
    async fn what_the_peer_does_not_read_is_undelivered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut there, _) = listener.accept().await.unwrap();
        assert_eq!(undelivered(&here), Some(0));
        let mut written = 0;
        while let Ok(length) = here.try_write(&[0; 65536]) {
            written += length;
        }
        assert!(undelivered(&here).unwrap() > 65536, "of {written}");
        here.shutdown().await.unwrap_or_else(|error| panic!("{error}"));
        there.read_to_end(&mut Vec::new()).await.unwrap();
        while undelivered(&here) != Some(0) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}
