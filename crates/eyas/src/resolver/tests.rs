use std::net::{Ipv4Addr, Ipv6Addr};

use eyas_race::dns::{DnsFailure, HttpsRecord, Query, QueryId, RecordType, Records};
use hickory_resolver::proto::rr::rdata::{A, CNAME, HTTPS, SVCB, svcb};
use hickory_resolver::proto::rr::{Name, RData, Record};

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
    assert_eq!(records::read(RecordType::Https, &[https]), Ok(Records::Https(vec![expected])));
}

#[test]
fn the_root_as_target_is_empty() {
    let https = record(RData::HTTPS(HTTPS(SVCB::new(0, Name::root(), vec![]))));
    let Ok(Records::Https(records)) = records::read(RecordType::Https, &[https]) else {
        panic!("no HTTPS record");
    };
    assert_eq!(records[0].target, "");
}

#[test]
fn a_chain_without_addresses_is_no_data() {
    let chain = record(RData::CNAME(CNAME(Name::from_ascii("other.example.").unwrap())));
    assert_eq!(records::read(RecordType::A, &[chain]), Err(DnsFailure::NoData));
}

#[test]
fn an_endless_answer_is_cut() {
    let many: Vec<_> = (0..10_000u32).map(|n| record(RData::A(A(Ipv4Addr::from(n))))).collect();
    let Ok(Records::A(addresses)) = records::read(RecordType::A, &many) else {
        panic!("no addresses");
    };
    assert_eq!(addresses.len(), super::MAX_RECORDS);
}

#[tokio::test]
async fn an_overridden_host_is_not_asked() {
    let resolver = Resolver::server("127.0.0.1:9".parse().unwrap()).overriding(
        "Example.COM.",
        8443,
        vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    );
    let ask = |name: &str, record_type| Query { id: QueryId(1), name: name.into(), record_type };
    let a = resolver.query(&ask("example.com", RecordType::A), 8443).await;
    assert_eq!(a.records, Ok(Records::A(vec![Ipv4Addr::LOCALHOST])));
    let aaaa = resolver.query(&ask("example.com", RecordType::Aaaa), 8443).await;
    assert_eq!(aaaa.records, Ok(Records::Aaaa(vec![Ipv6Addr::LOCALHOST])));
    let https = resolver.query(&ask("_8443._https.example.com", RecordType::Https), 8443).await;
    assert_eq!(https.records, Err(DnsFailure::NoData));
}
