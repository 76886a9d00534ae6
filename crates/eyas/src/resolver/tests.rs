use std::net::{Ipv4Addr, Ipv6Addr};

use eyas_race::dns::{DnsFailure, DnsQuery, DnsRecords, HttpsRecord, QueryId, RecordType};
use hickory_proto::rr::rdata::{A, CNAME, HTTPS, SVCB, svcb};
use hickory_proto::rr::{Name, RData, Record};

use super::{Resolver, records};

fn record(data: RData) -> Record {
    Record::from_rdata(Name::from_ascii("example.com.").unwrap(), 60, data)
}

#[test]
fn every_service_parameter_is_read() {
    use svcb::{Alpn, EchConfigList, IpHint, Mandatory, SvcParamKey, SvcParamValue, Unknown};
    let parameters = vec![
        (
            SvcParamKey::Mandatory,
            SvcParamValue::Mandatory(Mandatory(vec![SvcParamKey::Alpn, SvcParamKey::Unknown(9)])),
        ),
        (SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(vec!["h3".into(), "h2".into()]))),
        (SvcParamKey::NoDefaultAlpn, SvcParamValue::NoDefaultAlpn),
        (SvcParamKey::Port, SvcParamValue::Port(8443)),
        (
            SvcParamKey::Ipv4Hint,
            SvcParamValue::Ipv4Hint(IpHint(vec![A(Ipv4Addr::new(192, 0, 2, 1))])),
        ),
        (SvcParamKey::EchConfigList, SvcParamValue::EchConfigList(EchConfigList(vec![1, 2]))),
        (SvcParamKey::Unknown(9), SvcParamValue::Unknown(Unknown(vec![7]))),
    ];
    let target = Name::from_ascii("Svc.Example.NET.").unwrap();
    let https = record(RData::HTTPS(HTTPS(SVCB::new(1, target, parameters))));
    let expected = HttpsRecord {
        priority: 1,
        target: "svc.example.net".into(),
        mandatory: vec![1, 9],
        alpn: vec!["h3".into(), "h2".into()],
        no_default_alpn: true,
        port: Some(8443),
        ipv4_hint: vec![Ipv4Addr::new(192, 0, 2, 1)],
        ipv6_hint: vec![],
        ech: Some(vec![1, 2]),
        unknown_keys: vec![9],
    };
    assert_eq!(records::read(RecordType::Https, &[https]), Ok(DnsRecords::Https(vec![expected])));
}

#[test]
fn the_root_as_target_is_empty() {
    let https = record(RData::HTTPS(HTTPS(SVCB::new(0, Name::root(), vec![]))));
    let Ok(DnsRecords::Https(records)) = records::read(RecordType::Https, &[https]) else {
        panic!("no HTTPS record");
    };
    assert_eq!(records[0].target, "");
}

//= rfc9460 §2.4.2
//# MUST follow CNAMEs: 16, over several messages
#[test]
fn a_chain_without_addresses_is_no_data() {
    let chain = record(RData::CNAME(CNAME(Name::from_ascii("other.example.").unwrap())));
    assert_eq!(records::read(RecordType::A, &[chain]), Err(DnsFailure::NoData));
}

#[test]
fn the_number_of_records_is_limited() {
    let many: Vec<_> = (0..10_000u32).map(|n| record(RData::A(A(Ipv4Addr::from(n))))).collect();
    let Ok(DnsRecords::A(addresses)) = records::read(RecordType::A, &many) else {
        panic!("no addresses");
    };
    assert_eq!(addresses.len(), super::MAX_RECORDS);
}

#[tokio::test]
async fn an_overridden_host_is_not_queried() {
    let resolver = Resolver::server("127.0.0.1:9".parse().unwrap()).overriding(
        "Example.COM.",
        8443,
        vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    );
    let query =
        |name: &str, record_type| DnsQuery { id: QueryId(1), name: name.into(), record_type };
    let a = resolver.query(&query("example.com", RecordType::A), 8443).await;
    assert_eq!(a.records, Ok(DnsRecords::A(vec![Ipv4Addr::LOCALHOST])));
    let aaaa = resolver.query(&query("example.com", RecordType::Aaaa), 8443).await;
    assert_eq!(aaaa.records, Ok(DnsRecords::Aaaa(vec![Ipv6Addr::LOCALHOST])));
    let https = resolver.query(&query("_8443._https.example.com", RecordType::Https), 8443).await;
    assert_eq!(https.records, Err(DnsFailure::NoData));
}

/// Starts a DNS server that answers every query with an HTTPS record with this data.
async fn server_with(data: Vec<u8>) -> std::net::SocketAddr {
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut query = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut query).await {
            let name = query[12..len].iter().position(|octet| *octet == 0).unwrap();
            let mut answer = query[..12 + name + 5].to_vec();
            // A response to one question, with one answer and nothing else.
            answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
            answer.extend([0xc0, 12, 0, 65, 0, 1, 0, 0, 0, 60]);
            answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            answer.extend(&data);
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    address
}

//= rfc9460 §7.1.1
//# an ALPN identifier is any octets; one that is not UTF-8 is unknown
/// ```text
/// example.com HTTPS 1 . alpn=h2,\\255\\254,h3
/// ```
#[tokio::test]
async fn a_non_text_identifier_does_not_invalidate_the_record() {
    let alpn = [2, b'h', b'2', 2, 0xff, 0xfe, 2, b'h', b'3'];
    let server = server_with([&[0, 1, 0, 0, 1, 0, 9][..], &alpn].concat()).await;
    let query =
        DnsQuery { id: QueryId(1), name: "example.com".into(), record_type: RecordType::Https };
    let answer = Resolver::server(server).query(&query, 443).await;
    let expected = HttpsRecord {
        priority: 1,
        alpn: vec!["h2".into(), "\u{7f}\u{7f}".into(), "h3".into()],
        ..HttpsRecord::default()
    };
    assert_eq!(answer.records, Ok(DnsRecords::Https(vec![expected])));
}

/// Returns what the client reads from a record with these parameters.
async fn read(parameters: &[u8]) -> Result<DnsRecords, DnsFailure> {
    let server = server_with([&[0, 1, 0], parameters].concat()).await;
    let query =
        DnsQuery { id: QueryId(1), name: "example.com".into(), record_type: RecordType::Https };
    Resolver::server(server).query(&query, 443).await.records
}

//= rfc9460 §2.2
//# a malformed record MUST be rejected
#[tokio::test]
async fn malformed_records_are_rejected() {
    let wrong: &[(&str, &[u8])] = &[
        ("a key before a smaller one", &[0, 3, 0, 2, 1, 187, 0, 1, 0, 3, 2, b'h', b'2']),
        ("a key twice", &[0, 3, 0, 2, 1, 187, 0, 3, 0, 2, 1, 187]),
        ("an end within a parameter", &[0, 3, 0, 2, 1]),
        ("an end within a key", &[0, 3, 0, 2, 1, 187, 0]),
        ("an ALPN set without identifiers", &[0, 1, 0, 0]),
        ("an identifier that is longer than its set", &[0, 1, 0, 3, 3, b'h', b'2']),
        ("an empty identifier", &[0, 1, 0, 4, 2, b'h', b'2', 0]),
        ("a value of no-default-alpn", &[0, 1, 0, 3, 2, b'h', b'2', 0, 2, 0, 1, 0]),
        ("a port of one octet", &[0, 3, 0, 1, 1]),
        ("a port of three octets", &[0, 3, 0, 3, 1, 187, 0]),
        ("no hints", &[0, 4, 0, 0]),
        ("half a hint", &[0, 4, 0, 6, 192, 0, 2, 1, 192, 0]),
        ("no IPv6 hints", &[0, 6, 0, 0]),
        ("no mandatory keys", &[0, 0, 0, 0, 0, 3, 0, 2, 1, 187]),
        ("mandatory keys that do not increase", &[0, 0, 0, 4, 0, 3, 0, 3, 0, 3, 0, 2, 1, 187]),
    ];
    for (what, parameters) in wrong {
        assert_eq!(read(parameters).await, Err(DnsFailure::Malformed), "{what}");
    }
}

//= rfc9460 §2.4.3
//# unknown parameters are ignored
/// ```text
/// example.com HTTPS 1 . port=443 key77=\001\002 key65535=
/// ```
#[tokio::test]
async fn unknown_keys_are_ignored() {
    let records = read(&[0, 3, 0, 2, 1, 187, 0, 77, 0, 2, 1, 2, 0xff, 0xff, 0, 0]).await;
    let expected = HttpsRecord {
        priority: 1,
        port: Some(443),
        unknown_keys: vec![77, 0xffff],
        ..HttpsRecord::default()
    };
    assert_eq!(records, Ok(DnsRecords::Https(vec![expected])));
}

#[test]
fn a_truncated_message_is_left_unchanged() {
    let mut message = vec![0; 12];
    message[5] = 1;
    message[7] = 1;
    message.extend([0, 0, 65, 0, 1]);
    message.extend([0, 0, 65, 0, 1, 0, 0, 0, 60, 0, 11, 0, 1, 0, 0, 1, 0, 4, 3, 0xff, 0xff, 0xff]);
    for len in 0..message.len() {
        let mut cut = message[..len].to_vec();
        assert_eq!(super::service_parameters::repair(&mut cut), None);
        assert_eq!(cut, message[..len]);
    }
    assert_eq!(super::service_parameters::repair(&mut message), Some(()));
    assert!(message.ends_with(&[0x7f; 3]));
}
