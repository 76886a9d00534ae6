//! Response bodies from hyper, and the meaning of hyper's errors.

use std::{error::Error as StdError, io};

use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{MAX_HEAD_BYTES, MAX_HEAD_FIELDS, TooManyInformational, alert};
use crate::{Body, Error, Kind};

pub(super) fn from_hyper(body: Incoming) -> Body {
    Body::boxed(body.map_err(body_error))
}

/// Returns the first error of this type in the chain.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        // Skip the I/O error itself and use the error inside it.
        next = match error.downcast_ref().and_then(io::Error::get_ref) {
            Some(cause) => Some(cause),
            None => error.source(),
        };
    }
    None
}

/// Converts an error that occurred before the head of the response.
pub(super) fn request_error(error: hyper::Error) -> Error {
    // The error of our own body source is the cause, not the connection.
    if let Some(own) = find::<Error>(&error) {
        return Error::new(own.kind(), own.detail().to_owned());
    }
    if let Some(too_many) = find::<TooManyInformational>(&error) {
        return (*too_many).into();
    }
    if let Some(rustls::Error::AlertReceived(alert)) = find(&error)
        && let Some(rejected) = alert::from_alert(*alert)
    {
        return rejected;
    }
    let detail = find::<io::Error>(&error).map(io::Error::kind);
    match detail {
        _ if error.is_incomplete_message() => {
            let why = "the peer closed the connection before it answered";
            Error::new(Kind::Protocol, why).with_empty_reply()
        }
        Some(io::ErrorKind::ConnectionReset) => {
            Error::new(Kind::Protocol, "the peer reset the connection before it answered")
        }
        _ if error.is_parse_too_large() => {
            let kib = MAX_HEAD_BYTES / 1024;
            let why = format!(
                "the head of its response exceeds the limits for HTTP/1.1: {MAX_HEAD_FIELDS} fields \
                 and {kib} KiB, or its Content-Length is larger than any body"
            );
            Error::new(Kind::Protocol, why)
        }
        _ => Error::from_source(Kind::Protocol, error),
    }
}

/// Returns whether an HTTP/2 peer has stated that it did not process the request (RFC 9113 §8.7):
/// by REFUSED_STREAM, or by a GOAWAY that excludes the stream.
pub(super) fn is_unprocessed(error: &hyper::Error) -> bool {
    find::<h2::Error>(error).is_some_and(|error| {
        error.reason() == Some(h2::Reason::REFUSED_STREAM)
            || (error.is_go_away()
                && error.is_remote()
                && error.reason() == Some(h2::Reason::NO_ERROR))
    })
}

/// Converts an error that occurred in the body.
fn body_error(error: hyper::Error) -> Error {
    let kind = match (find::<h2::Error>(&error), find::<io::Error>(&error).map(io::Error::kind)) {
        // A protocol error that the library itself detects within a body concerns the length.
        (Some(cause), _)
            if cause.is_library() && cause.reason() == Some(h2::Reason::PROTOCOL_ERROR) =>
        {
            Kind::BodyLength
        }
        (Some(cause), _) if cause.is_reset() || cause.is_go_away() => Kind::BodyReset,
        _ if error.is_incomplete_message() => Kind::BodyTruncated,
        (_, Some(io::ErrorKind::UnexpectedEof)) => Kind::BodyTruncated,
        (_, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)) => Kind::Protocol,
        _ => Kind::BodyReset,
    };
    Error::from_source(kind, error)
}
