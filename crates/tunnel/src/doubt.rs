//! Doubts a session that shows no sign of life, in real time; `liveness` has the rules.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{sleep, sleep_until};

use crate::link::SessionLink;
use crate::liveness::{LivenessStep, SignsOfLife};
use crate::session::TunnelSession;

/// How often the signs of life of a session are read while it is doubted.
const READING: Duration = Duration::from_millis(50);

impl SessionLink {
    /// Records that something is about to be sent, which must have an effect at the other end.
    pub(crate) fn expect_life(&self) {
        let vigil = &self.shared.vigil;
        if !vigil.is_kept.load(Relaxed) {
            return;
        }
        let mut liveness = vigil.liveness();
        let was_expecting = liveness.next_timeout().is_some();
        liveness.handle_sending(self.shared.began.elapsed(), || self.signs());
        if !was_expecting && liveness.next_timeout().is_some() {
            if vigil.detect_suspension() {
                liveness.handle_suspension(|| self.signs());
            }
            vigil.expecting.notify_one();
        }
    }

    /// Sends a PING, which the other end must answer soon.
    pub(crate) fn ask(&self) {
        self.change_session(|session, _| session.ping());
        self.expect_answer();
    }

    /// Records that a PING is sent.
    pub(crate) fn expect_answer(&self) {
        let vigil = &self.shared.vigil;
        if vigil.is_kept.load(Relaxed) {
            let signs = self.signs();
            vigil.liveness().handle_question(self.shared.began.elapsed(), signs);
            vigil.expecting.notify_one();
        }
    }

    /// Waits until the session shows no sign of life although it should. Only one task may wait.
    pub(crate) async fn doubted(&self) {
        let vigil = &self.shared.vigil;
        vigil.is_kept.store(true, Relaxed);
        loop {
            let (is_doubted, due) = {
                let liveness = vigil.liveness();
                (liveness.is_doubted(), liveness.next_timeout())
            };
            match due {
                _ if is_doubted => return,
                None => vigil.expecting.notified().await,
                Some(due) => tokio::select! {
                    // The time may change.
                    () = vigil.expecting.notified() => {}
                    () = sleep_until(self.shared.began + due) => {
                        if self.read_signs() == LivenessStep::Ask {
                            self.ask();
                        }
                    }
                },
            }
        }
    }

    /// Waits until a doubted session shows a sign of life.
    pub(crate) async fn trusted(&self) {
        while self.read_signs() != LivenessStep::Trust {
            sleep(READING).await;
        }
    }

    /// Returns whether the session should have shown a sign of life, and has not.
    pub(crate) fn is_doubted(&self) -> bool {
        self.shared.vigil.liveness().is_doubted()
    }

    fn read_signs(&self) -> LivenessStep {
        let signs = self.signs();
        self.shared.vigil.liveness().handle_signs(self.shared.began.elapsed(), signs)
    }

    fn signs(&self) -> SignsOfLife {
        let paths = self.paths();
        let (acknowledged, rtt) = paths.map_or((None, None), |paths| paths.acknowledgements());
        SignsOfLife { received: self.peek(TunnelSession::received), acknowledged, rtt }
    }
}
