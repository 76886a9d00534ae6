//! UDP ASSOCIATE from the point of view of SOCKS5 clients, on loopback.

mod stage;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use eyas::{Endpoint, Resolver};
use eyas_proxy::internals::datagram;
use eyas_proxy::{ClientEnding, DropReason, ProxyLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use stage::{Stage, TIMEOUT};

/// Starts a server that returns each datagram with a prefix.
async fn echo(at: IpAddr) -> SocketAddr {
    let socket = UdpSocket::bind((at, 0)).await.expect("loopback");
    let address = socket.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut received = [0; 2000];
        while let Ok((length, from)) = socket.recv_from(&mut received).await {
            let _ = socket.send_to(&[b"heard ", &received[..length]].concat(), from).await;
        }
    });
    address
}

impl Stage {
    /// Starts a proxy that resolves `name.test` at this port to both loopback addresses.
    fn with_name(port: u16, limits: ProxyLimits) -> Self {
        let both = vec![IpAddr::from(Ipv6Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)];
        let resolver = Resolver::system().overriding("name.test", port, both);
        let endpoint = Endpoint::builder().resolver(resolver).build().expect("an endpoint");
        Self::new(endpoint, |proxy| proxy.limits(limits))
    }

    /// Requests an association, and returns the connection and the address for datagrams, or the error code.
    async fn associate(&self) -> (TcpStream, Result<SocketAddr, u8>) {
        let mut tcp = TcpStream::connect(self.running.local_addr()).await.expect("it listens");
        tcp.write_all(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0\0\0").await.expect("writes");
        let mut reply = [0; 12];
        tcp.read_exact(&mut reply).await.expect("a reply");
        assert_eq!(reply[..2], [5, 0]);
        if reply[3] != 0 {
            return (tcp, Err(reply[3]));
        }
        let ip: [u8; 4] = reply[6..10].try_into().expect("four");
        let port = u16::from_be_bytes([reply[10], reply[11]]);
        (tcp, Ok(SocketAddr::new(ip.into(), port)))
    }
}

fn to_name(name: &str, port: u16, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("short");
    [&[0, 0, 0, 3, length], name.as_bytes(), &port.to_be_bytes(), data].concat()
}

async fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut received = vec![0; 2000];
    let length =
        timeout(TIMEOUT, socket.recv(&mut received)).await.expect("in time").expect("reads");
    received.truncate(length);
    received
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_go_there_and_back_by_address_and_by_name() {
    let six = echo(Ipv6Addr::LOCALHOST.into()).await;
    let four = echo(Ipv4Addr::LOCALHOST.into()).await;
    let stage = Stage::with_name(six.port(), ProxyLimits::default());
    let (tcp, at) = stage.associate().await;
    let at = at.expect("an association");
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    for to in [six, four] {
        socket.send_to(&datagram::write(to, b"hello"), at).await.expect("sends");
        assert_eq!(receive(&socket).await, datagram::write(to, b"heard hello"));
    }
    // The name has addresses of both families, and the IPv6 one answers.
    socket.send_to(&to_name("name.test", six.port(), b"x"), at).await.expect("sends");
    assert_eq!(receive(&socket).await, datagram::write(six, b"heard x"));
    assert_eq!(stage.running.stats().associations, 1);
    drop(tcp);
    let report = stage.report().await;
    assert_eq!((report.sent, report.received), (11, 29));
    let datagrams = report.datagrams.expect("it requested UDP");
    assert_eq!((datagrams.sent, datagrams.received, report.end), (3, 3, ClientEnding::Done));
    assert_eq!(stage.running.stats().associations, 0);
    // The association has ended with its connection.
    socket.connect(at).await.expect("an address");
    socket.send(&datagram::write(four, b"hello")).await.expect("sends");
    let refused = timeout(TIMEOUT, socket.recv(&mut [0; 9])).await.expect("in time");
    let error = refused.expect_err("the port is closed");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

/// ```text
/// [::1]:port       nothing listens
/// 127.0.0.1:port   answers
/// ```
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_family_that_does_not_answer_is_abandoned() {
    let four = echo(Ipv4Addr::LOCALHOST.into()).await;
    let stage = Stage::with_name(four.port(), ProxyLimits::default());
    let (_tcp, at) = stage.associate().await;
    let at = at.expect("an association");
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let mut received = [0; 2000];
    let sent = to_name("name.test", four.port(), b"x");
    // Like a DNS client, it repeats the datagram until there is an answer.
    let length = loop {
        socket.send_to(&sent, at).await.expect("sends");
        let wait = Duration::from_millis(100);
        if let Ok(length) = timeout(wait, socket.recv(&mut received)).await {
            break length.expect("reads");
        }
    };
    assert_eq!(received[..length], datagram::write(four, b"heard x"));
}

//= hostile proxy
//# datagrams of third parties for an association
//= bound: its client's address
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_from_another_address_is_not_served() {
    let four = echo(Ipv4Addr::LOCALHOST.into()).await;
    let stage = Stage::with_name(1, ProxyLimits::default());
    let (tcp, at) = stage.associate().await;
    let at = at.expect("an association");
    let other = UdpSocket::bind("127.0.0.2:0").await.expect("loopback");
    other.send_to(&datagram::write(four, b"other"), at).await.expect("sends");
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    socket.send_to(&datagram::write(four, b"hello"), at).await.expect("sends");
    assert_eq!(receive(&socket).await, datagram::write(four, b"heard hello"));
    other.send_to(&datagram::write(four, b"other"), at).await.expect("sends");
    // Fragments are dropped.
    socket.send_to(b"\0\0\x01\x01\x7f\0\0\x01\0\x35piece", at).await.expect("sends");
    socket.send_to(&datagram::write(four, b"again"), at).await.expect("sends");
    assert_eq!(receive(&socket).await, datagram::write(four, b"heard again"));
    drop(tcp);
    let datagrams = stage.report().await.datagrams.expect("it requested UDP");
    assert_eq!((datagrams.sent, datagrams.received), (2, 2));
    assert_eq!(datagrams.dropped[DropReason::NotTheClient as usize], 2);
    assert_eq!(datagrams.dropped[DropReason::Fragment as usize], 1);
    assert_eq!(stage.running.stats().datagrams_dropped, datagrams.dropped);
}

//= hostile proxy
//# endless associations, tunnels and destinations
//= bound: `associations`, `association_destinations`, `MAX_WAITING`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_associations_is_bounded() {
    let stage = Stage::with_name(1, ProxyLimits { associations: 1, ..ProxyLimits::default() });
    let (first, at) = stage.associate().await;
    at.expect("an association");
    assert_eq!(stage.associate().await.1, Err(1));
    drop(first);
    loop {
        if stage.associate().await.1.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
