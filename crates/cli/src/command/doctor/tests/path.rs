//! The path to the host, the clock, and the memory.

use super::*;

#[test]
fn the_size_of_packets_is_what_arrived() {
    let packets = |datagram, lost_probes, segment| {
        move |it: &mut DoctorFindings| {
            let family = AddressFamily::V4;
            host(it).packets = Some(PacketFinding { datagram, lost_probes, segment, family });
        }
    };
    check(Topic::PathMtu, |_| (), Good, "packets of 1500 bytes");
    check(Topic::PathMtu, packets(Some(1372), 3, None), Good, "1400 bytes arrive, larger ones");
    check(Topic::PathMtu, packets(Some(1200), 3, None), Broken, "larger than 1228 bytes");
    check(Topic::PathMtu, packets(Some(1200), 0, None), Unknown, "at least 1228");
    check(Topic::PathMtu, packets(None, 0, Some(1460)), Good, "packets of 1500 bytes");
    check(Topic::PathMtu, packets(None, 0, Some(536)), Broken, "larger than 576 bytes");
    check(Topic::PathMtu, packets(None, 0, None), Unknown, "does not tell");
    check(Topic::PathMtu, |it| host(it).packets = None, Unknown, "there is none");
}

#[test]
fn a_portal_answers_in_the_place_of_the_host() {
    let answered = |is_named, status, redirects_to: Option<&str>| {
        let redirects_to = redirects_to.map(str::to_owned);
        let answer = PortalAnswer::Response { status, redirects_to };
        move |it: &mut DoctorFindings| {
            it.portal = Some(PortalFinding { host: "example.org".into(), is_named, answer });
        }
    };
    check(Topic::CaptivePortal, answered(true, 204, None), Good, "as it has to");
    check(Topic::CaptivePortal, answered(true, 200, None), Broken, "200 instead of 204");
    check(Topic::CaptivePortal, answered(true, 302, Some("x.test")), Broken, "302 instead");
    check(Topic::CaptivePortal, answered(false, 511, None), Broken, "answers 511");
    check(Topic::CaptivePortal, answered(false, 200, None), Good, "answers 200 itself");
    check(Topic::CaptivePortal, answered(false, 301, Some("WWW.Example.org")), Good, "301");
    check(Topic::CaptivePortal, answered(false, 302, Some("x.test")), Unknown, "to x.test");
    check(Topic::CaptivePortal, answered(false, 302, Some("notexample.org")), Unknown, "not");
    check(Topic::CaptivePortal, |it| it.portal = None, Unknown, "--portal-url");
    let nothing = |it: &mut DoctorFindings| {
        it.portal.as_mut().expect("there is one").answer = PortalAnswer::Nothing;
    };
    check(Topic::CaptivePortal, nothing, Unknown, "does not answer");
}

#[test]
fn clocks_may_differ_a_little() {
    for (ahead, kind, words) in [
        (Some(60), Good, "within 60 s"),
        (Some(-60), Good, "within 60 s"),
        (Some(3 * 86_400), Broken, "3 days behind the host's"),
        (Some(-7_200), Broken, "2 h ahead of the host's"),
        (Some(i64::MIN), Broken, "ahead of"),
        (None, Unknown, "not told"),
    ] {
        check(Topic::Clock, |it| host(it).clock_ahead = ahead, kind, words);
    }
}

#[test]
fn what_is_outdated_in_the_memory_is_named() {
    let remembered = |transport, address: &str, worked| RememberedFinding {
        transport,
        security: Security::Tls,
        address: address.parse().expect("an address"),
        worked,
    };
    let rows = MemoryRows {
        on_network: 5,
        of_host: vec![
            remembered(Transport::Quic, V4, false),
            remembered(Transport::Tcp, V4, true),
            remembered(Transport::SctpUdp, V4, true),
        ],
        swallowed: vec!["quic v6:443".to_owned()],
    };
    let known = |it: &mut DoctorFindings| it.memory = MemoryFinding::Known(rows);
    let words = "5 rows about this network, 3 of the host; outdated, and corrected now: \
                 quic to 192.0.2.7:443 works again, sctp-udp to 192.0.2.7:443 works no more; \
                 remembered to be swallowed: quic v6:443";
    check(Topic::Memory, known, Good, words);
    check(Topic::Memory, |it| it.memory = MemoryFinding::Disabled, Unknown, "--memory none");
    let unusable = |it: &mut DoctorFindings| it.memory = MemoryFinding::Unusable("a link".into());
    check(Topic::Memory, unusable, Broken, "a link");
}
