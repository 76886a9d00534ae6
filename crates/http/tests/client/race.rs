//! Tests of races of requests: HTTP/3 first, TCP if UDP is dropped, the late switch.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use eyas::race::{candidate::Transport, policy::Policy};
use eyas_http::{HttpPolicy, Kind, Versions};
use http::Version;
use tokio::{
    net::UdpSocket,
    sync::{Mutex, watch},
};

use crate::site::{Plan, Reply, SOON, Site, builder, builder_for, client, echo_path, identity};

/// Binds a UDP port that receives everything and answers nothing.
async fn silent_udp(port: u16) -> UdpSocket {
    UdpSocket::bind(("127.0.0.1", port)).await.expect("the UDP port beside the TCP one")
}

/// Forwards datagrams between one client and `to` once `open` is true; they are queued before.
async fn gate(
    at: u16,
    to: SocketAddr,
    mut open: watch::Receiver<bool>,
) -> tokio::task::JoinSet<()> {
    let outer = Arc::new(UdpSocket::bind(("127.0.0.1", at)).await.expect("the UDP port"));
    let inner = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a UDP port"));
    let client = Arc::new(Mutex::new(None));
    let mut tasks = tokio::task::JoinSet::new();
    let (outer_in, inner_out, peer) = (Arc::clone(&outer), Arc::clone(&inner), Arc::clone(&client));
    tasks.spawn(async move {
        let _ = open.wait_for(|open| *open).await;
        let mut datagram = [0; 65536];
        while let Ok((size, from)) = outer_in.recv_from(&mut datagram).await {
            *peer.lock().await = Some(from);
            let _ = inner_out.send_to(&datagram[..size], to).await;
        }
    });
    tasks.spawn(async move {
        let mut datagram = [0; 65536];
        while let Ok(size) = inner.recv(&mut datagram).await {
            if let Some(from) = *client.lock().await {
                let _ = outer.send_to(&datagram[..size], from).await;
            }
        }
    });
    tasks
}

/// Returns a client that does not consider QUIC silent while the gate is closed.
fn patient(site: &Site) -> eyas_http::Client {
    let race = Policy { late_switch_for: SOON * 2, ..Policy::default() };
    builder(&[site]).race(race).build().expect("a client")
}

/// Sends requests until one uses HTTP/3, or the time limit is reached.
async fn until_http_3(client: &eyas_http::Client, site: &Site) -> Version {
    let asking = async {
        loop {
            let response = client.get(site.url("/later")).send().await.expect("a response");
            if response.version() == Version::HTTP_3 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(SOON, asking).await {
        Ok(()) => Version::HTTP_3,
        Err(_) => Version::HTTP_2,
    }
}

#[tokio::test]
async fn http_3_wins_where_both_work() {
    let site = Plan::default().start(echo_path).await;
    // A head start that is long enough even on a busy machine.
    let race = Policy { head_start: Duration::from_secs(2), ..Policy::default() };
    let client = builder(&[&site]).race(race).build().expect("a client");
    let response = client.get(site.url("/")).send().await.expect("a response");
    assert_eq!(response.version(), Version::HTTP_3);
    assert_eq!(response.connection().transport, Transport::Quic);
    assert!(!response.trace().steps.is_empty());
    assert_eq!(site.versions(), [Version::HTTP_3]);
}

#[tokio::test]
async fn http_2_wins_where_udp_is_dropped() {
    let site = Plan::tcp("h2").start(echo_path).await;
    let _hole = silent_udp(site.address.port()).await;
    let client = client(&[&site]);
    for _ in 0..2 {
        let response = client.get(site.url("/")).send().await.expect("a response");
        assert_eq!(response.version(), Version::HTTP_2);
        assert_eq!(response.connection().transport, Transport::Tcp);
    }
    assert_eq!(site.connections(), 1);
}

#[tokio::test]
async fn the_late_switch_sends_the_first_request_once_and_the_next_over_http_3() {
    let identity = identity(&[crate::site::NAME]);
    let tcp = Plan::tcp("h2").identity(&identity).start(echo_path).await;
    let quic = Plan::quic().identity(&identity).start(echo_path).await;
    let (open, gate_open) = watch::channel(false);
    let _gate = gate(tcp.address.port(), quic.address, gate_open).await;
    let client = patient(&tcp);
    let first = client.get(tcp.url("/first")).send().await.expect("a response");
    assert_eq!(first.version(), Version::HTTP_2);
    assert_eq!(first.text().await.expect("a body"), "/first");
    open.send(true).expect("a gate");
    assert_eq!(until_http_3(&client, &tcp).await, Version::HTTP_3);
    let firsts = |site: &Site| site.seen().iter().filter(|s| s.target.ends_with("/first")).count();
    assert_eq!((firsts(&tcp), firsts(&quic)), (1, 0));
    assert!(quic.seen().iter().all(|seen| seen.target.ends_with("/later")));
    // From now on, TCP is not used.
    let before = tcp.seen().len();
    client.get(tcp.url("/last")).send().await.expect("a response");
    assert_eq!(tcp.seen().len(), before);
}

#[tokio::test]
async fn a_body_under_way_is_not_interrupted_by_the_switch() {
    let identity = identity(&[crate::site::NAME]);
    let long = |seen: &crate::site::Seen| match seen.target.ends_with("/long") {
        true => Reply { chunks: vec![vec![7; 100_000].into(); 50], ..Reply::status(200) },
        false => echo_path(seen),
    };
    let tcp = Plan::tcp("h2").identity(&identity).start(long).await;
    let quic = Plan::quic().identity(&identity).start(long).await;
    let (open, gate_open) = watch::channel(false);
    let _gate = gate(tcp.address.port(), quic.address, gate_open).await;
    let client = patient(&tcp);
    let mut under_way = client.get(tcp.url("/long")).send().await.expect("a response");
    let first = under_way.chunk().await.expect("a chunk").expect("a chunk").len();
    open.send(true).expect("a gate");
    assert_eq!(until_http_3(&client, &tcp).await, Version::HTTP_3);
    let rest = under_way.bytes().await.expect("the rest").len();
    assert_eq!(first + rest, 5_000_000);
}

#[tokio::test]
async fn serial_tries_quic_until_it_fails_and_then_tcp() {
    let site = Plan::tcp("h2").start(echo_path).await;
    // Nothing listens on the UDP port: QUIC is refused, not dropped.
    let client = builder(&[&site]).policy(HttpPolicy::Serial).build().expect("a client");
    let response = client.get(site.url("/")).send().await.expect("a response");
    assert_eq!(response.version(), Version::HTTP_2);
    let both = Plan::default().start(echo_path).await;
    let client = builder(&[&both]).policy(HttpPolicy::Serial).build().expect("a client");
    client.get(both.url("/")).send().await.expect("a response");
    assert_eq!(both.versions(), [Version::HTTP_3]);
    assert_eq!(both.connections(), 1);
}

#[tokio::test]
async fn a_disallowed_version_is_not_used() {
    let site = Plan::tcp("http/1.1").start(echo_path).await;
    let client = builder(&[&site]).versions(Versions::HTTP_2).build().expect("a client");
    let error = client.get(site.url("/")).send().await.expect_err("no common version");
    assert_eq!(error.kind(), Kind::Tls, "{error}");
}

#[tokio::test]
async fn dropping_the_client_ends_the_race() {
    let site = Plan::tcp("h2").start(echo_path).await;
    let hole = silent_udp(site.address.port()).await;
    let client = builder_for(&[site.address.port()], &[&site.identity]).build().expect("a client");
    client.get(site.url("/")).send().await.expect("a response");
    drop(client);
    // QUIC retransmits its first flight; after the client is dropped, it stops.
    let mut datagram = [0; 2048];
    let silent = async {
        while tokio::time::timeout(Duration::from_secs(4), hole.recv(&mut datagram)).await.is_ok() {
        }
    };
    tokio::time::timeout(SOON * 2, silent).await.expect("silence");
}
