use super::*;
use crate::config::{AssociationConfig, CongestionControlKind};

const PATH: PathId = PathId(0);

fn paths() -> AssociationPaths {
    let config = AssociationConfig {
        congestion_control: CongestionControlKind::NewReno.into(),
        mtu: 9000,
        ..AssociationConfig::default()
    };
    AssociationPaths::new("192.0.2.1:0".parse().unwrap(), None, &config, [0; 32])
}

fn threshold(paths: &AssociationPaths) -> usize {
    paths.get(PATH).unwrap().congestion.slow_start_threshold()
}

#[test]
fn a_mark_is_echoed_until_cwr() {
    let mut paths = paths();
    let path = paths.get_mut(PATH).unwrap();
    assert_eq!(path.ecn_echo(), None);
    path.on_marked(Tsn(10));
    path.on_marked(Tsn(12));
    assert_eq!(path.ecn_echo(), Some(Tsn(10)));
    paths.on_cwr(Tsn(9));
    assert_eq!(paths.get(PATH).unwrap().ecn_echo(), Some(Tsn(10)));
    paths.on_cwr(Tsn(10));
    assert_eq!(paths.get(PATH).unwrap().ecn_echo(), None);
}

#[test]
fn the_window_is_reduced_once_per_window_of_data() {
    let mut paths = paths();
    let none = Duration::ZERO;
    paths.on_ecne(none, PATH, Tsn(100), Tsn(120));
    assert_eq!(threshold(&paths), 36_000);
    paths.get_mut(PATH).unwrap().on_recovered(none);
    for _ in 0..100 {
        let path = paths.get_mut(PATH).unwrap();
        let packet = path.next_packet();
        let window = path.congestion.window();
        path.on_sent(none, window, false);
        path.on_chunk_acknowledged(none, packet, window);
        let progress =
            crate::path::PathProgress { cumulative_advanced: true, ..Default::default() };
        path.on_sack(none, progress, crate::congestion::SiblingPaths::default());
    }
    let grown = paths.get(PATH).unwrap().congestion.window();
    assert!(grown > 72_000);
    paths.on_ecne(none, PATH, Tsn(119), Tsn(140));
    assert_eq!(paths.get(PATH).unwrap().congestion.window(), grown);
    paths.on_ecne(none, PATH, Tsn(120), Tsn(140));
    assert_eq!(paths.get(PATH).unwrap().congestion.window(), grown / 2);
}

#[test]
fn a_mark_on_a_removed_path_is_ignored() {
    let mut paths = paths();
    paths.on_ecne(Duration::ZERO, PathId(9), Tsn(1), Tsn(2));
    assert_eq!(threshold(&paths), usize::MAX);
}

#[test]
fn ecn_is_disabled_only_if_no_capable_packet_ever_arrived() {
    let mut paths = paths();
    let path = paths.get_mut(PATH).unwrap();
    // The packet with the cookie could not be marked: it proves nothing.
    path.ecn.on_data_timeout();
    path.ecn.on_data_acknowledged();
    for _ in 0..2 {
        assert_eq!(path.ecn_codepoint(), Ecn::Capable0);
        path.ecn.on_data_timeout();
    }
    assert_eq!(path.ecn_codepoint(), Ecn::NotCapable);
    path.ecn.on_data_acknowledged();
    assert_eq!(path.ecn_codepoint(), Ecn::NotCapable, "the others arrived");
    let mut proven = PathEcn { tried: true, ..PathEcn::default() };
    proven.on_data_acknowledged();
    for _ in 0..3 {
        proven.on_data_timeout();
    }
    assert_eq!(proven.timeouts, 0);
}
