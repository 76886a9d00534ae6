//! A server over HTTP/1.1, 2 and 3 on one port whose responses the test determines.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use eyas::{
    Connection, Endpoint, ListenParameters, Listener, Resolver, SecurityParameters, ServerIdentity,
    race::{candidate::Transport, policy::Policy},
};
use eyas_http::{Client, ClientBuilder, Proxy};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use crate::ports::own_port;

/// The name of every server of the tests.
pub(crate) const NAME: &str = "a.example";

/// Longer than anything on loopback takes, shorter than the limit of a test run.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub version: Version,
    pub method: Method,
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The response of the server.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub chunks: Vec<Bytes>,
    pub end: End,
}

/// The end of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// After [`Site::reset`], because a reset discards data in flight.
    Reset,
    Never,
    /// Not even the head is sent.
    Headless,
}

impl Reply {
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self { status: 200, headers: Vec::new(), chunks: vec![text.into()], end: End::Whole }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), chunks: Vec::new(), end: End::Whole }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    fn head<B>(&self, body: B) -> Response<B> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        response.body(body).expect("a response")
    }
}

type Handler = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// A running server; dropping it stops it with all its connections.
pub(crate) struct Site {
    pub address: SocketAddr,
    pub identity: ServerIdentity,
    log: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    live: Arc<Mutex<Vec<AbortHandle>>>,
    resets: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

/// The configuration of a server. Its port is reserved over TCP and UDP: where the server does not
/// listen, nothing does, unless the test starts something there.
pub(crate) struct Plan {
    pub transports: Vec<Transport>,
    pub alpn: Vec<&'static str>,
    pub identity: Option<ServerIdentity>,
    pub tls: bool,
    pub port: u16,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            transports: vec![Transport::Tcp, Transport::Quic],
            alpn: vec!["h3", "h2", "http/1.1"],
            identity: None,
            tls: true,
            port: own_port(),
        }
    }
}

impl Plan {
    pub(crate) fn tcp(alpn: &'static str) -> Self {
        Self { transports: vec![Transport::Tcp], alpn: vec![alpn], ..Self::default() }
    }

    pub(crate) fn quic() -> Self {
        Self { transports: vec![Transport::Quic], alpn: vec!["h3"], ..Self::default() }
    }

    pub(crate) fn plain() -> Self {
        Self { tls: false, ..Self::tcp("http/1.1") }
    }

    pub(crate) fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    pub(crate) fn identity(mut self, identity: &ServerIdentity) -> Self {
        self.identity = Some(identity.clone());
        self
    }

    pub(crate) async fn start(
        self,
        handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Site {
        let identity = self.identity.unwrap_or_else(|| identity(&[NAME]));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut parameters =
            ListenParameters::new(address).transports(self.transports).with_alpn(self.alpn);
        if self.tls {
            parameters = parameters.security(identity.clone());
        }
        let listener = Listener::bind(parameters).await.expect("a free port");
        let mut site = Site {
            address: listener.local_addr(),
            identity,
            log: Arc::default(),
            connections: Arc::default(),
            live: Arc::default(),
            resets: watch::Sender::new(false),
            _tasks: JoinSet::new(),
        };
        let resets = site.resets.subscribe();
        let (log, connections) = (Arc::clone(&site.log), Arc::clone(&site.connections));
        let (handler, live): (Handler, _) = (Arc::new(handler), Arc::clone(&site.live));
        site._tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let connection = listener.accept().await;
                connections.fetch_add(1, Ordering::SeqCst);
                let responder = Responder {
                    handler: Arc::clone(&handler),
                    log: Arc::clone(&log),
                    resets: resets.clone(),
                };
                let task = serving.spawn(serve(connection, responder));
                live.lock().expect("whole").push(task);
            }
        });
        site
    }
}

/// Starts an HTTP/3 server that accepts 0-RTT data, with its own session store.
pub(crate) fn start_early(
    identity: &ServerIdentity,
    port: u16,
    handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> Site {
    let mut tls = identity.server_config().expect("a configuration");
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.max_early_data_size = u32::MAX;
    let tls = quinn::crypto::rustls::QuicServerConfig::try_from(tls).expect("a cipher suite");
    let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    let endpoint = quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, port).into());
    let endpoint = endpoint.expect("a free port");
    let mut site = Site {
        address: endpoint.local_addr().expect("an address"),
        identity: identity.clone(),
        log: Arc::default(),
        connections: Arc::default(),
        live: Arc::default(),
        resets: watch::Sender::new(false),
        _tasks: JoinSet::new(),
    };
    let responder = Responder {
        handler: Arc::new(handler),
        log: Arc::clone(&site.log),
        resets: site.resets.subscribe(),
    };
    let connections = Arc::clone(&site.connections);
    site._tasks.spawn(async move {
        let mut serving = JoinSet::new();
        while let Some(incoming) = endpoint.accept().await {
            let responder = responder.clone();
            connections.fetch_add(1, Ordering::SeqCst);
            serving.spawn(async move {
                if let Ok(quic) = incoming.await {
                    serve_h3(quic, responder).await;
                }
            });
        }
    });
    site
}

/// Creates a certificate for these names and the loopback address.
pub(crate) fn identity(names: &[&str]) -> ServerIdentity {
    let names = names.iter().copied().chain(["127.0.0.1", "localhost"]);
    ServerIdentity::self_signed(names).expect("an identity")
}

impl Site {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{NAME}:{}{path}", self.address.port())
    }

    pub(crate) fn plain_url(&self, path: &str) -> String {
        format!("http://{NAME}:{}{path}", self.address.port())
    }

    /// Returns all requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.lock().expect("whole").clone()
    }

    pub(crate) fn versions(&self) -> Vec<Version> {
        self.seen().iter().map(|seen| seen.version).collect()
    }

    /// Returns the number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Sends the reset of every response that ends with one.
    pub(crate) fn reset(&self) {
        self.resets.send_replace(true);
    }

    /// Closes all connections at once, without notice at the level of HTTP.
    pub(crate) fn cut(&self) {
        for task in self.live.lock().expect("whole").drain(..) {
            task.abort();
        }
    }
}

/// Returns a client that trusts and resolves these servers, and ignores the environment.
pub(crate) fn client(sites: &[&Site]) -> Client {
    builder(sites).build().expect("a client")
}

pub(crate) fn builder(sites: &[&Site]) -> ClientBuilder {
    let ports: Vec<_> = sites.iter().map(|site| site.address.port()).collect();
    let identities: Vec<_> = sites.iter().map(|site| &site.identity).collect();
    builder_for(&ports, &identities)
}

pub(crate) fn builder_for(ports: &[u16], identities: &[&ServerIdentity]) -> ClientBuilder {
    // A busy machine is slow to answer, and second attempts would be counted, too.
    let race = Policy { second_tries: 0, ..Policy::default() };
    Client::builder().endpoint(endpoint(ports, identities)).proxy(Proxy::none()).race(race)
}

pub(crate) fn endpoint(ports: &[u16], identities: &[&ServerIdentity]) -> Endpoint {
    let unused = identity(&["unused.example"]);
    let roots = identities.iter().copied().chain([&unused]);
    let roots = roots.map(|identity| identity.certificate().clone());
    let mut resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
    for port in ports {
        for name in [NAME, "b.example"] {
            resolver = resolver.overriding(name, *port, vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        }
    }
    Endpoint::builder()
        .security(SecurityParameters::platform().with_roots(roots))
        .resolver(resolver)
        .build()
        .expect("an endpoint")
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[derive(Clone)]
struct Responder {
    handler: Handler,
    log: Arc<Mutex<Vec<Seen>>>,
    resets: watch::Receiver<bool>,
}

impl Responder {
    fn answer(&self, head: &Request<()>, body: Bytes) -> Reply {
        let seen = Seen {
            version: head.version(),
            method: head.method().clone(),
            target: head.uri().to_string(),
            headers: head.headers().clone(),
            body,
        };
        self.log.lock().expect("whole").push(seen.clone());
        (self.handler)(&seen)
    }
}

async fn serve(connection: Connection, responder: Responder) {
    match connection.quic().cloned() {
        Some(quic) => serve_h3(quic, responder).await,
        None => serve_stream(connection, responder).await,
    }
}

async fn serve_stream(connection: Connection, responder: Responder) {
    let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
        let responder = responder.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let reply = responder.answer(&Request::from_parts(head, ()), body);
            if reply.end == End::Headless {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(reply.head(hyper_body(&reply, responder.resets)))
        }
    });
    let stream = connection.into_stream().expect("a stream");
    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

type HyperBody =
    StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>>;

fn hyper_body(reply: &Reply, mut resets: watch::Receiver<bool>) -> HyperBody {
    use futures_util::StreamExt;
    let frames = reply.chunks.clone().into_iter().map(|chunk| Ok(Frame::data(chunk)));
    let frames = futures_util::stream::iter(frames);
    let end = match reply.end {
        End::Whole => futures_util::stream::empty().boxed(),
        End::Never | End::Headless => futures_util::stream::pending().boxed(),
        End::Reset => futures_util::stream::once(async move {
            let _ = resets.wait_for(|go| *go).await;
            Err(std::io::Error::other("reset on purpose"))
        })
        .boxed(),
    };
    StreamBody::new(frames.chain(end).boxed())
}

async fn serve_h3(quic: quinn::Connection, responder: Responder) {
    let connection = h3::server::Connection::new(h3_quinn::Connection::new(quic)).await;
    let Ok(mut connection) = connection else { return };
    while let Ok(Some(resolver)) = connection.accept().await {
        let responder = responder.clone();
        tokio::spawn(async move {
            let Ok((request, stream)) = resolver.resolve_request().await else { return };
            serve_h3_request(request, stream, responder).await;
        });
    }
}

async fn serve_h3_request(
    mut request: Request<()>,
    mut stream: h3::server::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>,
    responder: Responder,
) {
    use bytes::Buf;
    let mut body = Vec::new();
    while let Ok(Some(mut data)) = stream.recv_data().await {
        body.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    *request.version_mut() = Version::HTTP_3;
    let reply = responder.answer(&request, body.into());
    if reply.end == End::Headless {
        std::future::pending::<()>().await;
    }
    if stream.send_response(reply.head(())).await.is_err() {
        return;
    }
    for chunk in reply.chunks {
        if stream.send_data(chunk).await.is_err() {
            return;
        }
    }
    match reply.end {
        End::Whole => drop(stream.finish().await),
        End::Never | End::Headless => std::future::pending().await,
        End::Reset => {
            let _ = responder.resets.clone().wait_for(|go| *go).await;
            stream.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
        }
    }
}

/// Answers every request with its path.
pub(crate) fn echo_path(seen: &Seen) -> Reply {
    let path = seen.target.rsplit_once(".example").map_or(&*seen.target, |(_, rest)| rest);
    Reply::text(path[path.find('/').unwrap_or(0)..].to_owned())
}

/// Returns the status, for assertions.
pub(crate) fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("a status")
}
