//! One request: the race or the known connection, the response, and the count of its bytes.

use std::time::Duration;

use eyas::ConnectionInfo;
use eyas::race::candidate::AddressFamily;
use eyas::race::policy::Policy;
use eyas_http::{Body, DirectConnection, Error, shortened, version_name};
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Method, Request, Version};

use super::draw::RequestDraw;
use super::load_tally::{CompleteResponse, OpeningTimes, RequestError, ResponseCarrier};
use super::pool::{AcquiredConnection, ConnectionLease};
use super::worker::{RunningWorker, lock};

impl RunningWorker {
    /// Executes one request that was due at this time.
    pub(super) async fn execute(
        &self,
        at: Duration,
        draw: RequestDraw,
        is_hit: &mut bool,
    ) -> Result<(CompleteResponse, ConnectionLease), RequestError> {
        let (mut lease, opened) = self.connection(draw, is_hit).await.map_err(error_of)?;
        let info = lease.connection.info();
        let opening = opened.then(|| opening(info));
        let (transport, security) = (info.transport, info.security);
        let family = AddressFamily::from_ip(info.remote.ip());
        let request = self.request(draw, &lease.connection);
        let response = lease.connection.send(request).await.map_err(error_of)?;
        let first_byte = self.now().saturating_sub(at);
        let (head, mut body) = response.into_parts();
        let announced = length(&head.headers);
        let mut bytes = 0;
        while let Some(chunk) = body.chunk().await.map_err(error_of)? {
            bytes += chunk.len() as u64;
        }
        // The response to HEAD announces the length of a body that it does not have (RFC 9110 §9.3.2).
        let is_head = self.prepared.load.method == Method::HEAD;
        if !is_head && announced.is_some_and(|announced| announced != bytes) {
            let detail =
                format!("{bytes} bytes were received, {} were announced", announced.unwrap_or(0));
            return Err(RequestError { kind: "body-length", detail });
        }
        // An HTTP/1.0 server reports its version itself; the other versions are those of the
        // connection.
        let version = version_name(head.version.min(lease.connection.version()));
        let winner = ResponseCarrier { transport, family, security, version };
        let status = head.status.as_u16();
        Ok((CompleteResponse { status, winner, opening, first_byte, bytes }, lease))
    }

    /// Returns a connection, and whether it was opened for this request.
    async fn connection(
        &self,
        draw: RequestDraw,
        is_hit: &mut bool,
    ) -> Result<(ConnectionLease, bool), Error> {
        let Some(pool) = &self.pool else {
            return Ok((ConnectionLease::alone(self.open(draw, is_hit).await?), true));
        };
        match pool.acquire().await {
            AcquiredConnection::Use(lease) => Ok((lease, false)),
            AcquiredConnection::Open(slot) => {
                let connection = self.open(draw, is_hit).await?;
                Ok((pool.opened(connection, slot), true))
            }
        }
    }

    async fn open(&self, draw: RequestDraw, is_hit: &mut bool) -> Result<DirectConnection, Error> {
        let choice = &self.prepared.choices[draw.outcome];
        let direct = match (&choice.direct, draw.is_hit) {
            (_, false) => None,
            (Some(direct), true) => Some(direct.clone()),
            (None, true) => self.policy_of_last_winner(),
        };
        *is_hit = direct.is_some();
        let connection = match (direct, &choice.direct, &choice.background) {
            (Some(direct), ..) => self.direct.open(&direct).await?,
            (None, Some(direct), Some(background)) => {
                self.start_handshakes(background.clone());
                self.direct.open(direct).await?
            }
            (None, ..) => self.direct.open(&choice.race).await?,
        };
        let info = connection.info();
        *lock(&self.known) = Some((info.transport, AddressFamily::from_ip(info.remote.ip())));
        Ok(connection)
    }

    /// Runs handshakes of only the transports to completion and closes the connections, in the
    /// background.
    fn start_handshakes(&self, background: Policy) {
        let plain = self.plain.clone();
        tokio::spawn(async move { plain.open(&background).await.map(drop) });
    }

    /// Returns the policy to which a memory would lead: only the transport and address family that
    /// won before.
    fn policy_of_last_winner(&self) -> Option<Policy> {
        let (transport, family) = (*lock(&self.known))?;
        let mut policy = self.prepared.direct_policy(transport);
        policy.only_family = Some(family);
        Some(policy)
    }

    fn request(&self, draw: RequestDraw, connection: &DirectConnection) -> Request<Body> {
        let load = &self.prepared.load;
        let body = match load.body.is_empty() {
            true => Body::empty(),
            false => Body::from(load.body.clone()),
        };
        let mut request = Request::new(body);
        request.method_mut().clone_from(&load.method);
        *request.uri_mut() = self.prepared.objects[draw.object].clone();
        request.headers_mut().clone_from(&load.headers);
        if load.http1_0 && connection.version() < Version::HTTP_2 {
            *request.version_mut() = Version::HTTP_10;
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        }
        request
    }
}

fn opening(info: &ConnectionInfo) -> OpeningTimes {
    let timings = &info.timings;
    let dns = timings.dns.filter(|dns| !dns.is_zero());
    let transport = timings.transport.or(timings.answered).or(timings.security).unwrap_or_default();
    OpeningTimes {
        dns,
        connect: transport.saturating_sub(dns.unwrap_or_default()),
        security: timings.security.map(|security| security.saturating_sub(transport)),
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn error_of(error: Error) -> RequestError {
    let detail = shortened(error.detail());
    let detail = match error.candidate() {
        Some(candidate) => format!("[{candidate}] {detail}"),
        None => detail.into_owned(),
    };
    RequestError { kind: error.kind().name(), detail }
}
