//! Builds a request.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header::AUTHORIZATION};
use url::Url;

use super::{Client, Response, credentials, exchange, limits::Limits};
use crate::{Body, Error, Kind, destination, protocol::Omitted};

/// Builds a request. Errors in it are returned by [`send`](Self::send).
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Client,
    method: Method,
    url: Result<Url, Error>,
    headers: HeaderMap,
    omitted: Omitted,
    body: Body,
    limits: Limits,
}

impl RequestBuilder {
    pub(super) fn new(client: Client, method: Method, url: &str) -> Self {
        let url = destination::parse(url);
        let limits = client.inner().config.limits;
        let (headers, omitted) = (HeaderMap::new(), Omitted::default());
        Self { client, method, url, headers, omitted, body: Body::empty(), limits }
    }

    /// Adds a header field; several with the same name are all sent.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => {
                self.headers.append(name, value);
            }
            (Err(_), _) => self.refuse("the name of a header field is invalid"),
            (_, Err(_)) => self.refuse("the value of a header field is invalid"),
        }
        self
    }

    /// Sets header fields, replacing those with the same names.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        for name in headers.keys() {
            self.headers.remove(name);
        }
        self.headers.extend(headers);
        self
    }

    /// Omits a header field that the client would otherwise add, such as `Accept`. A field that is
    /// set here is sent nevertheless.
    pub fn without_header(mut self, name: HeaderName) -> Self {
        self.omitted.0.push(name);
        self
    }

    /// Sets the body. A body in memory or from a file can be sent again after a redirect; another
    /// stream cannot.
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets basic authentication (RFC 7617). A name that contains a colon is an error.
    pub fn basic_auth(self, name: impl AsRef<str>, password: Option<&str>) -> Self {
        let name = name.as_ref().as_bytes();
        let value = credentials::basic(name, password.unwrap_or_default().as_bytes());
        self.authorized(value, "a name with a colon cannot be sent")
    }

    /// Sets bearer authentication (RFC 6750).
    pub fn bearer_auth(self, token: impl AsRef<str>) -> Self {
        self.authorized(credentials::bearer(token.as_ref()), "the token cannot be sent in a field")
    }

    fn authorized(mut self, value: Option<HeaderValue>, error: &str) -> Self {
        match value {
            Some(value) => _ = self.headers.insert(AUTHORIZATION, value),
            None => self.refuse(error),
        }
        self
    }

    /// Adds parameters to the query of the URL. `query` must serialise to pairs: a sequence of
    /// pairs, a map or a struct.
    #[cfg(feature = "form")]
    pub fn query<T: serde::Serialize + ?Sized>(mut self, query: &T) -> Self {
        let Ok(url) = &mut self.url else { return self };
        let serialised = query
            .serialize(serde_urlencoded::Serializer::new(&mut url.query_pairs_mut()))
            .map(|_| ());
        if url.query() == Some("") {
            url.set_query(None);
        }
        if let Err(error) = serialised {
            self.refuse(&format!("the query cannot be serialised: {error}"));
        }
        self
    }

    /// Sets the body to `form`, serialised as an HTML form (`application/x-www-form-urlencoded`).
    #[cfg(feature = "form")]
    pub fn form<T: serde::Serialize + ?Sized>(self, form: &T) -> Self {
        let serialised = serde_urlencoded::to_string(form);
        self.serialised_body(serialised.map(Body::from), "application/x-www-form-urlencoded")
    }

    /// Sets the body to `value` as JSON (`application/json`).
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(self, value: &T) -> Self {
        let serialised = serde_json::to_vec(value);
        self.serialised_body(serialised.map(Body::from), "application/json")
    }

    /// Sets the body to this form and its content type to `multipart/form-data`.
    #[cfg(feature = "multipart")]
    pub fn multipart(mut self, form: crate::multipart::Form) -> Self {
        match form.encode() {
            Some((content_type, body)) => {
                self.body = body;
                self.headers.insert(http::header::CONTENT_TYPE, content_type);
            }
            None => self.refuse("the system provides no randomness for the boundary of the form"),
        }
        self
    }

    /// Sets a serialised body; a content type set by the caller is kept.
    #[cfg(any(feature = "form", feature = "json"))]
    fn serialised_body(
        mut self,
        body: Result<Body, impl std::fmt::Display>,
        content: &'static str,
    ) -> Self {
        use http::header::CONTENT_TYPE;
        match body {
            Ok(body) => self.body = body,
            Err(error) => self.refuse(&format!("the body cannot be serialised: {error}")),
        }
        self.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content));
        self
    }

    /// Overrides the client's maximum number of redirects to follow. With 0, redirects are returned
    /// like any other response.
    pub fn redirects(mut self, limit: usize) -> Self {
        self.limits.redirects = limit;
        self
    }

    /// Overrides how long the request may wait for its connection. Without a limit, the race's
    /// deadline applies.
    pub fn connect_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limits.connect = limit.into();
        self
    }

    /// Overrides the time limit of the whole exchange, from the call to the last byte of the body.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limits.total = limit.into();
        self
    }

    /// Overrides how long the peer may be silent, before the response and between chunks of its
    /// body.
    pub fn idle_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limits.idle = limit.into();
        self
    }

    /// Sends the request, follows redirects, and returns the response as soon as its head has
    /// arrived.
    ///
    /// # Errors
    /// An [`Error`] that names the URL, the candidate if there was one, the cause and what to do
    /// next.
    pub async fn send(self) -> Result<Response, Error> {
        let url = self.url?;
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.headers_mut() = self.headers;
        if !self.omitted.0.is_empty() {
            request.extensions_mut().insert(self.omitted);
        }
        exchange::run(self.client.inner(), request, url.clone(), self.limits)
            .await
            .map(Response::new)
            .map_err(|error| error.with_url(&url))
    }

    fn refuse(&mut self, why: &str) {
        if self.url.is_ok() {
            self.url = Err(Error::new(Kind::Request, why));
        }
    }
}
