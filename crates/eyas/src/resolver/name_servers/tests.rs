//! Name servers that misbehave, and what comes out.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use eyas_race::dns::{DnsFailure, DnsRecords, RecordType};

use super::{NameServers, ServerOptions};

mod behaviours;
#[cfg(feature = "encrypted-dns")]
mod designated;
#[cfg(feature = "encrypted-dns")]
mod encrypted;
mod server;

use server::{
    A, AAAA, AUTHENTIC, Act, Asked, Behaviour, HTTPS, SAME, Server, TRUNCATED, a, reply, rr, soa,
    wire,
};

/// Long enough for a busy machine, short enough to wait for.
const TIMEOUT: Duration = Duration::from_secs(3);

fn options() -> ServerOptions {
    ServerOptions { timeout: TIMEOUT, ..ServerOptions::default() }
}

fn found() -> Result<DnsRecords, DnsFailure> {
    Ok(DnsRecords::A(vec![Ipv4Addr::new(192, 0, 2, 1)]))
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

/// The network changes while the answer is on its way.
#[tokio::test]
async fn an_answer_of_the_former_network_is_not_kept() {
    let asking: Arc<OnceLock<NameServers>> = Arc::default();
    let forgetting = Arc::clone(&asking);
    let behaviour = move |asked: &Asked| {
        if asked.before == 0 {
            forgetting.get().unwrap().forget();
        }
        good(asked)
    };
    let server = Server::start(behaviour, true).await;
    let servers = asking.get_or_init(|| NameServers::new([server.address], options()));
    for count in [1, 2, 2] {
        assert_eq!(servers.query("a.test", RecordType::A).await.records, found());
        assert_eq!(server.count(), count);
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
    // Of one name: repetitions of an earlier query may still be on their way.
    static ABOUT_B: AtomicUsize = AtomicUsize::new(0);
    fn counting(asked: &Asked) -> Vec<Act> {
        let is_b = asked.name().eq_ignore_ascii_case(b"\x01b\x04test\0");
        ABOUT_B.fetch_add(usize::from(is_b), Ordering::SeqCst);
        silent(asked)
    }
    let (first, second) = (Server::start(counting, true).await, Server::start(good, true).await);
    let timeout = Duration::from_millis(300);
    let options = ServerOptions { timeout, ..options() };
    let servers = NameServers::new([first.address, second.address], options);
    assert_eq!(servers.query("a.test", RecordType::A).await.records, found());
    assert!(first.count() > 0, "in the order of the configuration");
    assert_eq!(servers.query("b.test", RecordType::A).await.records, found());
    assert_eq!(ABOUT_B.load(Ordering::SeqCst), 0);
    servers.forget();
    assert_eq!(servers.query("b.test", RecordType::A).await.records, found());
    assert!(ABOUT_B.load(Ordering::SeqCst) > 0, "on another network it may be another server");
}

/// It may be the only one that knows the names of its network.
#[tokio::test]
async fn a_server_that_is_silent_about_one_type_stays_the_first() {
    let first =
        Server::start(|asked| if asked.kind() == HTTPS { Vec::new() } else { good(asked) }, true)
            .await;
    let second = Server::start(|asked| reply(asked).code(3).record(2, &soa()).send(), true).await;
    let options = ServerOptions { timeout: Duration::from_millis(300), ..options() };
    let servers = NameServers::new([first.address, second.address], options);
    let (https, v4) = tokio::join!(
        servers.query("a.test", RecordType::Https),
        servers.query("a.test", RecordType::A),
    );
    assert_eq!((https.records, v4.records), (Err(DnsFailure::NoSuchName), found()));
    assert_eq!(servers.query("b.test", RecordType::A).await.records, found());
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

/// What servers without EDNS do with it.
const WITHOUT_EDNS: &[(&str, Behaviour)] = &[
    ("FORMERR", |asked| only_without_edns(asked, || reply(asked).code(1).send())),
    ("NOTIMP", |asked| only_without_edns(asked, || reply(asked).code(4).without_question().send())),
    ("SERVFAIL", |asked| only_without_edns(asked, || reply(asked).code(2).send())),
    ("BADVERS", |asked| only_without_edns(asked, || reply(asked).opt(1, 1).send())),
    ("silence", |asked| only_without_edns(asked, Vec::new)),
];

#[tokio::test]
async fn what_a_server_does_with_edns_is_remembered() {
    for (what, behaviour) in WITHOUT_EDNS {
        let server = Server::start(*behaviour, true).await;
        let servers = NameServers::new([server.address], options());
        assert_asked_without_edns(what, &server, &servers).await;
    }
}

/// Asserts that the server answers, and is asked without EDNS from then on.
async fn assert_asked_without_edns(what: &str, server: &Server, servers: &NameServers) {
    assert_eq!(servers.query("a.test", RecordType::A).await.records, found(), "{what}");
    let before = server.count();
    for name in ["b.test", "c.test"] {
        assert_eq!(servers.query(name, RecordType::A).await.records, found(), "{what}");
    }
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.len(), before + 2, "{what}");
    assert!(asked[before..].iter().all(|asked| !asked.edns()), "{what}");
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
