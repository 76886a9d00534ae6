//! Tests of the measures, on packets in a short notation.

use super::super::packet::DnsMessage;
use super::*;

const NAME: &str = "t1.lab.test";
const IPV4: &str = "198.19.0.1";
const IPV6: &str = "2001:2:0:ffff::1";

/// Parses packets: `TIME > PEER CONTENT` from the client, `TIME < PEER CONTENT` to it.
fn packets(text: &str) -> Vec<PacketInfo> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(line).collect()
}

fn line(text: &str) -> PacketInfo {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [at, direction, peer, content] = words[..] else { panic!("{text}") };
    let peer: IpAddr = match peer {
        "4" => IPV4,
        "6" => IPV6,
        "dns" => "198.18.1.2",
        other => other,
    }
    .parse()
    .expect("an address");
    let at = Duration::from_secs_f64(at.parse::<f64>().expect("a time") / 1e3);
    PacketInfo {
        at,
        sent: direction == ">",
        peer,
        length: 60,
        content: parse_content(content, direction == "<", peer),
    }
}

fn parse_content(text: &str, is_answer: bool, peer: IpAddr) -> PacketContent {
    let dns = |record_type, records| {
        let name = NAME.to_owned();
        PacketContent::Dns(DnsMessage { is_answer, name, record_type, code: 0, records })
    };
    // `syn:443` is a SYN to a port other than 80.
    let (word, port) = text.split_once(':').unwrap_or((text, "80"));
    let flow = FlowPorts { local: 40_000, remote: port.parse().expect("a port") };
    let tcp = |segment| PacketContent::Tcp { flow, segment };
    let quic =
        |packet_type| PacketContent::Quic { flow: FlowPorts { remote: 443, ..flow }, packet_type };
    match word {
        "a" => dns(RecordType::A, 1),
        "aaaa" => dns(RecordType::AAAA, 1),
        "no-aaaa" => dns(RecordType::AAAA, 0),
        "https" => dns(RecordType::HTTPS, 1),
        "syn" => tcp(SegmentKind::Syn),
        "syn-ack" => tcp(SegmentKind::SynAck),
        "rst" => tcp(SegmentKind::Rst),
        "data" => tcp(SegmentKind::Data),
        "fin" => tcp(SegmentKind::Fin),
        "initial" => quic(QuicPacketType::Initial),
        "handshake" => quic(QuicPacketType::Handshake),
        "short" => quic(QuicPacketType::Short),
        "prohibited" => PacketContent::Unreachable { address: peer, port: 80, code: 1 },
        other => panic!("{other}"),
    }
}

fn of(text: &str) -> FetchMeasures {
    measure(&packets(text), NAME, None)
}

#[test]
fn the_second_attempt_is_a_cad_later() {
    let measures = measure(
        &packets(
            "10 > dns a
             10.1 > dns aaaa
             10.5 < dns a
             10.6 < dns aaaa
             11 > 6 syn
             211 > 4 syn
             211.2 < 4 syn-ack
             211.4 > 4 data
             212 < 4 data
             1011 > 6 syn",
        ),
        NAME,
        Some(Duration::from_millis(215)),
    );
    let near = |column: &str, wanted: f64| {
        let number = measures[column];
        assert!((number - wanted).abs() < 1e-6, "{column}: {number}, not {wanted}");
    };
    near("first", 1.0);
    near("first-6", 100.0);
    near("cad", 200.0);
    near("byte", 202.0);
    near("won-6", 0.0);
    near("failed", 0.0);
    near("linger", 3.0);
    // A retransmitted SYN is not an attempt.
    near("addresses-6", 1.0);
    near("addresses-4", 1.0);
    near("turns", 1.0);
    assert!(!measures.contains_key("rd") && !measures.contains_key("between"));
}

#[test]
fn the_type_of_the_first_query_sent_is_reported() {
    assert_eq!(of("0 > dns https\n1 > dns aaaa\n2 > dns a")["aaaa-first"], 100.0);
    assert_eq!(of("0 > dns a\n1 < dns aaaa\n2 > dns aaaa")["aaaa-first"], 0.0);
    assert!(!of("0 > dns https\n1 < dns a\n2 > 6 syn").contains_key("aaaa-first"));
}

#[test]
fn an_attempt_after_a_refusal_has_no_cad() {
    for refusal in ["rst", "prohibited", "syn-ack"] {
        let text = format!("0 > dns a\n1 > 6 syn\n2 < 6 {refusal}\n3 > 4 syn");
        assert!(!of(&text).contains_key("cad"), "{refusal}");
    }
    assert_eq!(of("0 > dns a\n1 > 6 syn\n3 > 4 syn\n4 < 6 rst")["cad"], 2.0);
}

#[test]
fn the_resolution_delay_is_measured_only_without_an_answer() {
    let never = "0 > dns a\n0 > dns aaaa\n1 < dns a\n51 > 4 syn";
    assert!((of(never)["rd"] - 50.0).abs() < 1e-6);
    let late = "0 > dns a\n1 < dns a\n51 > 4 syn\n100 < dns aaaa";
    assert!((of(late)["rd"] - 50.0).abs() < 1e-6);
    // An answer without addresses does not count.
    let none = "0 > dns a\n1 < dns a\n2 < dns no-aaaa\n3 > 4 syn";
    assert!((of(none)["rd"] - 2.0).abs() < 1e-6);
    let there = "0 > dns a\n1 < dns a\n2 < dns aaaa\n3 > 6 syn\n253 > 4 syn";
    assert!(!of(there).contains_key("rd"));
}

#[test]
fn waiting_for_a_late_a_record_is_detected() {
    let at_once = "0 > dns aaaa\n1 < dns aaaa\n2 > 6 syn\n400 < dns a";
    assert!((of(at_once)["waits-for-a"] - 1.0).abs() < 1e-6);
    let waits = "0 > dns aaaa\n1 < dns aaaa\n400 < dns a\n401 > 6 syn";
    assert!(!of(waits).contains_key("waits-for-a"));
    assert!((of(waits)["first"] - 401.0).abs() < 1e-6);
}

#[test]
fn addresses_are_counted_and_their_families_take_turns() {
    let text = "0 > dns a
        10 > 2001:2:0:ffff::1 syn
        20 > 198.19.0.1 syn
        40 > 2001:2:0:ffff::2 syn
        70 > 198.19.0.2 syn";
    let measures = of(text);
    assert_eq!((measures["addresses-6"], measures["addresses-4"]), (2.0, 2.0));
    assert_eq!((measures["turns"], measures["failed"]), (3.0, 100.0));
    assert!((measures["between"] - 20.0).abs() < 1e-6);
    assert!(!measures.contains_key("byte"));
}

#[test]
fn a_late_answer_to_an_abandoned_attempt_is_not_a_wasted_handshake() {
    let killed = "0 > dns a\n1 > 6 syn\n251 > 4 syn\n301 < 6 syn-ack\n301 > 6 rst";
    assert_eq!((of(killed)["killed"], of(killed)["wasted"]), (1.0, 1.0));
    let wasted = "0 > dns a\n1 > 6 syn\n2 < 6 syn-ack\n3 > 6 fin";
    assert_eq!((of(wasted)["killed"], of(wasted)["wasted"]), (0.0, 1.0));
    let used = "0 > dns a\n1 > 6 syn\n2 < 6 syn-ack\n3 > 6 data\n4 < 6 data\n5 > 6 rst";
    assert_eq!((of(used)["killed"], of(used)["wasted"]), (0.0, 0.0));
}

#[test]
fn the_response_under_tls_comes_after_the_second_flight() {
    let text = "0 > dns a\n1 > 6 syn:443\n2 < 6 syn-ack:443\n3 > 6 data:443\n4 < 6 data:443
        4.5 < 6 data:443\n5 > 6 data:443\n6 > 6 data:443\n7 < 6 data:443\n8 < 6 data:443";
    let measures = of(text);
    assert!((measures["byte"] - 7.0).abs() < 1e-6);
    assert_eq!((measures["won-6"], measures["won-quic"]), (100.0, 0.0));
    // A server that is silent after accepting has not answered.
    let silent = "0 > dns a\n1 > 6 syn:443\n2 < 6 syn-ack:443\n3 > 6 data:443";
    assert_eq!((of(silent)["failed"], of(silent)["wasted"]), (100.0, 0.0));
}

#[test]
fn the_response_of_quic_has_a_short_header() {
    let text = "0 > dns https\n1 > 6 initial\n3 > 4 syn:443\n4 < 6 initial\n4.1 < 6 handshake
        4.2 < 6 short\n5 > 6 handshake\n5.1 > 6 short\n6 < 6 short";
    let measures = of(text);
    assert!((measures["byte"] - 6.0).abs() < 1e-6);
    assert!((measures["udp-to-tcp"] - 2.0).abs() < 1e-6);
    assert!((measures["cad"] - 2.0).abs() < 1e-6);
    assert_eq!(measures["won-quic"], 100.0);
}

#[test]
fn queries_for_other_names_are_ignored() {
    assert!(is_query_for("t1.lab.test", NAME) && is_query_for("_8443._https.t1.lab.test", NAME));
    assert!(!is_query_for("xt1.lab.test", NAME) && !is_query_for("lab.test", NAME));
    let query = &packets("0 > dns a")[0];
    assert!(belongs(query, NAME) && !belongs(query, "t2.lab.test"));
    assert!(belongs(&packets("0 > 6 syn")[0], "t2.lab.test"));
    assert_eq!(start_time(&packets("7 > 6 syn"), NAME), Some(Duration::from_millis(7)));
    assert_eq!(of("").get("failed"), Some(&100.0));
}

#[test]
fn a_client_with_a_cache_is_timed_from_its_first_attempt() {
    let queries_later = "0 > 6 syn\n30 > dns a\n31 < dns a\n250 > 4 syn\n251 < 4 syn-ack\n252 > 4 data\n253 < 4 data";
    let measures = of(queries_later);
    assert_eq!((measures["first"], measures["cad"], measures["byte"]), (0.0, 250.0, 253.0));
    // From a hint or a cache: an answer that arrives later has caused no delay.
    let hinted = of("0 > dns a\n0 > dns aaaa\n2 > 4 syn\n3 > 6 syn\n9 < dns a\n9 < dns aaaa");
    assert!(!hinted.contains_key("rd"), "{hinted:?}");
    let hinted = of("0 > dns a\n0 > dns aaaa\n2 > 6 syn\n9 < dns aaaa");
    assert!(!hinted.contains_key("waits-for-a"), "{hinted:?}");
}

#[test]
fn a_connection_of_the_previous_fetch_is_ignored() {
    let before = "0 > 6 data\n1 < 6 data\n2 > dns a\n3 < dns a\n4 > 4 syn";
    let measures = of(before);
    assert_eq!((measures["failed"], measures["wasted"]), (100.0, 0.0));
    let before = "0 < 6 short\n1 > 6 short\n2 < 6 short\n3 > dns a\n4 > 6 initial";
    assert_eq!(of(before)["failed"], 100.0);
}
