//! Converts the records of an answer into the race's types.

use eyas_race::dns::{DnsFailure, DnsRecords, HttpsRecord, RecordType};
use hickory_proto::rr::rdata::svcb::{SVCB, SvcParamKey, SvcParamValue};
use hickory_proto::rr::{RData, Record};

use super::MAX_RECORDS;

/// Returns the records of this type; CNAMEs and other records in an answer are skipped.
pub(super) fn read(record_type: RecordType, answers: &[Record]) -> Result<DnsRecords, DnsFailure> {
    let data = answers.iter().map(|record| &record.data);
    let records = match record_type {
        RecordType::A => {
            let addresses = data.filter_map(|data| match data {
                RData::A(address) => Some(address.0),
                _ => None,
            });
            DnsRecords::A(addresses.take(MAX_RECORDS).collect())
        }
        RecordType::Aaaa => {
            let addresses = data.filter_map(|data| match data {
                RData::AAAA(address) => Some(address.0),
                _ => None,
            });
            DnsRecords::Aaaa(addresses.take(MAX_RECORDS).collect())
        }
        RecordType::Https => {
            let records = data.filter_map(|data| match data {
                RData::HTTPS(https) => Some(https_record(&https.0)),
                _ => None,
            });
            DnsRecords::Https(records.take(MAX_RECORDS).collect())
        }
    };
    let is_empty = match &records {
        DnsRecords::A(addresses) => addresses.is_empty(),
        DnsRecords::Aaaa(addresses) => addresses.is_empty(),
        DnsRecords::Https(records) => records.is_empty(),
    };
    if is_empty { Err(DnsFailure::NoData) } else { Ok(records) }
}

fn https_record(svcb: &SVCB) -> HttpsRecord {
    let target = svcb.target_name.to_ascii();
    let mut record = HttpsRecord {
        priority: svcb.svc_priority,
        target: target.trim_end_matches('.').to_ascii_lowercase(),
        ..HttpsRecord::default()
    };
    for (key, value) in &svcb.svc_params {
        read_parameter(&mut record, *key, value);
    }
    record
}

fn read_parameter(record: &mut HttpsRecord, key: SvcParamKey, value: &SvcParamValue) {
    match value {
        SvcParamValue::Mandatory(keys) => {
            record.mandatory = keys.0.iter().map(|key| u16::from(*key)).collect();
        }
        SvcParamValue::Alpn(alpn) => record.alpn.clone_from(&alpn.0),
        SvcParamValue::NoDefaultAlpn => record.no_default_alpn = true,
        SvcParamValue::Port(port) => record.port = Some(*port),
        SvcParamValue::Ipv4Hint(hints) => {
            record.ipv4_hint = hints.0.iter().map(|hint| hint.0).take(MAX_RECORDS).collect();
        }
        SvcParamValue::Ipv6Hint(hints) => {
            record.ipv6_hint = hints.0.iter().map(|hint| hint.0).take(MAX_RECORDS).collect();
        }
        SvcParamValue::EchConfigList(list) => record.ech = Some(list.0.clone()),
        SvcParamValue::Unknown(_) => record.unknown_keys.push(u16::from(key)),
    }
}
