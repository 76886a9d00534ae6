//! The responses and failures of DNS servers.

use eyas::Resolver;
use eyas::race::dns::{
    DnsAnswer, DnsFailure, DnsQuery, DnsRecords, HttpsRecord, QueryId, RecordType,
};

use crate::common::dns::{self, Response};
use crate::common::wait;

async fn failure(response: Response) -> DnsFailure {
    let server = dns::serve(response).await;
    let query =
        DnsQuery { id: QueryId(7), name: "host.example".into(), record_type: RecordType::Aaaa };
    let answer = wait(Resolver::server(server.address).query(&query, 443)).await;
    assert_eq!(answer.id, QueryId(7));
    assert!(!answer.protected);
    answer.records.unwrap_err()
}

#[tokio::test]
async fn failures_are_distinguished() {
    assert_eq!(failure(Response::NoData).await, DnsFailure::NoData);
    assert_eq!(failure(Response::NoSuchName).await, DnsFailure::NoSuchName);
    assert_eq!(failure(Response::ServerFailure).await, DnsFailure::ServerFailure);
}

#[tokio::test]
async fn a_server_that_is_silent_is_a_timeout() {
    assert_eq!(failure(Response::Nothing).await, DnsFailure::Timeout);
}

#[tokio::test]
async fn a_nonsensical_answer_is_malformed() {
    assert_eq!(failure(Response::Nonsense).await, DnsFailure::Malformed);
}

#[tokio::test]
async fn each_answer_of_a_server_is_examined_by_itself() {
    for (response, expected) in [
        (Response::NoData, DnsFailure::NoData),
        (Response::ServerFailure, DnsFailure::ServerFailure),
        (Response::Nothing, DnsFailure::Timeout),
    ] {
        let server = dns::serve(response).await;
        let resolver = Resolver::server(server.address);
        let limit = std::time::Duration::from_millis(500);
        let found = wait(resolver.examine_servers("host.example", 8443, limit)).await;
        let [found] = found.try_into().expect("one server");
        assert_eq!(found.server, server.address);
        for answer in [&found.a, &found.aaaa, &found.https] {
            assert_eq!(answer.records, Err(expected.clone()), "{found:?}");
        }
        // It does not listen there.
        assert_eq!(found.over_tcp.records, Err(DnsFailure::Unreachable));
        assert_eq!(found.nat64_prefixes(), []);
    }
}

/// `1 . alpn=h2,\255\254,h3`: the second identifier is not text, which is allowed.
const NOT_TEXT: &[u8] = &[0, 1, 0, 0, 1, 0, 9, 2, b'h', b'2', 2, 0xff, 0xfe, 2, b'h', b'3'];

/// Queries the HTTPS records of a name.
async fn query_service(resolver: &Resolver) -> DnsAnswer {
    let query =
        DnsQuery { id: QueryId(1), name: "host.example".into(), record_type: RecordType::Https };
    wait(resolver.query(&query, 443)).await
}

/// The expected result for [`NOT_TEXT`].
fn expected_records() -> Result<DnsRecords, DnsFailure> {
    let alpn = vec!["h2".into(), "\u{7f}\u{7f}".into(), "h3".into()];
    Ok(DnsRecords::Https(vec![HttpsRecord { priority: 1, alpn, ..HttpsRecord::default() }]))
}

//= rfc9460 §7.1.1
//# an ALPN identifier that is not UTF-8 does no harm in an answer over TCP, too
#[tokio::test]
async fn a_non_text_identifier_does_no_harm_over_tcp() {
    let server = dns::serve_over_tcp(NOT_TEXT).await;
    let answer = query_service(&Resolver::server(server.address)).await;
    assert_eq!(answer.records, expected_records());
}

#[cfg(feature = "encrypted-dns")]
mod encrypted {
    use eyas::{
        EncryptedDnsPolicy, ListenParameters, Listener, SecurityParameters, ServerIdentity,
    };

    use super::*;

    /// Builds the response to a query.
    type Respond = fn(&[u8]) -> Vec<u8>;

    fn address_response(question: &[u8]) -> Vec<u8> {
        dns::answer_with_address(question, [192, 0, 2, 7])
    }

    fn service_response(question: &[u8]) -> Vec<u8> {
        dns::answer_with_service(question, NOT_TEXT)
    }

    /// Answers one query over TLS (RFC 7858 §3.3: as over TCP).
    async fn answer_one(listener: Listener, answer: Respond) {
        let mut asking = listener.accept().await;
        dns::answer_stream(&mut asking, answer).await;
    }

    fn query() -> DnsQuery {
        DnsQuery { id: QueryId(1), name: "host.example".into(), record_type: RecordType::A }
    }

    #[tokio::test]
    async fn no_server_is_examined_about_a_host_where_queries_must_be_encrypted() {
        let server = dns::serve(Response::NoData).await;
        let limit = std::time::Duration::from_millis(500);
        let examined = async |policy, host| {
            let resolver = Resolver::server(server.address).with_encrypted_dns(policy);
            wait(resolver.examine_servers(host, 443, limit)).await.len()
        };
        for host in ["host.example", "Host.Example.", "printer.local"] {
            assert_eq!(examined(EncryptedDnsPolicy::Required, host).await, 0, "{host}");
            assert_eq!(examined(EncryptedDnsPolicy::Auto, host).await, 1, "{host}");
        }
        assert_eq!(examined(EncryptedDnsPolicy::Required, "ipv4only.arpa").await, 1);
    }

    #[tokio::test]
    async fn dns_over_tls_is_protected() {
        let identity = ServerIdentity::self_signed(["dns.example"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(parameters.security(identity.clone())).await.unwrap();
        let address = listener.local_addr();
        let server = tokio::spawn(answer_one(listener, address_response));
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::tls(address, "dns.example").with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert_eq!(answer.records, Ok(DnsRecords::A(vec![[192, 0, 2, 7].into()])));
        assert!(answer.protected);
        drop(resolver);
        server.abort();
    }

    #[tokio::test]
    async fn a_non_text_identifier_does_no_harm_over_tls() {
        let identity = ServerIdentity::self_signed(["dns.example"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(parameters.security(identity.clone())).await.unwrap();
        let address = listener.local_addr();
        let server = tokio::spawn(answer_one(listener, service_response));
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::tls(address, "dns.example").with_security(trust);
        assert_eq!(query_service(&resolver).await.records, expected_records());
        server.abort();
    }

    #[tokio::test]
    async fn a_dns_server_with_another_name_is_not_trusted() {
        let identity = ServerIdentity::self_signed(["else.example"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(parameters.security(identity.clone())).await.unwrap();
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::tls(listener.local_addr(), "dns.example").with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert!(answer.records.is_err(), "{answer:?}");
    }

    /// Answers every query over HTTP/2 (RFC 8484 §4).
    async fn answer_over_https(listener: Listener, answer: Respond) {
        let asking = listener.accept().await;
        let mut asking = h2::server::handshake(asking).await.unwrap();
        while let Some(request) = asking.accept().await {
            let (request, mut respond) = request.unwrap();
            assert_eq!(request.method(), http::Method::POST);
            assert_eq!(request.uri().path(), "/dns-query");
            assert_eq!(request.headers()["content-type"], "application/dns-message");
            let question = request.into_body().data().await.unwrap().unwrap();
            let answer = answer(&question);
            let head = http::Response::builder().header("content-type", "application/dns-message");
            let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
            body.send_data(answer.into(), true).unwrap();
        }
    }

    #[tokio::test]
    async fn dns_over_https_is_protected() {
        let identity = ServerIdentity::self_signed(["127.0.0.1"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let parameters = parameters.security(identity.clone()).with_alpn(["h2"]);
        let listener = Listener::bind(parameters).await.unwrap();
        let url = format!("https://{}/dns-query", listener.local_addr());
        let server = tokio::spawn(answer_over_https(listener, address_response));
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::https(&url).unwrap().with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert_eq!(answer.records, Ok(DnsRecords::A(vec![[192, 0, 2, 7].into()])));
        assert!(answer.protected);
        server.abort();
    }

    #[tokio::test]
    async fn a_non_text_identifier_does_no_harm_over_https() {
        let identity = ServerIdentity::self_signed(["127.0.0.1"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let parameters = parameters.security(identity.clone()).with_alpn(["h2"]);
        let listener = Listener::bind(parameters).await.unwrap();
        let url = format!("https://{}/dns-query", listener.local_addr());
        let server = tokio::spawn(answer_over_https(listener, service_response));
        let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
        let resolver = Resolver::https(&url).unwrap().with_security(trust);
        assert_eq!(query_service(&resolver).await.records, expected_records());
        server.abort();
    }

    #[tokio::test]
    async fn an_untrusted_doh_server_is_ignored() {
        let identity = ServerIdentity::self_signed(["127.0.0.1"]).unwrap();
        let other = ServerIdentity::self_signed(["127.0.0.1"]).unwrap();
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let listener =
            Listener::bind(parameters.security(identity).with_alpn(["h2"])).await.unwrap();
        let url = format!("https://{}/dns-query", listener.local_addr());
        let server = tokio::spawn(answer_over_https(listener, address_response));
        let trust = SecurityParameters::platform().with_roots([other.certificate().clone()]);
        let resolver = Resolver::https(&url).unwrap().with_security(trust);
        let answer = wait(resolver.query(&query(), 443)).await;
        assert!(answer.records.is_err(), "{answer:?}");
        server.abort();
    }

    #[test]
    fn an_invalid_doh_url_is_refused() {
        assert!(Resolver::https("https://192.0.2.1/dns-query").is_ok());
        assert!(Resolver::https("http://192.0.2.1/dns-query").is_err());
        assert!(Resolver::https("not a url").is_err());
    }
}
