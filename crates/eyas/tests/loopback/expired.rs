//! Connections to a name whose address changes after its time to live, by optimistic DNS.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::race::report::RaceReport;
use eyas::race::target::{Target, TargetHost};
use eyas::{
    Connection, Endpoint, ListenParameters, Listener, MemoryStore, Resolver, SecurityParameters,
    ServerIdentity,
};

use crate::common::dns::ChangingName;
use crate::common::{self, NAME, https, own_address, wait};

const OLD: [u8; 4] = [127, 0, 0, 1];
const NEW: [u8; 4] = [127, 0, 0, 2];

/// Longer than the time to live of every answer.
const PAST_ITS_TIME: Duration = Duration::from_millis(1_100);
/// How long the name server takes when the address has changed: longer than a connection.
const SLOW: Duration = Duration::from_secs(2);

/// A server over TCP at the old and at the new address of a name, and an endpoint that knows the old one.
struct Moved {
    name: ChangingName,
    old: Option<Listener>,
    _new: Listener,
    endpoint: Endpoint,
    target: Target,
}

impl Moved {
    /// The endpoint has connected, the answer has expired, and the name has the new address.
    async fn new(
        target: fn(u16) -> Target,
        resolver: fn(Resolver) -> Resolver,
        security: fn(SecurityParameters) -> SecurityParameters,
    ) -> Self {
        let address = own_address();
        let (identity, target) = (common::identity(), target(address.port()));
        let identity_of_servers = target.authenticates_peer().then_some(&identity);
        let name = ChangingName::serve(OLD).await;
        let roots = [identity.certificate().clone()];
        let moved = Self {
            old: Some(listen(address, identity_of_servers).await),
            _new: listen((NEW, address.port()).into(), identity_of_servers).await,
            endpoint: Endpoint::builder()
                .security(security(SecurityParameters::platform().with_roots(roots)))
                .resolver(resolver(Resolver::server(name.address)))
                .memory(MemoryStore::default())
                .build()
                .unwrap(),
            name,
            target,
        };
        assert_eq!(ip(&moved.connect().await), IpAddr::from(OLD));
        tokio::time::sleep(PAST_ITS_TIME).await;
        moved.name.change(NEW, SLOW);
        moved
    }

    async fn authenticated() -> Self {
        Self::new(https, |resolver| resolver, |security| security).await
    }

    async fn connect(&self) -> Connection {
        wait(self.endpoint.preconnection(self.target.clone()).connect()).await.unwrap()
    }
}

async fn listen(address: SocketAddr, identity: Option<&ServerIdentity>) -> Listener {
    let parameters = ListenParameters::new(address).transports([Transport::Tcp]);
    let parameters = match identity {
        Some(identity) => parameters.security(identity.clone()).with_alpn(["h2", "http/1.1"]),
        None => parameters,
    };
    Listener::bind(parameters).await.unwrap()
}

fn ip(connection: &Connection) -> IpAddr {
    connection.info().remote.ip()
}

//= hev3 §4.4
//# a connection to an expired address does not wait for DNS, and the report says that it was expired
#[tokio::test]
async fn the_expired_address_is_used_without_waiting() {
    let moved = Moved::authenticated().await;
    let mut initiation = moved.endpoint.preconnection(moved.target.clone()).initiate();
    let started = std::time::Instant::now();
    let connection = wait(initiation.usable()).await.unwrap();
    assert_eq!(ip(&connection), IpAddr::from(OLD));
    assert!(started.elapsed() < SLOW, "{:?}", started.elapsed());
    let expected = format!("from an answer for {NAME} whose time to live is over");
    let reasons = &connection.info().reasons;
    assert!(reasons.contains(&expected), "{reasons:?}");
    let report = RaceReport::from_trace(&initiation.trace()).unwrap();
    assert!(report.dns.iter().any(|query| query.expired), "{:?}", report.dns);
}

#[tokio::test]
async fn the_new_address_is_used_if_the_expired_one_fails() {
    let mut moved = Moved::authenticated().await;
    drop(moved.old.take());
    assert_eq!(ip(&moved.connect().await), IpAddr::from(NEW));
}

/// The new answer is awaited even if it is slower than the race, so that the next ones have it.
#[tokio::test]
async fn the_new_answer_is_kept() {
    let moved = Moved::authenticated().await;
    // Each race is over as soon as it is won.
    let transports = vec![Transport::Tcp];
    let policy = Policy { transports, dns_after_win: Duration::ZERO, ..Policy::default() };
    let connect = || async {
        let preconnection = moved.endpoint.preconnection(moved.target.clone());
        ip(&wait(preconnection.policy(policy.clone()).connect()).await.unwrap())
    };
    assert_eq!(connect().await, IpAddr::from(OLD));
    let is_new = async {
        while connect().await != IpAddr::from(NEW) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    // Of the queries of the races alone, none would last.
    tokio::time::timeout(4 * SLOW, is_new).await.expect("the new answer is known");
}

fn http(port: u16) -> Target {
    Target::http(TargetHost::Name(NAME.into()), port)
}

#[tokio::test]
async fn an_expired_address_is_not_used_if_nothing_proves_whose_it_is() {
    let (off, insecure, clear) = tokio::join!(
        Moved::new(https, |resolver| resolver.with_optimistic_dns(false), |security| security),
        Moved::new(https, |resolver| resolver, SecurityParameters::accept_any_certificate),
        Moved::new(http, |resolver| resolver, |security| security),
    );
    let (off, insecure, clear) = tokio::join!(off.connect(), insecure.connect(), clear.connect());
    for (case, connection) in [("off", off), ("insecure", insecure), ("clear", clear)] {
        assert_eq!(ip(&connection), IpAddr::from(NEW), "{case}");
    }
}
