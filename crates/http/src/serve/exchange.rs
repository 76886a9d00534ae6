//! One request and its response.

use std::sync::Arc;

use super::{activity::Activity, budget::Place, turn::Turn};

/// One request and its response, from its head to the last byte.
#[derive(Debug)]
pub(super) struct Exchange {
    activity: Arc<Activity>,
    turn: Arc<Turn>,
    _place: Place,
}

impl Exchange {
    /// Starts the exchange of a request that has its place; it lasts until it is dropped.
    pub(super) fn begin(activity: &Arc<Activity>, place: Place) -> Self {
        activity.begin();
        let turn = Arc::new(Turn::new(Arc::clone(activity)));
        Self { activity: Arc::clone(activity), turn, _place: place }
    }

    /// Returns whose turn it is.
    pub(super) fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.activity.end();
    }
}
