//! A response whose body has yet to be read.

use bytes::Bytes;
use eyas::{ConnectionInfo, race::trace::Trace};
use http::{HeaderMap, StatusCode, Version, header::CONTENT_LENGTH};
use hyper::ext::ReasonPhrase;
use url::Url;

use super::{
    Redirect,
    report::{Encoded, Exchanged, Reuse},
};
use crate::{Body, Error, Kind};

/// A response whose head has arrived. Its body is streamed; dropping the response discards the
/// rest.
#[derive(Debug)]
pub struct Response {
    inner: http::Response<Body>,
    exchanged: Exchanged,
}

impl Response {
    pub(super) fn new((inner, exchanged): (http::Response<Body>, Exchanged)) -> Self {
        Self { inner, exchanged }
    }

    /// Returns the status code.
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// Returns the header fields after decompression: `Content-Encoding` and `Content-Length` are
    /// removed if they no longer apply.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns the header fields as the server sent them, before decompression.
    pub fn received_headers(&self) -> &HeaderMap {
        self.exchanged.encoded.as_ref().map_or_else(|| self.headers(), |encoded| &encoded.headers)
    }

    /// Returns how many octets of the body have been read so far, before decompression; `None` if the
    /// body is not decompressed.
    pub fn encoded_length(&self) -> Option<u64> {
        self.exchanged.encoded.as_ref().map(Encoded::octets)
    }

    /// Returns the reason phrase of the status line, over HTTP/1, if it is not the usual one for the
    /// status (RFC 9112 §4).
    pub fn reason_phrase(&self) -> Option<&[u8]> {
        self.inner.extensions().get::<ReasonPhrase>().map(ReasonPhrase::as_bytes)
    }

    /// Returns the version of HTTP that carried the response.
    pub fn version(&self) -> Version {
        self.inner.version()
    }

    /// Returns the URL of the response, after redirects.
    pub fn url(&self) -> &Url {
        &self.exchanged.url
    }

    /// Returns the number of redirects that were followed.
    pub fn redirects(&self) -> usize {
        self.exchanged.redirected.len()
    }

    /// Returns the redirects that were followed, in order.
    pub fn redirected(&self) -> &[Redirect] {
        &self.exchanged.redirected
    }

    /// Returns the value of `Content-Length`, if there is one that applies.
    pub fn content_length(&self) -> Option<u64> {
        self.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Returns the connection: transport, addresses, security, timings, reasons. Through a proxy it
    /// is the connection to the proxy, as the reasons say.
    pub fn connection(&self) -> &ConnectionInfo {
        self.exchanged.report.info()
    }

    /// Returns whether the connection had carried an earlier request.
    pub fn connection_was_reused(&self) -> bool {
        self.exchanged.reused
    }

    /// Returns how a connection from the pool fared, if the request was given one, even if a new one
    /// took its place.
    pub fn reuse(&self) -> Option<&Reuse> {
        self.exchanged.reuse.as_ref()
    }

    /// Returns the trace so far of the race that led to the connection: a late switch may still be
    /// in progress.
    pub fn trace(&self) -> Trace {
        self.exchanged.report.trace()
    }

    /// Returns the next chunk of the body, or `None` at its end.
    ///
    /// # Errors
    /// The same as for [`Body::chunk`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.inner.body_mut().chunk().await
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// The same as for [`Body::chunk`].
    pub async fn bytes(self) -> Result<Bytes, Error> {
        self.inner.into_body().bytes().await
    }

    /// Returns the whole body as text; invalid UTF-8 is replaced by replacement characters.
    ///
    /// # Errors
    /// The same as for [`Body::chunk`].
    pub async fn text(self) -> Result<String, Error> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the whole body, deserialised from JSON.
    ///
    /// # Errors
    /// The same as for [`Body::chunk`], and [`Kind::BodyJson`] if the body is not valid JSON for
    /// `T`.
    #[cfg(feature = "json")]
    pub async fn json<T: serde::de::DeserializeOwned>(self) -> Result<T, Error> {
        let url = self.exchanged.url.clone();
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::from_source(Kind::BodyJson, error).with_url(&url))
    }

    /// Returns an error if the status is a client or server error (4xx, 5xx), and the response
    /// otherwise.
    ///
    /// # Errors
    /// [`Kind::Status`], with the [status](Error::status) and the URL after redirects.
    pub fn error_for_status(self) -> Result<Self, Error> {
        let status = self.status();
        if status.is_client_error() || status.is_server_error() {
            let error = Error::new(Kind::Status, format!("it answered {status}"));
            return Err(error.with_status(status).with_url(self.url()));
        }
        Ok(self)
    }

    /// Converts the response into its body.
    pub fn into_body(self) -> Body {
        self.inner.into_body()
    }

    /// Returns a mutable reference to the body.
    pub fn body_mut(&mut self) -> &mut Body {
        self.inner.body_mut()
    }

    /// Converts the response into one of the `http` crate.
    pub fn into_http(self) -> http::Response<Body> {
        self.inner
    }
}
