//! Keeps a connection alive while it carries requests, as RFC 9114 §5.1 asks for, and only then: an
//! idle one costs no packet.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

/// How often a connection is looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// Silence after which the peer is asked for a sign of life: half of the 30 s after which QUIC closes
/// the connection at the latest.
const SILENT_INTERVALS: u32 = 2;

/// The number of requests on a connection whose responses have not ended.
#[derive(Clone, Default)]
pub(super) struct InFlight(Arc<AtomicUsize>);

/// Counts a request until it is dropped.
pub(super) struct InFlightGuard(InFlight);

impl InFlight {
    pub(super) fn begin(&self) -> InFlightGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self.clone())
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Asks a silent peer for a sign of life while there are requests.
pub(super) async fn keep_alive(quic: &quinn::Connection, requests: &InFlight) -> Infallible {
    let (mut seen, mut silent) = (0, 0);
    loop {
        sleep(INTERVAL).await;
        let received = quic.stats().udp_rx.datagrams;
        silent = if received == seen { silent + 1 } else { 0 };
        seen = received;
        if silent >= SILENT_INTERVALS && requests.0.load(Ordering::Relaxed) > 0 {
            eyas::probe_quic(quic);
        }
    }
}
