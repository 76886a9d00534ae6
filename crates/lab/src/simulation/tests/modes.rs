//! Tests that both forms of packets give the same run: every packet at the same nanosecond on the same
//! link, with the same size and contents, and the same results.

use eyas_netem::world::{TapPoint, WorldRecord};
use proptest::prelude::*;

use super::super::measure;
use super::super::network::SimulatedNetwork;
use crate::plan::{Plan, PlanOptions, shipped};
use crate::run::RunResult;
use crate::situation::{PacketMode, SimulationSetup};

/// More records than any of these runs produces.
const RECORDS: usize = 4_000_000;

/// Returns all records, a capture at both ends of the bottlenecks, and the result.
fn trace(
    setup: &SimulationSetup,
    mode: PacketMode,
    seed: u64,
) -> (Vec<WorldRecord>, Vec<u8>, RunResult) {
    let mut network = SimulatedNetwork::build(&SimulationSetup { mode, ..setup.clone() }, seed);
    network.world.keep_records(RECORDS);
    for (name, link) in network.bottlenecks.clone() {
        network.world.tap(link, TapPoint::Sender, &name);
        network.world.tap(link, TapPoint::Receiver, &name);
    }
    let result = measure(&mut network, setup);
    assert_eq!(network.world.missed_records(), 0);
    let records = network.world.records().to_vec();
    let capture = network.world.capture_mut().expect("there are taps");
    assert_eq!(capture.missed(), 0);
    (records, capture.drain(), result)
}

/// Checks that both forms give the same run, and returns the number of records.
fn assert_alike(setup: &SimulationSetup, seed: u64) -> usize {
    let (expected, bytes, measured) = trace(setup, PacketMode::Wire, seed);
    let (found, written, result) = trace(setup, PacketMode::Struct, seed);
    let differs = expected.iter().zip(&found).find(|(expected, found)| expected != found);
    if let Some((expected, found)) = differs {
        panic!("seed {seed}: in bytes: {expected}; as values: {found}; of {setup:?}");
    }
    assert_eq!(expected.len(), found.len(), "seed {seed} of {setup:?}");
    assert!(bytes == written, "seed {seed}: other contents; of {setup:?}");
    assert_eq!(measured, result, "seed {seed} of {setup:?}");
    found.len()
}

/// The first point of every curve of every shipped plan, in a short run.
#[test]
fn shipped_plans_are_the_same_in_both_modes() {
    let set = ["time.start=['10 ms', '20 ms']", "time.warm_up=300 ms", "time.duration=700 ms"];
    let set: Vec<String> = set.map(str::to_owned).into();
    for plan in shipped().iter().filter(|shipped| shipped.name.starts_with("cmt-")) {
        let options = PlanOptions { set: set.clone(), ..PlanOptions::default() };
        let plan = Plan::parse(plan.text, &options).expect("a plan");
        for curve in &plan.grid.curves {
            let mut of_curve = plan.grid.points.iter().filter(|point| point.curve == curve.id);
            let point = of_curve.next().expect("a curve has points");
            let Some(setup) = point.situation.simulated() else { continue };
            assert!(assert_alike(setup, 1) > 100, "{}: nothing happened", point.id);
        }
    }
}

/// A middlebox gets bytes, and what leaves it stays bytes until it arrives.
#[test]
fn worlds_with_middleboxes_are_the_same_in_both_modes() {
    for middlebox in [
        "kind = 'nat', passes_sctp = true",
        "kind = 'firewall', drops = ['udp']",
        "kind = 'quota', drops = ['sctp'], packets = 500",
    ] {
        let text = format!(
            "time = {{ start = ['10 ms', '20 ms'], warm_up = '300 ms', duration = '2 s' }}
            path.A = {{ rate = '5 Mbit/s', delay = '10 ms', middlebox = [{{ {middlebox} }}] }}
            path.B = {{ rate = '5 Mbit/s', delay = '10 ms', loss = {{ bit_errors = 1e-6 }} }}"
        );
        let setup: SimulationSetup = toml::from_str(&text).expect("a set-up");
        assert!(assert_alike(&setup, 1) > 1000, "{middlebox}: nothing happened");
    }
}

/// Paths with various rates, delays, jitters, queues and losses.
fn path() -> impl Strategy<Value = String> {
    let queue = prop::sample::select(vec![
        "100 packets",
        "20 packets",
        "30000 bytes",
        "100 packets red",
        "500 packets codel",
    ]);
    let loss = prop::sample::select(vec![
        "",
        "probability = '1 %'",
        "probability = '5 %'",
        "bit_errors = 1e-6",
        "while_bad = '30 %', worsens = '1 %', recovers = '20 %'",
    ]);
    (1..20_u32, 1..60_u32, 0..5_u32, queue, loss).prop_map(|(rate, delay, jitter, queue, loss)| {
        format!(
            "rate = '{rate} Mbit/s', delay = '{delay} ms', jitter = '{jitter} ms', \
             queue = '{queue}', loss = {{ {loss} }}"
        )
    })
}

fn association() -> impl Strategy<Value = String> {
    let any_of = |key: &'static str, values: &[&'static str]| {
        let choice = prop::option::of(prop::sample::select(values.to_vec()));
        choice.prop_map(move |value| {
            value.map_or(String::new(), |value| format!("{key} = {value}\n"))
        })
    };
    (
        any_of("profile", &["'pfldnet2010'"]),
        any_of("buffer", &["'32 KiB'", "'128 KiB'", "'1 MiB'"]),
        any_of("mapping", &["'round-robin'", "'modulo'", "'automatic'"]),
        any_of("nr_sack", &["true", "false"]),
        any_of("interleaving", &["true", "false"]),
        any_of("congestion_control", &["'olia'", "'bbr'", "'cmt-rp-v2'"]),
        any_of("loss_detection", &["'classic'", "'rack'"]),
        any_of("scheduler", &["'fcfs'", "'round-robin'", "'fair-bandwidth'"]),
        any_of("rescheduling", &["'both'"]),
        any_of("burst", &["'acknowledged'", "'per-event'", "'total'"]),
        any_of("delayed_ack", &["true", "false"]),
    )
        .prop_map(|parts| {
            let (a, b, c, d, e, f, g, h, i, j, k) = parts;
            [a, b, c, d, e, f, g, h, i, j, k].concat()
        })
}

prop_compose! {
    fn world()(
        paths in prop::collection::vec(path(), 1..4),
        joins in prop::option::of(100..900_u32),
        cut in prop::option::of((200..700_u32, 100..400_u32)),
        association in association(),
        message in prop_oneof![16..200_usize, 1400..1500_usize, 3000..20_000_usize],
        streams in 1..6_u16,
    ) -> SimulationSetup {
        let mut text = String::from(
            "time = { start = ['10 ms', '20 ms'], warm_up = '100 ms', duration = '1 s' }\n",
        );
        text += &format!("application = {{ message = {message}, streams = {streams} }}\n");
        let last = paths.len() - 1;
        for (number, path) in paths.iter().enumerate() {
            let joins = joins.filter(|_| number > 0 && number == last);
            let joins = joins.map_or(String::new(), |at| format!(", joins = '{at} ms'"));
            text += &format!("path.P{number} = {{ {path}{joins} }}\n");
        }
        if let Some((at, gap)) = cut {
            let back = at + gap;
            text += &format!(
                "event = [{{ at = '{at} ms', path = 'P0', up = false }}, \
                 {{ at = '{back} ms', path = 'P0', up = true }}]\n"
            );
        }
        text += &format!("[association]\n{association}");
        let setup: SimulationSetup = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        setup.check().expect("something that can be simulated");
        setup
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn random_worlds_are_the_same_in_both_modes(setup in world(), seed in 0..1000_u64) {
        assert_alike(&setup, seed);
    }
}

#[test]
fn a_plan_sets_the_mode() {
    let plan = |set: &str| {
        let text = shipped().iter().find(|plan| plan.name == "cmt-delay").expect("a plan").text;
        let set = vec![set.to_owned()];
        Plan::parse(text, &PlanOptions { set, ..PlanOptions::default() })
    };
    let mode =
        |set: &str| plan(set).expect("a plan").grid.points[0].situation.simulated().unwrap().mode;
    assert_eq!(mode("mode=struct"), PacketMode::Struct);
    assert_eq!(mode("mode=wire"), PacketMode::Wire);
    assert_eq!(mode("time.warm_up=19 s"), PacketMode::Struct);
    assert!(plan("mode=bytes").unwrap_err().to_string().contains("mode"));
}
