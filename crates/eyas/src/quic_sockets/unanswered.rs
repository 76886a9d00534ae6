//! QUIC attempts that have not been answered yet. Only these can be ended by ICMP, because anyone
//! can forge an ICMP message (RFC 9000 §14.2.1), and an answer from the peer proves it wrong.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyas_host::icmp::{IcmpCause, IcmpReport};
use eyas_race::evidence::AttemptFailure;
use tokio::sync::oneshot;

use crate::failure::icmp_failure;

/// The datagram size that a path must carry for QUIC, without the IP and UDP headers (RFC 9000
/// §14).
const MIN_DATAGRAM: u16 = 1200;
/// The size of the IP and UDP headers in bytes, for IPv4 and for IPv6.
const HEADERS: [u16; 2] = [20 + 8, 40 + 8];

/// The unanswered attempts of a socket.
#[derive(Debug, Default)]
pub(crate) struct UnansweredAttempts(Mutex<NumberedAttempts>);

#[derive(Debug, Default)]
struct NumberedAttempts {
    next: u64,
    attempts: Vec<(u64, SocketAddr, oneshot::Sender<AttemptFailure>)>,
}

/// The registration of one attempt, until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingAttempt {
    id: u64,
    unanswered: Arc<UnansweredAttempts>,
    failure: oneshot::Receiver<AttemptFailure>,
}

impl UnansweredAttempts {
    /// Registers an attempt that is about to send its first packet to `peer`.
    pub(crate) fn register(self: &Arc<Self>, peer: SocketAddr) -> PendingAttempt {
        let (sender, failure) = oneshot::channel();
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.attempts.push((id, peer, sender));
        PendingAttempt { id, unanswered: Arc::clone(self), failure }
    }

    /// Records a datagram from this address: whichever attempt it is for, the host exists and the
    /// port is open.
    pub(crate) fn answered(&self, from: SocketAddr) {
        self.lock().attempts.retain(|(_, peer, _)| !is_same(*peer, from));
    }

    /// Handles an ICMP report.
    pub(crate) fn handle_report(&self, report: &IcmpReport) {
        let headers = HEADERS[usize::from(report.remote.is_ipv6())];
        // An MTU below the size that we sent does no harm as long as it is large enough for QUIC.
        if !matches!(report.cause, IcmpCause::TooBig(mtu) if mtu >= MIN_DATAGRAM + headers) {
            self.fail(report.remote, &icmp_failure(report));
        }
    }

    /// Fails the attempts towards `remote`.
    pub(crate) fn fail(&self, remote: SocketAddr, failure: &AttemptFailure) {
        for (_, _, attempt) in
            self.lock().attempts.extract_if(.., |(_, peer, _)| is_same(*peer, remote))
        {
            // An attempt that has ended needs no notification.
            let _ = attempt.send(failure.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, NumberedAttempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingAttempt {
    /// Returns the result of `connecting`, unless a report ends it before anyone has answered.
    pub(crate) async fn unless_failed<T>(
        &mut self,
        connecting: impl Future<Output = T>,
    ) -> Result<T, AttemptFailure> {
        let failed = async {
            match (&mut self.failure).await {
                Ok(failure) => failure,
                // The sender was dropped, because the peer has responded.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = connecting => Ok(done),
            failure = failed => Err(failure),
        }
    }
}

impl Drop for PendingAttempt {
    fn drop(&mut self) {
        self.unanswered.lock().attempts.retain(|(id, _, _)| *id != self.id);
    }
}

/// Compares addresses without IPv6 scope and flow label, which differ between sent and quoted
/// packets.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip(), one.port()) == (other.ip(), other.port())
}

#[cfg(test)]
mod tests;
