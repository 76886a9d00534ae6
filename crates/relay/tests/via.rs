//! A proxy behind a proxy, on loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use eyas::{Endpoint, Resolver, SecurityParameters, ServerIdentity};
use eyas_relay::users::Users;
use eyas_relay::{Ending, Proxy, ProxyBuilder, Report, Running, Via, WonBy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Nothing here takes so long; what does hangs.
const HANGS: Duration = Duration::from_secs(60);

struct Stage {
    running: Running,
    reports: Receiver<Report>,
}

impl Stage {
    fn new(endpoint: Endpoint, set: impl FnOnce(ProxyBuilder) -> ProxyBuilder) -> Self {
        let (sender, reports) = channel();
        let builder = Proxy::builder(endpoint).reports(move |report| {
            // A test that is over does not listen.
            let _ = sender.send(report);
        });
        Self { running: set(builder).start().expect("a proxy"), reports }
    }

    /// A client that has asked for this by SOCKS5, and what it was told.
    async fn socks(&self, name: &str, port: u16) -> (TcpStream, u8) {
        let mut client = TcpStream::connect(self.running.local_addr()).await.expect("it listens");
        let length = u8::try_from(name.len()).expect("short");
        let mut request = [&[5, 1, 0, 5, 1, 0, 3, length], name.as_bytes()].concat();
        request.extend(port.to_be_bytes());
        client.write_all(&request).await.expect("writes");
        let mut reply = [0; 12];
        client.read_exact(&mut reply).await.expect("a reply");
        (client, reply[3])
    }

    fn report(&self) -> Report {
        self.reports.recv_timeout(HANGS).expect("a report")
    }
}

/// Both proxies: the near one, and the one at which it speaks TLS and shows who it is. That one alone
/// knows `name.test`.
struct Chain {
    near: Stage,
    far: Stage,
}

impl Chain {
    fn new(name_port: u16, user: &str) -> Self {
        let identity = ServerIdentity::self_signed(["proxy.test"]).expect("a certificate");
        let trusted = identity.certificate().clone();
        let local = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        let resolver = Resolver::system().overriding("name.test", name_port, local.clone());
        let far = Endpoint::builder().resolver(resolver).build().expect("an endpoint");
        let users = Users::parse("ada:love:lace\n").expect("users");
        let far = Stage::new(far, |proxy| proxy.users(users).security(identity));
        let port = far.running.local_addr().port();
        // Nobody is at the other address: the way to a proxy is raced as any other.
        let both = vec![IpAddr::from(Ipv6Addr::LOCALHOST), local[0]];
        let near = Endpoint::builder()
            .resolver(Resolver::system().overriding("proxy.test", port, both))
            .security(SecurityParameters::platform().with_roots([trusted]));
        let near = near.build().expect("an endpoint");
        let via = Via::parse(&format!("https://{user}@proxy.test:{port}")).expect("a proxy");
        Self { near: Stage::new(near, |proxy| proxy.via(via)), far }
    }
}

/// Says what it has heard until the end, and before that a greeting of its own.
async fn greeting() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.write_all(b"220 hello ").await.expect("writes");
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.expect("reads");
                stream.write_all(&heard).await.expect("writes");
            });
        }
    });
    address
}

async fn talk(client: &mut TcpStream) -> Vec<u8> {
    client.write_all(b"bytes").await.expect("writes");
    client.shutdown().await.expect("ends");
    let mut read = Vec::new();
    let reading = client.read_to_end(&mut read);
    tokio::time::timeout(HANGS, reading).await.expect("it ends").expect("reads");
    read
}

/// ```text
/// client ── SOCKS5 ──▶ near ── CONNECT over TLS, as ada ──▶ far ──▶ name.test
/// ```
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_is_reached_through_another_proxy() {
    let server = greeting().await;
    let chain = Chain::new(server.port(), "ada:love%3Alace");
    let (mut client, code) = chain.near.socks("name.test", server.port()).await;
    assert_eq!(code, 0);
    assert_eq!(talk(&mut client).await, b"220 hello bytes");
    let (near, far) = (chain.near.report(), chain.far.report());
    assert_eq!((near.sent, near.received, near.end), (5, 15, Ending::Done));
    assert_eq!(near.won_by, Some(WonBy::Transport));
    let proxy = chain.far.running.local_addr();
    assert_eq!(near.connection.expect("a connection").remote, proxy);
    assert_eq!((far.sent, far.received, far.end), (5, 15, Ending::Done));
    assert_eq!(far.user.as_deref(), Some("ada"));
    assert_eq!(far.connection.expect("a connection").remote, server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_other_proxy_refuses_is_told() {
    let server = greeting().await;
    let chain = Chain::new(server.port(), "ada:wrong");
    assert_eq!(chain.near.socks("name.test", server.port()).await.1, 1);
    let Ending::Refused(why) = chain.near.report().end else { panic!("it was refused") };
    assert!(why.to_string().contains("407"), "{why}");
    assert!(!why.to_string().contains("wrong"), "{why}");
    let chain = Chain::new(server.port(), "ada:love%3Alace");
    // Port 1 of this machine: nobody listens there.
    assert_eq!(chain.near.socks("127.0.0.1", 1).await.1, 4);
    let mut udp = TcpStream::connect(chain.near.running.local_addr()).await.expect("it listens");
    udp.write_all(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0").await.expect("writes");
    let mut reply = [0; 12];
    udp.read_exact(&mut reply).await.expect("a reply");
    assert_eq!(reply[3], 7, "it carries no UDP");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_speak_tls_where_it_is_spoken_is_not_heard() {
    let chain = Chain::new(1, "ada:x");
    let mut plain = TcpStream::connect(chain.far.running.local_addr()).await.expect("it listens");
    plain.write_all(b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("writes");
    let mut read = Vec::new();
    let reading = tokio::time::timeout(HANGS, plain.read_to_end(&mut read));
    // What it is told, if anything, is an alert of TLS.
    let _ = reading.await.expect("it ends");
    assert!(!read.starts_with(b"HTTP"), "{read:?}");
    let Ending::Refused(why) = chain.far.report().end else { panic!("it was refused") };
    assert!(why.to_string().contains("does not speak TLS"), "{why}");
}
