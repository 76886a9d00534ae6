//! Associations with a DTLS session for each path, on several loopback addresses.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use eyas_race::candidate::Security;
use eyas_sctp_tokio::protocol::endpoint::{PathState, PathStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::secured_pair::{TIMEOUT, dtls_pair, dtls_pair_at};
use crate::{Connection, KeyFingerprint};

fn loopback(number: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, number).into()
}

fn paths(connection: &Connection) -> Vec<PathStatus> {
    connection.sctp().expect("SCTP").paths()
}

/// Waits until all paths of a connection satisfy a condition.
async fn wait_for(connection: &Connection, is_so: impl Fn(&[PathStatus]) -> bool) {
    let waiting = async {
        while !is_so(&paths(connection)) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = timeout(TIMEOUT, waiting).await;
    waited.unwrap_or_else(|_| panic!("{:#?}", paths(connection)));
}

fn are_confirmed(paths: &[PathStatus], count: usize) -> bool {
    paths.len() == count && paths.iter().all(|path| path.state == PathState::Active)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_know_the_keys_of_each_other() {
    let (_listener, ours, theirs) = dtls_pair().await;
    for connection in [&ours, &theirs] {
        assert_eq!(connection.info().security, Security::Dtls);
        let certificate = connection.info().peer_certificates.first().expect("a certificate");
        assert!(KeyFingerprint::from_certificate(certificate).is_some());
    }
    let streams = (ours.sctp_streams().expect("SCTP"), theirs.sctp_streams().expect("SCTP"));
    let number = eyas_sctp_tokio::protocol::identifier::StreamId(1);
    let (near, far) = tokio::join!(streams.0.stream(number), streams.1.stream(number));
    let (mut near, mut far) = (near.expect("a stream"), far.expect("a stream"));
    near.write_all(b"further").await.expect("writes");
    let mut received = [0; 7];
    timeout(TIMEOUT, far.read_exact(&mut received)).await.expect("in time").expect("reads");
    assert_eq!(&received, b"further");
}

/// Both addresses of the server are paths of the client, and data uses both.
#[tokio::test(flavor = "multi_thread")]
async fn data_uses_a_session_on_each_path() {
    let (_listener, ours, theirs) = dtls_pair_at(&[loopback(1), loopback(2)], &[loopback(1)]).await;
    wait_for(&ours, |paths| are_confirmed(paths, 2)).await;
    let association = ours.sctp().expect("SCTP").clone();
    let mut near = ours.into_stream().expect("a stream");
    let mut far = theirs.into_stream().expect("a stream");
    let body = vec![7; 8 << 20];
    let expected = body.len();
    let reading = tokio::spawn(async move {
        let (mut total, mut piece) = (0, vec![0; 1 << 16]);
        while total < expected {
            total += far.read(&mut piece).await.expect("reads");
        }
    });
    near.write_all(&body).await.expect("writes");
    timeout(TIMEOUT, reading).await.expect("in time").expect("all of it");
    let delivered: Vec<u64> = association.paths().iter().map(|path| path.delivered).collect();
    assert!(delivered.iter().all(|bytes| *bytes > 100_000), "{delivered:?}");
}

/// The client sends from one address only, but opens sessions from all, so that the server can send
/// to all of them.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_reaches_every_address_of_the_client() {
    let (_listener, ours, theirs) = dtls_pair_at(&[loopback(1)], &[loopback(1), loopback(3)]).await;
    wait_for(&theirs, |paths| are_confirmed(paths, 2)).await;
    wait_for(&ours, |paths| are_confirmed(paths, 1)).await;
}
