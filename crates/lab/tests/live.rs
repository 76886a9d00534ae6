//! A live experiment in small: real clients and servers in namespaces. It takes root; elsewhere it
//! says so and counts for nothing.
#![cfg(target_os = "linux")]

use std::sync::atomic::AtomicBool;

use eyas_lab::live::{self, LiveError};
use eyas_lab::plan::{Extent, Options, Plan, shipped};
use eyas_lab::run::RunResult;
use eyas_lab::situation::live::Setup;

/// One run of one point of a shipped plan, in small; none where that is not allowed.
fn run(name: &str, point: &str, set: &[&str], stop: bool) -> Option<Result<RunResult, LiveError>> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {point}: needs root");
        return None;
    }
    let shipped = shipped().iter().find(|shipped| shipped.name == name).unwrap();
    let set = set.iter().map(|text| (*text).to_owned()).collect();
    let options = Options { extent: Extent::Quick, runs: None, set };
    let plan = Plan::parse(shipped.text, &options).unwrap();
    let point = plan.grid.points.iter().find(|one| one.id == point).unwrap();
    let setup: &Setup = point.situation.live().unwrap();
    Some(live::run(setup, 1, &AtomicBool::new(stop)))
}

const SMALL: [&str; 2] = ["live.trials=3", "live.pace=50 ms"];

#[test]
fn every_trial_without_loss_has_a_connection_and_ends_at_http3() {
    for point in ["eyas_100ms", "eyas-warm_100ms", "published-race_100ms"] {
        let Some(result) = run("h3-delay", point, &SMALL, false) else { return };
        let columns = result.unwrap().columns;
        assert_eq!(columns["failed"], [0.0; 3], "{point}");
        assert_eq!(columns["second"], [100.0; 3], "{point}");
        // No packet is quicker than the link.
        assert!(columns["time"].iter().all(|time| *time >= 100.0), "{point}: {columns:?}");
        assert!(columns["packets"][0] > 10.0, "{point}: {columns:?}");
    }
}

#[test]
fn servers_with_and_without_http3_are_told_apart() {
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
        // A run that comes to its end has seen data; how much is a matter of the machine.
        assert_eq!(columns["goodput"].len(), 12, "{point}: {columns:?}");
        assert!(columns.contains_key("on-A") && columns.contains_key("on-B"), "{point}");
    }
}

#[test]
fn a_run_that_is_told_to_stop_leaves_no_result() {
    let runs = [("h3-delay", "eyas_100ms", &SMALL[..]), ("cmt-live", "near_eyas_4MiB", &[])];
    for (name, point, set) in runs {
        let Some(result) = run(name, point, set, true) else { return };
        assert!(matches!(result, Err(LiveError::Stopped)), "{result:?}");
    }
}
