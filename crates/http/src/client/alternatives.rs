//! Decides when an alternative service is tried (RFC 7838 §2.4): from the first request after its
//! field was received, and for a limited time before the request goes to the origin.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::watch;

use super::{HttpPolicy, Inner, route::Route};
use crate::{alt_svc::Service, connection_report::ConnectionReport, pool::Key};

/// The maximum number of concurrent attempts at alternatives; beyond it, requests go to their
/// origins.
const MAX_DIALLING: usize = 32;

/// The origins for which an attempt at an alternative is in progress.
#[derive(Default)]
pub(super) struct Dialling(Mutex<BTreeMap<Key, watch::Receiver<()>>>);

/// Returns whether this origin's alternatives are used.
pub(super) fn are_used(inner: &Inner, route: &Route) -> bool {
    inner.config.policy.uses_alt_svc() && route.key.https && route.proxy.is_none()
}

/// Returns the port at which the origin has announced SCTP inside UDP.
pub(super) fn sctp_udp_port(inner: &Inner, route: &Route) -> Option<u16> {
    if !are_used(inner, route) {
        return None;
    }
    let port = |service: &Service| service.sctp_udp_port(&route.key.host);
    let is_announced = |service: &Service| port(service).is_some();
    let announced = inner.alternatives().best(&route.origin(), inner.now(), is_announced);
    announced.as_ref().and_then(port)
}

/// Tries an alternative of the route's origin, if there is one that is not in use yet.
pub(super) async fn try_best(inner: &Arc<Inner>, route: &Route) {
    if !are_used(inner, route) || inner.pool.has_http3(&route.key) {
        return;
    }
    let wanted = |service: &Service| is_wanted(inner, route, service);
    let Some(service) = inner.alternatives().best(&route.origin(), inner.now(), wanted) else {
        return;
    };
    let Some(mut ended) = join(inner, route, service) else { return };
    let wait = match inner.config.policy {
        // The race has its own head start for QUIC; the alternative gets the same.
        HttpPolicy::RaceAltSvc => inner.config.race.head_start,
        _ => inner.config.alternative_wait,
    };
    // The sender is dropped when the attempt ends, however it ends.
    let _ = tokio::time::timeout(wait, ended.changed()).await;
}

fn is_wanted(inner: &Inner, route: &Route, service: &Service) -> bool {
    let elsewhere = service.port != route.key.port
        || service.host.as_ref().is_some_and(|host| **host != *route.key.host);
    match service.protocol.as_slice() {
        // The race tries the origin's own port by itself.
        b"h3" => {
            inner.config.versions.http3 && (elsewhere || inner.config.policy == HttpPolicy::AltSvc)
        }
        b"h2" => inner.config.versions.http2 && elsewhere,
        b"http/1.1" => inner.config.versions.http1 && elsewhere,
        _ => false,
    }
}

/// Joins the attempt in progress, or starts one.
fn join(inner: &Arc<Inner>, route: &Route, service: Service) -> Option<watch::Receiver<()>> {
    let mut dialling = inner.dialling.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ended) = dialling.get(&route.key) {
        return Some(ended.clone());
    }
    if dialling.len() >= MAX_DIALLING {
        return None;
    }
    let (end, ended) = watch::channel(());
    dialling.insert(route.key.clone(), ended.clone());
    let ending = Ending { inner: Arc::downgrade(inner), key: route.key.clone(), _end: end };
    let dialler = Arc::clone(&inner.dialler);
    let (origin, host) = (route.origin(), route.host.clone());
    inner.pool.spawn(async move {
        let outcome = dialler.alternative(&origin, &host, &service).await;
        let Some(inner) = ending.inner.upgrade() else { return };
        match outcome {
            Ok((sender, report)) => inner.pool.upgrade(&ending.key, sender, Arc::new(report)),
            Err(error) => {
                tracing::debug!(%error, %service, "alternative failed");
                inner.alternatives().failed(&origin, &service, inner.now());
            }
        }
    });
    Some(ended)
}

/// Removes the attempt from the list when it ends or is cancelled.
struct Ending {
    inner: Weak<Inner>,
    key: Key,
    _end: watch::Sender<()>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.dialling.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        }
    }
}

/// Handles a misdirected request: the alternative is removed from the list, and the request is sent
/// elsewhere.
pub(super) fn misdirected(inner: &Inner, route: &Route, report: &ConnectionReport) {
    if let Some(service) = report.alternative() {
        inner.alternatives().misdirected(&route.origin(), service);
    }
    inner.pool.retire_where(&route.key, |other| std::ptr::eq(other, report));
}

/// Records that the alternative connected but returned no response.
pub(super) fn failed(inner: &Inner, route: &Route, report: &ConnectionReport) {
    if let Some(service) = report.alternative() {
        inner.alternatives().failed(&route.origin(), service, inner.now());
    }
}
