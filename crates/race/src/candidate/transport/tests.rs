use alloc::{vec, vec::Vec};

use super::*;

#[test]
fn every_transport_is_in_the_list_once_and_found_by_its_name() {
    let mut listed = Transport::ALL.to_vec();
    listed.sort_unstable();
    // Serde lists the variants in the order of their declaration.
    let unknown = serde_json::from_str::<Transport>("\"none\"").unwrap_err().to_string();
    let quoted = unknown.split('`').skip(1).step_by(2);
    let variants: Vec<&str> = quoted.skip_while(|name| *name == "none").collect();
    assert_eq!(listed.iter().map(|transport| transport.name()).collect::<Vec<_>>(), variants);
    for transport in listed {
        assert_eq!(Transport::from_name(transport.name()), Some(transport));
    }
}

#[test]
fn a_scheme_names_transports_in_order_and_each_once() {
    use Transport::{Mptcp, Quic, Sctp, SctpUdp, Tcp};
    let of = |scheme| Transport::from_scheme(scheme);
    assert_eq!(of("quic+tcp"), Some(vec![Quic, Tcp]));
    assert_eq!(of("sctp+mptcp"), Some(vec![Sctp, SctpUdp, Mptcp]));
    assert_eq!(of("sctp-udp+sctp+sctp-udp"), Some(vec![SctpUdp, Sctp]));
    for none in ["", "https", "tcp+", "TCP", "quic+h3"] {
        assert_eq!(of(none), None, "{none:?}");
    }
}

#[test]
fn each_version_of_http_runs_over_its_transports() {
    let over = |transport: Transport| -> Vec<&str> {
        let versions = ["h3", "h2", "http/1.1", "http/1.0"].into_iter();
        versions
            .filter(|version| {
                let version = AlpnName::from(*version);
                transport.carries(&version) && transport.speaks_http(&version)
            })
            .collect()
    };
    assert_eq!(over(Transport::Quic), ["h3"]);
    assert_eq!(over(Transport::Mptcp), ["h2", "http/1.1", "http/1.0"]);
    assert_eq!(over(Transport::SctpUdp), ["http/1.1", "http/1.0"]);
    assert!(Transport::ALL.into_iter().all(|transport| transport.carries(&"mine".into())));
}

#[test]
fn security_costs_a_round_trip_unless_it_is_built_in() {
    let round_trips =
        |security| Transport::ALL.map(|transport| transport.round_trips_under(security));
    // TCP, MPTCP, QUIC, SCTP, SCTP inside UDP.
    assert_eq!(round_trips(Security::None), [1, 1, 1, 2, 2]);
    assert_eq!(round_trips(Security::Tls), [2, 2, 1, 3, 3]);
}
