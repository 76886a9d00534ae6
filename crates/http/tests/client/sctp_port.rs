//! Tests of a server that announces its port for SCTP over UDP, and of a connection to it that dies.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};
use eyas_http::serve::{RequestBody, SctpService, Server};
use eyas_http::{Body, Client, HttpPolicy, Proxy, ReuseVerdict, Versions};
use eyas_sctp_tokio::SctpListener;
use futures_util::stream::pending;
use http::{Request, Response};
use tower::service_fn;

use crate::ports::own_port;
use crate::reuse::Path;
use crate::site::{NAME, SOON};

async fn answer(request: Request<RequestBody>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(match request.uri().path() {
        "/endless" => Body::from_stream(pending::<Result<Bytes, Infallible>>()),
        _ => Body::empty(),
    }))
}

/// The first connection tries SCTP at an unused port; the response announces the port for the next
/// one.
#[tokio::test]
async fn the_port_of_sctp_inside_udp_is_learnt() {
    for (policy, expected) in
        [(HttpPolicy::RaceAltSvc, Transport::SctpUdp), (HttpPolicy::Race, Transport::Tcp)]
    {
        let server = Server::builder().listen((Ipv4Addr::LOCALHOST, 0).into()).names([NAME]);
        let server = server
            .versions(Versions::HTTP_1)
            .sctp(SctpService::with_free_port())
            .service(service_fn(answer));
        let running = server.start().await.expect("a server");
        let port = running.local_addr().port();
        let root = running.identity().expect("TLS").certificate().clone();
        let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
        let endpoint = Endpoint::builder()
            .security(SecurityParameters::platform().with_roots([root]))
            .resolver(resolver.overriding(NAME, port, vec![Ipv4Addr::LOCALHOST.into()]))
            .memory(MemoryStore::none())
            .sctp_encapsulation_port(own_port());
        let race = Policy {
            transports: vec![Transport::SctpUdp, Transport::Tcp],
            head_start: Duration::from_secs(2),
            ..Policy::default()
        };
        let client = Client::builder().endpoint(endpoint.build().expect("an endpoint"));
        let client = client.proxy(Proxy::none()).policy(policy).race(race);
        let client = client.versions(Versions::HTTP_1).build().expect("a client");
        let get = |path| client.get(format!("https://{NAME}:{port}{path}")).send();
        // It keeps its connection as long as it has not been read.
        let first = get("/endless").await.expect("a response");
        assert_eq!(first.connection().transport, Transport::Tcp, "{policy}");
        let second = get("/").await.expect("a response");
        assert_eq!(second.connection().transport, expected, "{policy}");
    }
}

#[tokio::test]
async fn an_association_that_falls_silent_costs_a_race() {
    let server = Server::builder().listen((Ipv4Addr::LOCALHOST, 0).into()).names([NAME]);
    let server = server.versions(Versions::HTTP_1).sctp(SctpService::with_free_port());
    let running = server.service(service_fn(answer)).start().await.expect("a server");
    let port = running.local_addr().port();
    let sctp = running.sctp().and_then(SctpListener::encapsulation_port).expect("SCTP inside UDP");
    let path = Path::to_port(sctp).await;
    let root = running.identity().expect("TLS").certificate().clone();
    let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
    let endpoint = Endpoint::builder()
        .security(SecurityParameters::platform().with_roots([root]))
        .resolver(resolver.overriding(NAME, port, vec![Ipv4Addr::LOCALHOST.into()]))
        .memory(MemoryStore::none())
        .sctp_encapsulation_port(path.port);
    let race = Policy {
        transports: vec![Transport::SctpUdp, Transport::Tcp],
        head_start: Duration::from_secs(2),
        ..Policy::default()
    };
    let client = Client::builder().endpoint(endpoint.build().expect("an endpoint"));
    let client = client.proxy(Proxy::none()).policy(HttpPolicy::Race).race(race);
    let client = client.versions(Versions::HTTP_1).build().expect("a client");
    let get = || async {
        let sent = client.get(format!("https://{NAME}:{port}/")).send();
        tokio::time::timeout(SOON, sent).await.expect("no hang").expect("a response")
    };
    for _ in 0..2 {
        let response = get().await;
        assert_eq!(response.connection().transport, Transport::SctpUdp);
        assert!(response.reuse().is_none_or(|reuse| reuse.verdict == ReuseVerdict::Alive));
    }
    path.cut();
    let response = get().await;
    assert_eq!(response.connection().transport, Transport::Tcp);
    assert_eq!(response.reuse().expect("reused").verdict, ReuseVerdict::Dead);
}
