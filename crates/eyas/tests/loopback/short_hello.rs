//! A ClientHello of two packets that a device or the server does not take.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::evidence::{AttemptFailure, FailureCause};
use eyas::race::memory::MemoryConfig;
use eyas::race::target::{Target, TargetHost, TargetService};
use eyas::rustls::crypto::ring::kx_group::{SECP256R1, X25519};
use eyas::{Connection, Endpoint, MemoryStore, Resolver, SecurityParameters};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use crate::common::tls::{Credentials, Server};
use crate::common::{self, NAME, wait};

/// The largest segment of TCP over IPv6 in a tunnel, in bytes: no ClientHello with a share of ML-KEM fits.
const SEGMENT: usize = 1220;
/// The header of a TLS record: a type, a version, a length.
const RECORD_HEADER: usize = 5;
/// A fatal alert, decode_error (RFC 8446 §6).
const DECODE_ERROR: &[u8] = &[21, 3, 3, 0, 2, 2, 50];

/// What becomes of a ClientHello of two packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The connection is closed.
    Closed,
    /// Nothing more is heard of it.
    Swallowed,
    /// The server takes the first packet for all of it.
    Misread,
    /// It passes late, as every other one does.
    Slow,
    /// It passes.
    Passed,
}

/// A device in front of a server.
struct Device {
    address: SocketAddr,
    /// The number of connections through it.
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Device {
    async fn start(server: SocketAddr, fate: Fate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                streams.spawn(pass(stream, server, fate));
            }
        });
        Self { address, connections, _tasks: tasks }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Relays a connection whose ClientHello the device takes.
async fn pass(mut client: TcpStream, server: SocketAddr, fate: Fate) {
    let mut header = [0; RECORD_HEADER];
    client.read_exact(&mut header).await.unwrap();
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if fate == Fate::Slow {
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    if RECORD_HEADER + length > SEGMENT {
        let mut hello = vec![0; length];
        match fate {
            Fate::Closed => {
                client.read_exact(&mut hello).await.unwrap();
                return;
            }
            Fate::Swallowed => return std::future::pending().await,
            Fate::Misread => {
                client.read_exact(&mut hello).await.unwrap();
                client.write_all(DECODE_ERROR).await.unwrap();
                return;
            }
            Fate::Slow | Fate::Passed => {}
        }
    }
    let mut server = TcpStream::connect(server).await.unwrap();
    server.write_all(&header).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

/// Connects by a race over TCP, whose evidence is remembered.
async fn race(endpoint: &Endpoint, address: SocketAddr) -> Connection {
    race_over(Transport::Tcp, endpoint, address).await
}

async fn race_over(transport: Transport, endpoint: &Endpoint, address: SocketAddr) -> Connection {
    let (host, port) = (TargetHost::Name(NAME.into()), address.port());
    let mut target = Target::plain(host, port, vec![transport], Security::Tls);
    if let TargetService::Plain { alpn, .. } = &mut target.service
        && transport == Transport::Quic
    {
        alpn.push("h3".into());
    }
    let mut initiation = endpoint.preconnection(target).initiate();
    let connection = wait(initiation.usable()).await.unwrap();
    wait(initiation.finished()).await;
    connection
}

async fn attempt(endpoint: &Endpoint, address: SocketAddr) -> Result<Connection, AttemptFailure> {
    let wanted = Candidate {
        address,
        transport: Transport::Tcp,
        security: Security::Tls,
        alpn: vec!["h2".into()],
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    };
    wait(endpoint.attempt(&TargetHost::Name(NAME.into()), wanted, None)).await
}

fn endpoint(security: SecurityParameters) -> Endpoint {
    Endpoint::builder().security(security).build().unwrap()
}

/// An endpoint with this memory that finds the device by name.
fn remembering(security: SecurityParameters, device: SocketAddr, memory: MemoryStore) -> Endpoint {
    let (port, address) = (device.port(), device.ip());
    let resolver = Resolver::server((address, 9).into()).overriding(NAME, port, vec![address]);
    let builder = Endpoint::builder().security(security).resolver(resolver).memory(memory);
    builder.build().unwrap()
}

fn is_shortened(connection: &Connection) -> bool {
    connection.info().reasons.iter().any(|reason| reason.contains("two packets"))
}

#[tokio::test]
async fn one_of_one_packet_follows_and_is_the_first_from_then_on_in_other_processes_too() {
    let own = Credentials::of(NAME);
    for fate in [Fate::Closed, Fate::Swallowed, Fate::Misread] {
        let server = Server::start(own.config(None));
        let device = Device::start(server.address, fate).await;
        let memory = MemoryStore::default();
        let endpoint = remembering(own.trusted(), device.address, memory.clone());
        let first = race(&endpoint, device.address).await;
        assert_eq!(first.info().key_exchange, Some("X25519"), "{fate:?}");
        assert!(is_shortened(&first), "{:?}", first.info().reasons);
        let failed: Vec<_> = first.info().failed.iter().map(|(_, failure)| failure.cause).collect();
        assert_eq!(failed, [FailureCause::LongClientHello], "{fate:?}");
        assert_eq!(device.connections(), 2, "{fate:?}");
        drop((first, endpoint));
        let memory = MemoryStore::in_memory_with(MemoryConfig::default(), memory.entries());
        let later = race(&remembering(own.trusted(), device.address, memory), device.address).await;
        assert!(is_shortened(&later) && later.info().failed.is_empty(), "{:?}", later.info());
        assert_eq!(device.connections(), 3, "{fate:?}: the memory is used");
    }
}

#[tokio::test]
async fn a_long_one_is_tried_again_once_the_evidence_has_aged() {
    let own = Credentials::of(NAME);
    let server = Server::start(own.config(None));
    let device = Device::start(server.address, Fate::Closed).await;
    let config = MemoryConfig { retest_after: Some(Duration::ZERO), ..MemoryConfig::default() };
    let memory = MemoryStore::in_memory(config);
    for connections in [2, 4] {
        // rustls remembers in an endpoint with which group a server was content.
        let endpoint = remembering(own.trusted(), device.address, memory.clone());
        let connection = race(&endpoint, device.address).await;
        assert_eq!(connection.info().failed.len(), 1, "{:?}", connection.info());
        assert_eq!(device.connections(), connections);
    }
}

#[tokio::test]
async fn a_slow_server_is_not_taken_for_one_that_cannot() {
    let own = Credentials::of(NAME);
    let server = Server::start(own.config(None));
    let device = Device::start(server.address, Fate::Slow).await;
    let endpoint = endpoint(own.trusted());
    for connections in [1, 2] {
        let connection = attempt(&endpoint, device.address).await.unwrap();
        assert_eq!(connection.info().key_exchange, Some("X25519MLKEM768"));
        assert_eq!(device.connections(), connections);
    }
}

#[tokio::test]
async fn what_must_hold_against_quantum_computers_fails() {
    let own = Credentials::of(NAME);
    let server = Server::start(own.config(None));
    let device = Device::start(server.address, Fate::Closed).await;
    let endpoint = endpoint(own.trusted().require_post_quantum());
    let failure = attempt(&endpoint, device.address).await.unwrap_err();
    assert_eq!((failure.cause, device.connections()), (FailureCause::Reset, 1));
    let direct = attempt(&endpoint, server.address).await.unwrap();
    assert_eq!(direct.info().key_exchange, Some("X25519MLKEM768"));
    drop(direct);
    let without = Server::start(own.config_with_groups(vec![X25519, SECP256R1]));
    let failure = attempt(&endpoint, without.address).await.unwrap_err();
    assert_eq!(failure.cause, FailureCause::Tls, "{failure:?}");
}

#[tokio::test]
async fn a_server_that_refuses_both_is_tried_twice_and_named_for_the_first() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_ne!(stream.read(&mut [0; 4096]).await.unwrap(), 0);
        }
    });
    let own = Credentials::of(NAME);
    let failure = attempt(&endpoint(own.trusted()), address).await.unwrap_err();
    assert_eq!(failure.cause, FailureCause::Reset);
    wait(closing).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_not_asked_twice() {
    let (own, other) = (Credentials::of(NAME), Credentials::of(NAME));
    let server = Server::start(own.config(None));
    let device = Device::start(server.address, Fate::Passed).await;
    let failure = attempt(&endpoint(other.trusted()), device.address).await.unwrap_err();
    assert_eq!((failure.cause, device.connections()), (FailureCause::Certificate, 1));
}

/// A device in front of a QUIC server that drops whatever belongs to a connection of which a second datagram arrives
/// before it has passed on the first one.
struct DatagramDevice {
    address: SocketAddr,
    connections: SeenConnections,
    _tasks: JoinSet<()>,
}

/// What the device does with a connection, by the connection ID of the client.
type SeenConnections = Arc<Mutex<BTreeMap<Vec<u8>, Verdict>>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Examined,
    Passed,
    Dropped,
}

/// How long the device looks at a first datagram. The second one is sent along with it.
const LOOK: Duration = Duration::from_millis(30);

impl DatagramDevice {
    async fn start(server: SocketAddr) -> Self {
        let outside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let inside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        inside.connect(server).await.unwrap();
        let address = outside.local_addr().unwrap();
        let client = Arc::new(Mutex::new(None));
        let connections = SeenConnections::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(pass_datagrams(
            Arc::clone(&outside),
            Arc::clone(&inside),
            Arc::clone(&client),
            Arc::clone(&connections),
        ));
        tasks.spawn(async move {
            let mut buffer = vec![0; 2048];
            loop {
                let length = inside.recv(&mut buffer).await.unwrap();
                let client = client.lock().unwrap().unwrap();
                outside.send_to(&buffer[..length], client).await.unwrap();
            }
        });
        Self { address, connections, _tasks: tasks }
    }

    fn dropped(&self) -> usize {
        let connections = self.connections.lock().unwrap();
        connections.values().filter(|verdict| **verdict == Verdict::Dropped).count()
    }
}

/// Passes the client's datagrams on.
async fn pass_datagrams(
    outside: Arc<UdpSocket>,
    inside: Arc<UdpSocket>,
    client: Arc<Mutex<Option<SocketAddr>>>,
    connections: SeenConnections,
) {
    let (mut passing, mut buffer) = (JoinSet::new(), vec![0; 2048]);
    loop {
        let (length, from) = outside.recv_from(&mut buffer).await.unwrap();
        *client.lock().unwrap() = Some(from);
        let datagram = buffer[..length].to_vec();
        let Some(id) = client_id(&datagram) else {
            inside.send(&datagram).await.unwrap();
            continue;
        };
        let verdict = connections.lock().unwrap().get(&id).copied();
        match verdict {
            Some(Verdict::Passed) => _ = inside.send(&datagram).await.unwrap(),
            Some(_) => _ = connections.lock().unwrap().insert(id, Verdict::Dropped),
            None => {
                connections.lock().unwrap().insert(id.clone(), Verdict::Examined);
                let (inside, connections) = (Arc::clone(&inside), Arc::clone(&connections));
                passing.spawn(async move {
                    tokio::time::sleep(LOOK).await;
                    let is_whole = {
                        let mut connections = connections.lock().unwrap();
                        let is_whole = connections[&id] == Verdict::Examined;
                        if is_whole {
                            connections.insert(id, Verdict::Passed);
                        }
                        is_whole
                    };
                    if is_whole {
                        inside.send(&datagram).await.unwrap();
                    }
                });
            }
        }
    }
}

/// Returns the connection ID of the client, if the datagram begins with an Initial packet (RFC 9000 §17.2.2).
fn client_id(datagram: &[u8]) -> Option<Vec<u8>> {
    const LENGTH_OF_DESTINATION: usize = 5;
    if datagram[0] & 0xf0 != 0xc0 {
        return None;
    }
    let source = LENGTH_OF_DESTINATION + 1 + usize::from(datagram[LENGTH_OF_DESTINATION]);
    let length = usize::from(datagram[source]);
    Some(datagram[source + 1..][..length].to_vec())
}

#[tokio::test]
async fn over_quic_as_well_one_of_one_packet_follows_and_is_the_first_from_then_on() {
    let identity = common::identity();
    let listener = common::listen(&identity, [Transport::Quic]).await;
    let device = DatagramDevice::start(listener.local_addr()).await;
    let memory = MemoryStore::default();
    let trusted = || SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let endpoint = remembering(trusted(), device.address, memory.clone());
    let first = race_over(Transport::Quic, &endpoint, device.address).await;
    assert_eq!(first.info().key_exchange, Some("X25519"));
    assert!(is_shortened(&first), "{:?}", first.info().reasons);
    let causes = first.info().failed.iter().map(|(_, failure)| failure.cause);
    assert!(
        causes.clone().any(|cause| cause == FailureCause::LongClientHello),
        "{:?}",
        first.info()
    );
    let dropped = device.dropped();
    assert!(dropped >= 1, "the device has dropped the long one");
    let endpoint = remembering(trusted(), device.address, memory);
    let later = race_over(Transport::Quic, &endpoint, device.address).await;
    assert!(is_shortened(&later) && later.info().failed.is_empty(), "{:?}", later.info());
    assert_eq!(device.dropped(), dropped, "the memory is used");
    let strict =
        remembering(trusted().require_post_quantum(), listener.local_addr(), MemoryStore::none());
    let direct = race_over(Transport::Quic, &strict, listener.local_addr()).await;
    assert_eq!(direct.info().key_exchange, Some("X25519MLKEM768"));
}
