//! Connects to a target and starts HTTP on the connection.

use std::{path::Path, sync::Arc, time::Duration};

use eyas::{
    Connection, Endpoint, Initiation, Preconnection, RaceRecording,
    race::{
        candidate::{AlpnName, Security, Transport},
        policy::Policy,
        target::{Target, TargetHost, TargetService},
    },
};

use super::{HttpPolicy, route::Route};
use crate::{
    Error, Kind, Versions, alt_svc,
    connection_report::ConnectionReport,
    destination::is_stream,
    error::connect_error,
    protocol::{Http1, Http2, Http3, Life, Sender, Way},
};

/// How long one transport may take under [`HttpPolicy::Serial`] before the next one is tried.
const SERIAL_TURN: Duration = Duration::from_secs(5);

/// How long an alternative may take to connect.
const ALTERNATIVE_DEADLINE: Duration = Duration::from_secs(10);

/// Selects the transports that are tried together.
type Turn = fn(Transport) -> bool;

/// What is needed to connect, and nothing that keeps connections alive.
pub(super) struct Dialler {
    pub(super) endpoint: Endpoint,
    pub(super) race: Policy,
    pub(super) versions: Versions,
    pub(super) policy: HttpPolicy,
    /// Whether connections are to carry tunnels.
    pub(super) tunnels: bool,
    /// Whether servers without TLS are known to support HTTP/2.
    pub(super) http2_prior_knowledge: bool,
    /// What is connected to instead of any host.
    pub(super) unix_socket: Option<Arc<Path>>,
}

/// A connection that is ready for requests, and the race if it continues.
pub(super) struct Dialled {
    pub(super) sender: Sender,
    pub(super) report: ConnectionReport,
    pub(super) later: Option<Later>,
}

/// A race that continues after it has been won.
pub(super) struct Later {
    initiation: Initiation,
}

impl Later {
    /// Returns the next better connection, until there are no more.
    pub(super) async fn better(
        &mut self,
        dialler: &Dialler,
    ) -> Option<Result<(Sender, ConnectionReport), Error>> {
        let connection = self.initiation.better().await?;
        // Boxed because the future is large and few races end with a better connection: this keeps
        // the waiting task small.
        Some(Box::pin(dialler.start_http(connection, self.initiation.recording())).await)
    }

    /// Waits until the race has ended and its outcomes have been recorded.
    pub(super) async fn finished(mut self) {
        self.initiation.finished().await;
    }
}

impl Dialler {
    /// Connects under the client's policy. `sctp_udp` is the UDP port for SCTP that the origin has
    /// announced, if any.
    pub(super) async fn dial(
        &self,
        route: &Route,
        sctp_udp: Option<u16>,
    ) -> Result<Dialled, Error> {
        let turns: &[Turn] = match self.policy {
            HttpPolicy::Race | HttpPolicy::RaceAltSvc => &[|_| true],
            HttpPolicy::AltSvc if self.versions.over_streams() => &[is_stream],
            HttpPolicy::AltSvc => &[Transport::has_http3],
            HttpPolicy::Serial => &[Transport::has_http3, is_stream],
        };
        let mut failed = None;
        for turn in turns {
            let target = route.target(self.versions);
            let Some(policy) = self.policy_of(*turn, &target) else { continue };
            match self.race(self.preconnection(target, sctp_udp), policy).await {
                Ok(dialled) => return Ok(dialled),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| {
            Error::new(Kind::Connect, "no allowed transport carries an allowed version")
        }))
    }

    /// Connects with this race policy, whatever the client's policy. The race continues in the
    /// background to feed the memory.
    pub(super) async fn connect_unpooled(
        &self,
        target: Target,
        race: &Policy,
    ) -> Result<(Sender, ConnectionReport), Error> {
        let policy = Self::restricted_to(race.clone(), |_| true, &target).ok_or_else(|| {
            Error::new(Kind::Connect, "no allowed transport carries an allowed version")
        })?;
        let mut initiation = self.preconnection(target, None).policy(policy).initiate();
        let connection = initiation.usable().await.map_err(connect_error)?;
        let recording = initiation.recording();
        initiation.detach();
        self.start_http(connection, recording).await
    }

    /// Connects to an alternative of `origin`; the certificate must be the origin's.
    pub(super) async fn alternative(
        &self,
        origin: &alt_svc::Origin,
        host: &TargetHost,
        service: &alt_svc::Service,
    ) -> Result<(Sender, ConnectionReport), Error> {
        let alpn = String::from_utf8_lossy(&service.protocol).into_owned();
        let announced = alpn.clone();
        let over_quic = service.protocol == b"h3";
        let alternative_host = match &service.host {
            None => host.clone(),
            Some(text) if *text == origin.host => host.clone(),
            Some(text) => {
                TargetHost::parse(text).map_err(|error| Error::new(Kind::Url, error.to_string()))?
            }
        };
        let mut target = Target::https(alternative_host, service.port);
        target.service = match over_quic {
            true => TargetService::Http { stream_alpn: Vec::new(), quic_alpn: vec![alpn] },
            false => TargetService::Http { stream_alpn: vec![alpn], quic_alpn: Vec::new() },
        };
        let turn: Turn = if over_quic { Transport::has_http3 } else { is_stream };
        let mut policy = self
            .policy_of(turn, &target)
            .ok_or_else(|| Error::new(Kind::Connect, "its transport is not allowed"))?;
        policy.deadline = policy.deadline.min(ALTERNATIVE_DEADLINE);
        policy.late_switch = false;
        let preconnection = self.preconnection(target, None).certificate_for(host.clone());
        let dialled = self.race(preconnection, policy).await?;
        // RFC 7838 §2.4: an alternative that negotiates another protocol has failed. Without
        // negotiation it is HTTP/1.1.
        let negotiated = dialled.report.info().alpn.as_deref().unwrap_or("http/1.1");
        if negotiated != announced {
            let what =
                format!("the alternative was announced as {announced} but negotiated {negotiated}");
            return Err(Error::new(Kind::Tls, what));
        }
        Ok((dialled.sender, dialled.report.of_alternative(service)))
    }

    #[cfg_attr(not(feature = "sctp"), expect(unused_variables, reason = "there is no SCTP"))]
    fn preconnection(&self, target: Target, sctp_udp: Option<u16>) -> Preconnection {
        // HTTP/3 does it while there are requests.
        let preconnection = self.endpoint.preconnection(target).without_quic_keep_alive();
        #[cfg(feature = "sctp")]
        if let Some(port) = sctp_udp {
            return preconnection.sctp_encapsulation_port(port);
        }
        preconnection
    }

    async fn race(&self, preconnection: Preconnection, policy: Policy) -> Result<Dialled, Error> {
        let mut initiation = preconnection.policy(policy).initiate();
        let connection = initiation.usable().await.map_err(connect_error)?;
        let (sender, report) = self.start_http(connection, initiation.recording()).await?;
        let later = (!initiation.is_over()).then_some(Later { initiation });
        Ok(Dialled { sender, report, later })
    }

    /// Returns the policy for a race over those transports of this turn that the caller and the
    /// versions allow.
    fn policy_of(&self, turn: Turn, target: &Target) -> Option<Policy> {
        let mut policy = Self::restricted_to(self.race.clone(), turn, target)?;
        if self.policy == HttpPolicy::Serial {
            policy.max_in_flight = 1;
            policy.late_switch = false;
            policy.deadline = policy.deadline.min(SERIAL_TURN);
        }
        Some(policy)
    }

    /// Returns the policy restricted to those transports of this turn that can carry the target's
    /// service; `None` if there are none.
    fn restricted_to(mut policy: Policy, turn: Turn, target: &Target) -> Option<Policy> {
        policy
            .transports
            .retain(|transport| turn(*transport) && target.service.is_spoken_over(*transport));
        (!policy.transports.is_empty()).then_some(policy)
    }

    /// Starts the version of HTTP that the connection negotiated.
    async fn start_http(
        &self,
        mut connection: Connection,
        recording: RaceRecording,
    ) -> Result<(Sender, ConnectionReport), Error> {
        let info = connection.shared_info();
        let report = ConnectionReport::new(info, connection.feedback(), recording);
        let below = Life::of_stream(&mut connection);
        let sender = match connection.quic().cloned() {
            Some(quic) => Http3::start(quic, self.tunnels).map(Sender::Http3),
            None => self.start_on_stream(connection).await,
        };
        let sender = sender.map_err(|error| error.with_candidate(&report))?;
        Ok((sender.with_life_below(below), report))
    }

    async fn start_on_stream(&self, connection: Connection) -> Result<Sender, Error> {
        let alpn = connection.info().alpn.clone();
        let is_plain = connection.info().security == Security::None;
        // RFC 9113 §3.3: without TLS nothing is negotiated.
        let known = (is_plain && self.http2_prior_knowledge).then(|| "h2".to_owned());
        let stream = connection
            .into_stream()
            .map_err(|_| Error::new(Kind::Protocol, "the connection closed before it was used"))?;
        self.start_on(stream, Way::Direct, alpn.as_ref().or(known.as_ref())).await
    }

    /// Starts HTTP/2 or 1.1, as negotiated by ALPN; without ALPN, HTTP/1.1 (RFC 9112 §9.8).
    pub(super) async fn start_on<S>(
        &self,
        stream: S,
        way: Way,
        alpn: Option<&AlpnName>,
    ) -> Result<Sender, Error>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        match alpn.map(String::as_str) {
            Some("h2") => Http2::start(stream, way, self.tunnels).await.map(Sender::Http2),
            _ if self.versions.http1 => Http1::start(stream, false).await.map(Sender::Http1),
            _ => Err(Error::new(Kind::Tls, "the peer supports none of the allowed HTTP versions")),
        }
    }
}
