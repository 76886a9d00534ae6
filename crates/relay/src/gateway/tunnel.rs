//! Connections that have become something else: bytes both ways, unread.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::shared::Shared;
use super::stats::Counters;
use crate::copy::{Passed, Until, both_ways};

/// Passes on what both sides say once both have switched, until one breaks, both have ended, or nothing
/// has moved for long.
pub(super) fn open(shared: &Arc<Shared>, client: OnUpgrade, upstream: OnUpgrade) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else { return };
        let counters = &shared.counters;
        Counters::count(&counters.tunnels_begun);
        counters.tunnels.fetch_add(1, Relaxed);
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let until = (Until::Both, shared.limits.tunnel_idle_time);
        let mut passed = Passed::default();
        let end = both_ways(&mut client, &mut upstream, until, &mut passed).await;
        tracing::debug!(?end, ?passed, "a tunnel has ended");
        counters.tunnels.fetch_sub(1, Relaxed);
    });
}
