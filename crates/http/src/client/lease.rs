//! Gets the connection for a request.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Inner, alternatives, connect, early, limits::Limits, route::Route, stats::Counters};
use crate::{
    Error, Kind,
    pool::{Checkout, Leased},
};

/// Returns a connection from the pool, or a new one. With `opened_since`, one that is older does
/// not do.
pub(super) async fn lease(
    inner: &Arc<Inner>,
    route: &Route,
    early: bool,
    opened_since: Option<Instant>,
) -> Result<Leased, Error> {
    alternatives::try_best(inner, route).await;
    let permit = match inner.pool.checkout(&route.key, opened_since).await {
        Checkout::Ready(leased) => return Ok(leased),
        Checkout::Dial(permit) => permit,
    };
    Counters::count(&inner.counters.connections);
    // Boxed because these futures are large, and a request that finds a connection needs neither.
    if !early {
        return Box::pin(connect::open(inner, route, permit)).await;
    }
    match Box::pin(early::open(inner, route, permit)).await {
        Ok(leased) => Ok(leased),
        Err(permit) => Box::pin(connect::open(inner, route, permit)).await,
    }
}

pub(super) async fn within_connect_timeout(
    limits: &Limits,
    lease: impl Future<Output = Result<Leased, Error>>,
) -> Result<Leased, Error> {
    let Some(limit) = limits.connect else { return lease.await };
    tokio::time::timeout(limit, lease).await.unwrap_or_else(|_| {
        Err(Error::new(Kind::ConnectTimeout, format!("no connection was ready after {limit:?}")))
    })
}
