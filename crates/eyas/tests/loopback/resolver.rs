//! What DNS servers say, and do not say.

use eyas::Resolver;
use eyas::race::dns::{DnsFailure, Query, QueryId, RecordType};

use crate::common::dns::{self, Says};
use crate::common::wait;

async fn failure(says: Says) -> DnsFailure {
    let server = dns::serve(says).await;
    let query =
        Query { id: QueryId(7), name: "host.example".into(), record_type: RecordType::Aaaa };
    let answer = wait(Resolver::server(server.address).query(&query, 443)).await;
    assert_eq!(answer.id, QueryId(7));
    assert!(!answer.protected);
    answer.records.unwrap_err()
}

#[tokio::test]
async fn failures_are_told_apart() {
    assert_eq!(failure(Says::NoData).await, DnsFailure::NoData);
    assert_eq!(failure(Says::NoSuchName).await, DnsFailure::NoSuchName);
    assert_eq!(failure(Says::ServerFailure).await, DnsFailure::ServerFailure);
}

#[tokio::test]
async fn a_server_that_is_silent_is_a_timeout() {
    assert_eq!(failure(Says::Nothing).await, DnsFailure::Timeout);
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_malformed() {
    assert_eq!(failure(Says::Nonsense).await, DnsFailure::Malformed);
}

#[cfg(feature = "encrypted-dns")]
mod encrypted {
    use eyas::race::dns::Records;
    use eyas::{ListenParameters, Listener, SecurityParameters, ServerIdentity};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Answers one question over TLS with 192.0.2.7 (RFC 7858 §3.3: as over TCP).
    async fn answer_one(listener: Listener) {
        let mut asking = listener.accept().await;
        let len = asking.read_u16().await.unwrap();
        let mut question = vec![0; len.into()];
        asking.read_exact(&mut question).await.unwrap();
        let answer = dns::answer_with_address(&question, [192, 0, 2, 7]);
        asking.write_u16(answer.len().try_into().unwrap()).await.unwrap();
        asking.write_all(&answer).await.unwrap();
        asking.flush().await.unwrap();
        // The asking side closes.
        let _ = asking.read_u8().await;
    }

    fn query() -> Query {
        Query { id: QueryId(1), name: "host.example".into(), record_type: RecordType::A }
    }

    #[tokio::test]
    async fn dns_over_tls_is_protected() {
        let identity = ServerIdentity::self_signed(["dns.example"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(parameters.security(identity.clone())).await.unwrap();
        let address = listener.local_addr();
        let server = tokio::spawn(answer_one(listener));
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::tls(address, "dns.example").with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert_eq!(answer.records, Ok(Records::A(vec![[192, 0, 2, 7].into()])));
        assert!(answer.protected);
        drop(resolver);
        server.abort();
    }

    #[tokio::test]
    async fn a_dns_server_that_is_somebody_else_is_not_believed() {
        let identity = ServerIdentity::self_signed(["else.example"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(parameters.security(identity.clone())).await.unwrap();
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::tls(listener.local_addr(), "dns.example").with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert!(answer.records.is_err(), "{answer:?}");
    }

    /// Answers every question over HTTP/2 with 192.0.2.7 (RFC 8484 §4).
    async fn answer_over_https(listener: Listener) {
        let asking = listener.accept().await;
        let mut asking = h2::server::handshake(asking).await.unwrap();
        while let Some(request) = asking.accept().await {
            let (request, mut respond) = request.unwrap();
            assert_eq!(request.method(), http::Method::POST);
            assert_eq!(request.uri().path(), "/ask-me");
            assert_eq!(request.headers()["content-type"], "application/dns-message");
            let question = request.into_body().data().await.unwrap().unwrap();
            let answer = dns::answer_with_address(&question, [192, 0, 2, 7]);
            let head = http::Response::builder().header("content-type", "application/dns-message");
            let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
            body.send_data(answer.into(), true).unwrap();
        }
    }

    #[tokio::test]
    async fn dns_over_https_is_protected() {
        let identity = ServerIdentity::self_signed(["127.0.0.1"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let parameters = parameters.security(identity.clone()).alpn(["h2"]);
        let listener = Listener::bind(parameters).await.unwrap();
        let url = format!("https://{}/ask-me", listener.local_addr());
        let server = tokio::spawn(answer_over_https(listener));
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::https(&url).unwrap().with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert_eq!(answer.records, Ok(Records::A(vec![[192, 0, 2, 7].into()])));
        assert!(answer.protected);
        server.abort();
    }

    #[tokio::test]
    async fn a_doh_server_that_nobody_trusts_is_not_believed() {
        let identity = ServerIdentity::self_signed(["127.0.0.1"]).unwrap();
        let other = ServerIdentity::self_signed(["127.0.0.1"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(parameters.security(identity).alpn(["h2"])).await.unwrap();
        let url = format!("https://{}/ask-me", listener.local_addr());
        let server = tokio::spawn(answer_over_https(listener));
        let trust = SecurityParameters::platform().with_roots([other.certificate().clone()]);
        let resolver = Resolver::https(&url).unwrap().with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert!(answer.records.is_err(), "{answer:?}");
        server.abort();
    }

    #[test]
    fn a_url_that_is_no_doh_server_is_refused() {
        assert!(Resolver::https("https://192.0.2.1/dns-query").is_ok());
        assert!(Resolver::https("http://192.0.2.1/dns-query").is_err());
        assert!(Resolver::https("not a url").is_err());
    }
}
