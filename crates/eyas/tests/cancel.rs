//! A cancelled connect leaves nothing behind. The test has its own process, because it counts open
//! descriptors.

#[path = "ports/mod.rs"]
mod ports;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetHost};
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};

/// How long a closed socket may take to disappear before it counts as a leak.
const PATIENCE: Duration = Duration::from_secs(20);

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until at most this many descriptors are open: aborted tasks close their sockets only when
/// the runtime drops them.
async fn falls_to(limit: usize) -> bool {
    let wait = async {
        while open_descriptors() > limit {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.is_ok()
}

/// Accepts on TCP and receives on UDP, but never answers.
struct SilentPeer {
    address: SocketAddr,
    _tcp: TcpListener,
    _udp: UdpSocket,
}

fn silent_peer() -> SilentPeer {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::own_port()));
    let (tcp, udp) = (TcpListener::bind(address).unwrap(), UdpSocket::bind(address).unwrap());
    SilentPeer { address, _tcp: tcp, _udp: udp }
}

fn endpoint() -> Endpoint {
    Endpoint::builder()
        .security(SecurityParameters::platform().accept_any_certificate())
        .resolver(Resolver::server((Ipv4Addr::LOCALHOST, 9).into()))
        .memory(MemoryStore::none())
        .build()
        .unwrap()
}

/// Cancels an attempt that would take long to close: the closing period of a QUIC attempt is nine
/// times its estimate of the round-trip time.
async fn cancelled_quic_attempt(endpoint: &Endpoint, peer: &SilentPeer) {
    let candidate = Candidate {
        address: peer.address,
        transport: Transport::Quic,
        security: Security::Tls,
        alpn: vec!["h3".into()],
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    };
    let host = TargetHost::Literal(peer.address.ip(), 0);
    let attempt = endpoint.attempt(&host, candidate, Some(PATIENCE));
    tokio::time::timeout(Duration::from_millis(50), attempt).await.unwrap_err();
}

async fn cancelled_connect(endpoint: &Endpoint, peer: &SilentPeer, transports: Vec<Transport>) {
    let host = TargetHost::Literal(peer.address.ip(), 0);
    let target = Target::plain(host, peer.address.port(), transports.clone(), Security::Tls);
    let policy = Policy { transports, ..Policy::default() };
    let connecting = endpoint.preconnection(target).policy(policy).connect();
    tokio::time::timeout(Duration::from_millis(150), connecting).await.unwrap_err();
}

#[tokio::test]
async fn cancelled_connects_leave_nothing_open() {
    let peer = silent_peer();
    let at_first = open_descriptors();
    let endpoint = endpoint();
    // The sockets of the endpoint itself (one UDP socket per family, route notifications) are open
    // now.
    cancelled_connect(&endpoint, &peer, vec![Transport::Quic]).await;
    let of_endpoint = open_descriptors();
    for _ in 0..5 {
        let transports = vec![Transport::Quic, Transport::Tcp, Transport::Mptcp];
        cancelled_connect(&endpoint, &peer, transports).await;
    }
    assert!(falls_to(of_endpoint).await, "{} > {of_endpoint}", open_descriptors());
    let before = open_descriptors();
    drop(
        endpoint
            .preconnection(Target::https(TargetHost::Literal(peer.address.ip(), 0), 1))
            .initiate(),
    );
    assert!(falls_to(before).await);
    cancelled_quic_attempt(&endpoint, &peer).await;
    drop(endpoint);
    assert!(falls_to(at_first).await, "{} > {at_first}", open_descriptors());
}
