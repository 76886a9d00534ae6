//! A network with only IPv6 and a NAT64, in its own network namespace.

mod namespace;

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use eyas::race::candidate::{Security, Transport};
use eyas::race::io::NetworkView;
use eyas::race::target::{Target, TargetHost};
use eyas::{Endpoint, MemoryStore, Resolver};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::namespace::ip;

/// Far longer than anything here takes, so that a hang becomes a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// An interface with an IPv6 address, and the addresses of name servers and of a host behind the NAT64.
const NETWORK: [&str; 9] = [
    "link set lo up",
    "link add here type veth peer name there",
    "addr add 2001:db8::2/64 dev here nodad",
    "link set here up",
    "link set there up",
    "addr add 2001:db8:53::1/128 dev lo nodad",
    "addr add 2001:db8:53::2/128 dev lo nodad",
    "addr add 2001:db8:64::c612:8/128 dev lo nodad",
    "addr add 2001:db8:46::c612:8/128 dev lo nodad",
];
const ROUTE: &str = "route add default via 2001:db8::1 dev here";
/// The network's name server synthesises addresses; the caller's has only those that exist, or those of another
/// network.
const DNS64: &str = "[2001:db8:53::1]:53";
const OTHER: &str = "[2001:db8:53::2]:53";
const PREFIX: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0), 96);
const ADVERTISED: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 0xdb8, 0x46, 0, 0, 0, 0, 0), 96);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() });
}

/// Makes this the name server of the namespace.
fn set_name_server(address: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("nameserver {address}\n")).unwrap();
    let mount = std::process::Command::new("mount")
        .args(["--bind"])
        .args([file.path().as_os_str(), "/etc/resolv.conf".as_ref()])
        .output()
        .unwrap();
    assert!(mount.status.success(), "{}", String::from_utf8_lossy(&mount.stderr));
}

/// Starts a name server that answers queries for IPv6 addresses with this prefix and the addresses of
/// `ipv4only.arpa`, for that name, and has no other addresses.
fn start_name_server(address: &str, prefix: Option<(Ipv6Addr, u8)>) {
    let socket = UdpSocket::bind(address).unwrap();
    std::thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut query) {
            let name = query[12..len].iter().position(|octet| *octet == 0).unwrap();
            let end = 12 + name + 5;
            let mut answer = query[..end].to_vec();
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
            let is_asked = query[12..end] == *b"\x08ipv4only\x04arpa\0\0\x1c\0\x01";
            if let Some((prefix, 96)) = prefix.filter(|_| is_asked) {
                answer[7] = 1;
                let address = Ipv6Addr::from_bits(prefix.to_bits() | 0xc000_00aa);
                answer.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16]);
                answer.extend(address.octets());
            }
            socket.send_to(&answer, from).unwrap();
        }
    });
}

fn endpoint(resolver: Resolver) -> Endpoint {
    Endpoint::builder().resolver(resolver).memory(MemoryStore::none()).build().unwrap()
}

/// Connects to `198.18.0.8`, which is behind the NAT64.
async fn reach(endpoint: &Endpoint, port: u16, host: &str) -> SocketAddr {
    let transports = vec![Transport::Tcp];
    let target = Target::plain(TargetHost::parse(host).unwrap(), port, transports, Security::None);
    let connection = endpoint.preconnection(target).connect().await.unwrap();
    connection.tcp().unwrap().peer_addr().unwrap()
}

#[test]
fn the_networks_own_name_server_knows_the_prefix() {
    namespace::in_its_own("the_networks_own_name_server_knows_the_prefix", || {
        run(async {
            NETWORK.into_iter().for_each(ip);
            ip(ROUTE);
            set_name_server("2001:db8:53::1");
            start_name_server(DNS64, Some(PREFIX));
            // Another network's DNS64 is of no use here.
            start_name_server(OTHER, Some(ADVERTISED));
            let other = Resolver::server(OTHER.parse().unwrap());
            let nobody = Resolver::server("[::1]:9".parse().unwrap());
            let resolver = Resolver::system();
            let examined = resolver.examine_servers("ipv4only.arpa", 443, PATIENCE / 10);
            let prefixes: Vec<_> =
                examined.await.iter().map(|server| server.nat64_prefixes()).collect();
            assert_eq!(prefixes, [[PREFIX]]);
            let listener = std::net::TcpListener::bind("[2001:db8:64::c612:8]:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let known = vec!["198.18.0.8".parse().unwrap()];
            for resolver in [Resolver::system(), other, nobody] {
                let endpoint = endpoint(resolver.overriding("v4.test", port, known.clone()));
                assert_eq!(endpoint.network_view().await.pref64, [PREFIX], "{endpoint:?}");
                for host in ["198.18.0.8", "v4.test"] {
                    let peer = reach(&endpoint, port, host).await;
                    assert_eq!(peer, listener.local_addr().unwrap(), "{host}");
                }
            }
        });
    });
}

#[test]
fn a_named_server_is_asked_where_the_network_has_none() {
    namespace::in_its_own("a_named_server_is_asked_where_the_network_has_none", || {
        run(async {
            NETWORK.into_iter().for_each(ip);
            ip(ROUTE);
            set_name_server("2001:db8:53::1");
            start_name_server(OTHER, Some(PREFIX));
            let endpoint = endpoint(Resolver::server(OTHER.parse().unwrap()));
            assert_eq!(endpoint.network_view().await.pref64, [PREFIX]);
        });
    });
}

/// The server is not there when the network is, as when both have just come up.
#[test]
fn the_prefix_is_looked_for_again() {
    namespace::in_its_own("the_prefix_is_looked_for_again", || {
        run(async {
            NETWORK.into_iter().for_each(ip);
            ip(ROUTE);
            set_name_server("2001:db8:53::1");
            let endpoint = endpoint(Resolver::system());
            let mut changes = endpoint.network_changes();
            assert_eq!(endpoint.network_view().await.pref64, []);
            start_name_server(DNS64, Some(PREFIX));
            while changes.next().await.unwrap().pref64 != [PREFIX] {}
            assert_eq!(endpoint.network_view().await.pref64, [PREFIX]);
        });
    });
}

#[test]
fn advertised_prefixes_are_taken_and_withdrawn() {
    namespace::in_its_own("advertised_prefixes_are_taken_and_withdrawn", || {
        run(async {
            NETWORK.into_iter().for_each(ip);
            set_name_server("2001:db8:53::1");
            start_name_server(DNS64, Some(PREFIX));
            std::fs::write("/proc/sys/net/ipv6/conf/here/accept_ra", "2").unwrap();
            let router = Router::new();
            let endpoint = endpoint(Resolver::system());
            let mut changes = endpoint.network_changes();
            let view = endpoint.network_view().await;
            assert_eq!(view.pref64, [], "there is no route yet");
            let until = async |lifetime: u16, changes: &mut eyas::NetworkChanges, prefix| {
                loop {
                    router.advertise(lifetime);
                    let change = tokio::time::timeout(Duration::from_secs(1), changes.next()).await;
                    let has = |view: &NetworkView| view.pref64 == [prefix];
                    if has(&*endpoint.network_view().await) {
                        return change;
                    }
                }
            };
            // The advertisement takes precedence over DNS (RFC 8781 §5.1).
            let _ = until(600, &mut changes, ADVERTISED).await;
            let listener = std::net::TcpListener::bind("[2001:db8:46::c612:8]:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let peer = reach(&endpoint, port, "198.18.0.8").await;
            assert_eq!(peer, listener.local_addr().unwrap());
            let _ = until(0, &mut changes, PREFIX).await;
        });
    });
}

/// A router at the other end of the interface.
struct Router(Socket);

impl Router {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).unwrap();
        let index = std::fs::read_to_string("/sys/class/net/there/ifindex");
        let index = index.ok().and_then(|index| index.trim().parse().ok()).unwrap_or_else(|| {
            // The file system shows another namespace.
            nix::net::if_::if_nametoindex("there").unwrap()
        });
        socket.set_multicast_if_v6(index).unwrap();
        // Routers are neighbours (RFC 4861 §6.1.2).
        socket.set_multicast_hops_v6(255).unwrap();
        Self(socket)
    }

    /// Sends an advertisement to all nodes, with a prefix for addresses and one of a NAT64 that has this lifetime, in
    /// seconds.
    fn advertise(&self, lifetime: u16) {
        let router_lifetime = 1800_u16.to_be_bytes();
        let head = [&[134, 0, 0, 0, 64, 0][..], &router_lifetime, &[0; 8]].concat();
        let valid = 3600_u32.to_be_bytes();
        let prefix: Ipv6Addr = "2001:db8:1::".parse().unwrap();
        let addresses = [&[3, 4, 64, 0xc0][..], &valid, &valid, &[0; 4], &prefix.octets()].concat();
        let nat64 = [&[38, 2][..], &lifetime.to_be_bytes(), &ADVERTISED.0.octets()[..12]].concat();
        let all_nodes: SocketAddr = "[ff02::1]:0".parse().unwrap();
        // The interface may not have its own address yet.
        let _ = self.0.send_to(&[head, addresses, nat64].concat(), &SockAddr::from(all_nodes));
    }
}
