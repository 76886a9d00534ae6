//! Requests as 0-RTT data (RFC 8470), off by default.
//!
//! A request may be sent early if its method is safe, it has no body, and its origin was reached
//! over HTTP/3 before. The connection is kept out of the pool until its handshake is complete, so
//! that nothing else is sent early. If the peer answers 425 (Too Early), rejects the early data, or
//! does not complete the handshake in time, the request is sent again without early data.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use eyas::{
    ConnectionFeedback, EarlyConnection, EchConfigList, EchOutcome, RaceRecording,
    race::candidate::{AddressOrigin, Candidate, Security, Transport},
};
use http_body::Body as _;

use super::{Inner, redirect::Hop, route::Route};
use crate::{
    connection_report::ConnectionReport,
    http3::ServerSettings,
    pool::{Key, Leased, Permit},
    protocol::{Http3, Sender},
};

/// How long the handshake may take before the request is sent again without early data.
pub(super) const HANDSHAKE_TIME: Duration = Duration::from_millis(500);

/// The maximum number of origins whose last HTTP/3 address is remembered.
const MAX_KNOWN: usize = 1024;

/// What is remembered of the last connection to each origin over HTTP/3, while its session may be resumed.
#[derive(Default)]
pub(super) struct Known(Mutex<BTreeMap<Key, KnownOrigin>>);

#[derive(Clone)]
struct KnownOrigin {
    address: SocketAddr,
    /// The configurations with which it accepted Encrypted ClientHello, so that its name remains encrypted.
    ech: Option<EchConfigList>,
    /// The race that found it.
    recording: RaceRecording,
    feedback: ConnectionFeedback,
    /// The server's settings, which bind both ends while 0-RTT data is sent (RFC 9114 §7.2.4.2). If they had not
    /// arrived the defaults do.
    settings: ServerSettings,
}

impl Known {
    /// Remembers a connection to the origin over HTTP/3, which a race has found.
    pub(super) fn learn(&self, key: &Key, report: &ConnectionReport, http3: &Http3) {
        if !report.info().transport.has_http3() || report.alternative().is_some() {
            return;
        }
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN && !known.contains_key(key) {
            known.pop_first();
        }
        let (recording, feedback) = report.handles();
        let (address, settings) = (report.info().remote, http3.server_settings());
        let ech = report.info().ech.as_ref().and_then(EchOutcome::accepted).cloned();
        known.insert(key.clone(), KnownOrigin { address, ech, recording, feedback, settings });
    }

    /// Remembers the settings of a connection that has resumed a session, and has another one.
    fn renew(&self, key: &Key, http3: &Http3) {
        if let Some(known) = self.lock().get_mut(key) {
            known.settings = http3.server_settings();
        }
    }

    /// Forgets all origins: their addresses are those of another network.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Forgets an origin, until it is reached over HTTP/3 again.
    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, KnownOrigin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the request may be received twice (RFC 8470 §4).
pub(super) fn is_allowed(inner: &Inner, hop: &Hop, route: &Route) -> bool {
    inner.config.early_data
        && inner.config.versions.http3
        && route.key.https
        && route.proxy.is_none()
        && hop.method.is_safe()
        && hop.body.as_ref().is_some_and(|body| body.is_end_stream())
}

/// Opens a connection that can be sent on at once, if there is a session to resume; returns the
/// permit otherwise.
pub(super) async fn open(
    inner: &Arc<Inner>,
    route: &Route,
    permit: Permit,
) -> Result<Leased, Permit> {
    let known = inner.known.lock().get(&route.key).cloned();
    let Some(KnownOrigin { address, ech, recording, feedback, settings }) = known else {
        return Err(permit);
    };
    let candidate = Candidate {
        address,
        transport: Transport::Quic,
        security: Security::Tls,
        alpn: inner.config.versions.quic_alpn(),
        ech: ech.map(|configs| configs.as_bytes().to_vec()),
        priority: None,
        origin: AddressOrigin::Address,
    };
    let target = route.target(inner.config.versions);
    let endpoint = &inner.dialler.endpoint;
    let Some(early) = endpoint.early(&target, candidate).await else { return Err(permit) };
    let resumed = Http3::resume(early.quic().clone(), settings.get().copied());
    let Ok(sender) = resumed else { return Err(permit) };
    let report =
        ConnectionReport::new(Arc::new(early.info().clone()), feedback.clone(), recording.clone());
    let unshared = permit.unshared(Sender::Http3(sender.clone()), Arc::new(report.sent_early()));
    let Some(leased) = unshared else { return Err(permit) };
    confirm(inner, permit, early, sender, (recording, feedback));
    Ok(leased)
}

/// Shares the connection once its handshake is complete. Until then the permit keeps other
/// requests of the origin waiting, rather than racing.
fn confirm(
    inner: &Arc<Inner>,
    permit: Permit,
    early: EarlyConnection,
    sender: Http3,
    (recording, feedback): (RaceRecording, ConnectionFeedback),
) {
    let weak = Arc::downgrade(inner);
    inner.pool.spawn(async move {
        let quic = early.quic().clone();
        match tokio::time::timeout(HANDSHAKE_TIME, early.confirmed()).await {
            Ok(Ok((connection, true))) => {
                if let Some(inner) = weak.upgrade() {
                    inner.known.renew(permit.key(), &sender);
                }
                let info = connection.shared_info();
                let report = ConnectionReport::new(info, feedback, recording);
                drop(permit.opened(Sender::Http3(sender), Arc::new(report)));
            }
            // What was sent is lost, and HTTP/3 cannot start over on the same connection.
            Ok(Ok((_, false))) => tracing::debug!("early data rejected"),
            Ok(Err(_)) | Err(_) => {
                // Fails the request that waits on it, which is then sent again without early data.
                quic.close(0u32.into(), b"");
                if let Some(inner) = weak.upgrade() {
                    inner.known.forget(permit.key());
                }
            }
        }
    });
}
