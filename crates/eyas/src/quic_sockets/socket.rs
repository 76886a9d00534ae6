//! The UDP socket that quinn uses: it reports ICMP errors (`unanswered`), and its buffers are only
//! as large as needed (`receive`).

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use eyas_host::datagram_socket::DatagramSocket;
use eyas_host::fault::SocketCall;
use eyas_host::udp_offload::UdpOffload;
use eyas_race::evidence::FailureCause;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use socket2::Socket;

use super::receive::{self, ReceivedTrains};
use super::unanswered::UnansweredAttempts;
use crate::abort_on_drop::AbortOnDrop;
use crate::failure::send_failure;

/// ICMP reports read at a time.
const MAX_REPORTS: usize = 32;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct QuicSocket {
    socket: Arc<DatagramSocket>,
    /// The local address, cached because every connection queries it.
    local: SocketAddr,
    offload: UdpOffload,
    /// Whether the last send failed because the socket was full.
    full: AtomicBool,
    received: Mutex<ReceivedTrains>,
    unanswered: Arc<UnansweredAttempts>,
    _reports: AbortOnDrop,
}

impl QuicSocket {
    /// Creates a socket. Must be called inside a tokio runtime.
    pub(super) fn new(socket: Socket, unanswered: Arc<UnansweredAttempts>) -> io::Result<Self> {
        let offload = UdpOffload::new(&socket)?;
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        let socket = Arc::new(DatagramSocket::new(socket)?);
        let reports = {
            let (socket, unanswered) = (Arc::clone(&socket), Arc::clone(&unanswered));
            AbortOnDrop::spawn(async move {
                let handle = |report| unanswered.handle_report(&report);
                while socket.reports(MAX_REPORTS, handle).await.is_ok() {}
            })
        };
        Ok(Self {
            socket,
            local,
            offload,
            full: AtomicBool::new(false),
            received: Mutex::default(),
            unanswered,
            _reports: reports,
        })
    }

    /// Records a packet that could not be sent: unanswered attempts fail, since nothing can be sent
    /// to that peer, and what this host does not send must not be held against the peer.
    fn record_unsent(&self, remote: SocketAddr, error: &io::Error) {
        tracing::debug!(%remote, %error, "cannot send");
        let failure = send_failure(error, SocketCall::Send, remote);
        if failure.cause == FailureCause::Unreachable || failure.cause.is_of_this_host() {
            self.unanswered.fail(remote, &failure);
        }
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(WritablePoller { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let socket = self.socket.get();
        match self.socket.send(|| self.offload.send(&socket, transmit)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.full.store(true, Ordering::Relaxed);
                Err(error)
            }
            Err(error) => {
                self.record_unsent(transmit.destination, &error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut trains = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let count = trains.fill(buffers, meta);
            if count > 0 {
                return Poll::Ready(Ok(count));
            }
            let socket = self.socket.get();
            ready!(self.socket.poll_read(cx, || trains.receive(&self.offload, &socket)))?;
            trains.sources().for_each(|from| self.unanswered.answered(from));
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn may_fragment(&self) -> bool {
        self.offload.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.offload.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        receive::SEGMENTS
    }
}

/// Waits until the socket accepts packets again, for one of its senders.
struct WritablePoller {
    socket: Arc<QuicSocket>,
    waiting: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>>,
}

impl UdpPoller for WritablePoller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.is_none() {
            if !self.socket.full.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            let socket = Arc::clone(&self.socket.socket);
            self.waiting = Some(Box::pin(async move { socket.writable().await }));
        }
        if let Some(waiting) = &mut self.waiting {
            let result = ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
            result?;
            self.socket.full.store(false, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for WritablePoller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritablePoller").finish_non_exhaustive()
    }
}
