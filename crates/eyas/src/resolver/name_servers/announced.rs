//! The HTTP/3 that a DNS server over HTTPS announces (RFC 7838): no record of its name could be had before.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyas_race::evidence::{EvidenceLevel, FailureCause};
use eyas_race::memory::DesignationEntry;
use eyas_race::target::{TargetHost, parse_port};
use http::HeaderMap;
use http::header::ALT_SVC;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::super::encryption::designation::ResolverEndpoint;
use super::super::encryption::{
    DnsProtocol, EndpointOutcome, NetworkMemory, RememberedAnswer, RequiredProof,
    SharedResolverMemory,
};
use super::ServerTrouble;
use super::attempt::outcome;
use super::http3::{Http3Connection, Http3Server};
use super::shared_connection::ConnectedServer as _;

/// The longest field that is read, in octets.
const MAX_FIELD: usize = 1024;
/// How long an announcement without `ma` holds (RFC 7838 §3.1).
const DEFAULT_MAX_AGE: Duration = Duration::from_hours(24);
/// How long HTTP/3 is not tried after it failed, and after it was only slower, as with the memory.
const WITHOUT: Duration = Duration::from_mins(5);
const WITHOUT_DOUBTFUL: Duration = Duration::from_secs(30);
/// The certificate is that of the origin (RFC 7838 §2.1).
const OF_ORIGIN: RequiredProof = RequiredProof { designator: None, is_optional: false };

/// The HTTP/3 of a server at one of its addresses.
#[derive(Debug)]
pub(super) struct AnnouncedHttp3 {
    address: SocketAddr,
    name: String,
    path: String,
    config: ClientConfig,
    memory: SharedResolverMemory,
    state: Mutex<AnnouncedState>,
}

#[derive(Debug, Default)]
struct AnnouncedState {
    /// At which port it is, and until when that holds.
    announced: Option<(u16, Instant)>,
    /// Until when it is not tried, because it failed.
    failed_until: Option<Instant>,
    /// Whether there is a connection that has not answered.
    is_unanswered: bool,
}

impl AnnouncedHttp3 {
    /// Returns that of the server at this address with this name, as far as it is remembered of this network.
    pub(super) async fn recalled(
        address: SocketAddr,
        name: &str,
        path: &str,
        config: ClientConfig,
        memory: SharedResolverMemory,
    ) -> Self {
        let (name, path) = (name.to_owned(), path.to_owned());
        let http3 = Self { address, name, path, config, memory, state: Mutex::default() };
        http3.recall().await;
        http3
    }

    async fn recall(&self) {
        let Some(memory) = NetworkMemory::of_current(&self.memory) else { return };
        let Some(known) = memory.designation(self.host(), self.address).await else { return };
        let RememberedAnswer::Resolvers(endpoints) = known.said else { return };
        let is_here = |endpoint: &&ResolverEndpoint| {
            **endpoint == self.endpoint(endpoint.address.port())
                && self.may_be_at(endpoint.address.port())
        };
        let Some(endpoint) = endpoints.iter().find(is_here) else { return };
        let failed = memory.hopeless(&[(endpoint.clone(), OF_ORIGIN)]);
        let mut state = self.state();
        state.announced = Some((endpoint.address.port(), Instant::now() + known.holds));
        state.failed_until = failed.map(|(_, holds)| Instant::now() + holds);
    }

    /// Notes what the fields of a response announce. It replaces all that was announced before (RFC 7838 §3).
    pub(super) fn note(&self, fields: &HeaderMap) {
        let mut fields = fields.get_all(ALT_SVC).iter().peekable();
        if fields.peek().is_none() {
            return;
        }
        let announced = fields.find_map(|field| announced(field.as_bytes(), &self.name));
        let announced = announced.filter(|(port, _)| self.may_be_at(*port));
        let mut state = self.state();
        let Some((port, max_age)) = announced else {
            if state.announced.take().is_some() {
                drop(state);
                self.remember(&RememberedAnswer::Nothing, Duration::ZERO);
            }
            return;
        };
        let holds = max_age.min(DesignationEntry::LONGEST);
        let is_known = state
            .announced
            .is_some_and(|(known, until)| known == port && until >= Instant::now() + holds / 2);
        state.announced = Some((port, Instant::now() + holds));
        drop(state);
        // Each response says it.
        if !is_known {
            self.remember(&RememberedAnswer::Resolvers(vec![self.endpoint(port)]), holds);
        }
    }

    fn remember(&self, said: &RememberedAnswer, holds: Duration) {
        if let Some(memory) = NetworkMemory::of_current(&self.memory) {
            memory.remember(&self.host(), self.address, said, holds);
        }
    }

    /// Returns where it is, if it is to be tried now.
    pub(super) fn port(&self) -> Option<u16> {
        let mut state = self.state();
        if std::mem::take(&mut state.is_unanswered) {
            let port = state.announced.map(|(port, _)| port);
            drop(state);
            // The connection before this one has ended so, or is given up.
            let silent = EndpointOutcome::Failed(FailureCause::Silent, EvidenceLevel::Security);
            self.note_failure(port?, Some(silent));
            return None;
        }
        let now = Instant::now();
        let has_failed = state.failed_until.is_some_and(|until| now < until);
        let (port, until) = state.announced.filter(|_| !has_failed)?;
        (now < until).then_some(port)
    }

    /// Connects to it.
    pub(super) async fn connect(&self, port: u16) -> Result<Http3Connection, ServerTrouble> {
        let name = ServerName::try_from(self.name.as_str());
        let name = name.map_err(|_| ServerTrouble::Unreachable)?;
        let endpoint = self.endpoint(port);
        let config = self.config.clone();
        // The authority is that of the URL, whose port is the origin's (RFC 7838 §2).
        let server = Http3Server::at_alternative(
            endpoint.address,
            &name,
            self.address.port(),
            &self.path,
            config,
        );
        let since = Instant::now();
        let connected = server.ok_or(ServerTrouble::Unreachable)?.connect().await;
        match &connected {
            Ok(_) => self.state().is_unanswered = true,
            Err(trouble) => self.note_failure(port, outcome(*trouble, since.elapsed(), false)),
        }
        connected
    }

    pub(super) fn note_failure(&self, port: u16, outcome: Option<EndpointOutcome>) {
        let without = match outcome {
            Some(EndpointOutcome::CutShort) => WITHOUT_DOUBTFUL,
            _ => WITHOUT,
        };
        self.state().failed_until = Some(Instant::now() + without);
        if let Some(outcome) = outcome {
            self.learn(port, outcome);
        }
    }

    /// Notes that it has answered.
    pub(super) fn note_answer(&self) {
        let port = {
            let mut state = self.state();
            std::mem::take(&mut state.is_unanswered).then_some(state.announced).flatten()
        };
        if let Some((port, _)) = port {
            self.learn(port, EndpointOutcome::Answered);
        }
    }

    fn learn(&self, port: u16, outcome: EndpointOutcome) {
        if let Some(memory) = NetworkMemory::of_current(&self.memory) {
            memory.learn(&self.endpoint(port), OF_ORIGIN, outcome);
        }
    }

    /// Returns whether it may be at this port: those of other services may act on what a handshake happens to contain
    /// (RFC 7838 §9.1).
    const fn may_be_at(&self, port: u16) -> bool {
        port == self.address.port() || port == 443 || port >= 1024
    }

    fn endpoint(&self, port: u16) -> ResolverEndpoint {
        let mut address = self.address;
        address.set_port(port);
        let (name, path) = (self.name.clone(), self.path.clone());
        ResolverEndpoint { name, protocol: DnsProtocol::Http3, address, path }
    }

    /// Returns the server as a host of the memory.
    fn host(&self) -> TargetHost {
        self.endpoint(self.address.port()).host()
    }

    fn state(&self) -> MutexGuard<'_, AnnouncedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the port of HTTP/3 that the value of a field announces at the server's own name, and how long that holds.
fn announced(field: &[u8], name: &str) -> Option<(u16, Duration)> {
    let text = std::str::from_utf8(field.get(..MAX_FIELD).unwrap_or(field)).ok()?;
    text.split(',').find_map(|alternative| {
        let mut parts = alternative.split(';').map(str::trim);
        let authority = parts.next()?.strip_prefix("h3=\"")?.strip_suffix('"')?;
        let (host, port) = authority.rsplit_once(':')?;
        let port = parse_port(port).filter(|port| *port != 0)?;
        if !host.is_empty() && !host.eq_ignore_ascii_case(name) {
            return None;
        }
        let max_age = match parts.find_map(|part| part.strip_prefix("ma=")) {
            Some(seconds) => Duration::from_secs(seconds.trim_matches('"').parse().ok()?),
            None => DEFAULT_MAX_AGE,
        };
        (!max_age.is_zero()).then_some((port, max_age))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn http3_at_the_own_name_is_announced() {
        let day = DEFAULT_MAX_AGE;
        let seconds = Duration::from_secs;
        for (field, expected) in [
            ("h3=\":443\"", Some((443, day))),
            ("h3=\":8443\"; ma=60", Some((8443, seconds(60)))),
            (
                "h3-29=\":443\", h3=\"DNS.example:443\";persist=1;ma=\"60\"",
                Some((443, seconds(60))),
            ),
            ("h3=\"other.example:443\"", None),
            ("h2=\":443\"", None),
            ("clear", None),
            ("h3=\":0\"", None),
            ("h3=\":443\"; ma=0", None),
            ("h3=\":443\"; ma=soon", None),
            ("h3=\":70000\"", None),
            ("h3=\":443", None),
            ("", None),
        ] {
            assert_eq!(announced(field.as_bytes(), "dns.example"), expected, "{field}");
        }
    }

    //= rfc7838 §3
    //# the latest field replaces what was announced before; a response without one changes nothing
    #[tokio::test]
    async fn the_latest_announcement_counts() {
        let trust = crate::SecurityParameters::platform();
        let config = trust.client_config(trust.server_verifier().unwrap()).unwrap();
        let address = ([192, 0, 2, 1], 443).into();
        let memory = SharedResolverMemory::default();
        let http3 = AnnouncedHttp3::recalled(address, "dns.example", "/q", config, memory).await;
        for (field, port) in [
            ("", None),
            ("h3=\":443\"", Some(443)),
            ("", Some(443)),
            ("h3=\":8443\"", Some(8443)),
            ("h3=\":22\"", None),
            ("h3=\":443\"", Some(443)),
            ("h2=\":443\"", None),
            ("h3=\":443\"", Some(443)),
            ("clear", None),
        ] {
            let mut fields = HeaderMap::new();
            if !field.is_empty() {
                fields.insert(ALT_SVC, field.parse().unwrap());
            }
            http3.note(&fields);
            assert_eq!(http3.port(), port, "{field}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_announced_is_a_port_for_a_while(
            field in "(h3=\"[a-z.]{0,3}:[0-9]{0,6}\"|;|,| |ma=[0-9\"]{0,24}|\\PC{0,9}){0,30}"
        ) {
            if let Some((port, max_age)) = announced(field.as_bytes(), "a") {
                prop_assert!(port != 0 && !max_age.is_zero());
            }
        }
    }
}
