//! Keys and rows, as they are stored.

use core::net::IpAddr;

use proptest::prelude::*;

use super::*;

#[test]
fn keys_have_a_stable_text_form() {
    let peer = MemoryKey::peer(&home(), &host("a.test"), &quic());
    assert_eq!(peer.to_string(), "home/peer/a.test/quic/tls/192.0.2.1:443");
    let path = MemoryKey::path(&home(), &candidate(Transport::SctpUdp, "[fe80::1%3]:9899"));
    assert_eq!(path.to_string(), "home/path/sctp-udp/v6/0");
    assert_eq!(MemoryKey::network(&home()).to_string(), "home/name");
    let literal = TargetHost::Literal("fe80::1".parse().unwrap(), 3);
    let peer = MemoryKey::peer(&home(), &literal, &candidate(Transport::Tcp, "[fe80::1%3]:80"));
    assert_eq!(peer.to_string(), "home/peer/=fe80::1~3/tcp/tls/[fe80::1%3]:80");
    let resolver = MemoryKey::resolver(&home(), &literal, "[fe80::1%3]:53".parse().unwrap());
    assert_eq!(resolver.to_string(), "home/resolver/=fe80::1~3/[fe80::1%3]:53");
    assert!(resolver.to_string().starts_with(&MemoryKey::resolver_prefix(&home())));
}

#[test]
fn prefixes_select_the_rows_of_a_race() {
    let memory = after(&[
        worked("a.test", quic(), NOW),
        worked("a.test", tcp(), NOW),
        worked("a.test.example", tcp(), NOW),
    ]);
    let keys: Vec<String> = memory.records().map(|record| record.key.to_string()).collect();
    let starting_with = |prefix: &str| keys.iter().filter(|key| key.starts_with(prefix)).count();
    assert_eq!(starting_with(&MemoryKey::peer_prefix(&home(), &host("a.test"))), 2);
    assert_eq!(starting_with(&MemoryKey::path_prefix(&home())), 2);
}

#[test]
fn damaged_keys_are_rejected() {
    let damaged = [
        "",
        "home",
        "home/peer/a.test/quic/tls",
        "home/peer/a.test/quic/tls/192.0.2.1:443/more",
        "home/peer/a.test/smoke/tls/192.0.2.1:443",
        "home/peer/=1.2.3/tcp/tls/192.0.2.1:443",
        "home/path/quic/v5/443",
        "home/path/quic/v4/65536",
        "home/name/more",
        "home/resolver/a.test",
        "home/resolver/a.test/192.0.2.1",
        "home/resolver/a.test/192.0.2.1:53/more",
        "ho%zzme/path/quic/v4/443",
        "ho%ffme/path/quic/v4/443",
        "ho%f",
    ];
    for text in damaged {
        assert_eq!(text.parse::<MemoryKey>(), Err(MalformedKey), "{text}");
    }
}

fn any_host() -> impl Strategy<Value = TargetHost> {
    prop_oneof![
        any::<String>().prop_map(TargetHost::Name),
        (any::<IpAddr>(), any::<u32>())
            .prop_map(|(address, scope)| TargetHost::Literal(address, scope)),
    ]
}

proptest! {
    #[test]
    fn every_key_survives_its_text_form(
        network in any::<String>(),
        host in any_host(),
        address in any::<(IpAddr, u16)>(),
        transport in prop::sample::select(Transport::ALL.to_vec()),
    ) {
        let mut candidate = quic();
        candidate.address = address.into();
        candidate.transport = transport;
        let network = NetworkId(network.into());
        let (peer, path) = (MemoryKey::peer(&network, &host, &candidate), MemoryKey::path(&network, &candidate));
        let resolver = MemoryKey::resolver(&network, &host, address.into());
        for key in [peer, path, MemoryKey::network(&network), resolver] {
            prop_assert_eq!(key.to_string().parse::<MemoryKey>(), Ok(key));
        }
    }
}

#[test]
fn learning_single_rows_gives_the_rows_of_the_whole_memory() {
    let evidence = [
        was_silent("a.test", quic(), NOW),
        worked("a.test", tcp(), NOW),
        was_silent("b.test", quic(), NOW + MIN),
        was_silent("a.test", quic(), NOW + 6 * MIN),
    ];
    let mut file: Vec<(MemoryKey, MemoryEntry)> = Vec::new();
    for piece in &evidence {
        let mut existing =
            |key: &MemoryKey| file.iter().find(|row| row.0 == *key).map(|row| row.1.clone());
        let changed = learn_rows(&mut existing, piece, &platform(), &MemoryConfig::default());
        for (key, entry) in changed {
            file.retain(|row| row.0 != key);
            file.push((key, entry));
        }
    }
    file.sort_by(|left, right| left.0.cmp(&right.0));
    let whole: Vec<_> =
        after(&evidence).records().map(|record| (record.key, record.entry)).collect();
    assert_eq!(file, whole);
}

#[test]
fn a_view_survives_json() {
    let memory = after(&[worked("a.test", tcp(), NOW), was_silent("a.test", quic(), NOW)]);
    let view = memory.view(&home(), &host("a.test"), &platform(), NOW);
    let text = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<MemoryView>(&text).unwrap(), view);
}

#[test]
fn a_row_whose_key_and_entry_disagree_is_ignored() {
    let memory = after(&[was_silent("a.test", quic(), NOW)]);
    let mut rows: Vec<_> = memory.records().map(|record| (record.key, record.entry)).collect();
    let (first, second) = rows.split_at_mut(1);
    core::mem::swap(&mut first[0].1, &mut second[0].1);
    assert!(MemoryView::from_rows(rows, &platform(), NOW, &MemoryConfig::default()).is_empty());
}
