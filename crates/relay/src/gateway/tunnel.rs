//! Connections that have become something else: bytes both ways, unread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use eyas_http::pipe::{PipeBody, pipe};
use futures_util::TryStreamExt as _;
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::join;
use tokio_util::io::StreamReader;

use super::request_body::Upload;
use super::shared::Shared;
use super::stats::Counters;
use crate::copy::{Duplex, Passed, Until, both_ways};

/// Passes on what both sides say once both have switched, until one breaks, both have ended, or nothing
/// has moved for long.
pub(super) fn open(shared: &Arc<Shared>, client: OnUpgrade, upstream: OnUpgrade) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else { return };
        pass(&shared, TokioIo::new(client), TokioIo::new(upstream)).await;
    });
}

/// The same for a client that speaks by the body of its request, and hears what this gives.
pub(super) fn open_on_stream(
    shared: &Arc<Shared>,
    client: Upload,
    upstream: OnUpgrade,
) -> PipeBody {
    let shared = Arc::clone(shared);
    let (hears, download) = pipe();
    tokio::spawn(async move {
        let says = StreamReader::new(client.into_data_stream().map_err(io::Error::other));
        let Ok(upstream) = upstream.await else { return };
        pass(&shared, join(says, hears), TokioIo::new(upstream)).await;
    });
    download
}

async fn pass(shared: &Shared, mut client: impl Duplex, mut upstream: impl Duplex) {
    let counters = &shared.counters;
    Counters::count(&counters.tunnels_begun);
    counters.tunnels.fetch_add(1, Relaxed);
    let until = (Until::Both, shared.limits.tunnel_idle_time);
    let mut passed = Passed::default();
    let end = both_ways(&mut client, &mut upstream, until, &mut passed).await;
    tracing::debug!(?end, ?passed, "a tunnel has ended");
    counters.tunnels.fetch_sub(1, Relaxed);
}
