//! What it means that a request got no response on its connection.

use std::future::Future;

use eyas::race::evidence::FailureCause;
use eyas_http::{Http3Failure, Http3FailureKind};
use eyas_relay::proxy_status::ErrorType;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;

use crate::failure::UpstreamFailure;
use crate::received::ReceivedBody;
use crate::request_body::{UploadBody, UploadProgress};
use crate::validation::RequestRejection;

/// An attempt without a response.
pub(crate) struct FailedAttempt {
    pub(crate) failure: UpstreamFailure,
    /// The request, if none of it was written.
    pub(crate) unsent: Option<Box<Request<UploadBody>>>,
    pub(crate) fate: RequestFate,
    /// What is to be remembered of the path to the upstream, if that is the cause.
    pub(crate) cause: Option<FailureCause>,
}

/// What became of a request that got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFate {
    /// A second attempt is of no use.
    Final,
    /// Its connection or its stream ended: the upstream may have processed it.
    Ended,
    /// The upstream stated that it did not process it (RFC 9114 §4.1.1, §5.2).
    Unprocessed,
}

const HEAD_TOO_LARGE: UpstreamFailure = UpstreamFailure::Refused(RequestRejection {
    status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    text: "The fields of the request are larger than the application behind this server accepts.",
});

impl FailedAttempt {
    pub(crate) fn new(failure: UpstreamFailure) -> Self {
        Self { failure, unsent: None, fate: RequestFate::Final, cause: None }
    }

    /// Returns the attempt for a connection that ended before anything of the request was written.
    pub(crate) fn unsent(request: Request<UploadBody>, why: String) -> Self {
        let unsent = Some(Box::new(request));
        Self { unsent, fate: RequestFate::Ended, ..Self::new(UpstreamFailure::Closed(why)) }
    }

    /// Returns the attempt that ended with an error of hyper's.
    pub(crate) fn from_hyper(
        error: &hyper::Error,
        unsent: Option<Request<UploadBody>>,
        upload: &UploadProgress,
    ) -> Self {
        let (failure, fate) = match upload.error() {
            Some(error) => (UpstreamFailure::Upload(error), RequestFate::Final),
            None if error.is_parse() => (malformed(describe(error)), RequestFate::Final),
            None => (UpstreamFailure::Closed(describe(error)), RequestFate::Ended),
        };
        Self { failure, unsent: unsent.map(Box::new), fate, cause: None }
    }

    /// Returns the attempt that ended with a failure of HTTP/3.
    pub(crate) fn from_http3(
        failed: &Http3Failure,
        unsent: Option<Request<UploadBody>>,
        upload: &UploadProgress,
    ) -> Self {
        let detail = || failed.error.detail().to_owned();
        let (failure, fate) = match (upload.error(), failed.kind) {
            (Some(error), _) => (UpstreamFailure::Upload(error), RequestFate::Final),
            (None, Http3FailureKind::Malformed) => (malformed(detail()), RequestFate::Final),
            (None, Http3FailureKind::TooLarge) => (HEAD_TOO_LARGE, RequestFate::Final),
            (None, Http3FailureKind::Unprocessed) => {
                (UpstreamFailure::Closed(detail()), RequestFate::Unprocessed)
            }
            (None, _) => (UpstreamFailure::Closed(detail()), RequestFate::Ended),
        };
        Self { failure, unsent: unsent.map(Box::new), fate, cause: failed.cause }
    }
}

/// Waits for a response of hyper's.
pub(crate) async fn sent(
    sending: impl Future<Output = Result<Response<Incoming>, TrySendError<Request<UploadBody>>>>,
    upload: &UploadProgress,
) -> Result<Response<ReceivedBody>, FailedAttempt> {
    let sent = sending.await.map_err(|mut error| {
        let request = error.take_message();
        FailedAttempt::from_hyper(&error.into_error(), request, upload)
    });
    sent.map(|response| response.map(ReceivedBody::Hyper))
}

/// Returns the failure for a response that violates HTTP.
pub(crate) fn malformed(text: impl Into<String>) -> UpstreamFailure {
    UpstreamFailure::Malformed(ErrorType::HttpProtocolError, text.into())
}

/// Returns hyper's text with its cause.
pub(crate) fn describe(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
