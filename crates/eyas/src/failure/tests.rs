use std::io;

use eyas_host::errno;
use eyas_host::fault::{HostFault, SocketCall};
use eyas_host::icmp::{IcmpCause, IcmpReport};
use eyas_race::evidence::{CertificateFailure, CertificateFault, EvidenceLevel, FailureCause};
use rustls::{AlertDescription, CertificateError};
use rustls_pki_types::{ServerName, UnixTime};

use super::{
    alert_name, connect_failure, host_failure, icmp_failure, io_failure, send_failure, tls_failure,
};

fn cause(code: i32, reached: EvidenceLevel) -> FailureCause {
    io_failure(&io::Error::from_raw_os_error(code), reached).cause
}

#[test]
fn kernel_errors_are_classified() {
    assert_eq!(cause(errno::ECONNREFUSED, EvidenceLevel::Started), FailureCause::Refused);
    assert_eq!(cause(errno::ENETUNREACH, EvidenceLevel::Started), FailureCause::Unreachable);
    assert_eq!(cause(errno::EHOSTUNREACH, EvidenceLevel::Started), FailureCause::Unreachable);
    assert_eq!(cause(errno::ETIMEDOUT, EvidenceLevel::Started), FailureCause::Silent);
    assert_eq!(cause(errno::ECONNRESET, EvidenceLevel::Transport), FailureCause::Reset);
    assert_eq!(cause(errno::ECONNRESET, EvidenceLevel::Started), FailureCause::Refused);
    assert_eq!(cause(errno::EMFILE, EvidenceLevel::Started), FailureCause::Local);
    assert_eq!(cause(errno::EADDRNOTAVAIL, EvidenceLevel::Started), FailureCause::Local);
    assert_eq!(cause(errno::EINVAL, EvidenceLevel::Started), FailureCause::Local);
    assert_eq!(cause(errno::EPERM, EvidenceLevel::Started), FailureCause::Local);
    assert_eq!(cause(errno::EPROTONOSUPPORT, EvidenceLevel::Started), FailureCause::Unsupported);
    let refused =
        io_failure(&io::Error::from_raw_os_error(errno::ECONNREFUSED), EvidenceLevel::Started);
    assert_eq!(refused.to_string(), "refused: nothing is listening on this port");
}

#[test]
fn icmp_reports_are_classified() {
    let of = |cause| {
        let remote = ([192, 0, 2, 1], 443).into();
        icmp_failure(&IcmpReport {
            remote,
            cause,
            sender: Some([198, 51, 100, 1].into()),
            quoted: None,
        })
    };
    assert_eq!(of(IcmpCause::PortUnreachable).cause, FailureCause::Refused);
    assert_eq!(of(IcmpCause::ProtocolUnreachable).cause, FailureCause::Refused);
    for cause in [
        IcmpCause::NoRoute,
        IcmpCause::Prohibited,
        IcmpCause::AddressUnreachable,
        IcmpCause::TooBig(1000),
    ] {
        assert_eq!(of(cause).cause, FailureCause::Unreachable);
    }
    assert_eq!(of(IcmpCause::NoRoute).detail, "there is no route to it (ICMP from 198.51.100.1)");
}

/// A rule `reject` in the output chain answers from an address of this host.
#[test]
fn a_rejection_by_the_own_firewall_says_nothing_about_the_peer() {
    let cause_of = |cause, sender: [u8; 4], remote: [u8; 4]| {
        let (sender, remote) = (Some(sender.into()), (remote, 443).into());
        icmp_failure(&IcmpReport { remote, cause, sender, quoted: None }).cause
    };
    let (own, peer) = ([127, 0, 0, 1], [192, 0, 2, 1]);
    for rejection in
        [IcmpCause::Prohibited, IcmpCause::PortUnreachable, IcmpCause::ProtocolUnreachable]
    {
        assert_eq!(cause_of(rejection, own, peer), FailureCause::Local);
        assert_ne!(cause_of(rejection, peer, peer), FailureCause::Local, "the peer itself");
        assert_ne!(cause_of(rejection, [198, 51, 100, 1], peer), FailureCause::Local, "a router");
        // A closed port of this host is a refusal, from whichever of its addresses.
        assert_ne!(cause_of(rejection, own, [127, 0, 0, 2]), FailureCause::Local);
    }
    // A host that does not answer on the link.
    assert_eq!(cause_of(IcmpCause::AddressUnreachable, own, peer), FailureCause::Unreachable);
}

#[test]
fn every_fault_of_this_host_is_remembered_by_nobody_and_says_whose_it_is() {
    for code in 1..=133 {
        for call in [
            SocketCall::Open,
            SocketCall::Bind,
            SocketCall::Connect,
            SocketCall::Send,
            SocketCall::Pending,
        ] {
            let error = io::Error::from_raw_os_error(code);
            let Some(fault) = HostFault::from_error(&error, call, None) else { continue };
            let failure = host_failure(fault, &error, EvidenceLevel::Started);
            assert!(failure.cause.is_of_this_host(), "{failure}");
            assert!(failure.detail.contains("this host"), "{failure}");
        }
    }
}

/// A prohibited route of this host is the error of the call itself; a router's refusal is pending.
#[test]
fn a_filtered_connect_tells_this_host_from_a_router() {
    let peer = ([192, 0, 2, 1], 80).into();
    let at_once =
        send_failure(&io::Error::from_raw_os_error(errno::EACCES), SocketCall::Connect, peer);
    assert_eq!(at_once.cause, FailureCause::Local);
    let cause = |code| connect_failure(&io::Error::from_raw_os_error(code)).cause;
    assert_eq!(cause(errno::EACCES), FailureCause::Unreachable);
    assert_eq!(cause(errno::ENOPROTOOPT), FailureCause::Refused);
    assert_eq!(cause(errno::ECONNREFUSED), FailureCause::Refused);
}

#[test]
fn tls_errors_are_classified() {
    let of = |error: rustls::Error| tls_failure(&error, EvidenceLevel::Transport).cause;
    assert_eq!(of(CertificateError::Expired.into()), FailureCause::Certificate);
    assert_eq!(of(rustls::Error::NoApplicationProtocol), FailureCause::Tls);
    let alert = |alert| of(rustls::Error::AlertReceived(alert));
    assert_eq!(alert(AlertDescription::NoApplicationProtocol), FailureCause::Tls);
    assert_eq!(alert(AlertDescription::CertificateRequired), FailureCause::Certificate);
    assert_eq!(of(rustls::Error::DecryptError), FailureCause::Protocol);
}

#[test]
fn errors_of_certificates_have_a_fault() {
    use CertificateFault as Which;
    let of = |error: rustls::Error| tls_failure(&error, EvidenceLevel::Transport).fault;
    let (time, names) = (UnixTime::since_unix_epoch(std::time::Duration::ZERO), Vec::new());
    let expected = ServerName::try_from("a.test").unwrap();
    for (error, fault) in [
        (CertificateError::Expired, Which::Expired),
        (CertificateError::ExpiredContext { time, not_after: time }, Which::Expired),
        (CertificateError::NotValidYet, Which::NotYetValid),
        (CertificateError::NotValidYetContext { time, not_before: time }, Which::NotYetValid),
        (CertificateError::NotValidForName, Which::WrongName),
        (CertificateError::NotValidForNameContext { expected, presented: names }, Which::WrongName),
        (CertificateError::UnknownIssuer, Which::UnknownIssuer),
        (CertificateError::Revoked, Which::Revoked),
        (CertificateError::BadSignature, Which::Other),
        (CertificateError::BadEncoding, Which::Other),
        (CertificateError::InvalidPurpose, Which::Other),
        (CertificateError::ApplicationVerificationFailure, Which::Other),
    ] {
        assert_eq!(
            of(error.clone().into()),
            Some(CertificateFailure::PeerCertificate(fault)),
            "{error:?}"
        );
    }
    for (alert, fault) in [
        (AlertDescription::CertificateRequired, Which::Missing),
        (AlertDescription::CertificateExpired, Which::Expired),
        (AlertDescription::CertificateRevoked, Which::Revoked),
        (AlertDescription::UnknownCA, Which::UnknownIssuer),
        (AlertDescription::BadCertificate, Which::Other),
        (AlertDescription::UnsupportedCertificate, Which::Other),
        (AlertDescription::CertificateUnknown, Which::Other),
    ] {
        let received = of(rustls::Error::AlertReceived(alert));
        assert_eq!(received, Some(CertificateFailure::OwnCertificate(fault)), "{alert:?}");
    }
    for error in [
        rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
        rustls::Error::NoCertificatesPresented,
        rustls::Error::NoApplicationProtocol,
        rustls::Error::DecryptError,
    ] {
        assert_eq!(of(error), None);
    }
}

#[test]
fn a_tls_error_inside_an_io_error_is_recognised() {
    let inner = rustls::Error::from(CertificateError::UnknownIssuer);
    let failure =
        io_failure(&io::Error::new(io::ErrorKind::InvalidData, inner), EvidenceLevel::Transport);
    assert_eq!(failure.cause, FailureCause::Certificate);
    assert_eq!(failure.detail, "invalid peer certificate: UnknownIssuer");
}

#[test]
fn closing_during_the_handshake_is_a_reset() {
    let error = io::Error::from(io::ErrorKind::UnexpectedEof);
    assert_eq!(io_failure(&error, EvidenceLevel::Transport).cause, FailureCause::Reset);
}

#[test]
fn alerts_are_named_in_words() {
    assert_eq!(alert_name(47), "TLS alert 47 (illegal parameter)");
    assert_eq!(alert_name(199), "TLS alert 199");
    for code in 0..=u8::MAX {
        let name = alert_name(code);
        let is_camel = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
        assert!(!name.as_bytes().windows(2).any(is_camel) && !name.contains("nknown("), "{name}");
    }
}
