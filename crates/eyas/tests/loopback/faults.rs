//! What is wrong with a certificate is known by type, whatever the transport and the words.

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::evidence::{AttemptFailure, CertificateFault, EvidenceLevel, FailureCause};
#[cfg(feature = "sctp")]
use eyas::race::policy::{Policy, SctpSecurity};
use eyas::race::target::TargetHost;
use eyas::{Endpoint, ListenParameters, Listener, ServerIdentity};

use crate::common::{self, NAME, builder_for, wait};

const KINDS: &[(Transport, Security)] = &[
    (Transport::Tcp, Security::Tls),
    (Transport::Quic, Security::Tls),
    #[cfg(feature = "sctp")]
    (Transport::SctpUdp, Security::Tls),
    #[cfg(feature = "sctp")]
    (Transport::SctpUdp, Security::Dtls),
];

async fn serve(identity: &ServerIdentity) -> Listener {
    let parameters = ListenParameters::new(common::own_address())
        .transports(KINDS.iter().map(|(transport, _)| *transport))
        .security(identity.clone())
        .with_alpn(["h3", "h2"]);
    #[cfg(feature = "sctp")]
    let parameters = parameters.sctp_encapsulation_port(0);
    Listener::bind(parameters).await.unwrap()
}

fn endpoint(listener: &Listener, trusted: &[ServerIdentity]) -> Endpoint {
    let builder = builder_for(trusted, listener.local_addr().port());
    #[cfg(feature = "sctp")]
    let builder =
        builder.sctp_encapsulation_port(listener.sctp().unwrap().encapsulation_port().unwrap());
    builder.build().unwrap()
}

async fn failure(
    listener: &Listener,
    endpoint: &Endpoint,
    kind: (Transport, Security),
) -> AttemptFailure {
    let (transport, security) = kind;
    let candidate = Candidate {
        address: listener.local_addr(),
        transport,
        security,
        alpn: match transport {
            Transport::Quic => vec!["h3".into()],
            Transport::Tcp => vec!["h2".into()],
            _ => vec![],
        },
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    };
    let host = TargetHost::Name(NAME.into());
    wait(endpoint.attempt(&host, candidate, None)).await.unwrap_err()
}

#[tokio::test]
async fn a_certificate_has_the_same_fault_over_every_transport() {
    let expired = common::identity_valid(2001, 2002);
    let early = common::identity_valid(2901, 2902);
    let elsewhere = ServerIdentity::self_signed(["somebody.else.example"]).unwrap();
    let trusted = [expired.clone(), early.clone(), elsewhere.clone()];
    for (identity, fault, words) in [
        (expired, CertificateFault::Expired, "expired on 2002-01-01"),
        (early, CertificateFault::NotYetValid, "not valid before 2901-01-01"),
        (elsewhere, CertificateFault::WrongName, "is for somebody.else.example"),
        (common::identity(), CertificateFault::UnknownIssuer, "self-signed"),
    ] {
        let listener = serve(&identity).await;
        let endpoint = endpoint(&listener, &trusted);
        for kind in KINDS.iter().copied() {
            let failure = failure(&listener, &endpoint, kind).await;
            assert_eq!(failure.peer_certificate(), Some(fault), "{kind:?}: {failure:?}");
            assert_eq!(failure.own_certificate(), None);
            assert_eq!(failure.cause, FailureCause::Certificate, "{kind:?}: {failure:?}");
            assert!(failure.reached >= EvidenceLevel::Answered, "{kind:?}: {failure:?}");
            assert!(failure.detail.contains(words), "{kind:?}: {failure:?}");
        }
    }
}

#[tokio::test]
async fn simultaneous_handshakes_with_one_name_have_faults_of_their_own() {
    let (expired, unknown) = (common::identity_valid(2001, 2002), common::identity());
    let (one, other) = (serve(&expired).await, serve(&unknown).await);
    let endpoint = endpoint(&one, &[expired]);
    for kind in [(Transport::Tcp, Security::Tls), (Transport::Quic, Security::Tls)] {
        for _ in 0..8 {
            let (one, other) =
                tokio::join!(failure(&one, &endpoint, kind), failure(&other, &endpoint, kind));
            assert_eq!(one.peer_certificate(), Some(CertificateFault::Expired), "{one:?}");
            let untrusted = Some(CertificateFault::UnknownIssuer);
            assert_eq!(other.peer_certificate(), untrusted, "{other:?}");
            assert!(one.detail.contains("expired") && other.detail.contains("self-signed"));
        }
    }
}

#[tokio::test]
async fn a_closed_port_is_no_fault_of_a_certificate() {
    let identities = [common::identity()];
    let listener = serve(&identities[0]).await;
    let endpoint = endpoint(&listener, &identities);
    for transport in [Transport::Tcp, Transport::Quic] {
        let closed = common::own_address();
        let target = eyas::Target::plain(
            TargetHost::Literal(closed.ip(), 0),
            closed.port(),
            vec![transport],
            Security::Tls,
        );
        let error = wait(endpoint.preconnection(target).connect()).await.unwrap_err();
        let faults: Vec<_> =
            error.attempts().iter().map(|(_, failure)| failure.unwrap().fault).collect();
        assert_eq!(faults, [None], "{error}");
        assert!(error.certificate().is_none() && error.rejected_by_peer().is_none());
    }
}

/// The client's key is none that the server accepts.
#[cfg(feature = "sctp")]
#[tokio::test]
async fn a_server_that_rejects_our_certificate_is_known_by_type() {
    let (identity, client) = (common::identity(), ServerIdentity::self_signed(["client"]).unwrap());
    let parameters = ListenParameters::new(common::own_address())
        .transports([Transport::SctpUdp])
        .security(identity.clone())
        .client_keys(|_| false)
        .sctp_encapsulation_port(0);
    let listener = Listener::bind(parameters).await.unwrap();
    let security = eyas::SecurityParameters::platform()
        .with_roots([identity.certificate().clone()])
        .with_client_certificate(client.chain().to_vec(), client.private_key());
    let udp = listener.sctp().unwrap().encapsulation_port().unwrap();
    let builder = builder_for(&[identity], listener.local_addr().port());
    let endpoint = builder.security(security).sctp_encapsulation_port(udp).build().unwrap();
    let transports = vec![Transport::SctpUdp];
    let port = listener.local_addr().port();
    let target =
        eyas::Target::plain(TargetHost::Name(NAME.into()), port, transports, Security::Tls);
    let sctp_security = SctpSecurity::Dtls;
    let policy =
        Policy { transports: vec![Transport::SctpUdp], sctp_security, ..Policy::default() };
    let error = endpoint.preconnection(target).policy(policy).connect();
    let error = wait(error).await.unwrap_err();
    let rejected = error.rejected_by_peer().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(rejected.own_certificate(), Some(CertificateFault::Other));
    assert_eq!(
        (rejected.cause, error.certificate().is_some()),
        (FailureCause::Tls, false),
        "{error}"
    );
}
