//! A request in the making.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use url::Url;

use super::{Client, Response, exchange, limits::Limits};
use crate::{Body, Error, Kind, destination};

/// A request in the making. What is wrong with it is said by [`send`](Self::send).
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Client,
    method: Method,
    url: Result<Url, Error>,
    headers: HeaderMap,
    body: Body,
    limits: Limits,
}

impl RequestBuilder {
    pub(super) fn new(client: Client, method: Method, url: &str) -> Self {
        let url = destination::parse(url);
        let limits = client.inner().config.limits;
        Self { client, method, url, headers: HeaderMap::new(), body: Body::empty(), limits }
    }

    /// Adds a header field; several of one name are all sent.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => {
                self.headers.append(name, value);
            }
            (Err(_), _) => self.refuse("a header field's name is none"),
            (_, Err(_)) => self.refuse("a header field's value is none"),
        }
        self
    }

    /// Sets header fields, in place of what was there under their names.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        for name in headers.keys() {
            self.headers.remove(name);
        }
        self.headers.extend(headers);
        self
    }

    /// Sets the body. What is in memory can follow a redirect that asks for it again; a stream
    /// cannot.
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// How many redirects are followed, in place of what the client says. With 0 a redirect is a
    /// response like any other.
    pub fn redirects(mut self, limit: usize) -> Self {
        self.limits.redirects = limit;
        self
    }

    /// How long the request may wait for its connection, in place of what the client says; without a
    /// limit the race's own deadline holds.
    pub fn connect_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limits.connect = limit.into();
        self
    }

    /// How long the exchange may take in all, from the call to the last byte of the body, in place of
    /// what the client says.
    pub fn total_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limits.total = limit.into();
        self
    }

    /// How long the peer may be silent, before the response and between chunks of its body, in place
    /// of what the client says.
    pub fn idle_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limits.idle = limit.into();
        self
    }

    /// Sends the request, follows redirects, and gives the response as soon as its head is here.
    ///
    /// # Errors
    /// An [`Error`] that names the URL, the candidate if there was one, the cause and what to do.
    pub async fn send(self) -> Result<Response, Error> {
        let url = self.url?;
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.headers_mut() = self.headers;
        exchange::run(self.client.inner(), request, url.clone(), self.limits)
            .await
            .map(Response::new)
            .map_err(|error| error.at(&url))
    }

    fn refuse(&mut self, why: &str) {
        if self.url.is_ok() {
            self.url = Err(Error::new(Kind::Request, why));
        }
    }
}
