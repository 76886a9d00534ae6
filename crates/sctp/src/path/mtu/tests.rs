use super::*;

const SECOND: u64 = 1_000_000_000;
const RTO: Duration = Duration::from_millis(300);

/// Runs the search over a path with an MTU of `passes` bytes. Returns the time taken and the probes
/// sent.
fn search(mtu: &mut PathMtu, passes: u16, start: u64) -> (u64, usize) {
    let (mut now, mut probes) = (start, 0);
    while let Some(size) = mtu.wanted_probe() {
        probes += 1;
        assert!(probes < 100, "the search does not end");
        mtu.on_probe_sent(now, size, probes as u64, RTO);
        if size <= passes {
            now += SECOND / 10;
            assert!(mtu.on_answer(now, probes as u64));
        } else {
            now = mtu.next_timeout().unwrap();
            mtu.on_time(now);
        }
    }
    (now - start, probes)
}

#[test]
fn an_ordinary_path_keeps_its_1500_bytes_after_three_lost_probes() {
    let mut mtu = PathMtu::new(1500, 9000, true, true);
    let (time, probes) = search(&mut mtu, 1500, 0);
    assert_eq!((mtu.current(), mtu.state()), (1500, MtuState::Complete));
    assert_eq!((time, probes), (3 * SECOND, 3));
}

#[test]
fn jumbo_frames_are_found_in_a_few_round_trips() {
    let mut mtu = PathMtu::new(1500, 9000, true, true);
    let (time, _) = search(&mut mtu, 9000, 0);
    assert_eq!((mtu.current(), mtu.state()), (9000, MtuState::Complete));
    assert!(time < SECOND);
    // Nothing larger is requested, so no probe is repeated.
    assert_eq!(mtu.next_timeout(), None);
}

#[test]
fn a_maximum_size_outside_the_table_is_probed_too() {
    let mut mtu = PathMtu::new(1500, 1777, true, true);
    search(&mut mtu, 65_535, 0);
    assert_eq!(mtu.current(), 1777);
    let mut fixed = PathMtu::new(1500, 1500, true, true);
    assert_eq!(fixed.wanted_probe(), None);
    fixed.on_time(0);
    assert_eq!(fixed.next_timeout(), None);
}

#[test]
fn a_completed_search_restarts_after_ten_minutes() {
    let mut mtu = PathMtu::new(1500, 9000, true, true);
    let (end, _) = search(&mut mtu, 1500, 0);
    let again = mtu.next_timeout().unwrap();
    assert_eq!(again, end + 600 * SECOND);
    mtu.on_time(again - 1);
    assert_eq!(mtu.wanted_probe(), None);
    mtu.on_time(again);
    search(&mut mtu, 9000, again);
    assert_eq!(mtu.current(), 9000);
}

#[test]
fn lost_data_with_answered_heartbeats_is_a_black_hole() {
    let mut mtu = PathMtu::new(1500, 1500, true, true);
    mtu.on_data_sent(1400);
    mtu.on_data_timeout();
    assert!(!mtu.on_small_answer());
    mtu.on_data_timeout();
    assert!(mtu.on_small_answer());
    assert_eq!((mtu.current(), mtu.state()), (1200, MtuState::Base));
    search(&mut mtu, 1430, 0);
    assert_eq!((mtu.current(), mtu.state()), (1420, MtuState::Complete));
}

#[test]
fn below_the_base_only_the_minimum_size_is_left() {
    let mut mtu = PathMtu::new(1500, 1500, true, true);
    mtu.on_data_sent(1400);
    for expected in [1200, 576, 576] {
        mtu.on_data_timeout();
        mtu.on_data_timeout();
        mtu.on_small_answer();
        assert_eq!(mtu.current(), expected);
    }
    assert_eq!(mtu.state(), MtuState::Error);
    let mut six = PathMtu::new(1500, 1500, false, true);
    six.on_data_sent(1400);
    for _ in 0..2 {
        six.on_data_timeout();
        six.on_data_timeout();
        six.on_small_answer();
        assert_eq!(six.current(), 1280);
    }
}

#[test]
fn acknowledged_data_clears_the_suspicion() {
    let mut mtu = PathMtu::new(1500, 1500, true, true);
    mtu.on_data_sent(1400);
    mtu.on_data_timeout();
    mtu.on_data_acknowledged(1400);
    mtu.on_data_timeout();
    assert!(!mtu.on_small_answer());
    // Small packets get through a black hole as well.
    mtu.on_data_acknowledged(600);
    mtu.on_data_timeout();
    assert!(mtu.on_small_answer());
}

/// Otherwise the association would fall back to packets of 576 bytes because its peer is gone.
#[test]
fn small_packets_raise_no_suspicion() {
    let mut mtu = PathMtu::new(1500, 1500, true, true);
    mtu.on_data_sent(100);
    mtu.on_data_timeout();
    mtu.on_data_timeout();
    assert!(!mtu.suspects_black_hole() && !mtu.on_small_answer());
}

#[test]
fn an_icmp_message_can_reduce_the_size_to_the_minimum() {
    let mut mtu = PathMtu::new(1500, 9000, true, true);
    assert!(mtu.on_too_big(0, 1412));
    assert_eq!(mtu.current(), 1412);
    assert_eq!(mtu.wanted_probe(), None);
    assert!(!mtu.on_too_big(0, 1413));
    assert!(mtu.on_too_big(0, 68));
    assert_eq!(mtu.current(), 576);
    let mut six = PathMtu::new(1500, 9000, false, true);
    assert!(six.on_too_big(0, 600));
    assert_eq!(six.current(), 1280);
}

#[test]
fn an_icmp_message_about_a_probe_states_the_next_size() {
    let mut mtu = PathMtu::new(1500, 9000, true, true);
    let size = mtu.wanted_probe().unwrap();
    mtu.on_probe_sent(0, size, 1, RTO);
    assert!(!mtu.on_too_big(0, 1520));
    assert_eq!(mtu.wanted_probe(), Some(1520));
    mtu.on_probe_sent(0, 1520, 2, RTO);
    // The acknowledgement of the previous probe is too late and does not count.
    assert!(!mtu.on_answer(1, 1));
    assert!(mtu.on_answer(1, 2));
    assert_eq!((mtu.current(), mtu.state()), (1520, MtuState::Complete));
}

#[test]
fn without_a_search_no_probe_is_sent_but_icmp_still_counts() {
    let mut mtu = PathMtu::new(1500, 9000, true, false);
    assert_eq!((mtu.wanted_probe(), mtu.next_timeout()), (None, None));
    assert!(mtu.on_too_big(0, 1400));
    assert_eq!((mtu.current(), mtu.state()), (1400, MtuState::Disabled));
}
