//! Servers that are reached through an HTTP proxy: TLS with the keys of both ends, on a stream that the proxy opens
//! by CONNECT (RFC 9110 §9.3.6).

use std::fmt;
use std::sync::Arc;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetService};
use eyas::{ConnectionInfo, Endpoint, KeyFingerprint};
use eyas_relay::destination::{Destination, RefusedRequest};
use eyas_relay::via::lanes::ProxyLanes;
use eyas_relay::via::{TunnelKind, UpstreamProxy};
use tokio::time::{Instant, timeout};

use crate::error::{ProxyFault, TunnelError};
use crate::transport::SessionTransport;

/// A proxy through which a server is reached. Each session has its own connection to it, so that a new one is not
/// affected by what has happened to the former one.
#[derive(Clone, Debug)]
pub struct ServerProxy {
    via: UpstreamProxy,
    endpoint: Endpoint,
    server: Destination,
}

impl ServerProxy {
    /// Uses a proxy to which this endpoint connects, and which is to connect to the server at this place: the proxy
    /// resolves its name.
    pub fn new(via: UpstreamProxy, endpoint: Endpoint, server: Destination) -> Self {
        Self { via, endpoint, server }
    }

    /// Reaches the server, whose key the other endpoint trusts.
    pub(crate) async fn reach(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        policy: &Policy,
    ) -> Result<(SessionTransport, KeyFingerprint), TunnelError> {
        let deadline = policy.deadline;
        let reached = timeout(deadline, self.try_reach(endpoint, target, policy)).await;
        reached.unwrap_or_else(|_| {
            let text = format!("{self} did not lead to {} within {deadline:?}", self.server);
            Err(TunnelError::Proxy { fault: ProxyFault::TimedOut, text })
        })
    }

    async fn try_reach(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        policy: &Policy,
    ) -> Result<(SessionTransport, KeyFingerprint), TunnelError> {
        let policy = Policy { transports: vec![Transport::Tcp], ..policy.clone() };
        let lanes =
            ProxyLanes::new(self.via.clone(), self.endpoint.clone(), policy).without_pseudonym();
        let requested = (TunnelKind::Bytes, &self.server);
        let reached = lanes.reach(requested, None, &mut None).await;
        let stream = reached.map_err(|refused| Self::failure(&refused))?;
        let to_proxy = stream.info();
        let alpn = match &target.service {
            TargetService::Plain { alpn, .. } => alpn.as_slice(),
            _ => &[],
        };
        let began = Instant::now();
        let tls = endpoint.secure(stream, &target.host, alpn).await;
        let tls = tls.map_err(|failure| match failure.cause {
            cause if cause.is_of_security() => TunnelError::Handshake(failure),
            cause => {
                let text = format!(
                    "{self} connected to {}, and then the TLS handshake failed: {cause}: {}",
                    self.server, failure.detail
                );
                TunnelError::Proxy { fault: ProxyFault::Unreachable, text }
            }
        })?;
        // The handshake took one round trip to the server (RFC 8446 §2).
        let rtt = began.elapsed();
        let certificates = tls.get_ref().1.peer_certificates().unwrap_or_default();
        let key = certificates
            .first()
            .and_then(KeyFingerprint::from_certificate)
            .ok_or(TunnelError::NoKey)?;
        // Whatever carries it to the proxy, the session has one stream.
        let mut info = ConnectionInfo::new(Transport::Tcp, to_proxy.remote);
        (info.local, info.rtt) = (to_proxy.local, Some(rtt));
        Ok((
            SessionTransport::proxied(Box::new(tls), Arc::new(info), (self.to_string(), lanes)),
            key,
        ))
    }

    fn failure(refused: &RefusedRequest) -> TunnelError {
        TunnelError::Proxy { fault: refused.into(), text: refused.why.to_string() }
    }
}

impl fmt::Display for ServerProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {}", self.via)
    }
}
