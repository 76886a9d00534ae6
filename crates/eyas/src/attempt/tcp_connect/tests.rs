use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use eyas_race::evidence::FailureCause;
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, Type};

use super::*;

fn open(to: SocketAddr) -> Socket {
    let kind = Type::STREAM.nonblocking();
    Socket::new(Domain::for_address(to), kind, Some(Protocol::TCP)).unwrap()
}

fn reports_enabled(stream: &TcpStream) -> bool {
    if stream.local_addr().unwrap().is_ipv4() {
        getsockopt(stream, sockopt::Ipv4RecvErr).unwrap()
    } else {
        getsockopt(stream, sockopt::Ipv6RecvErr).unwrap()
    }
}

#[tokio::test]
async fn an_established_connection_ignores_icmp() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let listener = std::net::TcpListener::bind((ip, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let stream = connect(open(to), to).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), to);
        assert!(!reports_enabled(&stream));
    }
}

#[tokio::test]
async fn a_reset_is_a_refusal() {
    for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        // The discard port of this host, where nothing is listening.
        let to = SocketAddr::new(ip, 9);
        let failure = connect(open(to), to).await.unwrap_err();
        assert_eq!(
            (failure.cause, failure.reached),
            (FailureCause::Refused, EvidenceLevel::Started)
        );
    }
}
