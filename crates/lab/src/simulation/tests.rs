//! Tests in short runs: throughput and delay of simple networks, and reproducibility.

mod modes;

use super::run;
use crate::situation::{QueueInfo, SimulationSetup};

/// Returns a set-up with one path of 10 Mbit/s and 10 ms, and additional settings.
fn one_path(more: &str) -> SimulationSetup {
    let text = format!(
        "time = {{ warm_up = '5 s', duration = '10 s' }}
        path.A = {{ rate = '10 Mbit/s', delay = '10 ms' }}
        {more}"
    );
    toml::from_str(&text).unwrap()
}

const PUBLISHED: &str = "[association]\nprofile = 'pfldnet2010'\nbuffer = '64 KiB'\n";

#[test]
fn one_path_fills_its_link() {
    let setup = one_path(PUBLISHED);
    let result = run(&setup, 1);
    let share = result.bytes() as f64 * 8.0 / 10.0 / setup.ceiling();
    assert!((0.97..1.001).contains(&share), "{share}");
    // The delay is that of a full buffer: 64 KiB at 9.68 Mbit/s take 54 ms.
    let delay = result.mean_delay_ms();
    assert!((30.0..60.0).contains(&delay), "{delay} ms");
    assert!(result.longest_gap_ms < 1000.0 && result.events > 10_000);
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_does_not() {
    let lossy = one_path(PUBLISHED).with_loss("1 %");
    assert_eq!(run(&lossy, 7), run(&lossy, 7));
    assert_ne!(run(&lossy, 7), run(&lossy, 8));
}

impl SimulationSetup {
    fn with_loss(mut self, part: &str) -> Self {
        for path in self.path.values_mut() {
            path.loss.probability = part.parse().unwrap();
        }
        self
    }
}

#[test]
fn a_rival_takes_its_share() {
    let setup = one_path("[rival.R]\npath = 'A'\nassociation.profile = 'pfldnet2010'");
    let result = run(&setup, 1);
    assert_eq!(result.rivals[0].name, "R");
    let all = (result.bytes() + result.rivals[0].bytes) as f64 * 8.0 / 10.0 / setup.ceiling();
    assert!((0.9..1.001).contains(&all), "{all}");
    assert!(result.rivals[0].bytes > 500_000);
}

#[test]
fn an_event_changes_the_link() {
    let half = "[[event]]\nat = '5 s'\npath = 'A'\nrate = '5 Mbit/s'\n";
    let result = run(&one_path(&format!("{half}{PUBLISHED}")), 1);
    let megabits = result.bytes() as f64 * 8.0 / 10.0 / 1e6;
    assert!((4.5..5.1).contains(&megabits), "{megabits}");
    let cut = "[[event]]\nat = '5 s'\npath = 'A'\nup = false\n";
    let result = run(&one_path(&format!("{cut}{PUBLISHED}")), 1);
    assert!(result.bytes() < 100_000 && result.longest_gap_ms > 9_000.0);
}

#[test]
fn each_direction_has_its_own_link() {
    let with = |own: &str, more: &str| -> SimulationSetup {
        let text = format!(
            "time = {{ warm_up = '5 s', duration = '10 s' }}
            path.A = {{ rate = '10 Mbit/s', delay = '10 ms'{own} }}
            {more}"
        );
        toml::from_str(&text).unwrap()
    };
    let event = |more: &str| format!("event = [{{ at = '5 s', path = 'A', {more} }}]\n");
    let megabits = |own: &str, more: &str| run(&with(own, more), 1).bytes() as f64 * 8.0 / 1e7;
    let same = ", back = { rate = '10 Mbit/s', delay = '10 ms', queue = '100 packets' }";
    assert_eq!(run(&with(same, ""), 1), run(&with("", ""), 1));
    // A way back of 50 kbit/s carries fewer than 98 acknowledgements in a second.
    let slow = ", queue = '20 packets', back = { rate = '50 kbit/s', delay = '40 ms' }";
    assert!(megabits(slow, "") < 7.0, "{}", megabits(slow, ""));
    let wide = event("back = { rate = '10 Mbit/s', delay = '10 ms' }");
    assert!(megabits(slow, &wide) > 9.0, "{}", megabits(slow, &wide));
    // A new rate is not that of a way back that has one of its own.
    let there = event("rate = '9 Mbit/s'");
    assert!(megabits(slow, &there) < 7.0, "{}", megabits(slow, &there));
    // With a small buffer, what was sent before has to be acknowledged first.
    let (long, small) = (", back = { delay = '60 ms' }", "association.buffer = '16 KiB'");
    assert!(megabits(long, small) < 0.6 * megabits("", small));
    assert!(with(long, small).bound().rate < 0.6 * with("", small).bound().rate);
}

#[test]
fn a_path_that_joins_is_used_from_then_on() {
    let joining = |at: &str| {
        one_path(&format!(
            "path.B = {{ rate = '10 Mbit/s', delay = '20 ms', joins = '{at}' }}\n\
             [association]\nbuffer = '512 KiB'"
        ))
    };
    let bytes = |at: &str| {
        let result = run(&joining(at), 1);
        result.paths.iter().map(|path| path.bytes as f64 * 8.0 / 1e8).collect::<Vec<_>>()
    };
    // From the start of the measurement, from its middle, and after its end. Before the handshake
    // is complete there is no peer, so the address is announced afterwards.
    for (at, least, most) in
        [("0 s", 0.9, 1.01), ("1 s", 0.9, 1.01), ("10 s", 0.4, 0.51), ("16 s", 0.0, 0.0)]
    {
        let used = bytes(at);
        assert!(used[0] > 0.9, "{at}: {used:?}");
        assert!((least..=most).contains(&used[1]), "{at}: {used:?}");
    }
}

#[test]
fn a_path_that_joins_takes_over_from_one_that_fails() {
    let setup = one_path(
        "path.B = { rate = '10 Mbit/s', delay = '20 ms', joins = '7 s' }
        association.buffer = '512 KiB'
        event = [{ at = '9 s', path = 'A', up = false }]",
    );
    let result = run(&setup, 1);
    assert!(result.longest_gap_ms < 500.0, "{}", result.longest_gap_ms);
    // B carries almost everything during the six seconds after the cut.
    assert!(result.paths[1].bytes as f64 * 8.0 > 0.9 * 6.0 * 10e6, "{:?}", result.paths);
}

#[test]
fn one_path_must_exist_from_the_start() {
    let joins = "path.B = { rate = '10 Mbit/s', delay = '20 ms', joins = '7 s' }\n";
    let only = one_path(&format!("{joins}association.only = ['B']"));
    assert!(only.check().is_err_and(|error| error.to_string().contains("from the start")));
    let rival = one_path(&format!("{joins}rival.R.path = 'B'"));
    assert!(rival.check().is_err_and(|error| error.to_string().contains("rival.R")));
    assert_eq!(one_path(joins).check(), Ok(()));
}

/// Returns a set-up with four streams over two paths, the second with 40 ms more delay, and the
/// automatic mapping.
fn two_paths(more: &str) -> SimulationSetup {
    let text = format!(
        "time = {{ warm_up = '5 s', duration = '10 s' }}
        path.A = {{ rate = '10 Mbit/s', delay = '10 ms' }}
        path.B = {{ rate = '10 Mbit/s', delay = '50 ms' }}
        application.streams = 4
        [association]
        buffer = '192 KiB'
        mapping = 'automatic'
        nr_sack = true
        {more}"
    );
    toml::from_str(&text).unwrap()
}

#[test]
fn a_stream_of_higher_priority_has_less_delay() {
    let equal = run(&two_paths("priorities = []"), 1);
    let first = run(&two_paths("priorities = [1, 1, 1, 0]"), 1);
    let delay = |stream: usize| first.streams[stream].mean_delay_ms();
    assert!((0..3).all(|other| delay(3) < delay(other)), "{first:?}");
    assert!(delay(3) < equal.streams[3].mean_delay_ms(), "{} ms, {equal:?}", delay(3));
    // It costs the others little.
    assert!(first.bytes() as f64 > 0.95 * equal.bytes() as f64, "{first:?}");
}

#[test]
fn a_stream_with_a_deadline_takes_no_path_that_misses_it() {
    for (deadlines, early) in [("['30 ms']", 0), ("['0 s', '30 ms']", 1)] {
        let mut setup = two_paths(&format!("deadlines = {deadlines}"));
        setup.application.streams = 2;
        setup.application.queue_info = QueueInfo::Unsent;
        let result = run(&setup, 1);
        let delay = |stream: usize| result.streams[stream].mean_delay_ms();
        assert!(delay(early) < 30.0 && delay(1 - early) > 40.0, "{result:?}");
    }
}

#[test]
fn the_receive_order_does_not_matter_if_everything_is_read_at_once() {
    let by = |order: &str| run(&two_paths(&format!("receive_order = '{order}'")), 1);
    let arrival = by("arrival");
    assert_eq!(by("round-robin"), arrival);
    assert_eq!(by("priority"), arrival);
}

#[test]
fn a_path_that_gets_longer_is_filled_again() {
    let longer = "[[event]]\nat = '3 s'\npath = 'A'\ndelay = '30 ms'\n";
    let setup = one_path(&format!("{longer}[association]\nbuffer = '256 KiB'\n"));
    let share = run(&setup, 1).bytes() as f64 * 8.0 / 10.0 / setup.ceiling();
    assert!((0.95..1.001).contains(&share), "{share}");
}

#[test]
fn a_capped_path_is_not_starved_by_a_flow_that_fills_the_queue() {
    let rival =
        "[rival.R]\npath = 'A'\nassociation = { profile = 'pfldnet2010', buffer = '2 MiB' }\n";
    let result = run(&one_path(&format!("{rival}[association]\nbuffer = '256 KiB'\n")), 1);
    let share = result.bytes() as f64 / (result.bytes() + result.rivals[0].bytes) as f64;
    assert!(share > 0.2, "{share}");
}

/// Returns the payload in Mbit/s over a path with these keys.
fn megabits(path: &str) -> f64 {
    let text = format!(
        "time = {{ warm_up = '5 s', duration = '10 s' }}
        path.A = {{ delay = '10 ms', {path} }}"
    );
    let setup: SimulationSetup = toml::from_str(&text).unwrap();
    setup.check().unwrap();
    run(&setup, 1).bytes() as f64 * 8.0 / 1e7
}

#[test]
fn a_recorded_rate_is_the_rate_and_each_direction_has_its_own() {
    let trace = |times: &str| format!("{{ file = 'a', times = \"{times}\" }}");
    // A packet each 2 ms are 6 Mbit/s; three and a pause of 6 ms are as much.
    let steady = megabits(&format!("trace = {}", trace("2")));
    let bursts = megabits(&format!("trace = {}", trace("1\\n1\\n1\\n6")));
    assert!((5.5..6.0).contains(&steady), "{steady}");
    assert!((7.0..8.0).contains(&bursts), "{bursts}");
    // Acknowledgements that return at one packet per second.
    let slow = megabits(&format!("trace = {}, back.trace = {}", trace("2"), trace("1000")));
    assert!(slow < steady / 2.0, "{slow}");
}

#[test]
fn jitter_that_reorders_costs_throughput_and_jitter_in_order_does_not() {
    let classic = |keys: &str| megabits(&format!("rate = '10 Mbit/s', {keys} }}\n{PUBLISHED}\n#"));
    let in_order = classic("jitter = '3 ms 25 % normal'");
    let reordered = classic("jitter = '3 ms 25 % normal', reorder = 'jitter'");
    assert!(reordered < 0.8 * in_order, "{reordered} {in_order}");
}

#[test]
fn middleboxes_are_between_sender_and_bottleneck() {
    let through = |keys: &str| megabits(&format!("rate = '10 Mbit/s', middlebox = [{{ {keys} }}]"));
    let plain = through("kind = 'firewall', drops = ['udp']");
    assert!(plain > 9.0, "{plain}");
    assert_eq!(through("kind = 'firewall', drops = ['sctp']"), 0.0);
    assert_eq!(through("kind = 'quota', packets = 100"), 0.0, "used up before the measurement");
    // 5 s of warm-up carry 6 MB; the quota ends the transfer after some more.
    let part = through("kind = 'quota', drops = ['sctp'], bytes = '10 MB'");
    assert!((1.0..0.6 * plain).contains(&part), "{part}");
    let translated = through("kind = 'nat', passes_sctp = true");
    assert!(translated > 9.0, "{translated}");
}
