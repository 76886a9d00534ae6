//! The complete list of which of our crates may depend on which.
//!
//! `race`, `sctp` and `netem` do not depend on each other, except that tests of `sctp` run over networks
//! of `netem`. There is no crate for common code: a few repeated lines cost less than a crate that ties
//! all releases together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Finding;
use crate::run::{command, output};

/// Each of our crates, and those of our crates that it may depend on. A crate that does not exist is not an
/// error; one that is not in the list is.
const ALLOWED: [(&str, &[&str]); 26] = [
    (
        "eyas-cli",
        &[
            "eyas-emulator",
            "eyas-gateway",
            "eyas-lab",
            "eyas-load",
            "eyas-perf",
            "eyas-proxy",
            "eyas-relay",
            "eyas-sctp-tokio",
            "eyas-supervisor",
            "eyas-testserver",
            "eyas-tunnel",
            "eyas-http",
            "eyas",
        ],
    ),
    ("eyas-perf", &["eyas", "eyas-sctp-tokio"]),
    ("eyas-python", &["eyas-lab", "eyas-http", "eyas", "eyas-sctp-tokio"]),
    ("eyas-capi", &["eyas", "eyas-sctp-tokio"]),
    (
        "eyas-lab",
        &[
            "eyas-emulator",
            "eyas-load",
            "eyas-testserver",
            "eyas-http",
            "eyas",
            "eyas-netem",
            "eyas-race",
            "eyas-sctp",
            "eyas-sctp-tokio",
        ],
    ),
    ("eyas-emulator", &["eyas-netem"]),
    // The site, for its tests.
    ("eyas-load", &["eyas-testserver", "eyas-http", "eyas", "eyas-netem"]),
    ("eyas-http", &["eyas", "eyas-h3", "eyas-sctp-tokio"]),
    ("eyas-testserver", &["eyas-http", "eyas"]),
    // The site, for tests of these.
    ("eyas-proxy", &["eyas-relay", "eyas-testserver", "eyas-http", "eyas", "eyas-sctp-tokio"]),
    ("eyas-gateway", &["eyas-relay", "eyas-testserver", "eyas-http", "eyas"]),
    ("eyas-tunnel", &["eyas-relay", "eyas", "eyas-sctp-tokio"]),
    ("eyas-relay", &["eyas-http", "eyas"]),
    ("eyas", &["eyas-h3", "eyas-host", "eyas-race", "eyas-sctp-tokio"]),
    ("eyas-sctp-tokio", &["eyas-host", "eyas-sctp"]),
    ("eyas-host", &[]),
    ("eyas-examples", &["eyas-proxy", "eyas-http", "eyas"]),
    ("eyas-sockets", &["eyas-sctp"]),
    ("eyas-race", &[]),
    ("eyas-sctp", &[]),
    ("eyas-netem", &[]),
    ("eyas-h3", &[]),
    ("eyas-preload", &[]),
    ("eyas-supervisor", &["eyas-netem", "eyas-sctp", "eyas-sctp-tokio", "eyas-sockets"]),
    ("eyas-bench", &[]),
    ("xtask", &[]),
];

/// Additional dependencies that are allowed only in tests.
const ALLOWED_IN_TESTS: [(&str, &str); 4] = [
    ("eyas-testserver", "eyas-sctp-tokio"),
    ("eyas-sctp", "eyas-netem"),
    // Sessions through a proxy.
    ("eyas-tunnel", "eyas-proxy"),
    ("eyas-tunnel", "eyas-http"),
];

/// Crates that must build without an operating system do not depend on crates that require one.
const PURE_CRATES: [&str; 5] = ["eyas-race", "eyas-sctp", "eyas-netem", "eyas-sockets", "eyas-h3"];
const IMPURE: [&str; 9] =
    ["tokio", "async-std", "smol", "mio", "socket2", "rand", "getrandom", "chrono", "libc"];

/// Checks `cargo metadata` against the list.
pub(super) fn check() -> Result<Vec<Finding>, String> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--all-features"];
    let text = output(&mut command("cargo", &arguments))?;
    let metadata =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(check_metadata(&metadata))
}

fn check_metadata(metadata: &Value) -> Vec<Finding> {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let ours: BTreeSet<&str> =
        packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(may) = allowed.get(name) else {
            let message = "this crate is not in tidy's list of dependencies";
            findings.push(Finding::error(name, 0, message));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let other = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"] == "dev";
            // A crate's tests may enable a feature of the crate itself.
            let is_itself = other == name;
            let may_in_tests = for_tests && ALLOWED_IN_TESTS.contains(&(name, other));
            if ours.contains(other) && !is_itself && !may.contains(&other) && !may_in_tests {
                let message =
                    format!("must not depend on {other}; allowed are [{}]", may.join(", "));
                findings.push(Finding::error(name, 0, message));
            }
            if PURE_CRATES.contains(&name) && IMPURE.contains(&other) && !for_tests {
                let message = format!("is pure and must not depend on {other}");
                findings.push(Finding::error(name, 0, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Value {
        let list: Vec<_> =
            dependencies.iter().map(|other| json!({ "name": other, "kind": null })).collect();
        json!({ "name": name, "dependencies": list })
    }

    fn messages(packages: &[Value]) -> Vec<String> {
        check_metadata(&json!({ "packages": packages }))
            .into_iter()
            .map(|finding| format!("{} {}", finding.place, finding.message))
            .collect()
    }

    #[test]
    fn the_list_itself_passes() {
        let packages: Vec<_> = ALLOWED.iter().map(|(name, may)| package(name, may)).collect();
        assert_eq!(messages(&packages), [""; 0]);
    }

    #[test]
    fn an_upward_dependency_is_an_error() {
        let found = messages(&[package("eyas", &["eyas-http"]), package("eyas-http", &["eyas"])]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("eyas must not depend on eyas-http"), "{found:?}");
    }

    #[test]
    fn pure_crates_do_not_depend_on_each_other() {
        let found = messages(&[package("eyas-race", &["eyas-sctp"]), package("eyas-sctp", &[])]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn only_tests_of_sctp_depend_on_netem() {
        let dependency = |kind| json!([{ "name": "eyas-netem", "kind": kind }]);
        let sctp = |kind| json!({ "name": "eyas-sctp", "dependencies": dependency(kind) });
        let netem = package("eyas-netem", &[]);
        assert_eq!(messages(&[sctp(Value::Null), netem.clone()]).len(), 1);
        assert_eq!(messages(&[sctp("dev".into()), netem]).len(), 0);
    }

    #[test]
    fn pure_crates_depend_on_no_runtime_but_their_tests_may() {
        assert_eq!(messages(&[package("eyas-race", &["tokio"])]).len(), 1);
        let test_only = json!({
            "name": "eyas-race",
            "dependencies": [{ "name": "rand", "kind": "dev" }],
        });
        assert_eq!(messages(&[test_only]).len(), 0);
    }

    #[test]
    fn an_unknown_crate_is_an_error() {
        assert_eq!(messages(&[package("eyas-common", &[])]).len(), 1);
    }

    #[test]
    fn external_dependencies_are_allowed() {
        assert_eq!(messages(&[package("eyas", &["tokio", "quinn"])]).len(), 0);
    }
}
