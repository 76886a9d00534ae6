//! The response field `Proxy-Status` (RFC 9209): why a proxy generated a response itself.

use eyas::ConnectError;
use eyas::race::dns::DnsFailure;
use eyas::race::evidence::FailureCause;
use eyas::race::io::RaceFailure;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The field's name.
pub const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The name of this proxy in the field.
const PROXY: &str = "eyas";
/// The limit on the length of `details`. The body of the response has the whole text.
const MAX_DETAILS: usize = 512;

/// A proxy error type (RFC 9209 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// DNS did not answer in time.
    DnsTimeout,
    /// DNS has no address, or failed.
    DnsError,
    /// The destination is considered to be unavailable.
    DestinationUnavailable,
    /// All addresses of the destination are prohibited.
    DestinationIpProhibited,
    /// There is no route to the destination.
    DestinationIpUnroutable,
    /// The destination refused the connection.
    ConnectionRefused,
    /// The connection ended before the response was complete.
    ConnectionTerminated,
    /// Connecting took too long.
    ConnectionTimeout,
    /// The destination did not answer in time.
    ConnectionReadTimeout,
    /// There are as many connections as there may be.
    ConnectionLimitReached,
    /// The TLS handshake failed.
    TlsProtocolError,
    /// The certificate of the destination is not trusted.
    TlsCertificateError,
    /// The request is malformed.
    HttpRequestError,
    /// The request is not allowed.
    HttpRequestDenied,
    /// The transfer coding of the response could not be decoded.
    HttpResponseTransferCoding,
    /// The destination did not upgrade the connection.
    HttpUpgradeFailed,
    /// The destination broke the protocol.
    HttpProtocolError,
    /// The proxy answers the request itself.
    ProxyInternalResponse,
    /// The proxy failed.
    ProxyInternalError,
    /// The proxy is not configured for this request.
    ProxyConfigurationError,
    /// The request has passed this proxy before.
    ProxyLoopDetected,
}

impl ErrorType {
    const fn name(self) -> &'static str {
        match self {
            Self::DnsTimeout => "dns_timeout",
            Self::DnsError => "dns_error",
            Self::DestinationUnavailable => "destination_unavailable",
            Self::DestinationIpProhibited => "destination_ip_prohibited",
            Self::DestinationIpUnroutable => "destination_ip_unroutable",
            Self::ConnectionRefused => "connection_refused",
            Self::ConnectionTerminated => "connection_terminated",
            Self::ConnectionTimeout => "connection_timeout",
            Self::ConnectionReadTimeout => "connection_read_timeout",
            Self::ConnectionLimitReached => "connection_limit_reached",
            Self::TlsProtocolError => "tls_protocol_error",
            Self::TlsCertificateError => "tls_certificate_error",
            Self::HttpRequestError => "http_request_error",
            Self::HttpRequestDenied => "http_request_denied",
            Self::HttpResponseTransferCoding => "http_response_transfer_coding",
            Self::HttpUpgradeFailed => "http_upgrade_failed",
            Self::HttpProtocolError => "http_protocol_error",
            Self::ProxyInternalResponse => "proxy_internal_response",
            Self::ProxyInternalError => "proxy_internal_error",
            Self::ProxyConfigurationError => "proxy_configuration_error",
            Self::ProxyLoopDetected => "proxy_loop_detected",
        }
    }

    /// Returns whether time ran out before there was a connection.
    pub const fn is_connect_timeout(self) -> bool {
        matches!(self, Self::DnsTimeout | Self::ConnectionTimeout)
    }
}

impl From<&ConnectError> for ErrorType {
    fn from(error: &ConnectError) -> Self {
        match error.failure() {
            RaceFailure::NoAddress(failures) => {
                let have_all_timed_out =
                    failures.iter().all(|(_, why)| *why == DnsFailure::Timeout);
                if have_all_timed_out { Self::DnsTimeout } else { Self::DnsError }
            }
            RaceFailure::NoNetwork => Self::DestinationIpUnroutable,
            // Without a single attempt, DNS has used up the time.
            RaceFailure::Deadline(tried) if tried.is_empty() => Self::DnsTimeout,
            RaceFailure::Deadline(_) => Self::ConnectionTimeout,
            RaceFailure::NoCandidate => Self::DestinationUnavailable,
            _ => match error.cause() {
                Some(FailureCause::Certificate) => Self::TlsCertificateError,
                Some(cause) if cause.is_of_security() => Self::TlsProtocolError,
                Some(FailureCause::Refused) => Self::ConnectionRefused,
                Some(FailureCause::Unreachable) => Self::DestinationIpUnroutable,
                Some(FailureCause::Reset) => Self::ConnectionTerminated,
                Some(FailureCause::Silent | FailureCause::Deadline) => Self::ConnectionTimeout,
                Some(FailureCause::Protocol) => Self::DestinationUnavailable,
                _ => Self::ProxyInternalError,
            },
        }
    }
}

/// Returns the value of the field for a response of this proxy.
///
/// `details` goes to the client, like the body, and must not contain more than that.
pub(crate) fn field_value(error: ErrorType, details: &str) -> String {
    let details = quoted(details);
    format!("{PROXY}; error={}; details=\"{details}\"", error.name())
}

/// Adds the field to a response of this proxy.
pub fn insert(headers: &mut HeaderMap, error: ErrorType, details: &str) {
    if let Ok(value) = HeaderValue::try_from(field_value(error, details)) {
        headers.insert(PROXY_STATUS, value);
    }
}

/// Returns the contents of an sf-string (RFC 8941 §3.3.3), which has only printable ASCII.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().min(MAX_DETAILS));
    for one in text.chars() {
        if quoted.len() >= MAX_DETAILS {
            break;
        }
        match one {
            '"' | '\\' => quoted.extend(['\\', one]),
            ' '..='~' => quoted.push(one),
            _ if one.is_whitespace() => quoted.push(' '),
            _ => quoted.push('?'),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_value_is_a_list_of_one_structured_item() {
        assert_eq!(
            field_value(ErrorType::DnsError, "no \"a.test\"\r\nin C:\\dns, é"),
            r#"eyas; error=dns_error; details="no \"a.test\"  in C:\\dns, ?""#
        );
        let mut headers = HeaderMap::new();
        insert(&mut headers, ErrorType::ProxyLoopDetected, "a loop");
        assert_eq!(headers[PROXY_STATUS], r#"eyas; error=proxy_loop_detected; details="a loop""#);
    }

    proptest! {
        #[test]
        fn arbitrary_text_stays_within_its_quotes(text: String) {
            let quoted = quoted(&text);
            prop_assert!(quoted.len() <= MAX_DETAILS + 1);
            prop_assert!(quoted.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let mut rest = quoted.chars();
            while let Some(one) = rest.next() {
                prop_assert_ne!(one, '"');
                if one == '\\' {
                    prop_assert!(matches!(rest.next(), Some('"' | '\\')));
                }
            }
        }
    }
}
