//! Why there is no response from the upstream, for the client and for the operator.

use std::time::Duration;

use bytes::Bytes;
use eyas_relay::proxy_status::{self, ErrorType};
use http::{HeaderValue, Response, StatusCode, header};
use thiserror::Error;

use crate::request_body::UploadError;
use crate::validation::RequestRejection;

/// Why there is no response from the upstream. The text is for the operator, and may contain addresses that
/// clients must not see.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum UpstreamFailure {
    /// The request is rejected before it is forwarded.
    #[error("{}", .0.text)]
    Refused(RequestRejection),
    /// The request was forwarded in a loop.
    #[error("a loop: the upstream leads back to this gateway")]
    Loop,
    /// The request switches to another protocol, which HTTP/2 and HTTP/3 have only for WebSockets, and not every server.
    #[error(
        "an h2c:// or h3:// upstream serves no upgrades but WebSockets, if it offers extended CONNECT"
    )]
    NoUpgrade,
    /// The body of the request failed.
    #[error("{0}")]
    Upload(UploadError),
    /// All connections are in use.
    #[error("all {0} connections to the upstream are in use")]
    Busy(usize),
    /// There is no connection.
    #[error("{1}")]
    Unreachable(ErrorType, String),
    /// There was no connection in time.
    #[error("{1}")]
    ConnectTimedOut(ErrorType, String),
    /// There was no response in time.
    #[error("it accepted the connection but has not answered for {0:?}")]
    Silent(Duration),
    /// The upstream closed or reset the connection.
    #[error("it closed the connection before it answered: {0}")]
    Closed(String),
    /// The upstream sent an invalid response.
    #[error("its response is invalid: {1}")]
    Malformed(ErrorType, String),
}

impl UpstreamFailure {
    /// Returns the reason for counters.
    pub(crate) const fn reason(&self) -> FailureReason {
        match self {
            Self::Refused(_) | Self::NoUpgrade => FailureReason::Refused,
            Self::Loop => FailureReason::Loop,
            Self::Upload(_) => FailureReason::Upload,
            Self::Busy(_) => FailureReason::Busy,
            Self::Unreachable(..) => FailureReason::Unreachable,
            Self::ConnectTimedOut(..) => FailureReason::ConnectTimedOut,
            Self::Silent(_) => FailureReason::Silent,
            Self::Closed(_) => FailureReason::Closed,
            Self::Malformed(..) => FailureReason::Malformed,
        }
    }

    /// Returns the status of the response (RFC 9110 §15).
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Refused(rejection) => rejection.status,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::NoUpgrade => StatusCode::NOT_IMPLEMENTED,
            Self::Upload(UploadError::TooLarge(_)) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Upload(_) => StatusCode::BAD_REQUEST,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreachable(..) | Self::Closed(_) | Self::Malformed(..) => {
                StatusCode::BAD_GATEWAY
            }
            Self::ConnectTimedOut(..) | Self::Silent(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Returns the text for the client, which contains no address.
    pub(crate) const fn text(&self) -> &'static str {
        match self {
            Self::Refused(rejection) => rejection.text,
            Self::Loop => "The request was forwarded in a loop.",
            Self::NoUpgrade => "The application behind this server has no WebSockets.",
            Self::Upload(UploadError::TooLarge(_)) => "The request body is too large.",
            Self::Upload(UploadError::Length) => {
                "The request body is not as long as its Content-Length."
            }
            Self::Upload(_) => "The request body was incomplete.",
            Self::Busy(_) => "The application behind this server is busy.",
            Self::Unreachable(..) => "The application behind this server cannot be reached.",
            Self::ConnectTimedOut(..) => {
                "The application behind this server did not accept a connection in time."
            }
            Self::Silent(_) => "The application behind this server did not answer in time.",
            Self::Closed(_) => {
                "The application behind this server closed the connection without an answer."
            }
            Self::Malformed(..) => "The application behind this server sent an invalid response.",
        }
    }

    /// Returns the proxy error type (RFC 9209 §2.3).
    const fn error_type(&self) -> ErrorType {
        match self {
            // What the gateway does not support, as opposed to what is wrong with the request.
            Self::Refused(RequestRejection { status: StatusCode::NOT_IMPLEMENTED, .. }) => {
                ErrorType::HttpRequestDenied
            }
            Self::Refused(_) | Self::Upload(_) => ErrorType::HttpRequestError,
            Self::Loop => ErrorType::ProxyLoopDetected,
            Self::NoUpgrade => ErrorType::HttpUpgradeFailed,
            Self::Busy(_) => ErrorType::ConnectionLimitReached,
            Self::Silent(_) => ErrorType::ConnectionReadTimeout,
            Self::Closed(_) => ErrorType::ConnectionTerminated,
            Self::Unreachable(error, _)
            | Self::ConnectTimedOut(error, _)
            | Self::Malformed(error, _) => *error,
        }
    }

    /// Returns whether the operator is notified, which does not happen for errors of clients.
    pub(crate) const fn concerns_operator(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::Upload(_))
    }

    /// Returns the response for the client.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let status = self.status();
        let text = format!("{} {}\n{}\n", status.as_u16(), reason_phrase(status), self.text());
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        proxy_status::insert(headers, self.error_type(), self.text());
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                let methods =
                    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
                headers.insert(header::ALLOW, methods);
            }
            _ => {}
        }
        if matches!(self, Self::Refused(_)) && status == StatusCode::BAD_REQUEST {
            // The beginning of the next request is ambiguous as well (RFC 9112 §11.2).
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

fn reason_phrase(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}

/// Why there was no response from the upstream, for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureReason {
    Refused,
    Loop,
    Upload,
    Busy,
    Unreachable,
    ConnectTimedOut,
    Silent,
    Closed,
    Malformed,
}

impl FailureReason {
    /// The names used in metrics, in the order of the variants.
    pub(crate) const NAMES: [&'static str; 9] = [
        "refused",
        "loop",
        "request-body",
        "busy",
        "unreachable",
        "connect-timeout",
        "response-timeout",
        "closed",
        "malformed",
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use eyas_relay::proxy_status::PROXY_STATUS;

    #[test]
    fn responses_have_a_reason_without_addresses() {
        let failure = UpstreamFailure::Unreachable(
            ErrorType::ConnectionRefused,
            "10.1.2.3:3000 refused it".to_owned(),
        );
        let response = failure.response();
        assert_eq!(response.status(), 502);
        let text = String::from_utf8_lossy(response.body());
        assert!(text.contains("502 Bad Gateway") && text.contains("cannot be reached"), "{text}");
        assert!(!text.contains("10.1.2.3"), "{text}");
        let status = response.headers()[PROXY_STATUS].to_str().expect("printable ASCII");
        assert!(
            status.starts_with("eyas; error=connection_refused; details=\"The app"),
            "{status}"
        );
        assert!(!status.contains("10.1.2.3"), "{status}");
        assert_eq!(UpstreamFailure::Silent(Duration::from_secs(1)).response().status(), 504);
        assert!(UpstreamFailure::Busy(7).response().headers().contains_key("retry-after"));
    }
}
