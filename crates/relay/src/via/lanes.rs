//! The ways to another proxy: over `https` a race for each connection, and many destinations over one.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::{Endpoint, Recording};
use eyas_http::{Client, Connected, Error, Kind, PoolLimits, Proxy};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Via, Wanted};
use crate::connect_udp::PROTOCOL;
use crate::far::Far;
use crate::handshake::{Destination, Refusal, Refused};
use crate::proxy_status::ErrorType;

/// Destinations on one connection: as many as every server should take (RFC 9113 §6.5.2). Beyond them
/// another one is opened.
const TUNNELS: usize = 100;

/// Bytes that are read of why a proxy refuses.
const WHY: usize = 512;

/// The ways to a proxy.
pub(crate) struct Lanes {
    via: Via,
    endpoint: Endpoint,
    /// How destinations would be raced, and the proxy is.
    policy: Policy,
    url: String,
    open: Mutex<Vec<Lane>>,
}

/// A connection that is shared, and the next one where it has ended or is bettered.
#[derive(Clone)]
struct Lane {
    client: Client,
    places: Arc<Semaphore>,
}

impl Lanes {
    pub(crate) fn new(via: Via, endpoint: Endpoint, mut policy: Policy) -> Self {
        if via.is_secure {
            policy.transports.insert(0, Transport::Quic);
            if via.sctp {
                policy.transports.extend([Transport::SctpUdp, Transport::Sctp]);
            }
        }
        let url = format!("{via}/");
        Self { via, endpoint, policy, url, open: Mutex::default() }
    }

    /// Goes to a destination by one of them.
    pub(crate) async fn reach(
        &self,
        wanted: Wanted,
        to: &Destination,
        race: &mut Option<Recording>,
    ) -> Result<Far, Refused> {
        let (via, asked) = (&self.via, (wanted, to));
        if !via.is_secure {
            return via.reach(&self.endpoint, self.policy.clone(), asked, race).await;
        }
        let (lane, place) = self.lane()?;
        let (request, limit) = (via.request(wanted, to)?, self.policy.deadline);
        let connected = match wanted {
            Wanted::Bytes => lane.client.connect(&self.url, request, limit).await,
            Wanted::Datagrams => lane.client.upgrade(&self.url, PROTOCOL, request, limit).await,
        };
        match connected.map_err(|error| self.failed(&error, asked))? {
            Connected::Tunnel(tunnel) => {
                *race = tunnel.race();
                let (info, datagrams) = (tunnel.info(), tunnel.datagrams());
                Ok(Far::Via { stream: Box::new(tunnel), info, datagrams, _place: Some(place) })
            }
            Connected::Refused(response) => {
                let status = response.status();
                let mut why = BytesMut::new();
                let mut body = response.into_body();
                while let Ok(Some(some)) = body.chunk().await
                    && why.len() < WHY
                {
                    why.extend_from_slice(&some[..some.len().min(WHY - why.len())]);
                }
                Err(via.refusal(status, asked, &why))
            }
        }
    }

    /// One on which there is room.
    fn lane(&self) -> Result<(Lane, OwnedSemaphorePermit), Refusal> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let free = open.iter().find_map(|lane| {
            let place = Arc::clone(&lane.places).try_acquire_owned().ok()?;
            Some((lane.clone(), place))
        });
        if let Some(free) = free {
            return Ok(free);
        }
        let failed = |cause: &dyn std::error::Error| Refusal::Failed(cause.to_string());
        let pool = PoolLimits { per_origin: TUNNELS, total: TUNNELS, ..PoolLimits::default() };
        let client = Client::builder()
            .endpoint(self.endpoint.clone())
            .race(self.policy.clone())
            .versions(self.via.versions)
            .proxy(Proxy::none())
            .pool(pool)
            .tunnels(true)
            .build()
            .map_err(|cause| failed(&cause))?;
        let lane = Lane { client, places: Arc::new(Semaphore::new(TUNNELS)) };
        let place = Arc::clone(&lane.places).try_acquire_owned().map_err(|cause| failed(&cause))?;
        open.push(lane.clone());
        Ok((lane, place))
    }

    fn failed(&self, error: &Error, (wanted, to): (Wanted, &Destination)) -> Refused {
        let (via, wanted) = (&self.via, wanted.name());
        let unreachable = || format!("cannot reach {via}: {error}");
        let error_type = match error.kind() {
            Kind::IdleTimeout => {
                let after = self.policy.deadline;
                let text = format!("{via} did not answer the {wanted} to {to} in {after:?}");
                return Refused::new(ErrorType::ConnectionReadTimeout, Refusal::TimedOut(text));
            }
            Kind::ConnectTimeout => return Refusal::TimedOut(unreachable()).into(),
            Kind::Dns => return Refusal::NoAddress(unreachable()).into(),
            Kind::Connect => return Refusal::HostUnreachable(unreachable()).into(),
            Kind::Certificate => ErrorType::TlsCertificateError,
            Kind::Tls => ErrorType::TlsProtocolError,
            Kind::Protocol => ErrorType::HttpProtocolError,
            _ => ErrorType::ProxyInternalError,
        };
        let text = format!("{via} does not answer the {wanted} to {to}: {error}");
        Refused::new(error_type, Refusal::Failed(text))
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lanes").field("via", &self.via).finish_non_exhaustive()
    }
}
