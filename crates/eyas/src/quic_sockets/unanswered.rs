//! QUIC attempts that have not been answered yet. Only these can be ended by ICMP, because anyone
//! can forge an ICMP message (RFC 9000 §14.2.1), and an answer from the peer proves it wrong.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyas_race::evidence::Failure;
use tokio::sync::oneshot;

use crate::failure::icmp_failure;
use crate::icmp::{IcmpCause, Report};

/// The least that a path has to carry for QUIC, without the headers of IP and UDP (RFC 9000 §14).
const LEAST_DATAGRAM: u16 = 1200;
/// The header of UDP, behind that of IPv4 and of IPv6, in bytes.
const HEADERS: [u16; 2] = [20 + 8, 40 + 8];

/// The attempts of a socket.
#[derive(Debug, Default)]
pub(crate) struct Unanswered(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    attempts: Vec<(u64, SocketAddr, oneshot::Sender<Failure>)>,
}

/// One attempt, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    id: u64,
    at: Arc<Unanswered>,
    failure: oneshot::Receiver<Failure>,
}

impl Unanswered {
    /// Registers an attempt that is about to send its first packet to `peer`.
    pub(crate) fn begin(self: &Arc<Self>, peer: SocketAddr) -> Listening {
        let (sender, failure) = oneshot::channel();
        let mut waiting = self.lock();
        let id = waiting.next;
        waiting.next += 1;
        waiting.attempts.push((id, peer, sender));
        Listening { id, at: Arc::clone(self), failure }
    }

    /// Records a datagram from this address: whoever it is for, the host exists and the port is
    /// open.
    pub(crate) fn answered(&self, from: SocketAddr) {
        self.lock().attempts.retain(|(_, peer, _)| !is_same(*peer, from));
    }

    /// Handles a report.
    pub(crate) fn reported(&self, report: &Report) {
        let headers = HEADERS[usize::from(report.remote.is_ipv6())];
        // Routers may take less than we sent as long as it is enough.
        if !matches!(report.cause, IcmpCause::TooBig(mtu) if mtu >= LEAST_DATAGRAM + headers) {
            self.fail(report.remote, &icmp_failure(report));
        }
    }

    /// Fails the attempts towards `remote`.
    pub(crate) fn fail(&self, remote: SocketAddr, failure: &Failure) {
        for (_, _, attempt) in
            self.lock().attempts.extract_if(.., |(_, peer, _)| is_same(*peer, remote))
        {
            // An attempt that has ended needs no notification.
            let _ = attempt.send(failure.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listening {
    /// Returns the result of `connecting`, unless a report ends it before anyone has answered.
    pub(crate) async fn unless_ended<T>(
        &mut self,
        connecting: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let ended = async {
            match (&mut self.failure).await {
                Ok(failure) => failure,
                // It was answered.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = connecting => Ok(done),
            failure = ended => Err(failure),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.at.lock().attempts.retain(|(id, _, _)| *id != self.id);
    }
}

/// Compares addresses without scope and flow of IPv6, which differ between sent and quoted packets.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip(), one.port()) == (other.ip(), other.port())
}

#[cfg(test)]
mod tests;
