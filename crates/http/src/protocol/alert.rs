//! TLS alerts about our certificate that arrive as the answer to the first request.
//!
//! RFC 8446 §2: the client sends its last flight and may then send application data at once. So a
//! server that rejects the certificate, or wants one and gets none, says so when for the client the
//! handshake is over.

use std::{io, sync::OnceLock};

use eyas::race::evidence::FailureCause;
use rustls::AlertDescription;

use crate::{Error, Kind};

/// The alerts about our certificate, and what they mean.
const ABOUT_CERTIFICATE: [(AlertDescription, &str); 8] = [
    (AlertDescription::CertificateRequired, "it requires a client certificate"),
    (AlertDescription::BadCertificate, REJECTED),
    (AlertDescription::UnsupportedCertificate, REJECTED),
    (AlertDescription::CertificateRevoked, "it says that our certificate was revoked"),
    (AlertDescription::CertificateExpired, "it says that our certificate expired"),
    (AlertDescription::CertificateUnknown, REJECTED),
    (AlertDescription::UnknownCA, "it does not trust the issuer of our certificate"),
    (AlertDescription::AccessDenied, REJECTED),
];

const REJECTED: &str = "it does not accept our certificate";

/// The bit of QUIC's error codes for alerts, which are in the octet below (RFC 9001 §4.8).
const QUIC_ALERT: u64 = 0x100;

/// The alert that ended a byte stream, once it has been read. The HTTP/2 library does not pass it on.
#[derive(Debug, Default)]
pub(super) struct Alert(OnceLock<AlertDescription>);

impl Alert {
    /// Notes the error of a stream.
    pub(super) fn note(&self, error: &io::Error) {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(alert)) = cause {
            self.0.get_or_init(|| *alert);
        }
    }

    /// Returns the error, if the alert is about our certificate.
    pub(super) fn error(&self) -> Option<Error> {
        self.0.get().and_then(|alert| from_alert(*alert))
    }
}

/// Returns the error, if the QUIC connection ended with such an alert.
pub(super) fn over_quic(connection: &quinn::Connection) -> Option<Error> {
    let Some(quinn::ConnectionError::ConnectionClosed(close)) = connection.close_reason() else {
        return None;
    };
    let code = u64::from(close.error_code).checked_sub(QUIC_ALERT)?;
    from_alert(AlertDescription::from(u8::try_from(code).ok()?))
}

/// Returns the error of an alert, if it is about our certificate.
pub(super) fn from_alert(alert: AlertDescription) -> Option<Error> {
    let (_, meaning) = ABOUT_CERTIFICATE.iter().find(|(one, _)| *one == alert)?;
    let detail = format!(
        "the peer closed the connection: {meaning}; give the endpoint the certificate and key that \
         the server expects"
    );
    let error = Error::new(Kind::Tls, detail).with_advice();
    Some(error.with_path_failure(Some(FailureCause::Certificate)))
}
