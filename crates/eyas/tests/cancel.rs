//! A connect that is cancelled leaves nothing behind. Alone in its process, for it counts what
//! the process has open.

#[path = "ports/mod.rs"]
mod ports;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use eyas::race::candidate::{Candidate, Origin, Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Host, Target};
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};

/// How long a closed socket may take to be gone before that counts as a leak.
const PATIENCE: Duration = Duration::from_secs(20);

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Tasks that were ended close their sockets when the runtime comes by.
async fn comes_down_to(wanted: usize) -> bool {
    let come_down = async {
        while open_descriptors() > wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, come_down).await.is_ok()
}

/// Accepts on TCP and takes on UDP, and never answers.
struct Mute {
    address: SocketAddr,
    _tcp: TcpListener,
    _udp: UdpSocket,
}

fn mute() -> Mute {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::own_port()));
    let (tcp, udp) = (TcpListener::bind(address).unwrap(), UdpSocket::bind(address).unwrap());
    Mute { address, _tcp: tcp, _udp: udp }
}

fn endpoint() -> Endpoint {
    Endpoint::builder()
        .security(SecurityParameters::platform().accept_any_certificate())
        .resolver(Resolver::server((Ipv4Addr::LOCALHOST, 9).into()))
        .memory(MemoryStore::none())
        .build()
        .unwrap()
}

/// Cancels an attempt that would take its time to be over: the closing period of a QUIC attempt
/// is nine times its estimate of the round trip time.
async fn cancelled_quic_attempt(endpoint: &Endpoint, peer: &Mute) {
    let candidate = Candidate {
        address: peer.address,
        transport: Transport::Quic,
        security: Security::Tls,
        alpn: vec!["h3".into()],
        ech: None,
        priority: None,
        origin: Origin::Caller,
    };
    let host = Host::Literal(peer.address.ip(), 0);
    let attempt = endpoint.attempt(&host, candidate, Some(PATIENCE));
    tokio::time::timeout(Duration::from_millis(50), attempt).await.unwrap_err();
}

async fn cancelled_connect(endpoint: &Endpoint, peer: &Mute, transports: Vec<Transport>) {
    let host = Host::Literal(peer.address.ip(), 0);
    let target = Target::plain(host, peer.address.port(), transports.clone(), Security::Tls);
    let policy = Policy { transports, ..Policy::default() };
    let connecting = endpoint.preconnection(target).policy(policy).connect();
    tokio::time::timeout(Duration::from_millis(150), connecting).await.unwrap_err();
}

#[tokio::test]
async fn nothing_stays_open() {
    let peer = mute();
    let at_first = open_descriptors();
    let endpoint = endpoint();
    // What the endpoint itself keeps (one UDP socket per family, notice of routes) is open now.
    cancelled_connect(&endpoint, &peer, vec![Transport::Quic]).await;
    let of_endpoint = open_descriptors();
    for _ in 0..5 {
        let transports = vec![Transport::Quic, Transport::Tcp, Transport::Mptcp];
        cancelled_connect(&endpoint, &peer, transports).await;
    }
    assert!(comes_down_to(of_endpoint).await, "{} > {of_endpoint}", open_descriptors());
    let before = open_descriptors();
    drop(endpoint.preconnection(Target::https(Host::Literal(peer.address.ip(), 0), 1)).initiate());
    assert!(comes_down_to(before).await);
    cancelled_quic_attempt(&endpoint, &peer).await;
    drop(endpoint);
    assert!(comes_down_to(at_first).await, "{} > {at_first}", open_descriptors());
}
