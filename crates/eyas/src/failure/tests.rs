use std::io;

use eyas_race::evidence::{Cause, Level};
use nix::libc;
use rustls::{AlertDescription, CertificateError};

use super::{of_connect, of_io, of_report, of_tls};
use crate::icmp::{IcmpCause, Report};

fn cause(code: i32, reached: Level) -> Cause {
    of_io(&io::Error::from_raw_os_error(code), reached).cause
}

#[test]
fn what_the_kernel_says() {
    assert_eq!(cause(libc::ECONNREFUSED, Level::Started), Cause::Refused);
    assert_eq!(cause(libc::ENETUNREACH, Level::Started), Cause::Unreachable);
    assert_eq!(cause(libc::EHOSTUNREACH, Level::Started), Cause::Unreachable);
    assert_eq!(cause(libc::ETIMEDOUT, Level::Started), Cause::Silent);
    assert_eq!(cause(libc::ECONNRESET, Level::Transport), Cause::Reset);
    assert_eq!(cause(libc::ECONNRESET, Level::Started), Cause::Refused);
    assert_eq!(cause(libc::EMFILE, Level::Started), Cause::Local);
    assert_eq!(cause(libc::EPERM, Level::Started), Cause::Unsupported);
    assert_eq!(cause(libc::EPROTONOSUPPORT, Level::Started), Cause::Unsupported);
    let refused = of_io(&io::Error::from_raw_os_error(libc::ECONNREFUSED), Level::Started);
    assert_eq!(refused.to_string(), "refused: nothing is listening on this port");
}

#[test]
fn what_icmp_says() {
    let of = |cause| {
        let remote = ([192, 0, 2, 1], 443).into();
        of_report(&Report { remote, cause, by: Some([198, 51, 100, 1].into()), quoted: None })
    };
    assert_eq!(of(IcmpCause::PortUnreachable).cause, Cause::Refused);
    assert_eq!(of(IcmpCause::ProtocolUnreachable).cause, Cause::Refused);
    for cause in [
        IcmpCause::NoRoute,
        IcmpCause::Prohibited,
        IcmpCause::AddressUnreachable,
        IcmpCause::TooBig(1000),
    ] {
        assert_eq!(of(cause).cause, Cause::Unreachable);
    }
    assert_eq!(of(IcmpCause::NoRoute).detail, "there is no route to it (ICMP from 198.51.100.1)");
}

#[test]
fn a_connect_that_a_filter_forbids_is_not_a_lack_of_resources() {
    let cause = |code| of_connect(&io::Error::from_raw_os_error(code)).cause;
    assert_eq!(cause(libc::EACCES), Cause::Unreachable);
    assert_eq!(cause(libc::ENOPROTOOPT), Cause::Refused);
    assert_eq!(cause(libc::ECONNREFUSED), Cause::Refused);
}

#[test]
fn what_tls_says() {
    let of = |error: rustls::Error| of_tls(&error, Level::Transport).cause;
    assert_eq!(of(CertificateError::Expired.into()), Cause::Certificate);
    assert_eq!(of(rustls::Error::NoApplicationProtocol), Cause::Tls);
    let alert = |alert| of(rustls::Error::AlertReceived(alert));
    assert_eq!(alert(AlertDescription::NoApplicationProtocol), Cause::Tls);
    assert_eq!(alert(AlertDescription::CertificateRequired), Cause::Certificate);
    assert_eq!(of(rustls::Error::DecryptError), Cause::Protocol);
}

#[test]
fn tls_inside_an_input_error_is_seen() {
    let inner = rustls::Error::from(CertificateError::UnknownIssuer);
    let failure = of_io(&io::Error::new(io::ErrorKind::InvalidData, inner), Level::Transport);
    assert_eq!(failure.cause, Cause::Certificate);
    assert_eq!(failure.detail, "invalid peer certificate: UnknownIssuer");
}

#[test]
fn a_peer_that_closes_in_the_handshake_has_reset() {
    let error = io::Error::from(io::ErrorKind::UnexpectedEof);
    assert_eq!(of_io(&error, Level::Transport).cause, Cause::Reset);
}
