//! The steps of `cargo xtask ci`, cheap ones first.

use serde_json::Value;

use super::platforms::{self, PURE_CRATES};
use super::{Outcome, Step, emulated, fuzz};
use crate::run::{check, command, output, works};

/// The number of cases of each property test (the tests' own default is 256).
const PROPERTY_CASES: &str = "10000";
/// The maximum number of cases that assumptions reject; the default is meant for 256 cases.
const PROPERTY_REJECTS: &str = "100000";
/// The time limit for fetching the database of advisories, in seconds.
const FETCH_SECONDS: &str = "60";
/// A target without an operating system, for which the pure crates must compile.
const BARE_TARGET: &str = "x86_64-unknown-none";

/// Every step, in the order of running.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "tidy", about: "the rules of this repository hold", run: tidy },
    Step { name: "deny", about: "licences, bans and sources of dependencies", run: deny },
    Step { name: "advisories", about: "known faults of dependencies", run: advisories },
    Step {
        name: "clippy",
        about: "no warnings in all targets with all features, nor in fuzz targets",
        run: clippy,
    },
    Step { name: "features", about: "each feature of each crate builds on its own", run: features },
    Step { name: "bare", about: "the pure crates compile without an operating system", run: bare },
    Step { name: "docs", about: "the documentation builds without a warning", run: docs },
    Step { name: "api", about: "the public API is the reviewed one", run: api },
    Step {
        name: "semver",
        about: "the public API is compatible with the last release",
        run: semver,
    },
    Step { name: "test", about: "tests and documentation tests", run: test },
    Step { name: "properties", about: "property tests, 10,000 cases each", run: properties },
    Step {
        name: "fuzz",
        about: "each fuzz target for some seconds, and what it reached",
        run: fuzz::run,
    },
    Step { name: "msrv", about: "the minimum supported Rust version", run: msrv },
];

/// Steps that take too long to run each time: only by name.
pub(crate) const ON_REQUEST: &[Step] = &[
    Step {
        name: "feature-tests",
        about: "the tests of each crate without features, and with each feature on its own",
        run: feature_tests,
    },
    Step {
        name: "platforms",
        about: "the packages compile for every platform that they are for",
        run: platforms::run,
    },
    Step {
        name: "emulated",
        about: "the command for Windows under Wine, that for 64-bit ARM under qemu-user, and tests there",
        run: emulated::run,
    },
];

fn cargo(line: &str) -> Result<Outcome, String> {
    let words: Vec<_> = line.split(' ').collect();
    check(&mut command("cargo", &words)).map(|()| Outcome::Passed)
}

fn fmt() -> Result<Outcome, String> {
    cargo("fmt --all --check")
}

fn tidy() -> Result<Outcome, String> {
    crate::tidy::main().map(|()| Outcome::Passed)
}

fn clippy() -> Result<Outcome, String> {
    cargo("clippy --workspace --all-targets --all-features -- -D warnings")?;
    // The fuzz targets are a separate workspace: nothing else checks them with a stable Rust.
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().unwrap_or("target");
    cargo(&format!("clippy --manifest-path fuzz/Cargo.toml --target-dir {target} -- -D warnings"))
}

fn docs() -> Result<Outcome, String> {
    let arguments = ["doc", "--workspace", "--no-deps", "--all-features"];
    check(command("cargo", &arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    // Public items must not link to items that are public only with `internals`.
    let arguments = "doc -p eyas-sctp -p eyas-proxy -p eyas-tunnel --no-deps";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    check(command("cargo", &arguments).env("RUSTDOCFLAGS", "-D warnings")).map(|()| Outcome::Passed)
}

fn api() -> Result<Outcome, String> {
    if let Some(missing) = crate::api::missing() {
        return Ok(Outcome::Skipped(missing));
    }
    crate::api::main(&[]).map(|()| Outcome::Passed)
}

fn test() -> Result<Outcome, String> {
    cargo("test --workspace")
}

fn deny() -> Result<Outcome, String> {
    if !works("cargo", &["deny", "--version"]) {
        let how = "cargo-deny is missing: cargo install --locked cargo-deny";
        return Ok(Outcome::Skipped(how.into()));
    }
    cargo("deny --all-features check licenses bans sources")
}

/// Runs the fourth check of cargo-deny, which needs a database from a host that not every machine reaches.
fn advisories() -> Result<Outcome, String> {
    if !works("cargo", &["deny", "--version"]) {
        let how = "cargo-deny is missing: cargo install --locked cargo-deny";
        return Ok(Outcome::Skipped(how.into()));
    }
    if !works("timeout", &[FETCH_SECONDS, "cargo", "deny", "fetch", "db"]) {
        let why = "the database cannot be fetched here: cargo deny fetch db prints the reason";
        return Ok(Outcome::Skipped(why.into()));
    }
    cargo("deny --all-features check --disable-fetch advisories")
}

/// Compares the public API with that of the last release: the latest tag that is a version.
fn semver() -> Result<Outcome, String> {
    let tags = output(&mut command("git", &["tag", "--list", "v[0-9]*", "--sort=-v:refname"]))?;
    let Some(release) = tags.lines().next() else {
        let why = "there is no release yet: no tag such as v0.1.0 to compare the API with";
        return Ok(Outcome::Skipped(why.into()));
    };
    if !works("cargo", &["semver-checks", "--version"]) {
        let how = "cargo-semver-checks is missing: cargo install --locked cargo-semver-checks";
        return Ok(Outcome::Skipped(how.into()));
    }
    cargo(&format!("semver-checks --workspace --baseline-rev {release}"))
}

fn bare() -> Result<Outcome, String> {
    let installed = output(&mut command("rustup", &["target", "list", "--installed"]))?;
    if !installed.lines().any(|line| line.trim() == BARE_TARGET) {
        check(&mut command("rustup", &["target", "add", BARE_TARGET]))?;
    }
    for name in PURE_CRATES {
        // What the standard library would have to provide shows without generating code.
        cargo(&format!("check -p {name} --target {BARE_TARGET} --no-default-features"))?;
    }
    Ok(Outcome::Passed)
}

fn features() -> Result<Outcome, String> {
    let each = each_feature_separately(&metadata()?);
    each.iter()
        .try_for_each(|feature| cargo(&format!("clippy {feature} -- -D warnings")).map(drop))?;
    Ok(Outcome::Passed)
}

/// Continues after a failure, because what fails with one feature often fails with others as well.
fn feature_tests() -> Result<Outcome, String> {
    let each = each_feature_separately(&metadata()?);
    let failed: Vec<_> = each
        .into_iter()
        .filter(|feature| cargo(&format!("test --no-fail-fast {feature}")).is_err())
        .collect();
    if failed.is_empty() {
        return Ok(Outcome::Passed);
    }
    Err(format!("cargo test with {}", failed.join("; with ")))
}

/// Returns the cargo options that select each package without features, and with each of its features separately.
fn each_feature_separately(metadata: &Value) -> Vec<String> {
    let mut each = Vec::new();
    for (package, features) in features_of(metadata) {
        let without = format!("-p {package} --no-default-features");
        each.extend(features.iter().map(|feature| format!("{without} --features {feature}")));
        each.push(without);
    }
    each
}

fn metadata() -> Result<Value, String> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let text = output(&mut command("cargo", &arguments))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// Returns the packages that have features, with their features.
fn features_of(metadata: &Value) -> Vec<(String, Vec<String>)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let features = packages.filter_map(|package| {
        let name = package["name"].as_str()?.to_owned();
        let table = package["features"].as_object()?;
        let names = table.keys().filter(|name| *name != "default").cloned();
        Some((name, names.collect::<Vec<_>>()))
    });
    features.filter(|(_, names)| !names.is_empty()).collect()
}

/// Returns the programs in a package's `tests/`.
fn integration_tests(metadata: &Value, package: &str) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages
        .filter(|candidate| candidate["name"] == package)
        .flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    tests.filter_map(|test| Some(test["name"].as_str()?.to_owned())).collect()
}

fn properties() -> Result<Outcome, String> {
    // Optimised, because so many cases would otherwise take minutes; a little, because optimising more takes
    // longer than it saves.
    let mut tests = command("cargo", &["test", "--release", "-p", "eyas-race", "--lib"]);
    tests.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_LTO", "off");
    for name in integration_tests(&metadata()?, "eyas-race") {
        tests.args(["--test", &name]);
    }
    tests.env("PROPTEST_CASES", PROPERTY_CASES);
    tests.env("PROPTEST_MAX_GLOBAL_REJECTS", PROPERTY_REJECTS);
    check(&mut tests).map(|()| Outcome::Passed)
}

fn msrv() -> Result<Outcome, String> {
    let metadata = metadata()?;
    let version = metadata["packages"][0]["rust_version"].as_str().unwrap_or_default().to_owned();
    if version.is_empty() {
        return Err("Cargo.toml has no rust-version".into());
    }
    let toolchain = format!("+{version}");
    if !works("cargo", &[&toolchain, "--version"]) {
        let install = ["toolchain", "install", &version, "--profile", "minimal"];
        if check(&mut command("rustup", &install)).is_err() {
            let why =
                format!("Rust {version} cannot be installed here; only rust-version was read");
            return Ok(Outcome::Skipped(why));
        }
    }
    let target = metadata["target_directory"].as_str().unwrap_or("target");
    cargo(&format!("{toolchain} check --workspace --all-features --target-dir {target}/msrv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_from_metadata() {
        let metadata = serde_json::json!({
            "packages": [
                { "name": "eyas-race", "features": {} },
                { "name": "eyas", "features": { "quic": [], "sqlite": [] } },
            ],
        });
        let names = ["quic".to_owned(), "sqlite".to_owned()];
        assert_eq!(features_of(&metadata), [("eyas".to_owned(), names.to_vec())]);
        let feature = ["--features quic", "--features sqlite", ""];
        let feature =
            feature.map(|flag| format!("-p eyas --no-default-features {flag}").trim().to_owned());
        assert_eq!(each_feature_separately(&metadata), feature);
    }

    #[test]
    fn integration_tests_are_read_from_metadata() {
        let tests = integration_tests(&metadata().unwrap(), "eyas-race");
        assert!(tests.iter().any(|name| name == "late_answers"), "{tests:?}");
        assert!(integration_tests(&metadata().unwrap(), "eyas-none").is_empty());
    }

    #[test]
    fn the_workspace_has_the_planned_features() {
        let features = features_of(&metadata().unwrap());
        let (_, names) = features.iter().find(|(name, _)| name == "eyas").unwrap();
        for wanted in ["quic", "sqlite", "encrypted-dns"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted} is missing");
        }
    }
}
