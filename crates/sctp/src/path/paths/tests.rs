use super::*;

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 0))
}

fn three_paths() -> (AssociationPaths, AssociationConfig) {
    let config = AssociationConfig::default();
    let mut paths = AssociationPaths::new(address(1), None, &config, [7; 32]);
    for last in 2..=3 {
        let id = paths.add(address(last), None, &config).unwrap();
        paths.confirm(id);
    }
    while paths.poll_change().is_some() {}
    (paths, config)
}

fn changes(paths: &mut AssociationPaths) -> Vec<(u16, PathChange)> {
    core::iter::from_fn(|| paths.poll_change()).map(|(id, change)| (id.0, change)).collect()
}

#[test]
fn no_data_is_sent_to_an_unconfirmed_address() {
    let config = AssociationConfig::default();
    let mut paths = AssociationPaths::new(address(1), None, &config, [7; 32]);
    let second = paths.add(address(2), None, &config).unwrap();
    for _ in 0..6 {
        paths.on_error(PathId(0), &config);
    }
    assert_eq!(paths.for_data(Some(second)), Some(PathId(0)));
    assert_eq!(paths.for_retransmission(PathId(0)), PathId(0));
    assert!(!paths.set_primary(second));
    paths.confirm(second);
    assert_eq!(paths.for_data(None), Some(second));
    assert_eq!(
        changes(&mut paths),
        [
            (1, PathChange::Added),
            (0, PathChange::PotentiallyFailed),
            (0, PathChange::Inactive),
            (1, PathChange::Confirmed),
        ]
    );
}

//= rfc7829 §3.2, 1 and 2
//# an address whose errors exceed PFMR, 0 by default, is potentially failed (PF)
#[test]
fn one_error_makes_a_path_potentially_failed_and_a_response_restores_it() {
    let (mut paths, config) = three_paths();
    paths.on_error(PathId(0), &config);
    assert_eq!(paths.get(PathId(0)).unwrap().state(), PathState::PotentiallyFailed);
    assert_eq!(paths.for_data(None), Some(PathId(1)));
    assert_eq!(
        paths.for_data(Some(PathId(0))),
        Some(PathId(1)),
        "although the user requested that path"
    );
    assert_eq!(paths.primary(), PathId(0));
    paths.on_answer(PathId(0));
    assert_eq!(paths.for_data(None), Some(PathId(0)));
    assert_eq!(changes(&mut paths), [(0, PathChange::PotentiallyFailed), (0, PathChange::Active)]);
}

//= rfc7829 §3.2, 4
//# without an active address the PF one with the fewest errors
#[test]
fn the_failed_path_with_the_fewest_errors_is_used() {
    let (mut paths, config) = three_paths();
    for (id, errors) in [(0, 3), (1, 2), (2, 3)] {
        for _ in 0..errors {
            paths.on_error(PathId(id), &config);
        }
    }
    assert_eq!(paths.for_data(None), Some(PathId(1)));
    for _ in 0..4 {
        paths.on_error(PathId(1), &config);
    }
    // Inactive is worse than potentially failed; the primary path wins among equals.
    assert_eq!(paths.for_data(None), Some(PathId(0)));
}

#[test]
fn errors_on_all_paths_together_end_the_association() {
    let (mut paths, config) = three_paths();
    for turn in 0..10 {
        paths.on_error(PathId(turn % 3), &config);
    }
    assert!(!paths.is_peer_unreachable(&config));
    paths.on_error(PathId(0), &config);
    assert!(paths.is_peer_unreachable(&config));
    paths.on_answer(PathId(1));
    assert_eq!(paths.errors(), 0);
}

#[test]
fn errors_on_all_concurrent_paths_count_once() {
    let (mut paths, mut config) = three_paths();
    config.multipath = Some(crate::config::MultipathConfig::default());
    for _ in 0..10 {
        for id in 0..3 {
            paths.on_error(PathId(id), &config);
        }
    }
    assert_eq!(paths.errors(), 10);
    // Paths without errors work: they have answered since.
    paths.on_answer(PathId(1));
    for _ in 0..20 {
        paths.on_error(PathId(0), &config);
    }
    assert_eq!(paths.errors(), 0);
    for _ in 0..11 {
        assert!(!paths.is_peer_unreachable(&config));
        paths.on_error(PathId(1), &config);
        paths.on_error(PathId(2), &config);
    }
    assert!(paths.is_peer_unreachable(&config));
}

#[test]
fn errors_of_an_unconfirmed_address_do_not_count_for_the_association() {
    let (mut paths, config) = three_paths();
    let id = paths.add(address(4), None, &config).unwrap();
    for _ in 0..20 {
        paths.on_error(id, &config);
    }
    assert_eq!(paths.errors(), 0);
    assert_eq!(paths.get(id).unwrap().state(), PathState::Unconfirmed);
}

#[test]
fn retransmissions_take_another_path() {
    let (mut paths, config) = three_paths();
    assert_eq!(paths.for_retransmission(PathId(0)), PathId(1));
    assert_eq!(paths.for_retransmission(PathId(2)), PathId(0));
    paths.on_error(PathId(1), &config);
    assert_eq!(paths.for_retransmission(PathId(0)), PathId(2));
    paths.on_error(PathId(2), &config);
    assert_eq!(paths.for_retransmission(PathId(0)), PathId(0));
}

//= rfc7829 §5, 4 and 6
//# switching the primary path over is off by default; then the primary path returns
#[test]
fn the_primary_path_returns_unless_it_was_permanently_abandoned() {
    let (mut paths, mut config) = three_paths();
    config.primary_switchover_max_retrans = Some(1);
    paths.on_error(PathId(0), &config);
    assert_eq!(paths.primary(), PathId(0));
    paths.on_error(PathId(0), &config);
    assert_eq!(paths.primary(), PathId(1));
    paths.on_answer(PathId(0));
    assert_eq!(paths.for_data(None), Some(PathId(1)));
}

//= rfc7829 §5, 2 and 3
//# beyond PSMR the address with the data becomes primary
#[test]
fn the_path_with_data_becomes_primary_even_if_potentially_failed() {
    let (mut paths, mut config) = three_paths();
    config.primary_switchover_max_retrans = Some(1);
    for id in [1, 1, 2, 0] {
        paths.on_error(PathId(id), &config);
    }
    assert_eq!((paths.primary(), paths.for_data(None)), (PathId(0), Some(PathId(0))));
    paths.on_error(PathId(0), &config);
    assert_eq!((paths.primary(), paths.for_data(None)), (PathId(2), Some(PathId(2))));
}

//= rfc7829 §5, 1
//# PSMR below PFMR MUST be rejected; it is treated as PFMR
/// RFC 7829 §5: no PSMR below PFMR.
#[test]
fn a_primary_path_is_not_abandoned_before_it_is_potentially_failed() {
    let (mut paths, mut config) = three_paths();
    config.primary_switchover_max_retrans = Some(0);
    config.potentially_failed_max_retrans = 2;
    for primary in [0, 0, 1] {
        paths.on_error(PathId(0), &config);
        assert_eq!(paths.primary(), PathId(primary));
    }
}

#[test]
fn identifiers_are_not_reused_and_the_last_path_stays() {
    let (mut paths, config) = three_paths();
    assert!(paths.remove(PathId(0)).is_some());
    assert_eq!(paths.primary(), PathId(1));
    assert!(paths.remove(PathId(1)).is_some());
    assert!(paths.remove(PathId(2)).is_none());
    assert_eq!(paths.add(address(1), None, &config), Some(PathId(3)));
    assert_eq!(paths.add(address(1), None, &config), Some(PathId(3)));
    assert_eq!(
        changes(&mut paths),
        [
            (0, PathChange::Removed),
            (1, PathChange::MadePrimary),
            (1, PathChange::Removed),
            (2, PathChange::MadePrimary),
            (3, PathChange::Added),
        ]
    );
}

//= rfc7829 §3.2, 2
//# only T3 and unanswered HEARTBEATs make it PF; so does a tail-loss probe, if another address is
//# active
//= otherwise: data would stall for a timeout (`suspect_silent_paths`)
#[test]
fn an_unanswered_tail_loss_probe_casts_doubt_only_if_there_is_another_path() {
    let (mut paths, config) = three_paths();
    paths.suspect(PathId(0));
    assert_eq!(paths.for_data(None), Some(PathId(1)));
    assert_eq!(paths.errors(), 0);
    let mut single = AssociationPaths::new(address(1), None, &config, [7; 32]);
    single.suspect(PathId(0));
    assert_eq!(single.get(PathId(0)).unwrap().state(), PathState::Active);
}

#[test]
fn packets_are_matched_by_both_addresses() {
    let (paths, _) = three_paths();
    assert_eq!(paths.by_remote(address(2), None), Some(PathId(1)));
    assert_eq!(paths.by_remote(address(9), None), None);
    assert_eq!(paths.by_address(address(3).ip()), Some(PathId(2)));
}

#[test]
fn the_number_of_paths_is_limited_to_255() {
    let config = AssociationConfig::default();
    let mut paths = AssociationPaths::new(address(0), None, &config, [7; 32]);
    let added = (1..=u8::MAX).filter(|&last| paths.add(address(last), None, &config).is_some());
    assert_eq!(added.count(), 254);
    assert_eq!(paths.len(), 255);
    let gone = paths.iter().nth(3).expect("there are many").id;
    paths.remove(gone).expect("it was present");
    assert!(paths.add(address(u8::MAX), None, &config).is_some(), "there is room again");
}
