//! Every reason has a sentence, and survives JSON.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::*;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn name() -> String {
    "example.com".into()
}

fn of_memory() -> Vec<(PlanReason, &'static str)> {
    let (transport, family) = (Transport::Quic, AddressFamily::V6);
    vec![
        (PlanReason(ReasonKind::KnownGood { rtt: None }), "worked recently on this network"),
        (
            PlanReason(ReasonKind::KnownGood { rtt: Some(ms(31)) }),
            "worked recently on this network, round trip 31 ms",
        ),
        (
            PlanReason(ReasonKind::KnownBad {
                cause: FailureCause::Silent,
                retest_in: Duration::from_secs(241),
            }),
            "was silent recently; retest in 4 min",
        ),
        (
            PlanReason(ReasonKind::RetestDue { cause: FailureCause::Refused }),
            "refused earlier; due for a retest beside a working connection",
        ),
        (
            PlanReason(ReasonKind::NetworkSilent { transport, family, port: 443, silent_hosts: 5 }),
            "quic to port 443 over IPv6 has been silent on this network for 5 other hosts",
        ),
        (
            PlanReason(ReasonKind::NetworkSilent {
                transport: Transport::Sctp,
                family,
                port: 0,
                silent_hosts: 3,
            }),
            "sctp over IPv6 has been silent on this network for 3 other hosts",
        ),
        (
            PlanReason(ReasonKind::Probe { one_in: 4 }),
            "one race in 4 probes it again beside a working connection",
        ),
        (
            PlanReason(ReasonKind::NetworkLoses {
                loss: HandshakeLoss { sent_again: 3, handshakes: 16 },
                head_start: ms(100),
                second_tries: 3,
            }),
            "this network loses packets (3 of the last 16 handshakes retransmitted): the head start is at least 100 ms, and an unanswered attempt is repeated up to 3 times",
        ),
        (
            PlanReason(ReasonKind::MoreWanted { than: Transport::Tcp, family: AddressFamily::V4 }),
            "tcp over IPv4 works, but this one is preferred and untried: tried beside the working connection",
        ),
        (PlanReason(ReasonKind::NotStarted), "not started: the race was over"),
        (PlanReason(ReasonKind::LastResort), "tried anyway, because nothing else is left"),
    ]
}

fn all() -> Vec<(PlanReason, &'static str)> {
    [of_memory(), of_order(), of_addresses(), of_limits()].concat()
}

fn of_order() -> Vec<(PlanReason, &'static str)> {
    let transport = Transport::Quic;
    vec![
        (PlanReason(ReasonKind::FirstChoice { transport }), "quic is the most preferred transport"),
        (
            PlanReason(ReasonKind::NextChoice { transport }),
            "quic is the most preferred transport left",
        ),
        (
            PlanReason(ReasonKind::HeadStart { of: transport, delay: ms(80), rtt: Some(ms(40)) }),
            "quic is preferred and gets a head start of 80 ms, from a round trip of 40 ms",
        ),
        (
            PlanReason(ReasonKind::HeadStartCut {
                of: transport,
                delay: ms(50),
                rtt: ms(100),
                other: Transport::Tcp,
                needs: ms(2),
            }),
            "quic is preferred, but with a round trip of 100 ms its head start is only 50 ms: \
             tcp needs no more than 2 ms",
        ),
        (
            PlanReason(ReasonKind::AttemptDelay { delay: ms(1500), rtt: Some(ms(500)) }),
            "starts 1500 ms after the previous attempt, from a round trip of 500 ms",
        ),
        (
            PlanReason(ReasonKind::SecondTry { after: ms(100) }),
            "tried again beside attempts that had been unanswered for 100 ms",
        ),
        (
            PlanReason(ReasonKind::AnswersChanged { after: ms(120) }),
            "started early: DNS answers changed, and an earlier attempt had been unanswered for 120 ms",
        ),
        (
            PlanReason(ReasonKind::Service { name: name(), priority: 1, shuffled: true }),
            "HTTPS record for example.com with priority 1, chosen at random among equals",
        ),
        (
            PlanReason(ReasonKind::Alias { name: name() }),
            "address of the alias example.com, which has no HTTPS record",
        ),
        (
            PlanReason(ReasonKind::BesideRecords { name: name() }),
            "ignores the HTTPS records of example.com, as if there were none: tried after those that they name",
        ),
        (PlanReason(ReasonKind::Ech), "its record has the keys to encrypt its name (ECH)"),
    ]
}

fn of_addresses() -> Vec<(PlanReason, &'static str)> {
    let transport = Transport::Quic;
    vec![
        (
            PlanReason(ReasonKind::AddressRule { rule: AddressRule::Precedence }),
            "after the previous address: its precedence is lower (RFC 6724 rule 6)",
        ),
        (
            PlanReason(ReasonKind::FamilyTurn { family: AddressFamily::V4 }),
            "IPv4's turn: the families alternate",
        ),
        (
            PlanReason(ReasonKind::DeniedHint { name: name() }),
            "hint of the HTTPS record, although example.com itself has no such address: tried last",
        ),
        (
            PlanReason(ReasonKind::ExpiredAddress { name: name() }),
            "from an answer for example.com whose time to live is over",
        ),
        (
            PlanReason(ReasonKind::Synthesised {
                from: Ipv4Addr::new(192, 0, 2, 1),
                prefix: crate::nat64::WELL_KNOWN_PREFIX.0,
                prefix_len: 96,
            }),
            "represents 192.0.2.1 through the network's NAT64 prefix 64:ff9b::/96",
        ),
        (PlanReason(ReasonKind::Literal), "the address was given"),
        (PlanReason(ReasonKind::Localhost), "localhost is this machine; DNS is not queried"),
        (
            PlanReason(ReasonKind::NoRoute { family: AddressFamily::V6 }),
            "this network has no IPv6 route",
        ),
        (
            PlanReason(ReasonKind::FamilyNotAllowed { family: AddressFamily::V6 }),
            "IPv6 was not requested",
        ),
        (
            PlanReason(ReasonKind::NotInRecord {
                name: name(),
                transport,
                listed: vec!["h2".into()],
            }),
            "the HTTPS record for example.com lists h2, none of which is supported over quic here",
        ),
        (PlanReason(ReasonKind::NotSpoken { transport }), "the target does not support quic"),
        (
            PlanReason(ReasonKind::AlwaysSecure { transport }),
            "quic always encrypts, but an unencrypted connection was requested",
        ),
    ]
}

fn of_limits() -> Vec<(PlanReason, &'static str)> {
    let record_type = RecordType::Aaaa;
    vec![
        (
            PlanReason(ReasonKind::TooManyAddresses {
                name: name(),
                record_type,
                used: 64,
                ignored: 9936,
            }),
            "AAAA answer for example.com: 64 addresses are used, 9936 more are not",
        ),
        (
            PlanReason(ReasonKind::ExpiredAnswer { name: name(), record_type }),
            "AAAA answer for example.com: its time to live is over, and it is used until the new one arrives",
        ),
        (
            PlanReason(ReasonKind::ExpiredAnswerKept {
                name: name(),
                record_type,
                failure: DnsFailure::ServerFailure,
            }),
            "AAAA answer for example.com: its time to live is over, and it is used because there is no new one (server-failure)",
        ),
        (
            PlanReason(ReasonKind::NotUnicast { name: name(), record_type, ignored: 2 }),
            "AAAA answer for example.com: 2 ignored: not unicast addresses",
        ),
        (
            PlanReason(ReasonKind::TooManyCandidates { used: 256, ignored: 44 }),
            "there are 300 candidates: 256 are used",
        ),
        (
            PlanReason(ReasonKind::MalformedRecord { name: name(), fault: RecordFault::Port }),
            "HTTPS record of example.com ignored: its port is 0",
        ),
        (
            PlanReason(ReasonKind::AliasLoop { name: name() }),
            "the aliases of the HTTPS records lead back to example.com: the host's own addresses \
             are used",
        ),
        (
            PlanReason(ReasonKind::AliasTooLong { followed: 8, name: name() }),
            "the aliases of the HTTPS records go on after 8, at example.com: the host's own \
             addresses are used",
        ),
        (
            PlanReason(ReasonKind::AliasToNothing { name: name() }),
            "the HTTPS record of example.com says that the service is not available: its own addresses are tried anyway",
        ),
        (
            PlanReason(ReasonKind::OnlyWithEch { name: name() }),
            "every HTTPS record of example.com has an ECH configuration, which is relied on: \
             nothing is tried without one",
        ),
        (
            PlanReason(ReasonKind::RecordsUnavailable { name: name() }),
            "DNS is protected and the HTTPS records of example.com are unavailable: connecting without them would weaken ECH",
        ),
    ]
}

#[test]
fn sentences_match_their_snapshot() {
    for (reason, sentence) in all() {
        assert_eq!(reason.to_string(), sentence);
    }
}

#[test]
fn reasons_survive_json_under_their_names() {
    for (reason, _) in all() {
        let json = serde_json::to_string(&reason).unwrap();
        assert!(json.starts_with(r#"{"reason":""#), "{json}");
        assert_eq!(serde_json::from_str::<PlanReason>(&json).unwrap(), reason);
    }
    let json =
        serde_json::to_string(&PlanReason(ReasonKind::NoRoute { family: AddressFamily::V6 }))
            .unwrap();
    assert_eq!(json, r#"{"reason":"no-route","family":"v6"}"#);
}

/// Durations are rounded for reading.
#[test]
fn durations_are_rounded_in_sentences() {
    let text = |retest_in| {
        let reason = PlanReason(ReasonKind::KnownBad { cause: FailureCause::Tls, retest_in });
        reason.to_string().rsplit("retest in ").next().map(String::from)
    };
    let cases = [
        (ms(0), "0 ms"),
        (Duration::from_micros(250), "250 µs"),
        (ms(999), "999 ms"),
        (ms(2500), "2500 ms"),
        (Duration::from_secs(9), "9 s"),
        (Duration::from_secs(99), "99 s"),
        (Duration::from_mins(5), "5 min"),
        (Duration::from_hours(3), "3 h"),
        (Duration::from_hours(48), "2 days"),
    ];
    for (span, expected) in cases {
        assert_eq!(text(span).as_deref(), Some(expected));
    }
}
