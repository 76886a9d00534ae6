//! Name servers that misbehave, and what comes out.

use std::net::Ipv4Addr;
use std::time::Duration;

use eyas_race::dns::{DnsFailure, RecordType, Records};

use super::{NameServers, ServerOptions};

mod server;

use server::{
    A, AAAA, AUTHENTIC, Act, Asked, Behaviour, HTTPS, SAME, SOA, Server, TRUNCATED, a, cname,
    reply, rr, soa, wire,
};

/// Long enough for a busy machine, short enough to wait for.
const TIMEOUT: Duration = Duration::from_secs(3);

fn options() -> ServerOptions {
    ServerOptions { timeout: TIMEOUT, ..ServerOptions::default() }
}

fn found() -> Result<Records, DnsFailure> {
    Ok(Records::A(vec![Ipv4Addr::new(192, 0, 2, 1)]))
}

fn good(asked: &Asked) -> Vec<Act> {
    reply(asked).answer(&a(SAME)).opt(0, 0).send()
}

fn silent(_: &Asked) -> Vec<Act> {
    Vec::new()
}

/// Answers without EDNS, and does what `otherwise` says with it.
fn only_without_edns(asked: &Asked, otherwise: impl FnOnce() -> Vec<Act>) -> Vec<Act> {
    if asked.edns() { otherwise() } else { reply(asked).answer(&a(SAME)).send() }
}

/// What one server does with queries for the addresses of `a.test`, and what comes out.
const BEHAVIOURS: &[(&str, Behaviour, Result<(), DnsFailure>)] = &[
    ("it answers", good, Ok(())),
    ("it does not know EDNS and answers", |asked| reply(asked).answer(&a(SAME)).send(), Ok(())),
    (
        "FORMERR to EDNS, with the question",
        |asked| only_without_edns(asked, || reply(asked).code(1).send()),
        Ok(()),
    ),
    (
        "FORMERR to EDNS, the header alone",
        |asked| only_without_edns(asked, || reply(asked).code(1).without_question().send()),
        Ok(()),
    ),
    (
        "FORMERR to EDNS, with the OPT of the query",
        |asked| only_without_edns(asked, || reply(asked).code(1).opt(0, 0).send()),
        Ok(()),
    ),
    ("NOTIMP to EDNS", |asked| only_without_edns(asked, || reply(asked).code(4).send()), Ok(())),
    (
        "NOTIMP to EDNS, the header alone",
        |asked| only_without_edns(asked, || reply(asked).code(4).without_question().send()),
        Ok(()),
    ),
    (
        "BADVERS to version 0",
        |asked| only_without_edns(asked, || reply(asked).opt(1, 1).send()),
        Ok(()),
    ),
    ("SERVFAIL to EDNS", |asked| only_without_edns(asked, || reply(asked).code(2).send()), Ok(())),
    ("REFUSED to EDNS", |asked| only_without_edns(asked, || reply(asked).code(5).send()), Ok(())),
    ("silence to EDNS", |asked| only_without_edns(asked, Vec::new), Ok(())),
    (
        "the first query is lost",
        |asked| if asked.before == 0 { Vec::new() } else { good(asked) },
        Ok(()),
    ),
    (
        "the answer behind OPT, which is counted as the answer",
        |asked| {
            let opt = rr(b"\0", server::OPT, 1232, 0, b"");
            reply(asked).answer(&opt).record(3, &a(SAME)).send()
        },
        Ok(()),
    ),
    (
        "the answer in the authority section",
        |asked| reply(asked).record(2, &a(SAME)).send(),
        Ok(()),
    ),
    (
        "more records are counted than are there",
        |asked| {
            let mut reply = reply(asked).answer(&a(SAME));
            reply.counts[3] = 3;
            reply.send()
        },
        Ok(()),
    ),
    (
        "octets behind the last record",
        |asked| vec![Act::Send([reply(asked).answer(&a(SAME)).octets(), vec![0; 7]].concat())],
        Ok(()),
    ),
    (
        "a record that nobody can parse beside the answer",
        |asked| {
            let broken = rr(SAME, SOA, 1, 60, &[0xff; 9]);
            reply(asked).answer(&a(SAME)).record(2, &broken).send()
        },
        Ok(()),
    ),
    (
        "an address of three octets beside one of four",
        |asked| reply(asked).answer(&rr(SAME, A, 1, 60, &[1, 2, 3])).answer(&a(SAME)).send(),
        Ok(()),
    ),
    (
        "an address of three octets",
        |asked| reply(asked).answer(&rr(SAME, A, 1, 60, &[1, 2, 3])).send(),
        Err(DnsFailure::Malformed),
    ),
    (
        "an address of no octets",
        |asked| reply(asked).answer(&rr(SAME, A, 1, 60, &[])).send(),
        Err(DnsFailure::Malformed),
    ),
    (
        "an end within the answer",
        |asked| {
            let octets = reply(asked).answer(&a(SAME)).octets();
            vec![Act::Send(octets[..octets.len() - 2].to_vec())]
        },
        Err(DnsFailure::Malformed),
    ),
    (
        "the name of the question in other case",
        |asked| {
            let mut reply = reply(asked).answer(&a(&wire("A.TEST")));
            reply.question.make_ascii_uppercase();
            reply.send()
        },
        Ok(()),
    ),
    (
        "messages that are no response come first",
        |asked| {
            let mut other_id = reply(asked).answer(&rr(SAME, A, 1, 60, &[10, 6, 6, 6]));
            other_id.id[1] ^= 1;
            let mut other_name = reply(asked).answer(&rr(SAME, A, 1, 60, &[10, 6, 6, 6]));
            other_name.question[1] ^= 1;
            let mut other_type = reply(asked).answer(&rr(SAME, A, 1, 60, &[10, 6, 6, 6]));
            other_type.question = [&asked.name()[..], &[0, 28, 0, 1]].concat();
            let mut query = reply(asked);
            query.flags = 0x0100;
            let mut all = vec![Act::Send(Vec::new()), Act::Send(vec![7; 5])];
            all.extend(
                [other_id, other_name, other_type, query].map(|one| Act::Send(one.octets())),
            );
            all.extend(reply(asked).without_question().answer(&a(SAME)).send());
            all.extend(good(asked));
            all
        },
        Ok(()),
    ),
    (
        "a forged answer from another port comes first",
        |asked| {
            let forged = reply(asked).answer(&rr(SAME, A, 1, 60, &[10, 6, 6, 6])).octets();
            [vec![Act::SendFromElsewhere(forged)], good(asked)].concat()
        },
        Ok(()),
    ),
    (
        "guesses at the identifier: TCP cannot be guessed",
        |asked| {
            if asked.over_tcp {
                return good(asked);
            }
            let guess = |at: u16| {
                let mut reply = reply(asked).answer(&rr(SAME, A, 1, 60, &[10, 6, 6, 6]));
                let id = u16::from_be_bytes(reply.id).wrapping_add(at + 1);
                reply.id = id.to_be_bytes();
                Act::Send(reply.octets())
            };
            (0..40).map(guess).collect()
        },
        Ok(()),
    ),
    (
        "truncated: TCP has it all",
        |asked| {
            if asked.over_tcp { good(asked) } else { reply(asked).flags(TRUNCATED).send() }
        },
        Ok(()),
    ),
    (
        "truncated within a record: TCP has it all",
        |asked| {
            if asked.over_tcp {
                return good(asked);
            }
            let octets = reply(asked).flags(TRUNCATED).answer(&a(SAME)).octets();
            vec![Act::Send(octets[..octets.len() - 2].to_vec())]
        },
        Ok(()),
    ),
    (
        "truncated, and TCP is closed: what did fit is used",
        |asked| match asked.over_tcp {
            true => vec![Act::Close],
            false => reply(asked).flags(TRUNCATED).answer(&a(SAME)).send(),
        },
        Ok(()),
    ),
    (
        "truncated, and TCP fails: what did fit is used",
        |asked| match asked.over_tcp {
            true => reply(asked).code(2).send(),
            false => reply(asked).flags(TRUNCATED).answer(&a(SAME)).send(),
        },
        Ok(()),
    ),
    (
        "a datagram that is longer than announced",
        |asked| {
            let mut reply = reply(asked);
            for _ in 0..900 {
                reply = reply.answer(&rr(&wire("b.test"), A, 1, 60, &[10, 6, 6, 6]));
            }
            reply.answer(&a(SAME)).send()
        },
        Ok(()),
    ),
    (
        "truncated, nothing fit, and TCP is closed",
        |asked| match asked.over_tcp {
            true => vec![Act::Close],
            false => reply(asked).flags(TRUNCATED).send(),
        },
        Err(DnsFailure::Unreachable),
    ),
    ("it always refuses", |asked| reply(asked).code(5).send(), Err(DnsFailure::ServerFailure)),
    (
        "it always fails",
        |asked| reply(asked).code(2).opt(0, 0).send(),
        Err(DnsFailure::ServerFailure),
    ),
    ("it never answers", silent, Err(DnsFailure::Timeout)),
    (
        "no such name",
        |asked| reply(asked).code(3).record(2, &soa()).send(),
        Err(DnsFailure::NoSuchName),
    ),
    ("no such name, without SOA", |asked| reply(asked).code(3).send(), Err(DnsFailure::NoSuchName)),
    ("no such record", |asked| reply(asked).record(2, &soa()).send(), Err(DnsFailure::NoData)),
    (
        "records of another type",
        |asked| reply(asked).answer(&rr(SAME, AAAA, 1, 60, &[1; 16])).send(),
        Err(DnsFailure::NoData),
    ),
    (
        "records of another name",
        |asked| reply(asked).answer(&a(&wire("b.test"))).send(),
        Err(DnsFailure::NoData),
    ),
    (
        "records of another class",
        |asked| reply(asked).answer(&rr(SAME, A, 3, 60, &[192, 0, 2, 1])).send(),
        Err(DnsFailure::NoData),
    ),
    (
        "a chain of aliases in any order",
        |asked| {
            let (b, c) = (wire("b.test"), wire("c.test"));
            let reply = reply(asked).answer(&a(&c)).answer(&cname(&b, "C.test"));
            reply.answer(&cname(SAME, "b.test")).send()
        },
        Ok(()),
    ),
    (
        "an alias whose target has to be asked for",
        |asked| match asked.name() == wire("b.test") {
            true => good(asked),
            false => reply(asked).answer(&cname(SAME, "b.test")).send(),
        },
        Ok(()),
    ),
    (
        "an alias of a name without addresses",
        |asked| reply(asked).answer(&cname(SAME, "b.test")).record(2, &soa()).send(),
        Err(DnsFailure::NoData),
    ),
    (
        "an alias of a name that does not exist",
        |asked| reply(asked).code(3).answer(&cname(SAME, "b.test")).record(2, &soa()).send(),
        Err(DnsFailure::NoSuchName),
    ),
    (
        "an alias of itself",
        |asked| reply(asked).answer(&cname(SAME, "a.test")).send(),
        Err(DnsFailure::NoData),
    ),
    (
        "aliases without end",
        |asked| {
            let name = asked.name();
            let next =
                format!("{}x.test", String::from_utf8_lossy(&name[1..usize::from(name[0]) + 1]));
            reply(asked).answer(&cname(SAME, &next)).send()
        },
        Err(DnsFailure::ServerFailure),
    ),
    (
        "a name that points to itself",
        |asked| {
            let at = u16::try_from(reply(asked).octets().len()).unwrap() | 0xc000;
            reply(asked).answer(&rr(&at.to_be_bytes(), A, 1, 60, &[1, 2, 3, 4])).send()
        },
        Err(DnsFailure::Malformed),
    ),
    (
        "it has not looked for an answer",
        |asked| {
            let mut reply = reply(asked).record(2, &rr(SAME, 2, 1, 60, &wire("ns.test")));
            reply.flags = 0x8100;
            reply.send()
        },
        Err(DnsFailure::NoData),
    ),
];

#[tokio::test]
async fn one_server_with_its_ways() {
    for (what, behaviour, expected) in BEHAVIOURS {
        let server = Server::start(*behaviour, true).await;
        // Only silence has to be waited for.
        let is_silent = *expected == Err(DnsFailure::Timeout);
        let timeout = if is_silent { Duration::from_millis(50) } else { TIMEOUT };
        let servers = NameServers::new([server.address], ServerOptions { timeout, ..options() });
        let expected = expected.clone().and_then(|()| found());
        assert_eq!(servers.query("a.test", RecordType::A).await.records, expected, "{what}");
        let count = server.count();
        assert!(count <= 2 * super::MAX_ALIASES + 8, "{what}: {count} queries");
    }
}

/// What the first of two servers does. The second one answers.
const FIRSTS: &[(&str, Behaviour)] = &[
    ("refuses", |asked| reply(asked).code(5).opt(0, 0).send()),
    ("refuses without EDNS", |asked| reply(asked).code(5).send()),
    ("fails", |asked| reply(asked).code(2).opt(0, 0).send()),
    ("does not implement it", |asked| reply(asked).code(4).send()),
    ("does not understand it", |asked| reply(asked).code(1).without_question().send()),
    ("answers badly", |asked| reply(asked).answer(&rr(SAME, A, 1, 60, &[1])).send()),
    ("has an end within the answer", |asked| {
        let octets = reply(asked).answer(&a(SAME)).octets();
        vec![Act::Send(octets[..octets.len() - 2].to_vec())]
    }),
    ("truncates and has no TCP", |asked| match asked.over_tcp {
        true => vec![Act::Close],
        false => reply(asked).flags(TRUNCATED).send(),
    }),
    ("has not looked for an answer", |asked| {
        let mut reply = reply(asked);
        reply.flags = 0x8100;
        reply.send()
    }),
];

#[tokio::test]
async fn another_server_is_asked_at_once() {
    for (what, first) in FIRSTS {
        let (first, second) = (Server::start(*first, true).await, Server::start(good, true).await);
        // No timeout passes: that would take longer than the test may.
        let options = ServerOptions { timeout: Duration::from_secs(30), ..options() };
        let servers = NameServers::new([first.address, second.address], options);
        let answer = servers.query("a.test", RecordType::A);
        let answer = tokio::time::timeout(Duration::from_secs(20), answer).await;
        assert_eq!(answer.expect("at once").records, found(), "the first {what}");
    }
}

#[tokio::test]
async fn a_port_without_a_server_is_noticed_at_once() {
    let closed = Server::start(|_| vec![Act::Close], false).await;
    tokio::net::UdpSocket::bind("127.0.0.1:0")
        .await
        .unwrap()
        .send_to(&[0; 20], closed.address)
        .await
        .unwrap();
    while tokio::net::UdpSocket::bind(closed.address).await.is_err() {
        tokio::task::yield_now().await;
    }
    let second = Server::start(good, true).await;
    let options = ServerOptions { timeout: Duration::from_secs(30), ..options() };
    let servers = NameServers::new([closed.address, second.address], options.clone());
    let answer =
        tokio::time::timeout(Duration::from_secs(20), servers.query("a.test", RecordType::A)).await;
    assert_eq!(answer.expect("at once").records, found());
    let servers = NameServers::new([closed.address], options);
    assert_eq!(servers.query("a.test", RecordType::A).await.records, Err(DnsFailure::Unreachable));
    let none = NameServers::new([], ServerOptions::default());
    assert_eq!(none.query("a.test", RecordType::A).await.records, Err(DnsFailure::Unreachable));
}

#[tokio::test]
async fn a_silent_server_is_asked_after_the_others_for_a_while() {
    let (first, second) = (Server::start(silent, true).await, Server::start(good, true).await);
    let timeout = Duration::from_millis(300);
    let options = ServerOptions { timeout, ..options() };
    let servers = NameServers::new([first.address, second.address], options);
    assert_eq!(servers.query("a.test", RecordType::A).await.records, found());
    let before = first.count();
    assert!(before > 0, "in the order of the configuration");
    assert_eq!(servers.query("b.test", RecordType::A).await.records, found());
    assert_eq!(first.count(), before);
    servers.forget();
    assert_eq!(servers.query("b.test", RecordType::A).await.records, found());
    assert!(first.count() > before, "on another network it may be another server");
}

/// The second query (sent because of the timeout, to the second server) makes the first server answer the first one.
#[tokio::test]
async fn a_late_answer_counts() {
    let first = Server::start(
        |asked| {
            // It answers once it has been asked again, after the timeout.
            if asked.before < 3 { Vec::new() } else { good(asked) }
        },
        true,
    )
    .await;
    let second = Server::start(silent, true).await;
    let options = ServerOptions { timeout: Duration::from_millis(400), attempts: 3, ..options() };
    let servers = NameServers::new([first.address, second.address], options);
    assert_eq!(servers.query("a.test", RecordType::A).await.records, found());
}

#[tokio::test]
async fn what_a_server_does_with_edns_is_remembered() {
    let ways: &[(&str, Behaviour)] = &[
        ("FORMERR", |asked| only_without_edns(asked, || reply(asked).code(1).send())),
        ("NOTIMP", |asked| {
            only_without_edns(asked, || reply(asked).code(4).without_question().send())
        }),
        ("SERVFAIL", |asked| only_without_edns(asked, || reply(asked).code(2).send())),
        ("BADVERS", |asked| only_without_edns(asked, || reply(asked).opt(1, 1).send())),
        ("silence", |asked| only_without_edns(asked, Vec::new)),
    ];
    for (what, behaviour) in ways {
        let server = Server::start(*behaviour, true).await;
        let servers = NameServers::new([server.address], options());
        assert_eq!(servers.query("a.test", RecordType::A).await.records, found(), "{what}");
        let before = server.count();
        for name in ["b.test", "c.test"] {
            assert_eq!(servers.query(name, RecordType::A).await.records, found(), "{what}");
        }
        let asked = server.asked.lock().unwrap();
        assert_eq!(asked.len(), before + 2, "{what}");
        assert!(asked[before..].iter().all(|asked| !asked.edns()), "{what}");
    }
}

/// It knows EDNS for two queries, and then there is another one at its address, which drops them.
#[tokio::test]
async fn a_server_that_is_replaced_is_noticed() {
    let server = Server::start(
        |asked| if asked.before < 2 || !asked.edns() { good(asked) } else { Vec::new() },
        true,
    )
    .await;
    let options = ServerOptions { timeout: Duration::from_millis(400), attempts: 3, ..options() };
    let servers = NameServers::new([server.address], options);
    for name in ["a.test", "b.test", "c.test"] {
        assert_eq!(servers.query(name, RecordType::A).await.records, found(), "{name}");
    }
}

#[tokio::test]
async fn a_failure_is_no_lack_of_edns() {
    let server = Server::start(
        |asked| match asked.name() == wire("bad.test") {
            true => reply(asked).code(2).opt(0, 0).send(),
            false => good(asked),
        },
        true,
    )
    .await;
    let servers = NameServers::new([server.address], options());
    let bad = servers.query("bad.test", RecordType::A).await.records;
    assert_eq!(bad, Err(DnsFailure::ServerFailure));
    assert_eq!(servers.query("a.test", RecordType::A).await.records, found());
    let asked = server.asked.lock().unwrap();
    assert!(asked.iter().all(Asked::edns) && asked.len() == 3, "twice, and once");
}

#[tokio::test]
async fn answers_are_kept_for_their_time() {
    /// One time to live for each name.
    fn timed(asked: &Asked) -> Vec<Act> {
        let address = |ttl| rr(SAME, A, 1, ttl, &[192, 0, 2, 1]);
        match &asked.name()[1..2] {
            b"k" => reply(asked).answer(&address(60)).send(),
            b"z" => reply(asked).answer(&address(0)).send(),
            b"m" => reply(asked).answer(&address(0x8000_0001)).send(),
            b"t" => reply(asked)
                .flags(if asked.over_tcp { 0 } else { TRUNCATED })
                .answer(&address(60))
                .send(),
            b"n" => reply(asked).code(3).record(2, &soa()).send(),
            b"u" => reply(asked).code(3).send(),
            b"d" => reply(asked).record(2, &soa()).send(),
            b"c" => reply(asked).answer(&rr(SAME, server::CNAME, 1, 0, &wire("k.test"))).send(),
            _ => reply(asked).code(2).opt(0, 0).send(),
        }
    }
    let cases: &[(&str, usize)] = &[
        ("k.test", 1),
        ("K.TEST.", 0),
        ("z.test", 2),
        ("m.test", 2),
        ("t.test", 2),
        ("n.test", 1),
        ("u.test", 2),
        ("d.test", 1),
        ("c.test", 4),
        ("fails.test", 4),
    ];
    let server = Server::start(timed, true).await;
    let servers = NameServers::new([server.address], options());
    for (name, expected) in cases {
        let before = server.count();
        let first = servers.query(name, RecordType::A).await;
        assert_eq!(servers.query(name, RecordType::A).await, first, "{name}");
        assert_eq!(server.count() - before, *expected, "{name}");
    }
    servers.forget();
    let before = server.count();
    servers.query("k.test", RecordType::A).await;
    assert_eq!(server.count(), before + 1);
}

#[tokio::test]
async fn rotation_shares_the_questions() {
    let (first, second) = (Server::start(good, true).await, Server::start(good, true).await);
    let options = ServerOptions { rotate: true, ..options() };
    let servers = NameServers::new([first.address, second.address], options);
    for number in 0..6 {
        assert_eq!(servers.query(&format!("{number}.test"), RecordType::A).await.records, found());
    }
    assert_eq!((first.count(), second.count()), (3, 3));
}

#[tokio::test]
async fn each_server_gets_the_configured_attempts() {
    let fails: Behaviour = |asked| reply(asked).code(2).opt(0, 0).send();
    let (first, second) = (Server::start(fails, true).await, Server::start(fails, true).await);
    let options = ServerOptions { attempts: 3, ..options() };
    let servers = NameServers::new([first.address, second.address], options);
    assert_eq!(
        servers.query("a.test", RecordType::A).await.records,
        Err(DnsFailure::ServerFailure)
    );
    assert_eq!((first.count(), second.count()), (3, 3));
}

#[tokio::test]
async fn tcp_alone_is_used_where_that_is_wanted() {
    let server = Server::start(good, true).await;
    let servers = NameServers::new([server.address], ServerOptions { use_tcp: true, ..options() });
    assert_eq!(servers.query("a.test", RecordType::A).await.records, found());
    assert!(server.asked.lock().unwrap().iter().all(|asked| asked.over_tcp));
}

#[tokio::test]
async fn single_requests_wait_for_each_other() {
    // It answers a query only if no other one came before it was answered.
    let server = Server::start(
        |asked| {
            let address = if asked.kind() == A { a(SAME) } else { rr(SAME, AAAA, 1, 60, &[1; 16]) };
            reply(asked).answer(&address).opt(0, 0).send()
        },
        true,
    )
    .await;
    let options = ServerOptions { single_request: true, ..options() };
    let servers = NameServers::new([server.address], options);
    let turn = servers.turn.acquire().await.unwrap();
    let (v4, v6) =
        (servers.query("a.test", RecordType::A), servers.query("a.test", RecordType::Aaaa));
    let both = async { tokio::join!(v4, v6) };
    tokio::pin!(both);
    assert!(futures_util::poll!(&mut both).is_pending());
    tokio::task::yield_now().await;
    assert_eq!(server.count(), 0, "both wait");
    drop(turn);
    let (v4, v6) = both.await;
    assert_eq!(v4.records, found());
    assert!(v6.records.is_ok());
}

#[tokio::test]
async fn validation_counts_only_where_the_server_is_trusted() {
    let server =
        Server::start(|asked| reply(asked).flags(AUTHENTIC).answer(&a(SAME)).send(), true).await;
    for trust_ad in [true, false] {
        let servers = NameServers::new([server.address], ServerOptions { trust_ad, ..options() });
        assert_eq!(servers.query("a.test", RecordType::A).await.is_authentic, trust_ad);
        let asked = server.asked.lock().unwrap();
        assert_eq!(asked.last().unwrap().octets[3] & 0x20 != 0, trust_ad, "RFC 6840 §5.7");
    }
}

#[tokio::test]
async fn a_malformed_binding_spoils_the_others_and_nothing_else() {
    let server = Server::start(
        |asked| {
            let good = rr(SAME, HTTPS, 1, 60, &[0, 1, 0, 0, 3, 0, 2, 1, 187]);
            let bad = rr(SAME, HTTPS, 1, 60, &[0, 1, 0, 0, 3, 0, 1, 1]);
            reply(asked).answer(&good).answer(&bad).send()
        },
        true,
    )
    .await;
    let servers = NameServers::new([server.address], options());
    assert_eq!(
        servers.query("a.test", RecordType::Https).await.records,
        Err(DnsFailure::Malformed)
    );
}

#[tokio::test]
async fn names_of_any_octets_are_asked_for() {
    let server = Server::start(good, true).await;
    let servers = NameServers::new([server.address], options());
    for name in ["-foo.test", "foo-.test", "un_der.test", "a b.test", "*.test", "test"] {
        assert_eq!(servers.query(name, RecordType::A).await.records, found(), "{name}");
        assert_eq!(server.asked.lock().unwrap().last().unwrap().name(), wire(name));
    }
    for name in ["a..test", &"a".repeat(64), &"a.".repeat(130)] {
        let records = servers.query(name, RecordType::A).await.records;
        assert_eq!(records, Err(DnsFailure::NoSuchName), "{name}");
    }
}

#[tokio::test]
async fn identifiers_and_ports_vary() {
    let server = Server::start(good, true).await;
    let servers = NameServers::new([server.address], options());
    for number in 0..20 {
        servers.query(&format!("{number}.test"), RecordType::A).await;
    }
    let asked = server.asked.lock().unwrap();
    let mut ids: Vec<[u8; 2]> = asked.iter().map(|one| [one.octets[0], one.octets[1]]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() > 15, "{ids:?}");
}
