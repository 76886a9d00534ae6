//! A response, its body still to be read.

use bytes::Bytes;
use eyas::{ConnectionInfo, race::trace::Trace};
use http::{HeaderMap, StatusCode, Version, header::CONTENT_LENGTH};
use url::Url;

use super::{Redirect, report::Exchanged};
use crate::{Body, Error, Kind};

/// A response whose head has arrived. Its body streams; dropping it gives up the rest.
#[derive(Debug)]
pub struct Response {
    inner: http::Response<Body>,
    exchanged: Exchanged,
}

impl Response {
    pub(super) fn new((inner, exchanged): (http::Response<Body>, Exchanged)) -> Self {
        Self { inner, exchanged }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// The header fields, after decompression: `Content-Encoding` and `Content-Length` are gone if
    /// they no longer hold.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// The version of HTTP that carried it.
    pub fn version(&self) -> Version {
        self.inner.version()
    }

    /// Where it came from, after redirects.
    pub fn url(&self) -> &Url {
        &self.exchanged.url
    }

    /// How many redirects led here.
    pub fn redirects(&self) -> usize {
        self.exchanged.redirected.len()
    }

    /// The redirects that led here, in the order in which they were followed.
    pub fn redirected(&self) -> &[Redirect] {
        &self.exchanged.redirected
    }

    /// What its `Content-Length` says, if it has one that holds.
    pub fn content_length(&self) -> Option<u64> {
        self.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// The connection that carried it: transport, addresses, security, timings, reasons. Through a
    /// proxy it is the connection to the proxy, and the reasons say so.
    pub fn connection(&self) -> &ConnectionInfo {
        self.exchanged.report.info()
    }

    /// Whether the connection had carried an earlier request.
    pub fn connection_was_reused(&self) -> bool {
        self.exchanged.reused
    }

    /// The race that led to the connection, as far as it has run by now: a late switch may still
    /// be under way.
    pub fn trace(&self) -> Trace {
        self.exchanged.report.trace()
    }

    /// The next chunk of the body, or `None` at its end.
    ///
    /// # Errors
    /// As [`Body::chunk`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.inner.body_mut().chunk().await
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`Body::chunk`].
    pub async fn bytes(self) -> Result<Bytes, Error> {
        self.inner.into_body().bytes().await
    }

    /// The whole body as text; octets that are not UTF-8 become replacement characters.
    ///
    /// # Errors
    /// As [`Body::chunk`].
    pub async fn text(self) -> Result<String, Error> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The whole body, read as JSON.
    ///
    /// # Errors
    /// As [`Body::chunk`], and [`Kind::BodyJson`] if it is other JSON than `T` wants, or none.
    #[cfg(feature = "json")]
    pub async fn json<T: serde::de::DeserializeOwned>(self) -> Result<T, Error> {
        let url = self.exchanged.url.clone();
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::from_source(Kind::BodyJson, error).at(&url))
    }

    /// The response, unless its status says that the request failed (4xx, 5xx).
    ///
    /// # Errors
    /// [`Kind::Status`], with the [status](Error::status) and the URL after redirects.
    pub fn error_for_status(self) -> Result<Self, Error> {
        let status = self.status();
        if status.is_client_error() || status.is_server_error() {
            let error = Error::new(Kind::Status, format!("it answered {status}"));
            return Err(error.with_status(status).at(self.url()));
        }
        Ok(self)
    }

    /// The body, to be read by other means.
    pub fn into_body(self) -> Body {
        self.inner.into_body()
    }

    /// The body, while the head stays at hand.
    pub fn body_mut(&mut self) -> &mut Body {
        self.inner.body_mut()
    }

    /// The response in the terms of the `http` crate.
    pub fn into_http(self) -> http::Response<Body> {
        self.inner
    }
}
