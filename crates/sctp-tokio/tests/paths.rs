//! Paths of SCTP associations: several from the beginning, and some that are added and removed.

#[path = "../../eyas/tests/namespace/mod.rs"]
mod namespace;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use eyas_sctp_tokio::protocol::endpoint::PathState;
use eyas_sctp_tokio::protocol::event::{Event, OwnAddressChange};
use eyas_sctp_tokio::protocol::message::SendInfo;
use eyas_sctp_tokio::{
    SctpAssociation, SctpCarrier, SctpConnector, SctpListenParameters, SctpListener, SctpOverIp,
};
use tokio::time::timeout;

use crate::namespace::ip;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);
const PORT: u16 = 5000;

fn ips(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

fn changing() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.extensions.dynamic_addresses = true;
    config.auto_asconf = true;
    config
}

fn listener(addresses: &[&str], config: &AssociationConfig) -> SctpListener {
    let addresses: Vec<_> =
        ips(addresses).into_iter().map(|ip| SocketAddr::new(ip, PORT)).collect();
    let mut parameters = SctpListenParameters::new(addresses[0]);
    parameters.addresses = addresses;
    parameters.encapsulation_port = Some(0);
    parameters.over_ip = SctpOverIp::No;
    parameters.association = config.clone();
    SctpListener::bind(&parameters).unwrap()
}

async fn connect(
    to: &str,
    from: &[&str],
    listener: &SctpListener,
    config: &AssociationConfig,
) -> SctpAssociation {
    let udp = listener.encapsulation_port().unwrap();
    let connector = SctpConnector::new(udp, config.clone()).with_local_addresses(ips(from));
    let server = SocketAddr::new(to.parse().unwrap(), PORT);
    connector.connect(SctpCarrier::Udp, server).await.unwrap()
}

/// The addresses of the peer with a working path.
fn working(association: &SctpAssociation) -> Vec<IpAddr> {
    let paths = association.paths();
    let active = paths.iter().filter(|path| path.state == PathState::Active);
    active.map(|path| path.remote.ip()).collect()
}

async fn until_working(association: &SctpAssociation, expected: &[&str]) {
    let expected = ips(expected);
    let reached = timeout(PATIENCE, async {
        while working(association) != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(reached.await.is_ok(), "expected {expected:?}, found {:?}", association.paths());
}

/// The outcome of the next change of a local address.
async fn own_address(association: &SctpAssociation) -> (IpAddr, OwnAddressChange, Option<u16>) {
    let outcome = timeout(PATIENCE, async {
        loop {
            if let Some(Event::OwnAddress { address, change, cause }) = association.event().await {
                return (address, change, cause);
            }
        }
    });
    outcome.await.expect("the peer answers")
}

async fn passes(from: &SctpAssociation, to: &SctpAssociation, text: &'static str) {
    from.send(&SendInfo::default(), Bytes::from_static(text.as_bytes())).await.unwrap();
    let message = timeout(PATIENCE, to.receive()).await.unwrap().unwrap().unwrap();
    assert_eq!(&message.into_bytes()[..], text.as_bytes());
}

const OURS: [&str; 2] = ["127.0.0.3", "127.0.0.4"];
const THEIRS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

#[tokio::test]
async fn an_association_begins_with_a_path_to_each_address() {
    let config = AssociationConfig::default();
    let listener = listener(&THEIRS, &config);
    let ours = connect(THEIRS[0], &OURS, &listener, &config).await;
    let theirs = timeout(PATIENCE, listener.accept()).await.unwrap();
    until_working(&ours, &THEIRS).await;
    timeout(PATIENCE, async {
        while working(&theirs).len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    let second = ours.paths()[1].id;
    ours.set_primary(second).unwrap();
    assert_eq!(ours.status().unwrap().primary, second);
    assert_eq!(ours.remote().unwrap().ip(), ips(&THEIRS)[1]);
    passes(&ours, &theirs, "over the second one").await;
    passes(&theirs, &ours, "and back").await;
}

#[tokio::test]
async fn addresses_are_removed_and_added_again() {
    let config = changing();
    let listener = listener(&THEIRS, &config);
    let ours = connect(THEIRS[0], &OURS, &listener, &config).await;
    let theirs = timeout(PATIENCE, listener.accept()).await.unwrap();
    until_working(&ours, &THEIRS).await;
    let all = ips(&OURS);
    // The peer refuses to remove the source address of the request.
    let used: Vec<IpAddr> = ours.paths().iter().filter_map(|path| path.local).collect();
    let other = all.iter().find(|address| !used.contains(address)).copied().unwrap_or(all[1]);
    let rest: Vec<IpAddr> = all.iter().filter(|address| **address != other).copied().collect();
    ours.remove_address(other).unwrap();
    assert_eq!(own_address(&ours).await, (other, OwnAddressChange::Removed, None));
    let remotes = |of: &SctpAssociation| -> Vec<IpAddr> {
        of.paths().iter().map(|path| path.remote.ip()).collect()
    };
    assert_eq!(remotes(&theirs), rest);
    ours.add_address(other).unwrap();
    assert_eq!(own_address(&ours).await, (other, OwnAddressChange::Added, None));
    assert_eq!(remotes(&theirs), [rest[0], other]);
    ours.set_peer_primary(rest[0]).unwrap();
    assert_eq!(own_address(&ours).await, (rest[0], OwnAddressChange::MadePrimary, None));
    passes(&theirs, &ours, "still here").await;
}

#[tokio::test]
async fn shared_keys_authenticate_address_changes() {
    let config = changing();
    let listener = listener(&THEIRS, &config);
    let ours = connect(THEIRS[0], &OURS, &listener, &config).await;
    let theirs = timeout(PATIENCE, listener.accept()).await.unwrap();
    assert!(ours.activate_shared_key(7).is_err(), "the key is not set yet");
    for side in [&ours, &theirs] {
        side.set_shared_key(7, &b"known to both"[..]).unwrap();
        side.activate_shared_key(7).unwrap();
        assert!(side.remove_shared_key(7).is_err(), "it is in use");
    }
    until_working(&ours, &THEIRS).await;
    let address = ips(&OURS)[1];
    ours.add_address(address).unwrap();
    assert_eq!(own_address(&ours).await, (address, OwnAddressChange::Added, None));
    let plain = AssociationConfig::default();
    let plain = connect(THEIRS[0], &[], &listener, &plain).await;
    assert!(plain.set_shared_key(7, &b"without AUTH"[..]).is_err());
}

#[test]
fn added_and_removed_addresses_become_paths() {
    namespace::in_its_own("added_and_removed_addresses_become_paths", inside);
}

fn inside() {
    for words in [
        "link set lo up",
        "link add here type veth peer name there",
        "link set here up",
        "link set there up",
        "addr add 10.0.0.1/24 dev here",
    ] {
        ip(words);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = changing();
        let listener = listener(&["0.0.0.0"], &config);
        let ours = connect("10.0.0.1", &[], &listener, &config).await;
        let theirs = timeout(PATIENCE, listener.accept()).await.unwrap();
        assert_eq!(ours.paths().len(), 1);
        ip("addr add 10.0.1.1/24 dev here");
        for side in [&ours, &theirs] {
            until_working(side, &["10.0.0.1", "10.0.1.1"]).await;
        }
        let third = connect("10.0.0.1", &[], &listener, &config).await;
        until_working(&third, &["10.0.0.1", "10.0.1.1"]).await;
        ip("addr del 10.0.0.1/24 dev here");
        for side in [&ours, &theirs, &third] {
            until_working(side, &["10.0.1.1"]).await;
        }
        passes(&ours, &theirs, "moved").await;
    });
}
