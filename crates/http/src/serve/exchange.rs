//! One request and its response.

use std::sync::Arc;

use super::{activity::Activity, budget::RequestSlot, turn::Turn};

/// One request and its response, from its head to the last byte.
#[derive(Debug)]
pub(super) struct Exchange {
    activity: Arc<Activity>,
    turn: Arc<Turn>,
    /// Whether it does not keep the connection open.
    is_refused: bool,
    _slot: RequestSlot,
}

impl Exchange {
    /// Starts the exchange of a request; it lasts until it is dropped.
    pub(super) fn begin(activity: &Arc<Activity>, request_slot: RequestSlot) -> Self {
        activity.begin();
        let turn = Arc::new(Turn::new(Arc::clone(activity)));
        Self { activity: Arc::clone(activity), turn, is_refused: false, _slot: request_slot }
    }

    /// No longer counts it as activity, since the client is not known: else it could keep the connection open
    /// by being refused.
    pub(super) fn refuse(&mut self) {
        if !std::mem::replace(&mut self.is_refused, true) {
            self.activity.forget();
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
        if !self.is_refused {
            self.activity.end();
        }
    }
}
