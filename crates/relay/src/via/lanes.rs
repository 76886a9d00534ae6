//! The connections to an `https` proxy, each of which is shared by many destinations.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::{Endpoint, RaceRecording};
use eyas_http::{Client, Connected, Error, Kind, PoolLimits, Proxy};
use http::header::VIA;
use http::{HeaderValue, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{MAX_TEXT, TunnelKind, UpstreamProxy};
use crate::connect_udp::PROTOCOL;
use crate::destination::{Destination, RefusedRequest, RequestRefusal};
use crate::destination_stream::DestinationStream;
use crate::proxy_status::ErrorType;
use crate::pseudonym::ProxyPseudonym;

/// The limit on destinations of one connection, which every server should support (RFC 9113 §6.5.2). Beyond it,
/// another connection is opened.
const MAX_TUNNELS: usize = 100;

/// The lanes to a proxy.
pub struct ProxyLanes {
    via: UpstreamProxy,
    endpoint: Endpoint,
    /// The policy of races to the proxy.
    policy: Policy,
    url: String,
    /// The name of this proxy in its requests, unless they are its own.
    pseudonym: Option<ProxyPseudonym>,
    open: Mutex<Vec<ProxyLane>>,
}

/// A shared connection, or its successor after it has ended or a better one is ready.
#[derive(Clone)]
struct ProxyLane {
    client: Client,
    permits: Arc<Semaphore>,
}

impl ProxyLanes {
    /// Creates the lanes to this proxy, which are opened when they are needed, by races under this policy.
    pub fn new(via: UpstreamProxy, endpoint: Endpoint, mut policy: Policy) -> Self {
        if via.is_secure {
            policy.transports.insert(0, Transport::Quic);
            if via.sctp {
                policy.transports.extend([Transport::SctpUdp, Transport::Sctp]);
            }
        }
        let url = format!("{via}/");
        let pseudonym = Some(ProxyPseudonym::new());
        Self { via, endpoint, policy, url, pseudonym, open: Mutex::default() }
    }

    /// Sends requests in the name of this program, and not on behalf of clients: without `Via`, which intermediaries
    /// add (RFC 9110 §7.6.3).
    pub fn without_pseudonym(self) -> Self {
        Self { pseudonym: None, ..self }
    }

    /// Reaches a destination through the proxy, for a client whose request has passed these proxies. The race to the
    /// proxy goes to `race`, if there was one.
    ///
    /// # Errors
    /// If the proxy is not reached or refuses, or is among those that the request has passed.
    pub async fn reach(
        &self,
        requested: (TunnelKind, &Destination),
        hops: Option<&HeaderValue>,
        race: &mut Option<RaceRecording>,
    ) -> Result<DestinationStream, RefusedRequest> {
        let ((kind, _), via) = (requested, &self.via);
        let pseudonym = self.pseudonym.as_ref();
        if hops.zip(pseudonym).is_some_and(|(hops, own)| own.is_among(hops)) {
            let text = format!("the proxy {via}, which is set by --via, leads back to this proxy");
            return Err(RefusedRequest::new(
                ErrorType::ProxyLoopDetected,
                RequestRefusal::Failed(text),
            ));
        }
        let mut request = via.request(requested)?;
        if let Some(hops) = hops {
            request.headers_mut().insert(VIA, hops.clone());
        }
        if let Some(own) = pseudonym {
            own.add(Version::HTTP_11, request.headers_mut());
        }
        if !via.is_secure {
            let request = (request, requested);
            return via.reach(&self.endpoint, self.policy.clone(), request, race).await;
        }
        let ((lane, permit), limit) = (self.lane()?, self.policy.deadline);
        let connected = match kind {
            TunnelKind::Bytes => lane.client.connect(&self.url, request, limit).await,
            TunnelKind::Datagrams => lane.client.upgrade(&self.url, PROTOCOL, request, limit).await,
        };
        match connected.map_err(|error| self.failed(&error, requested))? {
            Connected::Tunnel(tunnel) => {
                *race = tunnel.race();
                let (info, datagrams) = (tunnel.info(), tunnel.datagrams());
                let (stream, _permit) = (Box::new(tunnel), Some(permit));
                Ok(DestinationStream::Via { stream, info, datagrams, _permit })
            }
            Connected::Refused(response) => {
                let status = response.status();
                let mut text = BytesMut::new();
                let mut body = response.into_body();
                while let Ok(Some(some)) = body.chunk().await
                    && text.len() < MAX_TEXT
                {
                    text.extend_from_slice(&some[..some.len().min(MAX_TEXT - text.len())]);
                }
                Err(via.refusal(status, requested, &text))
            }
        }
    }

    /// Returns a lane with room for another destination.
    fn lane(&self) -> Result<(ProxyLane, OwnedSemaphorePermit), RequestRefusal> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let free = open.iter().find_map(|lane| {
            let permit = Arc::clone(&lane.permits).try_acquire_owned().ok()?;
            Some((lane.clone(), permit))
        });
        if let Some(free) = free {
            return Ok(free);
        }
        let failed = |cause: &dyn std::error::Error| {
            RequestRefusal::Failed(format!("cannot reach the proxy {}: {cause}", self.via))
        };
        let pool =
            PoolLimits { per_origin: MAX_TUNNELS, total: MAX_TUNNELS, ..PoolLimits::default() };
        let client = Client::builder()
            .endpoint(self.endpoint.clone())
            .race(self.policy.clone())
            .versions(self.via.versions)
            .proxy(Proxy::none())
            .pool(pool)
            .tunnels(true)
            .build()
            .map_err(|cause| failed(&cause))?;
        let permits = Arc::new(Semaphore::new(MAX_TUNNELS));
        let permit = Arc::clone(&permits).try_acquire_owned().map_err(|cause| failed(&cause))?;
        let lane = ProxyLane { client, permits };
        open.push(lane.clone());
        Ok((lane, permit))
    }

    fn failed(&self, error: &Error, (kind, to): (TunnelKind, &Destination)) -> RefusedRequest {
        let (via, kind) = (&self.via, kind.name());
        let unreachable = || format!("cannot reach the proxy {via}: {error}");
        let error_type = match error.kind() {
            Kind::IdleTimeout => {
                let after = self.policy.deadline;
                let text =
                    format!("the proxy {via} did not answer the {kind} to {to} in {after:?}");
                return RefusedRequest::new(
                    ErrorType::ConnectionReadTimeout,
                    RequestRefusal::TimedOut(text),
                );
            }
            Kind::ConnectTimeout => return RequestRefusal::TimedOut(unreachable()).into(),
            Kind::Dns => return RequestRefusal::NoAddress(unreachable()).into(),
            Kind::Connect => return RequestRefusal::HostUnreachable(unreachable()).into(),
            Kind::Certificate => ErrorType::TlsCertificateError,
            Kind::Tls => ErrorType::TlsProtocolError,
            Kind::Protocol => ErrorType::HttpProtocolError,
            _ => ErrorType::ProxyInternalError,
        };
        let text = format!("the proxy {via} does not answer the {kind} to {to}: {error}");
        RefusedRequest::new(error_type, RequestRefusal::Failed(text))
    }
}

impl std::fmt::Debug for ProxyLanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyLanes").field("via", &self.via).finish_non_exhaustive()
    }
}
