//! Small live experiments: real clients and servers in namespaces. They require root; without it they
//! are skipped with a message.
#![cfg(target_os = "linux")]

use std::sync::atomic::AtomicBool;

use eyas_lab::live::{self, LiveError};
use eyas_lab::plan::{Plan, PlanExtent, PlanOptions, shipped};
use eyas_lab::run::RunResult;
use eyas_lab::situation::live::LiveSetup;

/// Runs one point of a built-in plan once, reduced in size; `None` without root.
fn run(name: &str, point: &str, set: &[&str], stop: bool) -> Option<Result<RunResult, LiveError>> {
    let set = set.iter().map(|text| (*text).to_owned()).collect();
    with(
        name,
        point,
        PlanOptions { extent: PlanExtent::Quick, set, ..PlanOptions::default() },
        stop,
    )
}

fn with(
    name: &str,
    point: &str,
    options: PlanOptions,
    stop: bool,
) -> Option<Result<RunResult, LiveError>> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {point}: needs root");
        return None;
    }
    let shipped = shipped().iter().find(|shipped| shipped.name == name).unwrap();
    let plan = Plan::parse(shipped.text, &options).unwrap();
    let point = plan.grid.points.iter().find(|one| one.id == point).unwrap();
    let setup: &LiveSetup = point.situation.live().unwrap();
    Some(live::run(setup, 1, &AtomicBool::new(stop)))
}

const SMALL: [&str; 2] = ["live.trials=3", "live.pace=50 ms"];

#[test]
fn every_trial_without_loss_connects_and_ends_up_with_http3() {
    for point in ["eyas_100ms", "eyas-warm_100ms", "published-race_100ms"] {
        let Some(result) = run("h3-delay", point, &SMALL, false) else { return };
        let columns = result.unwrap().columns;
        assert_eq!(columns["failed"], [0.0; 3], "{point}");
        assert_eq!(columns["second"], [100.0; 3], "{point}");
        // No connection is faster than the link.
        assert!(columns["time"].iter().all(|time| *time >= 100.0), "{point}: {columns:?}");
        assert!(columns["packets"][0] > 10.0, "{point}: {columns:?}");
    }
}

#[test]
fn servers_with_and_without_http3_are_distinguished() {
    let set = [SMALL[0], SMALL[1], "live.swallowed=0 %", "live.link.loss=0 %"];
    for (point, second) in [("records_100pc", [100.0; 3]), ("records_0pc", [0.0; 3])] {
        let Some(result) = run("h3-policies", point, &set, false) else { return };
        let columns = result.unwrap().columns;
        assert_eq!(columns["second"], second, "{point}: {columns:?}");
        assert_eq!(columns["wrong"], [0.0; 3], "{point}: {columns:?}");
    }
}

#[test]
fn every_stack_moves_data_over_several_paths() {
    let set = ["live.warm_up=200 ms", "live.duration=600 ms"];
    for point in ["near_eyas_4MiB", "near_eyas-udp_4MiB", "near_mptcp_4MiB", "comes_eyas_4MiB"] {
        let Some(result) = run("cmt-live", point, &set, false) else { return };
        let columns = match result {
            Err(LiveError::Missing(what)) => {
                eprintln!("SKIPPED {point}: {what}");
                continue;
            }
            result => result.unwrap().columns,
        };
        // A complete run has received data; how much depends on the machine.
        assert_eq!(columns["goodput"].len(), 12, "{point}: {columns:?}");
        assert!(columns.contains_key("on-A") && columns.contains_key("on-B"), "{point}");
    }
}

#[test]
fn a_drawn_network_is_measured_with_every_stack() {
    let set = [
        "live.network.both_ways=100 %",
        "live.network.delay=['1 ms', '2 ms']",
        "live.network.duration=['600 ms', '600 ms']",
    ];
    let Some(result) = run("cmt-random-live", "all_4", &set, false) else { return };
    let columns = match result {
        Err(LiveError::Missing(what)) => return eprintln!("SKIPPED: {what}"),
        result => result.unwrap().columns,
    };
    let all = ["throughput", "alone", "best", "sum", "keystroke", "keystroke-alone"];
    let all = all.into_iter().chain(["simulated", "agree", "mptcp", "tcp-alone", "mptcp-best"]);
    for column in all.chain(["beside-mptcp", "best-98"]) {
        assert_eq!(columns.get(column).map(Vec::len), Some(1), "{column}: {columns:?}");
    }
    // The network is the same for all of them.
    let throughput = columns["throughput"][0];
    assert_eq!(columns["agree"][0], throughput / columns["simulated"][0], "{columns:?}");
    assert!(throughput > 0.0 && columns["mptcp"][0] > 0.0, "{columns:?}");
}

#[test]
fn a_third_party_client_is_measured_by_its_packets() {
    let client = "id = 'any'\nversion = 'curl --version'
        command = 'curl -sS -o /dev/null --cacert {ca} {url}'";
    let run = |point: &str, set: &str| {
        let options = PlanOptions {
            set: vec!["clients=[]".to_owned(), set.to_owned()],
            clients: vec![client.to_owned()],
            ..PlanOptions::default()
        };
        match with("he-clients", point, options, false)? {
            Err(LiveError::Missing(what)) => {
                eprintln!("SKIPPED {point}: {what}");
                None
            }
            result => Some(result.unwrap()),
        }
    };
    let Some(refused) = run("v6-rst_any_0ms", "live.trials=2") else { return };
    let columns = &refused.columns;
    assert_eq!(columns["failed"], [0.0; 2], "{columns:?}");
    assert_eq!((&columns["first-6"], &columns["won-6"]), (&vec![100.0; 2], &vec![0.0; 2]));
    assert_eq!((&columns["addresses-6"], &columns["addresses-4"]), (&vec![1.0; 2], &vec![1.0; 2]));
    let observed = refused.observed.unwrap();
    assert!(observed.version.starts_with("curl"), "{observed:?}");
    let lines = &observed.courses[0].lines;
    let place = |what: &str| lines.iter().position(|line| line.what == what);
    let refusal = place("RST, IPv6 no. 1 port 80");
    assert!(refusal.is_some() && refusal < place("SYN to IPv4 no. 1 port 80"), "{lines:?}");
    // Over TLS, with the certificate of the trial's own authority.
    let Some(secure) = run("alias_any_0ms", "live.trials=1") else { return };
    assert_eq!((&secure.columns["failed"], &secure.columns["won-6"]), (&vec![0.0], &vec![100.0]));
    let prohibited = run("v6-icmp_any_0ms", "live.trials=1").and_then(|run| run.observed).unwrap();
    let reported =
        |line: &eyas_lab::run::PacketLine| line.what.contains("administratively prohibited");
    assert!(prohibited.courses[0].lines.iter().any(reported), "{prohibited:?}");
}

#[test]
fn a_client_that_sends_nothing_is_not_a_network_failure() {
    let options = PlanOptions {
        set: vec!["clients=[]".to_owned(), "live.trials=1".to_owned()],
        clients: vec![
            "id = 'mute'\nversion = 'echo 1'\ncommand = 'echo no {url} today >&2'".to_owned(),
        ],
        ..PlanOptions::default()
    };
    match with("he-clients", "v6-rst_mute_0ms", options, false) {
        Some(Err(LiveError::Missing(why))) if why.contains("queried no name") => {
            assert!(why.contains("no http://") && why.contains("today"), "{why}");
        }
        Some(Err(LiveError::Missing(what))) => eprintln!("SKIPPED: {what}"),
        Some(other) => panic!("{other:?}"),
        None => {}
    }
}

#[test]
fn a_stopped_run_leaves_no_result() {
    let runs = [("h3-delay", "eyas_100ms", &SMALL[..]), ("cmt-live", "near_eyas_4MiB", &[])];
    for (name, point, set) in runs {
        let Some(result) = run(name, point, set, true) else { return };
        assert!(matches!(result, Err(LiveError::Stopped)), "{result:?}");
    }
}
