//! The HTTP client.

use bytes::Bytes;
use eyas::race::{
    candidate::Transport,
    policy::{DEADLINE_MAX, Policy},
};
use eyas_http::{HttpPolicy, Proxy, RequestBuilder, Versions};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pyo3::prelude::*;

use crate::{
    body,
    endpoint::Endpoint,
    failure::{duration, of_http, of_value},
    response::RawResponse,
    runtime::{Owned, runtime},
    wait::{awaitable, wait},
};

/// What a race may take longer than the caller allows, in seconds: it ends by itself, and its error names
/// every candidate, unlike that of a limit which cuts it off.
const MARGIN: f64 = 1.0;

/// Header fields in the order in which they are sent.
type Fields = Vec<(String, Bytes)>;

/// What a client is made of, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Setup {
    policy: String,
    http1: bool,
    http2: bool,
    http3: bool,
    /// Transports that may be used; all that carry the versions, if none is named.
    transports: Option<Vec<String>>,
    headers: Fields,
    cookies: bool,
    /// The URL of a proxy for everything.
    proxy: Option<String>,
    /// Whether the environment names proxies.
    trust_env: bool,
    max_body: Option<u64>,
    /// Seconds to wait for a connection, unless a request says otherwise.
    connect: Option<f64>,
}

impl Setup {
    fn builder(self) -> PyResult<eyas_http::ClientBuilder> {
        let policy = HttpPolicy::from_name(&self.policy).ok_or_else(|| {
            let names = HttpPolicy::ALL.map(HttpPolicy::name).join(", ");
            of_value(format_args!("no policy is called {:?}; there are {names}", self.policy))
        })?;
        let versions = Versions { http1: self.http1, http2: self.http2, http3: self.http3 };
        let proxy = match self.proxy {
            Some(url) => Proxy::all(url, ""),
            None if self.trust_env => Proxy::from_env(),
            None => Proxy::none(),
        };
        let mut builder = eyas_http::Client::builder()
            .policy(policy)
            .versions(versions)
            .cookies(self.cookies)
            .proxy(proxy)
            .default_headers(header_map(self.headers)?);
        let mut race = Policy::default();
        if let Some(names) = self.transports {
            race.transports = transports(&names)?;
        }
        if let Some(seconds) = self.connect {
            race.deadline = duration(seconds)?.min(DEADLINE_MAX);
        }
        builder = builder.race(race.validated().map_err(of_value)?);
        if let Some(bytes) = self.max_body {
            builder = builder.max_body(bytes);
        }
        Ok(builder)
    }
}

/// One request, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Request<'py> {
    method: String,
    url: String,
    headers: Fields,
    body: Option<Bound<'py, PyAny>>,
    redirects: usize,
    /// Seconds to wait for a connection, for the peer, and in all.
    connect: Option<f64>,
    idle: Option<f64>,
    total: Option<f64>,
}

/// The transports of these names.
pub(crate) fn transports(names: &[String]) -> PyResult<Vec<Transport>> {
    let named = |name: &String| {
        Transport::from_name(name).ok_or_else(|| {
            let known = Transport::ALL.map(Transport::name).join(", ");
            of_value(format_args!("no transport is called {name:?}; there are {known}"))
        })
    };
    names.iter().map(named).collect()
}

fn header_map(fields: Fields) -> PyResult<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed =
            parsed.map_err(|_| of_value(format_args!("{name:?} is no name of a header field")))?;
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| {
            of_value(format_args!("the value of {name} is none for a header field"))
        })?;
        headers.append(parsed, value);
    }
    Ok(headers)
}

/// An [`eyas_http::Client`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct HttpClient {
    client: Owned<eyas_http::Client>,
    /// The limit that its races keep to.
    connect: Option<f64>,
}

impl HttpClient {
    fn request(&self, wanted: Request<'_>) -> PyResult<RequestBuilder> {
        let method = Method::from_bytes(wanted.method.as_bytes())
            .map_err(|_| of_value(format_args!("{:?} is no method", wanted.method)))?;
        let connect = match wanted.connect {
            Some(seconds) if self.connect == Some(seconds) => Some(seconds + MARGIN),
            other => other,
        };
        Ok(self
            .client
            .request(method, wanted.url)
            .headers(header_map(wanted.headers)?)
            .body(body::of(wanted.body.as_ref())?)
            .redirects(wanted.redirects)
            .connect_timeout(connect.map(duration).transpose()?)
            .idle_timeout(wanted.idle.map(duration).transpose()?)
            .total_timeout(wanted.total.map(duration).transpose()?))
    }
}

async fn answer(request: RequestBuilder) -> PyResult<RawResponse> {
    request.send().await.map(RawResponse::new).map_err(|error| of_http(&error))
}

#[pymethods]
impl HttpClient {
    #[new]
    fn new(py: Python<'_>, endpoint: &Endpoint, setup: Setup) -> PyResult<Self> {
        let runtime = runtime()?;
        let connect = setup.connect;
        let builder = setup.builder()?.endpoint(endpoint.share());
        let made = py.detach(|| {
            let _inside = runtime.enter();
            builder.build()
        });
        made.map(|client| Self { client: Owned::new(client), connect })
            .map_err(|error| of_http(&error))
    }

    /// Sends a request and waits for the head of its response.
    fn send(&self, py: Python<'_>, request: Request<'_>) -> PyResult<RawResponse> {
        let request = self.request(request)?;
        wait(py, answer(request))
    }

    /// The same, to be awaited.
    fn asend<'py>(&self, py: Python<'py>, request: Request<'py>) -> PyResult<Bound<'py, PyAny>> {
        let request = self.request(request)?;
        awaitable(py, answer(request))
    }
}
