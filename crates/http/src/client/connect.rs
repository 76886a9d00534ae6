//! Opens the connection that a request waits for, and lets a better one follow.

use std::sync::Arc;

use super::{
    Inner,
    dial::{Dialled, Dialler, Later},
    route::Route,
};
use crate::{
    Error, Kind,
    pool::{Key, Leased, Permit, Pool},
};

/// Opens a connection for the route; the permit says that this request is to do it.
pub(super) async fn open(
    inner: &Arc<Inner>,
    route: &Route,
    permit: Permit,
) -> Result<Leased, Error> {
    let Dialled { sender, report, later } = match &route.proxy {
        Some(proxy) => inner.dialler.through(proxy, route).await?,
        None => inner.dialler.dial(route.target()).await?,
    };
    let leased = permit
        .opened(sender, Arc::new(report))
        .ok_or_else(|| Error::new(Kind::Closed, "it was dropped while it connected"))?;
    if let Some(later) = later {
        await_better(&inner.pool, &inner.dialler, route.key.clone(), later);
    }
    Ok(leased)
}

/// The late switch: what arrives after the race was won is used for what follows.
fn await_better(pool: &Pool, dialler: &Arc<Dialler>, key: Key, later: Later) {
    let (weak, dialler) = (pool.downgrade(), Arc::clone(dialler));
    pool.spawn(async move {
        let mut later = later;
        while let Some(better) = later.better(&dialler).await {
            match better {
                Ok((sender, report)) => {
                    let Some(pool) = weak.upgrade() else { return };
                    pool.upgrade(&key, sender, Arc::new(report));
                }
                Err(error) => tracing::debug!(%error, "the better connection failed"),
            }
        }
        later.finished().await;
    });
}
