//! Opens the connection that a request waits for, and replaces it with a better one later.

use std::sync::Arc;

use super::{
    Inner, alternatives,
    dial::{Dialled, Later},
    route::Route,
};
use crate::{
    Error, Kind,
    pool::{Key, Leased, Permit},
};

/// Opens a connection for the route; the permit makes this request responsible for it.
pub(super) async fn open(
    inner: &Arc<Inner>,
    route: &Route,
    permit: Permit,
) -> Result<Leased, Error> {
    let Dialled { sender, report, later } = match &route.proxy {
        _ if inner.dialler.unix_socket.is_some() => {
            Box::pin(inner.dialler.to_unix_socket(route)).await?
        }
        // Boxed because the future is large and most requests use no proxy.
        Some(proxy) => Box::pin(inner.dialler.connect_through(proxy, route)).await?,
        None => {
            let sctp_udp = alternatives::sctp_udp_port(inner, route);
            inner.dialler.dial(route, sctp_udp).await?
        }
    };
    inner.watch_network();
    inner.note(&route.key, &report, &sender);
    let leased = permit
        .opened(sender, Arc::new(report))
        .ok_or_else(|| Error::new(Kind::Closed, "the client was dropped while connecting"))?;
    if let Some(later) = later {
        await_better(inner, route.key.clone(), later);
    }
    Ok(leased)
}

/// Implements the late switch: a connection that becomes ready after the race was won is used for
/// later requests.
fn await_better(inner: &Arc<Inner>, key: Key, later: Later) {
    let (weak, dialler) = (Arc::downgrade(inner), Arc::clone(&inner.dialler));
    inner.pool.spawn(async move {
        let mut later = later;
        while let Some(better) = later.better(&dialler).await {
            match better {
                Ok((sender, report)) => {
                    let Some(inner) = weak.upgrade() else { return };
                    inner.note(&key, &report, &sender);
                    inner.pool.upgrade(&key, sender, Arc::new(report));
                }
                Err(error) => tracing::debug!(%error, "the better connection failed"),
            }
        }
        later.finished().await;
    });
}
