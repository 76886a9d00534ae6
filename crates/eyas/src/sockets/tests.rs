use super::*;

const BOTH: WantedSockets = WantedSockets { stream: Some(StreamProtocol::Tcp), udp: true };

fn addresses<const N: usize>(texts: [&str; N]) -> [SocketAddr; N] {
    texts.map(|text| text.parse().unwrap())
}

#[tokio::test]
async fn one_free_port_serves_every_address_and_transport() {
    let bound = bind(&addresses(["127.0.0.1:0", "[::1]:0"]), BOTH).unwrap();
    let port = bound[0].address.port();
    assert_ne!(port, 0);
    for (sockets, ip) in bound.iter().zip(["127.0.0.1", "::1"]) {
        let expected = SocketAddr::new(ip.parse().unwrap(), port);
        assert_eq!(sockets.address, expected);
        assert_eq!(sockets.tcp.as_ref().unwrap().local_addr().unwrap(), expected);
        assert_eq!(sockets.udp.as_ref().unwrap().local_addr().unwrap(), expected);
    }
}

#[tokio::test]
async fn only_requested_sockets_are_bound() {
    let udp_alone =
        bind(&addresses(["127.0.0.1:0"]), WantedSockets { stream: None, udp: true }).unwrap();
    assert!(udp_alone[0].tcp.is_none() && udp_alone[0].udp.is_some());
    let tcp_alone =
        bind(&addresses(["127.0.0.1:0"]), WantedSockets { udp: false, ..BOTH }).unwrap();
    assert!(tcp_alone[0].tcp.is_some() && tcp_alone[0].udp.is_none());
}

#[tokio::test]
async fn the_unspecified_ipv6_address_serves_ipv4_unless_that_is_listed() {
    let unspecified = bind(&addresses(["[::]:0"]), BOTH).unwrap();
    let v4 = SocketAddr::new("127.0.0.1".parse().unwrap(), unspecified[0].address.port());
    std::net::TcpStream::connect(v4).unwrap();
    let both = bind(&addresses(["[::]:0", "0.0.0.0:0"]), BOTH).unwrap();
    assert_eq!(both[0].address.port(), both[1].address.port());
}

#[tokio::test]
async fn a_taken_port_is_reported() {
    let taken = bind(&addresses(["127.0.0.1:0"]), BOTH).unwrap();
    let error = bind(&[taken[0].address], BOTH).unwrap_err();
    assert_eq!(error.address, taken[0].address);
    assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn mptcp_is_used_if_the_kernel_supports_it() {
    let wanted = WantedSockets { stream: Some(StreamProtocol::MptcpIfPossible), udp: false };
    let bound = bind(&addresses(["127.0.0.1:0"]), wanted).unwrap();
    std::net::TcpStream::connect(bound[0].address).unwrap();
}

#[test]
fn one_subscriber_is_one_peer() {
    let of = |text: &str| subscriber(text.parse().expect("an address"));
    assert_eq!(of("2001:db8:0:7::1"), of("2001:db8:0:7:ffff::2"));
    assert_ne!(of("2001:db8:0:7::1"), of("2001:db8:0:8::1"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    assert!(of("::1").is_loopback());
}
