//! A gateway, and an upstream whose every byte the test decides.

use std::net::Ipv4Addr;
use std::time::Duration;

use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};
use eyas_gateway::{Gateway, GatewayBuilder};
use eyas_http::serve::{Running, Server, ServerBuilder};
use eyas_http::{Client, Proxy, Versions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Long enough for anything here; what takes longer has hung.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A gateway, and the connections to its upstream, which the test plays.
pub(crate) struct Stage {
    pub(crate) running: Running,
    pub(crate) gateway: Gateway,
    /// The connections, in the order of their arrival.
    pub(crate) connections: UnboundedReceiver<TcpStream>,
}

impl Stage {
    pub(crate) async fn new(
        plain: bool,
        set: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let set_server = |server: ServerBuilder| if plain { server.plain() } else { server };
        Self::with(set_server, set).await
    }

    pub(crate) async fn with(
        set_server: impl FnOnce(ServerBuilder) -> ServerBuilder,
        set: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (send, connections) = unbounded_channel();
        tokio::spawn(accept(listener, send));
        let upstream = format!("http://{address}").parse().expect("an upstream");
        let gateway = set(Gateway::builder(upstream)).build().expect("a gateway");
        let server = Server::builder().extended_connect(["websocket"]).keep_field_case(true);
        let server = server.threads(1).service(gateway.clone());
        let running = set_server(server).start().await.expect("a server");
        Self { running, gateway, connections }
    }

    /// Returns a gateway whose upstream the test does not play.
    pub(crate) fn of(running: Running, gateway: Gateway) -> Self {
        Self { running, gateway, connections: unbounded_channel().1 }
    }

    pub(crate) async fn plain() -> Self {
        Self::new(true, |gateway| gateway).await
    }

    /// Returns the next connection with data. A slow race may open another one without any.
    pub(crate) async fn connection(&mut self) -> Upstream {
        loop {
            let next = tokio::time::timeout(TIMEOUT, self.connections.recv()).await;
            let stream = next.expect("in time").expect("a connection");
            let peeked = tokio::time::timeout(TIMEOUT, stream.peek(&mut [0])).await;
            if peeked.expect("in time").is_ok_and(|bytes| bytes > 0) {
                return Upstream { stream, read: Vec::new() };
            }
        }
    }

    /// Returns a client over TCP that has sent this.
    pub(crate) async fn send(&self, text: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.running.local_addr()).await.expect("connects");
        client.write_all(text.as_bytes()).await.expect("writes");
        client
    }

    /// Returns the response to a request that must not reach the upstream.
    pub(crate) async fn refused(&mut self, text: &str) -> String {
        let mut client = self.send(text).await;
        let answer = read_all(&mut client).await;
        assert!(self.connections.try_recv().is_err(), "it reached the upstream: {text:?}");
        answer
    }
}

async fn accept(listener: TcpListener, send: UnboundedSender<TcpStream>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = send.send(stream);
    }
}

/// The upstream's side of a connection.
pub(crate) struct Upstream {
    pub(crate) stream: TcpStream,
    pub(crate) read: Vec<u8>,
}

impl Upstream {
    /// Reads up to this text, and returns everything including it.
    pub(crate) async fn until(&mut self, mark: &str) -> String {
        let mark = mark.as_bytes();
        loop {
            if let Some(at) = self.read.windows(mark.len()).position(|some| some == mark) {
                let rest = self.read.split_off(at + mark.len());
                let read = std::mem::replace(&mut self.read, rest);
                return String::from_utf8(read).expect("text");
            }
            let reading = self.stream.read_buf(&mut self.read);
            let some =
                tokio::time::timeout(TIMEOUT, reading).await.expect("in time").expect("reads");
            assert!(some > 0, "it ended after {:?}", String::from_utf8_lossy(&self.read));
        }
    }

    pub(crate) async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.expect("writes");
    }

    /// Waits for the end, and returns the data before it.
    pub(crate) async fn end(mut self) -> String {
        let mut rest = self.read;
        let reading = self.stream.read_to_end(&mut rest);
        let _ = tokio::time::timeout(TIMEOUT, reading).await.expect("ends");
        String::from_utf8_lossy(&rest).into_owned()
    }
}

pub(crate) async fn read_all(client: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let reading = client.read_to_end(&mut read);
    let _ = tokio::time::timeout(TIMEOUT, reading).await.expect("ends");
    String::from_utf8_lossy(&read).into_owned()
}

pub(crate) const GET: &str = "GET /p?q HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Returns a client with these versions that trusts the server.
pub(crate) fn client(stage: &Stage, versions: Versions) -> Client {
    let root = stage.running.identity().expect("TLS").certificate().clone();
    let port = stage.running.local_addr().port();
    let resolver = Resolver::system();
    let endpoint = Endpoint::builder()
        .security(SecurityParameters::platform().with_roots([root]))
        .resolver(resolver.overriding("localhost", port, vec![Ipv4Addr::LOCALHOST.into()]))
        .memory(MemoryStore::none())
        .build()
        .expect("an endpoint");
    let client = Client::builder().endpoint(endpoint).proxy(Proxy::none()).versions(versions);
    client.build().expect("a client")
}

/// Each HTTP version alone.
pub(crate) const EACH_VERSION: [Versions; 3] =
    [only(true, false, false), only(false, true, false), only(false, false, true)];

const fn only(http1: bool, http2: bool, http3: bool) -> Versions {
    Versions { http1, http2, http3 }
}
