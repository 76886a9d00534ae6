//! What servers do, and what comes out.

use std::time::Duration;

use eyas_race::dns::{DnsFailure, RecordType};

use super::server::{
    self, A, AAAA, Act, Behaviour, SAME, SOA, Server, TRUNCATED, a, cname, reply, rr, soa, wire,
};
use super::{NameServers, ServerOptions, TIMEOUT, found, good, only_without_edns, options, silent};
use crate::resolver::name_servers::MAX_ALIASES;

/// What one server does with queries for the addresses of `a.test`, and what comes out.
pub(super) const BEHAVIOURS: &[(&str, Behaviour, Result<(), DnsFailure>)] = &[
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
        assert!(count <= 2 * MAX_ALIASES + 8, "{what}: {count} queries");
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
