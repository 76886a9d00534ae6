//! One request and its response.

use std::sync::Arc;

use super::{activity::Activity, budget::RequestSlot, turn::Turn};

/// One request and its response, from its head to the last byte.
#[derive(Debug)]
pub(super) struct Exchange {
    activity: Arc<Activity>,
    turn: Arc<Turn>,
    _slot: RequestSlot,
}

impl Exchange {
    /// Starts the exchange of a request; it lasts until it is dropped.
    pub(super) fn begin(activity: &Arc<Activity>, request_slot: RequestSlot) -> Self {
        activity.begin();
        let turn = Arc::new(Turn::new(Arc::clone(activity)));
        Self { activity: Arc::clone(activity), turn, _slot: request_slot }
    }

    /// Returns the turn of this exchange.
    pub(super) fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.activity.end();
    }
}
