//! The HTTP client.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use eyas::race::{
    candidate::Transport,
    policy::{DEADLINE_MAX, Policy},
};
use eyas_http::{HttpPolicy, Proxy, RequestBuilder, Versions};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pyo3::prelude::*;

use crate::{
    awaitable::{Awaitable, awaitable},
    body,
    cookies::Cookies,
    endpoint::Endpoint,
    error::{duration, http_error, request_error, value_error},
    options,
    response::RawResponse,
    runtime::{Owned, runtime},
    wait::wait,
};

/// How long a race with the client's own limit may exceed it, in seconds: a race that ends by itself reports every
/// candidate, while a request that is cut off reports none.
const MARGIN: f64 = 1.0;

/// Header fields in the order in which they are sent.
type Fields = Vec<(String, Bytes)>;

/// The options of a client, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct ClientOptions {
    policy: String,
    http1: bool,
    http2: bool,
    http3: bool,
    /// The allowed transports; by default, all that carry the enabled versions.
    transports: Option<Vec<String>>,
    /// The cookies, if they are kept.
    cookies: Option<Py<PyAny>>,
    /// The URL of a proxy for all requests.
    proxy: Option<String>,
    /// Whether to use the proxies of the environment.
    trust_env: bool,
    max_body: Option<u64>,
    /// The default connect timeout of requests, in seconds.
    connect: Option<f64>,
}

impl ClientOptions {
    fn builder(self, cookies: Option<&Arc<Cookies>>) -> PyResult<eyas_http::ClientBuilder> {
        let policy = HttpPolicy::from_name(&self.policy).ok_or_else(|| {
            let names = HttpPolicy::ALL.map(HttpPolicy::name).join(", ");
            value_error(format_args!("unknown policy {:?}; choose from {names}", self.policy))
        })?;
        let versions = Versions { http1: self.http1, http2: self.http2, http3: self.http3 };
        let proxy = match self.proxy {
            Some(url) => Proxy::all(url, ""),
            None if self.trust_env => Proxy::from_env(),
            None => Proxy::none(),
        };
        let mut builder =
            eyas_http::Client::builder().policy(policy).versions(versions).proxy(proxy);
        if let Some(cookies) = cookies {
            builder = builder.cookie_store(Arc::<Cookies>::clone(cookies));
        }
        let mut race = Policy::default();
        if let Some(names) = self.transports {
            race.transports = transports(&names)?;
        }
        if let Some(seconds) = self.connect {
            race.deadline = duration(seconds)?.min(DEADLINE_MAX);
        }
        builder = builder.race(race.validated().map_err(value_error)?);
        if let Some(bytes) = self.max_body {
            builder = builder.max_body(bytes);
        }
        Ok(builder)
    }
}

/// A request, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct Request<'py> {
    method: String,
    url: String,
    headers: Fields,
    body: Option<Bound<'py, PyAny>>,
    redirects: usize,
    /// Timeouts in seconds: for the connection, between two reads, and for the whole exchange.
    connect: Option<f64>,
    idle: Option<f64>,
    total: Option<f64>,
    /// The length of a body that is an iterable, if it is known.
    length: Option<u64>,
    /// Whether that iterable can be iterated over again.
    is_repeatable: bool,
    /// Whether there may be cookies for any server.
    has_cookies: bool,
}

/// Parses the names of transports.
pub(crate) fn transports(names: &[String]) -> PyResult<Vec<Transport>> {
    let parse = |name: &String| {
        Transport::from_name(name).ok_or_else(|| {
            let names = Transport::ALL.map(Transport::name).join(", ");
            value_error(format_args!("unknown transport {name:?}; choose from {names}"))
        })
    };
    names.iter().map(parse).collect()
}

fn header_map(fields: Fields) -> PyResult<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            request_error(format_args!("{name:?} is not a valid header field name"))
        })?;
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| {
            request_error(format_args!("the value of {name} is not valid in a header field"))
        })?;
        headers.append(parsed, value);
    }
    Ok(headers)
}

/// An [`eyas_http::Client`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct HttpClient {
    client: Owned<eyas_http::Client>,
    cookies: Option<Arc<Cookies>>,
    /// The time limit of its races, in seconds.
    connect: Option<f64>,
}

impl HttpClient {
    fn request(&self, options: &Bound<'_, PyAny>) -> PyResult<RequestBuilder> {
        let options: Request<'_> = options::read(options)?;
        let method = Method::from_bytes(options.method.as_bytes()).map_err(|_| {
            request_error(format_args!("{:?} is not an HTTP method", options.method))
        })?;
        let connect = match options.connect {
            Some(seconds) if self.connect == Some(seconds) => Some(seconds + MARGIN),
            other => other,
        };
        if options.has_cookies
            && let Some(cookies) = &self.cookies
        {
            cookies.in_use.store(true, Ordering::Relaxed);
        }
        Ok(self
            .client
            .get()?
            .request(method, options.url)
            .headers(header_map(options.headers)?)
            .body(body::from_python(options.body.as_ref(), options.length, options.is_repeatable)?)
            .redirects(options.redirects)
            .connect_timeout(connect.map(duration).transpose()?)
            .idle_timeout(options.idle.map(duration).transpose()?)
            .timeout(options.total.map(duration).transpose()?))
    }
}

async fn send(request: RequestBuilder) -> PyResult<RawResponse> {
    request.send().await.map(RawResponse::new).map_err(|error| http_error(&error))
}

#[pymethods]
impl HttpClient {
    #[new]
    fn new(py: Python<'_>, endpoint: &Endpoint, options: &Bound<'_, PyAny>) -> PyResult<Self> {
        let runtime = runtime()?;
        let options: ClientOptions = options::read(options)?;
        let connect = options.connect;
        let cookies = options.cookies.as_ref().map(|cookies| Arc::new(Cookies::new(py, cookies)));
        let builder = options.builder(cookies.as_ref())?.endpoint(endpoint.share()?);
        let client = py.detach(|| {
            let _context = runtime.enter();
            builder.build()
        });
        client
            .map(|client| Self { client: Owned::new(client), cookies, connect })
            .map_err(|error| http_error(&error))
    }

    /// Sends a request and waits for the head of its response.
    fn send(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<RawResponse> {
        let request = self.request(request)?;
        wait(py, send(request))
    }

    /// The awaitable form of `send`.
    fn asend(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<Awaitable> {
        let request = self.request(request)?;
        awaitable(py, send(request))
    }
}
