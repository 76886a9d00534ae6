//! The same servers behind TLS and HTTPS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

use super::super::exchange::{framed, read_message};
use super::super::https::HttpsServer;
use super::super::tls::TlsServer;
use super::super::{QueryTransport, ServerOptions};
use super::behaviours::BEHAVIOURS;
use super::server::{Asked, record, serve_stream};
use super::*;
use crate::{ListenParameters, Listener, SecurityParameters, ServerIdentity};

const NAME: &str = "dns.example";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Tls,
    Https,
}

const BOTH: [Over; 2] = [Over::Tls, Over::Https];

/// Starts a server, and returns how to reach it.
async fn start(over: Over, behaviour: Behaviour) -> (Server, QueryTransport) {
    let (listener, transport) = listen(over).await;
    let address = listener.local_addr();
    let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let server = Server { address, asked: Arc::clone(&asked) };
    tokio::spawn(async move {
        for number in 0.. {
            let connection = listener.accept().await;
            let asked = Arc::clone(&asked);
            let record = move |query: &[u8]| record(&asked, query, true, number);
            match over {
                Over::Tls => drop(tokio::spawn(serve_stream(connection, behaviour, record))),
                Over::Https => drop(tokio::spawn(serve_https(connection, behaviour, record))),
            }
        }
    });
    (server, transport)
}

async fn listen(over: Over) -> (Listener, QueryTransport) {
    let identity = ServerIdentity::self_signed([NAME]).unwrap();
    let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
    let parameters = parameters.security(identity.clone());
    let parameters = match over {
        Over::Tls => parameters,
        Over::Https => parameters.with_alpn(["h2"]),
    };
    let listener = Listener::bind(parameters).await.unwrap();
    let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let transport = transport(over, listener.local_addr(), &trust);
    (listener, transport)
}

fn transport(over: Over, address: SocketAddr, trust: &SecurityParameters) -> QueryTransport {
    let config = trust.client_config(trust.server_verifier().unwrap()).unwrap();
    match over {
        Over::Tls => TlsServer::new(address, NAME.try_into().unwrap(), config).into(),
        Over::Https => HttpsServer::new(address, NAME, "/dns-query", config).unwrap().into(),
    }
}

/// Serves one connection, on which only the first message of a response is sent.
pub(super) async fn serve_https(
    connection: crate::Connection,
    behaviour: Behaviour,
    record: impl Fn(&[u8]) -> Asked,
) {
    serve_https_announcing(connection, behaviour, record, None).await;
}

/// Serves one connection, with this `Alt-Svc` in its responses.
pub(super) async fn serve_https_announcing(
    connection: crate::Connection,
    behaviour: Behaviour,
    record: impl Fn(&[u8]) -> Asked,
    alternative: Option<&str>,
) {
    let mut connection = h2::server::handshake(connection).await.unwrap();
    let mut silent = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!(request.uri().to_string().split('/').next_back(), Some("dns-query"));
        let query = request.into_body().data().await.unwrap().unwrap();
        assert_eq!(query[..2], [0, 0], "RFC 8484 §4.1");
        let mut acts = behaviour(&record(&query)).into_iter();
        let (status, age, message) = match acts.next() {
            Some(Act::Send(message)) => (200, "0", message),
            Some(Act::SendHttp(status, age, message)) => (status, age, message),
            Some(Act::SendFromElsewhere(_) | Act::Close) => return,
            None => {
                silent.push(respond);
                continue;
            }
        };
        let mut head = http::Response::builder().status(status).header("age", age);
        if let Some(alternative) = alternative {
            head = head.header("alt-svc", alternative);
        }
        let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
        body.send_data(Bytes::from(message), true).unwrap();
        if matches!(acts.next(), Some(Act::Close)) {
            connection.graceful_shutdown();
        }
    }
}

/// What depends on datagrams, or on several messages for one query.
fn is_of_datagrams(over: Over, what: &str) -> bool {
    let beginnings = ["truncated", "a forged answer", "guesses"];
    beginnings.iter().any(|beginning| what.starts_with(beginning))
        || (over == Over::Https && what.starts_with("messages that are no response"))
}

#[tokio::test]
async fn the_ways_of_servers_are_the_same() {
    for over in BOTH {
        let mut count = 0;
        for (what, behaviour, expected) in BEHAVIOURS {
            if is_of_datagrams(over, what) {
                continue;
            }
            count += 1;
            let (_server, transport) = start(over, *behaviour).await;
            let is_silent = *expected == Err(DnsFailure::Timeout);
            let timeout = if is_silent { Duration::from_millis(50) } else { TIMEOUT };
            let servers =
                NameServers::from_transports([transport], ServerOptions { timeout, ..options() });
            let expected = expected.clone().and_then(|()| found());
            let records = servers.query("a.test", RecordType::A).await.records;
            assert_eq!(records, expected, "{over:?}: {what}");
        }
        assert!(count > 30, "{count}");
    }
}

#[tokio::test]
async fn what_a_server_does_with_edns_is_remembered() {
    for over in BOTH {
        for (what, behaviour) in WITHOUT_EDNS {
            let (server, transport) = start(over, *behaviour).await;
            let servers = NameServers::from_transports([transport], options());
            assert_asked_without_edns(&format!("{over:?}: {what}"), &server, &servers).await;
        }
    }
    let gateway: Behaviour =
        |asked| only_without_edns(asked, || vec![Act::SendHttp(502, "0", Vec::new())]);
    let (server, transport) = start(Over::Https, gateway).await;
    let servers = NameServers::from_transports([transport], options());
    assert_asked_without_edns("a bad gateway", &server, &servers).await;
}

/// There is no way to ask for more.
#[tokio::test]
async fn what_was_truncated_in_a_stream_counts_as_far_as_it_is_there() {
    for over in BOTH {
        let some: Behaviour = |asked| reply(asked).flags(TRUNCATED).answer(&a(SAME)).send();
        let none: Behaviour = |asked| reply(asked).flags(TRUNCATED).send();
        for (behaviour, expected) in [(some, found()), (none, Err(DnsFailure::ServerFailure))] {
            let (server, transport) = start(over, behaviour).await;
            let servers = NameServers::from_transports([transport], options());
            for _ in 0..2 {
                let before = server.count();
                assert_eq!(servers.query("a.test", RecordType::A).await.records, expected);
                assert!(server.count() > before, "it is not kept");
            }
        }
    }
}

#[tokio::test]
async fn queries_share_a_connection_and_a_new_one_follows_its_end() {
    for over in BOTH {
        let ends_each: Behaviour = |asked| {
            let mut acts = good(asked);
            acts.push(Act::Close);
            acts
        };
        for (behaviour, expected) in [(good as Behaviour, 1..=1), (ends_each, 2..=24)] {
            let (server, transport) = start(over, behaviour).await;
            // One attempt: an end of a connection that has served is none.
            let servers = NameServers::from_transports(
                [transport],
                ServerOptions { attempts: 1, ..options() },
            );
            for round in 0..4 {
                let names = (0..3).map(|at| format!("{at}.{round}.test")).collect::<Vec<_>>();
                let queries = names.iter().map(|name| servers.query(name, RecordType::A));
                for answer in futures_util::future::join_all(queries).await {
                    assert_eq!(answer.records, found(), "{over:?} {expected:?} {round}");
                }
            }
            let last = server.asked.lock().unwrap().iter().map(|asked| asked.connection).max();
            assert!(expected.contains(&(last.unwrap() + 1)), "{over:?} {expected:?} {last:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_replaced() {
    for over in BOTH {
        let behaviour: Behaviour = |asked| match (asked.connection, asked.before) {
            (0, 1..) => Vec::new(),
            _ => good(asked),
        };
        let (server, transport) = start(over, behaviour).await;
        let timeout = Duration::from_millis(300);
        let servers =
            NameServers::from_transports([transport], ServerOptions { timeout, ..options() });
        for name in ["a.test", "b.test", "c.test"] {
            assert_eq!(
                servers.query(name, RecordType::A).await.records,
                found(),
                "{over:?} {name}"
            );
        }
        assert_eq!(server.asked.lock().unwrap().last().unwrap().connection, 1, "{over:?}");
    }
}

/// The server answers three queries, the last one first.
#[tokio::test]
async fn answers_over_tls_may_come_in_any_order() {
    let (listener, transport) = listen(Over::Tls).await;
    let server = tokio::spawn(async move {
        let mut connection = listener.accept().await;
        let mut asked = Vec::new();
        for before in 0..3 {
            let octets = read_message(&mut connection).await.unwrap();
            asked.push(Asked { octets, over_tcp: true, before, connection: 0 });
        }
        for asked in asked.iter().rev() {
            let number = asked.name()[1] - b'0';
            let answer = reply(asked).answer(&rr(SAME, A, 1, 60, &[192, 0, 2, number]));
            let message = answer.opt(0, 0).octets();
            connection.write_all(&framed(&message).unwrap()).await.unwrap();
        }
        connection
    });
    let servers = NameServers::from_transports(
        [transport],
        ServerOptions { timeout: TIMEOUT * 5, ..options() },
    );
    let query = async |number: u8| {
        let records = servers.query(&format!("{number}.test"), RecordType::A).await.records;
        assert_eq!(records, Ok(DnsRecords::A(vec![Ipv4Addr::new(192, 0, 2, number)])));
    };
    tokio::join!(query(1), query(2), query(3));
    server.abort();
}

/// RFC 8484 §5.1.
#[tokio::test]
async fn the_age_in_a_cache_counts() {
    let aged: Behaviour = |asked| {
        let age = if asked.name() == wire("old.test") { "60" } else { "59" };
        vec![Act::SendHttp(200, age, reply(asked).answer(&a(SAME)).octets())]
    };
    let (server, transport) = start(Over::Https, aged).await;
    let servers = NameServers::from_transports([transport], options());
    for (name, expected) in [("old.test", 2), ("young.test", 1)] {
        let before = server.count();
        for _ in 0..2 {
            assert_eq!(servers.query(name, RecordType::A).await.records, found());
        }
        assert_eq!(server.count() - before, expected, "{name}");
    }
}

//= hostile client
//# endless informational responses of a DoH server
//= bound: `MAX_INFORMATIONAL`, `MAX_HEAD_BYTES`
/// RFC 9110 §15.2: each of them says only that the response is yet to come.
#[tokio::test]
async fn informational_responses_are_passed_over_up_to_a_limit() {
    for (count, expected) in [(Some(16), found()), (None, Err(DnsFailure::Malformed))] {
        let (listener, transport) = listen(Over::Https).await;
        let server = tokio::spawn(async move {
            loop {
                let connection = listener.accept().await;
                tokio::spawn(answer_after_hints(connection, count));
            }
        });
        let timeout = Duration::from_secs(60);
        let servers =
            NameServers::from_transports([transport], ServerOptions { timeout, ..options() });
        assert_eq!(servers.query("a.test", RecordType::A).await.records, expected, "{count:?}");
        server.abort();
    }
}

/// Answers the first query after this many informational responses, or sends them without end.
async fn answer_after_hints(connection: crate::Connection, count: Option<usize>) {
    let mut connection = h2::server::handshake(connection).await.unwrap();
    let Some(Ok((request, mut respond))) = connection.accept().await else { return };
    let mut body = request.into_body();
    let hints = async {
        let octets = body.data().await.unwrap().unwrap().to_vec();
        let asked = Asked { octets, over_tcp: true, before: 0, connection: 0 };
        for _ in 0..count.unwrap_or(usize::MAX) {
            let hint = http::Response::builder().status(103).body(()).unwrap();
            if respond.send_informational(hint).is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        let head = http::Response::builder().status(200).body(()).unwrap();
        let mut body = respond.send_response(head, false).unwrap();
        let message = reply(&asked).answer(&a(SAME)).octets();
        body.send_data(Bytes::from(message), true).unwrap();
        std::future::pending().await
    };
    tokio::select! {
        () = hints => {}
        _ = connection.accept() => {}
    }
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_not_asked() {
    for over in BOTH {
        let (server, _) = start(over, good).await;
        let other = ServerIdentity::self_signed([NAME]).unwrap();
        let trust = SecurityParameters::platform().with_roots([other.certificate().clone()]);
        let transport = transport(over, server.address, &trust);
        let servers = NameServers::from_transports([transport], options());
        let records = servers.query("a.test", RecordType::A).await.records;
        assert_eq!((records, server.count()), (Err(DnsFailure::Unreachable), 0));
    }
}
