//! Whatever is found: one verdict about each topic, advice exactly where something is broken, and no name or address
//! behind a mask.

use eyas::{ServerEncryption, UnencryptedReason};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{masked, object, page};
use super::*;
use crate::terminal::OutputStyle;

fn ip() -> impl Strategy<Value = IpAddr> {
    let known = vec!["192.168.1.2", "100.64.0.9", "169.254.3.4", "fe80::1234", "fd00::5678"];
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits | 0x0a01_0101))),
        // Addresses whose text is a part of most texts, such as "::", would be found in any.
        any::<u128>()
            .prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits | (0x1111 << 112) | 0x1111))),
        select(known).prop_map(|text| text.parse::<IpAddr>().expect("an address")),
    ]
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (ip(), select(vec![53_u16, 443, 8443])).prop_map(SocketAddr::from)
}

/// Names that are in no text of ours.
fn host_name() -> impl Strategy<Value = String> {
    prop_oneof!["qq[a-z]{3,8}", "[a-z]{1,5}\\.qq[a-z0-9]{2,5}\\.(test|example)"]
}

fn outcome() -> impl Strategy<Value = AttemptResult> {
    let causes = vec![
        FailureCause::Refused,
        FailureCause::Unreachable,
        FailureCause::Silent,
        FailureCause::Reset,
        FailureCause::Tls,
        FailureCause::Certificate,
        FailureCause::Protocol,
        FailureCause::Deadline,
        FailureCause::Unsupported,
        FailureCause::Local,
    ];
    let levels = vec![EvidenceLevel::Started, EvidenceLevel::Answered, EvidenceLevel::Transport];
    let faults = vec![None, Some(CertificateFault::Expired), Some(CertificateFault::Other)];
    prop_oneof![
        Just(AttemptResult::Ready(TOOK)),
        Just(AttemptResult::FellBack),
        (select(causes), select(levels), select(faults)).prop_map(
            |(cause, reached, certificate)| AttemptResult::Failed { cause, reached, certificate }
        ),
    ]
}

fn attempts() -> impl Strategy<Value = Option<Vec<AttemptFinding>>> {
    let security = select(vec![Security::None, Security::Tls, Security::Dtls]);
    let attempt = (select(Transport::ALL.to_vec()), security, address(), outcome(), any::<bool>());
    let attempt = attempt.prop_map(|(transport, security, address, outcome, short_hello)| {
        AttemptFinding { transport, security, address, outcome, short_hello }
    });
    option::of(vec(attempt, 0..6))
}

fn answer() -> impl Strategy<Value = AnswerFinding> {
    let records = vec![
        Ok(0),
        Ok(2),
        Err(DnsFailure::NoData),
        Err(DnsFailure::NoSuchName),
        Err(DnsFailure::ServerFailure),
        Err(DnsFailure::Timeout),
        Err(DnsFailure::Malformed),
        Err(DnsFailure::Unreachable),
        Err(DnsFailure::Local("there is no route to it".to_owned())),
    ];
    select(records).prop_map(|records| AnswerFinding { records, took: TOOK })
}

fn server_answers() -> impl Strategy<Value = AnswerFindings> {
    let all = (answer(), answer(), answer());
    all.prop_map(|(datagram, stream, https)| AnswerFindings { datagram, stream, https })
}

fn server() -> impl Strategy<Value = NameServerFinding> {
    let prefix = any::<u128>()
        .prop_map(|bits| (Ipv6Addr::from_bits((bits | (0x1111 << 112)) & (u128::MAX << 32)), 96));
    let all = (
        address(),
        server_answers(),
        option::of(server_answers()),
        option::of(any::<bool>()),
        vec(prefix, 0..2),
        option::of(encryption()),
    );
    all.prop_map(|(server, common, host, is_truthful, nat64, encryption)| NameServerFinding {
        server,
        common,
        host,
        is_truthful,
        nat64,
        encryption,
    })
}

fn encryption() -> impl Strategy<Value = ServerEncryption> {
    let reasons = vec![
        UnencryptedReason::NotDesignated,
        UnencryptedReason::NotAnswered,
        UnencryptedReason::NotUsable("its record has no name"),
        UnencryptedReason::NotReachable,
        UnencryptedReason::NotVerified,
    ];
    select(reasons).prop_map(ServerEncryption::Absent)
}

fn name_finding() -> impl Strategy<Value = NameFinding> {
    let failures = vec![None, Some(DnsFailure::NoSuchName), Some(DnsFailure::Timeout)];
    let https = (vec(select(vec!["h3".to_owned(), "h2".to_owned()]), 0..3), any::<bool>());
    let https = https.prop_map(|(alpn, has_ech)| HttpsFinding { alpn, has_ech });
    let source =
        (ip(), host_name(), any::<bool>()).prop_map(
            |(server, name, is_queries)| match is_queries {
                true => format!("queries to {server} for {name}.qqsearch.test, then {name}.test"),
                false => "/etc/hosts alone".to_owned(),
            },
        );
    let all = (source, any::<bool>(), vec(ip(), 0..3), select(failures), vec(https, 0..3));
    all.prop_map(|(source, is_from_dns, addresses, failure, https)| NameFinding {
        source,
        is_from_dns,
        addresses,
        failure,
        https,
    })
}

fn host_findings() -> impl Strategy<Value = HostFindings> {
    let host = prop_oneof![
        host_name(),
        ip().prop_map(|ip| match ip {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        })
    ];
    let family = select(vec![AddressFamily::V4, AddressFamily::V6]);
    let sizes = (option::of(1200_u16..), 0_u64..4, option::of(any::<u32>()), family);
    let packets = sizes.prop_map(|(datagram, lost_probes, segment, family)| PacketFinding {
        datagram,
        lost_probes,
        segment,
        family,
    });
    let all = (
        (host, any::<u16>(), option::of(name_finding())),
        vec(select(Transport::ALL.to_vec()), 0..3),
        any::<bool>(),
        attempts(),
        option::of(packets),
        option::of(any::<i64>()),
    );
    all.prop_map(|((host, port, name), named, announces_http3, attempts, packets, clock_ahead)| {
        let named_transports = named;
        HostFindings {
            host,
            port,
            name,
            named_transports,
            announces_http3,
            attempts,
            packets,
            clock_ahead,
        }
    })
}

fn portal() -> impl Strategy<Value = PortalFinding> {
    let answer = prop_oneof![
        Just(PortalAnswer::Nothing),
        (select(vec![200, 204, 302, 511]), option::of(host_name()))
            .prop_map(|(status, redirects_to)| PortalAnswer::Response { status, redirects_to }),
    ];
    (host_name(), any::<bool>(), answer).prop_map(|(host, is_named, answer)| PortalFinding {
        host,
        is_named,
        answer,
    })
}

fn memory() -> impl Strategy<Value = MemoryFinding> {
    let row = (select(Transport::ALL.to_vec()), address(), any::<bool>());
    let row = row.prop_map(|(transport, address, worked)| RememberedFinding {
        transport,
        security: Security::Tls,
        address,
        worked,
    });
    prop_oneof![
        Just(MemoryFinding::Disabled),
        host_name().prop_map(|user| MemoryFinding::Unusable(format!("/var/{user}/x: a link"))),
        (any::<u16>(), vec(row, 0..3), vec(Just("quic v4:443".to_owned()), 0..2)).prop_map(
            |(on_network, of_host, swallowed)| MemoryFinding::Known(MemoryRows {
                on_network: on_network.into(),
                of_host,
                swallowed,
            })
        ),
    ]
}

fn findings() -> impl Strategy<Value = DoctorFindings> {
    let own = (ip(), any::<bool>());
    let own = own.prop_map(|(address, routed)| OwnAddressFinding { address, routed });
    let why = || option::of(Just("the kernel refuses it".to_owned()));
    let machine = (ip(), vec(own, 0..4), why(), why());
    let machine = machine.prop_map(|(gateway, addresses, no_mptcp, no_sctp)| MachineFindings {
        network: format!("wg-qqacme via {gateway}"),
        addresses,
        nat64: Vec::new(),
        no_mptcp,
        no_sctp,
    });
    let all =
        (machine, vec(server(), 0..3), option::of(host_findings()), option::of(portal()), memory());
    all.prop_map(|(machine, name_servers, host, portal, memory)| DoctorFindings {
        machine,
        name_servers,
        host,
        portal,
        memory,
    })
}

/// Returns all names and addresses in the findings.
fn secrets(findings: &DoctorFindings) -> Vec<String> {
    let mut addresses: Vec<IpAddr> =
        findings.machine.addresses.iter().map(|own| own.address).collect();
    for server in &findings.name_servers {
        addresses.push(server.server.ip());
        addresses.extend(server.nat64.iter().map(|(prefix, _)| IpAddr::V6(*prefix)));
    }
    // Parts of names, and of the name of the network and of a file.
    let mut secrets: Vec<String> = vec!["qq".to_owned()];
    if let Some(host) = &findings.host {
        secrets.push(host.host.clone());
        addresses.extend(host.name.iter().flat_map(|name| name.addresses.clone()));
        addresses.extend(host.attempts.iter().flatten().map(|attempt| attempt.address.ip()));
    }
    if let MemoryFinding::Known(rows) = &findings.memory {
        addresses.extend(rows.of_host.iter().map(|row| row.address.ip()));
    }
    secrets.extend(addresses.iter().map(ToString::to_string));
    secrets
}

/// Returns whether a text contains a name or an address, not as a part of a longer number.
fn reveals(text: &str, secret: &str) -> bool {
    text.match_indices(secret).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + secret.len()..].chars().next();
        let is_digit = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
        secret == "qq" || !(is_digit(before) || is_digit(after))
    })
}

proptest! {
    #[test]
    fn each_topic_has_one_verdict_and_advice_exactly_where_it_is_broken(findings in findings()) {
        let verdicts = diagnose(&findings);
        let topics: Vec<Topic> = verdicts.iter().map(|(topic, _)| *topic).collect();
        prop_assert_eq!(topics, Topic::ALL.to_vec());
        for (topic, verdict) in verdicts {
            prop_assert_eq!(
                verdict.advice.is_some(),
                verdict.kind == VerdictKind::Broken,
                "{:?} {:?}", topic, verdict
            );
            prop_assert!(!verdict.finding.is_empty() && verdict.advice.as_deref() != Some(""));
        }
    }

    #[test]
    fn a_mask_lets_no_name_and_no_address_through(mut findings in findings()) {
        let secrets = secrets(&findings);
        let mut mask = masked(&mut findings);
        let verdicts = diagnose(&findings);
        let mut object = object::object(&findings, &verdicts, TOOK);
        mask.value(&mut object);
        let style = OutputStyle { colour: false, unicode: true, width: 110 };
        let lines = page::lines(&findings, &verdicts, Some(&mut mask), style);
        let page: Vec<String> = lines.iter().map(|line| line.to_text(false)).collect();
        for text in [object.to_string(), page.join("\n")] {
            for secret in &secrets {
                prop_assert!(!reveals(&text, secret), "{} in {}", secret, text);
            }
        }
    }
}
