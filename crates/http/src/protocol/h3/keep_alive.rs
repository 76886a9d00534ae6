//! Keeps a connection alive while it carries requests, as RFC 9114 §5.1 asks for, and only then: an
//! idle one costs no packet. Gives it up where that was agreed on and the peer remains silent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

/// How long a peer may be silent while responses are expected from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How often a connection is looked at.
    pub interval: Duration,
    /// The number of silent intervals after which the peer is asked for a sign of life, and then
    /// after each further one.
    pub asked_after: u32,
    /// How often it is asked before the connection is given up. Without a limit QUIC closes it, after 30 s.
    pub questions: Option<u32>,
}

impl Patience {
    /// That of a client: it asks after half of the time after which QUIC closes the connection.
    pub(super) const CLIENT: Self =
        Self { interval: Duration::from_secs(5), asked_after: 2, questions: None };
}

/// The requests on a connection, and whether its peer still answers. Clones share it.
#[derive(Clone, Default)]
pub(super) struct KeepAlive(Arc<State>);

#[derive(Default)]
struct State {
    /// The number of requests whose responses have not ended.
    in_flight: AtomicUsize,
    /// Whether the peer has left a question unanswered for an interval.
    is_doubted: AtomicBool,
    has_given_up: AtomicBool,
}

/// Counts a request until it is dropped.
pub(super) struct InFlightGuard(KeepAlive);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl KeepAlive {
    pub(super) fn begin(&self) -> InFlightGuard {
        self.0.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self.clone())
    }

    /// Returns whether the peer was asked for a sign of life, and has given none so far.
    pub(super) fn is_doubted(&self) -> bool {
        self.0.is_doubted.load(Ordering::Relaxed)
    }

    /// Returns whether the connection was given up.
    pub(super) fn has_given_up(&self) -> bool {
        self.0.has_given_up.load(Ordering::Relaxed)
    }

    /// Asks a silent peer for a sign of life while there are requests. Returns when it is to be given up.
    pub(super) async fn run(&self, quic: &quinn::Connection, patience: Patience) {
        let mut silence = Silence::default();
        loop {
            sleep(patience.interval).await;
            let received = quic.stats().udp_rx.datagrams;
            let is_awaited = self.0.in_flight.load(Ordering::Relaxed) > 0;
            let verdict = silence.look(received, is_awaited, patience);
            self.0.is_doubted.store(silence.asked > 1, Ordering::Relaxed);
            match verdict {
                Verdict::Wait => {}
                Verdict::Ask => eyas::probe_quic(quic),
                Verdict::GiveUp => {
                    self.0.has_given_up.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}

/// The silence of a peer, in intervals.
#[derive(Debug, Default)]
struct Silence {
    /// The number of datagrams received up to the last look.
    received: u64,
    silent: u32,
    /// How often the peer was asked since it was last heard.
    asked: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    Ask,
    GiveUp,
}

impl Silence {
    /// Decides after an interval, given the number of datagrams received in all, and whether a response is expected.
    fn look(&mut self, received: u64, is_awaited: bool, patience: Patience) -> Verdict {
        if received != self.received {
            *self = Self { received, silent: 0, asked: 0 };
            return Verdict::Wait;
        }
        self.silent = self.silent.saturating_add(1);
        if !is_awaited {
            self.asked = 0;
            return Verdict::Wait;
        }
        if self.silent < patience.asked_after {
            return Verdict::Wait;
        }
        if patience.questions.is_some_and(|questions| self.asked >= questions) {
            return Verdict::GiveUp;
        }
        self.asked = self.asked.saturating_add(1);
        Verdict::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience =
        Patience { interval: Duration::from_secs(2), asked_after: 2, questions: Some(2) };

    fn verdicts(looks: &[(u64, bool)]) -> Vec<Verdict> {
        let mut silence = Silence::default();
        looks
            .iter()
            .map(|(received, is_awaited)| silence.look(*received, *is_awaited, PATIENCE))
            .collect()
    }

    #[test]
    fn a_silent_peer_is_asked_and_then_given_up() {
        use Verdict::{Ask, GiveUp, Wait};
        let silent = [(7, true); 5];
        assert_eq!(verdicts(&silent), [Wait, Wait, Ask, Ask, GiveUp]);
        // Anything that it sends is an answer.
        let answers = [(7, true), (7, true), (7, true), (8, true), (8, true), (8, true)];
        assert_eq!(verdicts(&answers), [Wait, Wait, Ask, Wait, Wait, Ask]);
    }

    #[test]
    fn a_peer_that_nothing_is_expected_from_may_be_silent() {
        use Verdict::{Ask, GiveUp, Wait};
        assert_eq!(verdicts(&[(7, false); 9]), [Wait; 9]);
        // It gets all its chances once there is a request.
        let later = [(7, false), (7, false), (7, false), (7, true), (7, true), (7, true)];
        assert_eq!(verdicts(&later), [Wait, Wait, Wait, Ask, Ask, GiveUp]);
    }
}
