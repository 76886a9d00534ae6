use eyas_emulator::units::LossSpec;

use super::*;

fn setup(text: &str) -> SimulationSetup {
    toml::from_str(text).unwrap()
}

const TWO: &str = "time = { warm_up = '19 s', duration = '300 s' }
    [path]
    A = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }
    B = { rate = '10 Mbit/s', delay = '10 ms', framing = '7 bytes' }";

#[test]
fn the_ceiling_of_the_paper() {
    let megabits = setup(TWO).ceiling() / 1e6;
    assert!((megabits - 19.27).abs() < 0.005, "{megabits}");
    let without = setup(&TWO.replace(", framing = '7 bytes'", "")).ceiling() / 1e6;
    assert!((without - 19.36).abs() < 0.001, "{without}");
}

#[test]
fn a_shared_link_counts_once() {
    let shared = TWO.replace("delay = '10 ms', framing = '7 bytes' }", "delay = '10 ms' }");
    let shared = format!("{shared}\nB.through = 'A'").replacen(
        "B = { rate = '10 Mbit/s', delay = '10 ms' }\nB.through = 'A'",
        "B = { rate = '10 Mbit/s', delay = '10 ms', through = 'A' }",
        1,
    );
    assert!((setup(&shared).ceiling() / 1e6 - 9.68).abs() < 0.001);
}

/// Returns a set-up without framing, with a longer delay on B and this buffer.
fn with_slow_path(buffer: &str) -> SimulationSetup {
    let text = TWO.replace(", framing = '7 bytes'", "").replace(
        "B = { rate = '10 Mbit/s', delay = '10 ms'",
        "B = { rate = '10 Mbit/s', delay = '75 ms'",
    );
    setup(&format!("{text}\n[association]\nbuffer = '{buffer}'"))
}

#[test]
fn a_small_buffer_is_best_used_for_the_fast_path() {
    let with = |buffer: &str| with_slow_path(buffer).bound().rate / 1e6;
    // 11 messages fit into 16 KiB; half of one waits for the next to be acknowledged with it. They
    // take 21.2 ms on path A, 1.2 ms of them to be sent.
    assert!((with("16 KiB") - 10.5 * 1452.0 * 8.0 / 21.2e3).abs() < 1e-6);
    // Path A takes 25,650 bytes of the 64 KiB, the others serve path B for 86.2 ms each.
    let both = 9.68 + (44.5 * 1452.0 * 8.0 - 9.68e6 * 21.2e-3) / 86.2e3;
    assert!((with("64 KiB") - both).abs() < 1e-6);
    assert!((with("1 MiB") - 19.36).abs() < 1e-6);
    let bound = with_slow_path("64 KiB").bound();
    let links = &bound.phases[0].links;
    assert_eq!((links[0].path.as_str(), links[1].path.as_str()), ("A", "B"));
    assert!((links[0].wanted() - links[0].given()).abs() < 1e-6);
    assert!((links[1].wanted() - 9.68e6 * 86.2e-3 / 8.0).abs() < 1e-6);
    let given: f64 = links.iter().map(LinkBound::given).sum();
    assert!((given - bound.buffer.unwrap()).abs() < 1e-6);
}

#[test]
fn lost_data_is_carried_twice() {
    let mut lossy = with_slow_path("16 KiB");
    for path in lossy.path.values_mut() {
        path.loss.probability.0 = 0.2;
    }
    // Buffer-limited: a fifth stays for another round trip, and so on; and others wait for it. On
    // each of two streams 0.2 of the messages are lost, so for each second λ = rate / message / 10.
    let bound = lossy.bound();
    let (late, lost) = (21.2e-3, bound.rate / (1452.0 * 8.0) / 10.0);
    let wait = late - (1.0 - (-lost * late).exp()) / lost;
    let expected = 10.5 * 1452.0 * 8.0 / (late / 0.8 + wait);
    assert!((bound.rate / expected - 1.0).abs() < 1e-6, "{} for {expected}", bound.rate);
    lossy.association.buffer = None;
    assert!((lossy.bound().rate / lossy.ceiling() - 0.8).abs() < 1e-9);
    let bursts = "{ while_bad = '50 %', worsens = '1 %', recovers = '4 %' }";
    let bursts: LossSpec = toml::from_str(&format!("loss = {bursts}"))
        .map(|table: BTreeMap<String, LossSpec>| table["loss"])
        .unwrap();
    assert!((bursts.average(MTU) - 0.1).abs() < 1e-12);
}

#[test]
fn changes_are_weighted_by_their_duration() {
    let events = "[[event]]\nat = '119 s'\npath = 'B'\nrate = '5 Mbit/s'
        [[event]]\nat = '219 s'\npath = 'B'\nup = false
        [[event]]\nat = '400 s'\npath = 'A'\nup = false";
    let bound = setup(&format!("{TWO}\n{events}")).bound();
    let seconds: Vec<f64> = bound.phases.iter().map(|phase| phase.seconds).collect();
    assert_eq!(seconds, [100.0, 100.0, 100.0]);
    let path = bound.phases[0].links[0].capacity;
    let expected = path * (2.0 + 1.5 + 1.0) / 3.0;
    assert!((bound.rate - expected).abs() < 1.0, "{}", bound.rate);
}

#[test]
fn unsent_messages_use_up_a_small_buffer() {
    let mut setup = with_slow_path("64 KiB");
    assert_eq!(setup.bound_with_unsent(), None, "no unsent messages are kept");
    setup.application.queue_info = QueueInfo::Unsent;
    // One of 45 messages: the other stream's is being sent.
    let both = 9.68 + (43.5 * 1452.0 * 8.0 - 9.68e6 * 21.2e-3) / 86.2e3;
    let rate = setup.bound_with_unsent().expect("a lower bound") / 1e6;
    assert!((rate - both).abs() < 1e-6, "{rate}");
    setup.association.buffer = Some("1 MiB".parse().expect("a size"));
    assert_eq!(setup.bound_with_unsent(), None, "the buffer is large enough");
}
