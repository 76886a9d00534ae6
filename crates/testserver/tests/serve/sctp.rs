//! Tests of HTTP/1 over SCTP with clients that do not read their responses.

use std::time::Duration;

use bytes::Bytes;
use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetHost};
use eyas::{Connection, Endpoint, MemoryStore};
use eyas_http::serve::{Limits, Running, SctpService};
use eyas_sctp_tokio::protocol::message::SendInfo;
use tokio::time::{sleep, timeout};

use crate::{
    builder,
    clients::{SOON, start},
};

async fn connect(running: &Running) -> Connection {
    let udp = running.sctp().and_then(|sctp| sctp.encapsulation_port()).expect("SCTP inside UDP");
    let builder = Endpoint::builder().memory(MemoryStore::none()).sctp_encapsulation_port(udp);
    let address = running.local_addr();
    let host = TargetHost::parse(&address.ip().to_string()).expect("an address");
    let transports = vec![Transport::SctpUdp];
    let target = Target::plain(host, address.port(), transports.clone(), Security::None);
    let policy = Policy { transports, ..Policy::default() };
    let endpoint = builder.build().expect("an endpoint");
    let connecting = endpoint.preconnection(target).policy(policy).connect();
    timeout(SOON, connecting).await.expect("in time").expect("a connection")
}

/// The server closes the connection soon, but the client keeps its window closed and answers every
/// probe.
#[tokio::test]
async fn a_connection_counts_until_its_association_has_ended() {
    let limits = Limits { idle_time: Duration::from_secs(1), ..Limits::default() };
    let builder = builder().plain().sctp(SctpService::with_free_port()).limits(limits);
    let running = start(builder).await;
    let client = connect(&running).await;
    let request = "GET /bytes/100000000 HTTP/1.1\r\nHost: a\r\n\r\n";
    let association = client.sctp().expect("SCTP");
    association.send(&SendInfo::default(), Bytes::from(request)).await.expect("sent");
    let ended = async {
        while running.stats().timed_out == 0 {
            sleep(Duration::from_millis(10)).await;
        }
        loop {
            let is_open = running.stats().sctp_open > 0;
            if !is_open {
                return running.sctp().map(|sctp| sctp.associations());
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert_eq!(timeout(SOON, ended).await, Ok(Some(0)));
}
