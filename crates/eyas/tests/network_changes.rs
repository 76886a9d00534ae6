//! The machine moves to another network, in its own network namespace.

mod namespace;

use std::net::IpAddr;
use std::time::Duration;

use eyas::{Endpoint, MemoryStore, Resolver};

use crate::namespace::ip;

/// Far longer than the kernel's notification takes, so that a hang becomes a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// An interface with an address and a default route.
const FIRST: [&str; 4] = [
    "link add here type veth peer name there",
    "addr add 192.0.2.2/24 dev here",
    "link set here up",
    "link set there up",
];
const FIRST_ROUTE: &str = "route add default via 192.0.2.1 dev here";

/// A container network, which has no default route.
const CONTAINERS: [&str; 3] = [
    "link add inner type veth peer name outer",
    "addr add 172.17.0.1/16 dev inner",
    "link set inner up",
];

/// Another address and gateway.
const SECOND: [&str; 3] = [
    "addr del 192.0.2.2/24 dev here",
    "addr add 198.51.100.2/24 dev here",
    "route add default via 198.51.100.1 dev here",
];

#[test]
fn a_change_of_the_default_route_is_reported() {
    namespace::in_its_own("a_change_of_the_default_route_is_reported", inside);
}

fn inside() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, move_between_networks()).await.unwrap() });
}

async fn move_between_networks() {
    FIRST.into_iter().for_each(ip);
    ip(FIRST_ROUTE);
    let endpoint = Endpoint::builder()
        .resolver(Resolver::server("127.0.0.1:9".parse().unwrap()))
        .memory(MemoryStore::none())
        .build()
        .unwrap();
    let at_first = endpoint.network_view().await;
    assert!(leaves_by(&at_first, "192.0.2.2"), "{at_first:?}");
    let mut changes = endpoint.network_changes();
    CONTAINERS.into_iter().for_each(ip);
    let change = tokio::time::timeout(Duration::from_secs(1), changes.next()).await;
    assert!(change.is_err(), "a container network is no change of network: {change:?}");
    assert_eq!(endpoint.network_view().await.id, at_first.id);
    SECOND.into_iter().for_each(ip);
    // The address is removed first, which is a change as well.
    let then = loop {
        let view = changes.next().await.unwrap();
        if leaves_by(&view, "198.51.100.2") {
            break view;
        }
    };
    assert!(!leaves_by(&then, "192.0.2.2"), "{then:?}");
    assert_ne!(then.id, at_first.id, "evidence of the new network is kept separate");
    assert_eq!(endpoint.network_view().await.id, then.id);
}

fn leaves_by(view: &eyas::race::io::NetworkView, address: &str) -> bool {
    let address: IpAddr = address.parse().unwrap();
    view.sources.iter().any(|source| source.address == address && source.routed)
}
