//! One request and its response.

use std::sync::Arc;

use super::{activity::Activity, budget::RequestSlot, turn::Turn};

/// One request and its response, from the first byte that the server knows of to the last.
#[derive(Debug)]
pub(super) struct Exchange {
    activity: Arc<Activity>,
    turn: Arc<Turn>,
    stage: Stage,
    _slot: RequestSlot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The head of the request is not complete, so it does not keep the connection open.
    Awaited,
    Begun,
    /// Its client is not known, so it does not keep the connection open: else a client could do so by being refused.
    /// It keeps its place until the client has the answer.
    Refused,
}

impl Exchange {
    /// Starts the exchange of a request whose head is awaited; it lasts until it is dropped.
    pub(super) fn awaiting(activity: &Arc<Activity>, request_slot: RequestSlot) -> Self {
        activity.note_exchange(true);
        let turn = Arc::new(Turn::new(Arc::clone(activity)));
        Self { activity: Arc::clone(activity), turn, stage: Stage::Awaited, _slot: request_slot }
    }

    /// Starts the request. There is none if the connection was evicted: then it must be told that it was not
    /// processed.
    pub(super) fn begin(mut self) -> Option<Self> {
        let begins = self.activity.begin();
        begins.then(|| {
            self.stage = Stage::Begun;
            self
        })
    }

    /// Takes note of whether the answer is that its client is not known.
    pub(super) fn note_answer(&mut self, is_refusal: bool) {
        match (self.stage, is_refusal) {
            (Stage::Begun, true) => {
                self.stage = Stage::Refused;
                self.activity.forget();
            }
            (Stage::Begun, false) => self.activity.settle(),
            _ => {}
        }
    }

    /// Returns the turn of this exchange.
    pub(super) fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }
}

/// What holds an exchange open.
#[derive(Debug)]
pub(super) enum OpenExchange {
    /// The response.
    Response { _exchange: Exchange },
    /// Both directions of a tunnel.
    Tunnel { _exchange: Arc<Exchange> },
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match self.stage {
            Stage::Awaited => {}
            Stage::Begun => {
                self.activity.settle();
                self.activity.end();
            }
            Stage::Refused => self.activity.release(),
        }
        self.activity.note_exchange(false);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::serve::{
        Limits,
        budget::{Budget, Share},
        pace::Rate,
    };

    const IDLE: Duration = Duration::from_secs(60);

    fn awaiting(activity: &Arc<Activity>, share: &Arc<Share>) -> Exchange {
        Exchange::awaiting(activity, share.request_slot())
    }

    #[tokio::test(start_paused = true)]
    async fn only_requests_of_known_clients_keep_a_connection_open() {
        let share = Budget::new(&Limits::default()).share();
        let activity = Arc::<Activity>::default();
        let rate = Rate::minimum(&Limits { idle_time: IDLE, ..Limits::default() });
        let awaited = awaiting(&activity, &share);
        timeout(IDLE * 2, activity.idle(rate)).await.expect("a head that does not come");
        let mut refused = awaited.begin().expect("a place");
        let begun = awaiting(&activity, &share).begin().expect("a place");
        refused.note_answer(true);
        timeout(IDLE * 2, activity.idle(rate)).await.expect_err("one has begun");
        drop(begun);
        timeout(IDLE * 2, activity.idle(rate)).await.expect("one was refused");
        timeout(IDLE, activity.answered()).await.expect_err("its answer is under way");
        drop(refused);
        activity.answered().await;
    }

    #[test]
    fn a_request_and_an_eviction_exclude_each_other() {
        let share = Budget::new(&Limits::default()).share();
        let activity = Arc::<Activity>::default();
        let mut refused = awaiting(&activity, &share).begin().expect("a place");
        assert!(!activity.evict(), "one has begun");
        refused.note_answer(true);
        assert!(!activity.evict(), "its answer is under way");
        drop(refused);
        assert!(activity.evict() && activity.is_evicted() && !activity.evict());
        assert!(awaiting(&activity, &share).begin().is_none());

        let activity = Arc::<Activity>::default();
        drop(awaiting(&activity, &share).begin());
        assert!(activity.is_settled() && !activity.evict(), "a request has been served");
    }
}
