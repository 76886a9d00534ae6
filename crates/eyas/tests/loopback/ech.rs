//! Encrypted ClientHello with servers that do not have it. Those that do are in `interop/`.

use std::sync::{Arc, Mutex};

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::evidence::{AttemptFailure, FailureCause};
use eyas::race::target::TargetHost;
use eyas::{Connection, EchConfigList, EchOutcome, EchPolicy, Endpoint, SecurityParameters};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::common::tls::{Credentials, Server};
use crate::common::{NAME, wait};

const PUBLIC_NAME: &str = "public.example";
const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Quic];

/// Returns a list with a configuration of this public name and this key of X25519 (RFC 9849 §4).
fn configs(public_name: &str, key: [u8; 32]) -> EchConfigList {
    let mut contents = vec![7];
    contents.extend([0, 0x20, 0, 32]);
    contents.extend(key);
    // HKDF-SHA256 and AES-128-GCM, and no hint at the length of names.
    contents.extend([0, 4, 0, 1, 0, 1, 0]);
    contents.push(u8::try_from(public_name.len()).unwrap());
    contents.extend(public_name.bytes());
    contents.extend([0, 0]);
    let length = u16::try_from(contents.len()).unwrap();
    let mut list = (length + 4).to_be_bytes().to_vec();
    list.extend([0xfe, 0x0d]);
    list.extend(length.to_be_bytes());
    list.extend(contents);
    EchConfigList::from_bytes(list).unwrap()
}

/// Those of a server whose key nobody has.
fn published() -> EchConfigList {
    configs(PUBLIC_NAME, [9; 32])
}

/// The certificate of a server, which notes the names that it is asked for.
#[derive(Debug)]
struct NameRecorder {
    key: Arc<CertifiedKey>,
    names: Mutex<Vec<String>>,
}

impl ResolvesServerCert for NameRecorder {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.names.lock().unwrap().extend(hello.server_name().map(str::to_owned));
        Some(Arc::clone(&self.key))
    }
}

/// A server without ECH, whose certificate is for these names.
struct ClearServer {
    server: Server,
    recorder: Arc<NameRecorder>,
    security: SecurityParameters,
}

impl ClearServer {
    fn start(names: &[&str]) -> Self {
        let own = Credentials::of_names(names);
        let provider = Arc::new(eyas::crypto_provider());
        let chain = vec![own.certificate.clone()];
        let key = CertifiedKey::from_der(chain, own.key(), &provider).unwrap();
        let recorder = Arc::new(NameRecorder { key: Arc::new(key), names: Mutex::default() });
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&recorder) as _);
        Self { server: Server::start(config), recorder, security: own.trusted() }
    }

    async fn attempt(
        &self,
        transport: Transport,
        policy: EchPolicy,
        record: Option<&EchConfigList>,
    ) -> Result<Connection, AttemptFailure> {
        let security = self.security.clone().with_ech(policy);
        let endpoint = Endpoint::builder().security(security).build().unwrap();
        let alpn = if transport == Transport::Quic { "h3" } else { "h2" };
        let candidate = Candidate {
            address: self.server.address,
            transport,
            security: Security::Tls,
            alpn: vec![alpn.into()],
            ech: record.map(|list| list.as_bytes().to_vec()),
            priority: Some(1),
            origin: AddressOrigin::Address,
        };
        wait(endpoint.attempt(&TargetHost::Name(NAME.into()), candidate, None)).await
    }

    /// Returns the names that were in the clear since the last time.
    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.recorder.names.lock().unwrap())
    }
}

//= rfc9849 §6.1.6
//# "the client can regard ECH as securely disabled by the server, and it SHOULD retry the handshake with a new transport connection and ECH disabled"
#[tokio::test]
async fn a_server_that_has_turned_ech_off_is_reached_in_the_clear() {
    let server = ClearServer::start(&[NAME, PUBLIC_NAME]);
    for transport in TRANSPORTS {
        let reached = server.attempt(transport, EchPolicy::Auto, Some(&published())).await;
        let info = reached.unwrap().shared_info();
        assert_eq!(info.ech, Some(EchOutcome::TurnedOff), "{transport}");
        assert!(info.reasons.iter().any(|reason| reason.contains("in the clear")), "{info:?}");
        assert_eq!(server.seen(), [PUBLIC_NAME, NAME], "{transport}");
    }
}

#[tokio::test]
async fn where_ech_is_required_no_name_is_sent_in_the_clear() {
    let server = ClearServer::start(&[NAME, PUBLIC_NAME]);
    for transport in TRANSPORTS {
        let published = published();
        for (record, seen) in [(Some(&published), &[PUBLIC_NAME][..]), (None, &[])] {
            let failed = server.attempt(transport, EchPolicy::Required, record).await.unwrap_err();
            assert_eq!(failed.cause, FailureCause::Ech, "{transport}: {failed:?}");
            assert_eq!(server.seen(), seen, "{transport}");
        }
    }
}

//= rfc9849 §6.1.7
//# what is not authenticated as the public name ends the attempt, and is no reason to send the name
#[tokio::test]
async fn what_is_not_the_public_name_breaks_ech() {
    let server = ClearServer::start(&[NAME]);
    for transport in TRANSPORTS {
        for policy in [EchPolicy::Auto, EchPolicy::Required] {
            let failed = server.attempt(transport, policy, Some(&published())).await.unwrap_err();
            assert_eq!(failed.cause, FailureCause::EchBroken, "{transport}: {failed:?}");
            assert!(failed.detail.contains(PUBLIC_NAME), "{failed:?}");
            assert_eq!(server.seen(), [PUBLIC_NAME], "{transport}");
        }
    }
}

/// Over a stream of the caller's, such as a tunnel, there is one try.
#[tokio::test]
async fn a_stream_of_the_caller_ends_with_the_reason_of_the_rejection() {
    for (names, cause) in
        [(&[NAME, PUBLIC_NAME][..], FailureCause::Ech), (&[NAME], FailureCause::EchBroken)]
    {
        let server = ClearServer::start(names);
        let security = server.security.clone().with_ech(published());
        let endpoint = Endpoint::builder().security(security).build().unwrap();
        let stream = tokio::net::TcpStream::connect(server.server.address).await.unwrap();
        let host = TargetHost::Name(NAME.into());
        let failed = wait(endpoint.secure(stream, &host, &[])).await.unwrap_err();
        assert_eq!(failed.cause, cause, "{failed:?}");
        assert_eq!(server.seen(), [PUBLIC_NAME]);
    }
}

#[tokio::test]
async fn a_damaged_configuration_sends_nothing() {
    let server = ClearServer::start(&[NAME, PUBLIC_NAME]);
    // Of low order (RFC 7748 §6.1): every secret with it is zero.
    let no_key = configs(PUBLIC_NAME, [0; 32]);
    for transport in TRANSPORTS {
        let failed = server.attempt(transport, EchPolicy::Auto, Some(&no_key)).await.unwrap_err();
        assert!(failed.detail.contains("HPKE"), "{transport}: {failed:?}");
        assert_eq!(server.seen(), [""; 0], "{transport}");
    }
}

//= rfc9849 §6.2
//# GREASE where there is no configuration
#[tokio::test]
async fn without_a_configuration_quic_pretends_to_have_one() {
    let server = ClearServer::start(&[NAME]);
    for (transport, policy, outcome) in [
        (Transport::Quic, EchPolicy::Auto, Some(EchOutcome::Grease)),
        (Transport::Quic, EchPolicy::Off, None),
        // It offers TLS 1.2, too, beside which rustls has no ECH.
        (Transport::Tcp, EchPolicy::Auto, None),
    ] {
        let connection = server.attempt(transport, policy, None).await.unwrap();
        assert_eq!(connection.info().ech, outcome, "{transport} {policy:?}");
        assert_eq!(server.seen(), [NAME]);
    }
    // What the record says does not matter where it is off.
    let connection = server.attempt(Transport::Tcp, EchPolicy::Off, Some(&published())).await;
    assert_eq!(connection.unwrap().info().ech, None);
}
