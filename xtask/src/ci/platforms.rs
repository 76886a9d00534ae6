//! Checks that the packages compile for the platforms that they are for (`docs/reference/platforms.md`), without linking
//! and without running anything there.
//!
//! The C of SQLite, ring and zstd is compiled by zig, which has the headers of every system but Android:
//! `cargo-zigbuild` passes it to build scripts. A target or zig that is missing is installed if `CI=true` or skipped
//! aloud otherwise; what cannot be had is skipped, too.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Outcome;
use crate::dist::platform::OLDEST_GLIBC;
use crate::dist::tools::ZIG_FROM_PYPI;
use crate::run::{check, command, output, target, works};

/// What has to compile for a target of rustc.
struct Platform {
    target: &'static str,
    packages: &'static [&'static str],
    /// Whether a package has C in it.
    has_c: bool,
}

/// The C compiler for Android. Zig has no headers of its libc; those of musl do where nothing is linked.
const CC_FOR_ANDROID: (&str, &str) =
    ("CC_aarch64_linux_android", "cargo-zigbuild zig cc -- -target aarch64-linux-musl");

/// Why there is no zig.
pub(super) const NO_ZIG: &str = "zig is missing: pip install ziglang cargo-zigbuild";

/// The crates that need no operating system.
pub(super) const PURE_CRATES: [&str; 5] =
    ["eyas-race", "eyas-sctp", "eyas-netem", "eyas-sockets", "eyas-h3"];

/// The libraries with sockets.
const LIBRARIES: &[&str] = &[
    "eyas-host",
    "eyas-sctp-tokio",
    "eyas",
    "eyas-http",
    "eyas-relay",
    "eyas-proxy",
    "eyas-gateway",
    "eyas-tunnel",
    "eyas-perf",
    "eyas-load",
    "eyas-testserver",
];

const PLATFORMS: &[Platform] = &[
    Platform { target: "wasm32-unknown-unknown", packages: &PURE_CRATES, has_c: false },
    command_for("x86_64-unknown-freebsd"),
    command_for("aarch64-apple-darwin"),
    command_for("x86_64-pc-windows-gnu"),
    command_for("aarch64-unknown-linux-gnu"),
    command_for("aarch64-unknown-linux-musl"),
    command_for("x86_64-unknown-linux-musl"),
    Platform { target: "aarch64-linux-android", packages: LIBRARIES, has_c: true },
];

/// The command, and with it everything below it.
const fn command_for(target: &'static str) -> Platform {
    Platform { target, packages: &["eyas-cli"], has_c: true }
}

/// Checks each platform, and prints a line for each at the end.
pub(super) fn run() -> Result<Outcome, String> {
    let must = must_be_complete();
    let zig = zig(must);
    let mut lines = Vec::new();
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for platform in PLATFORMS {
        let (start, target) = (Instant::now(), platform.target);
        let outcome = match missing(platform, zig.is_some(), must) {
            Some(why) => Ok(Outcome::Skipped(why)),
            None => check_platform(platform, zig.as_deref()).map(|()| Outcome::Passed),
        };
        let seconds = start.elapsed().as_secs_f64();
        let packages = platform.packages.join(" ");
        lines.push(match outcome {
            Ok(Outcome::Passed) => format!("{target:<28} passed in {seconds:>6.1} s: {packages}"),
            Ok(Outcome::Skipped(why)) => {
                skipped.push(format!("{target}: {why}"));
                format!("{target:<28} SKIPPED: {why}")
            }
            Err(why) => {
                failed.push(target);
                format!("{target:<28} FAILED: {why}")
            }
        });
    }
    println!();
    lines.iter().for_each(|line| println!("{line}"));
    match (failed.is_empty(), skipped.is_empty()) {
        (false, _) => Err(format!("failed: {}", failed.join(", "))),
        (true, false) => Ok(Outcome::Skipped(skipped.join("; "))),
        (true, true) => Ok(Outcome::Passed),
    }
}

/// Returns whether what is missing is installed, as on machines for checks.
pub(super) fn must_be_complete() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Returns why the platform cannot be checked here, if so.
fn missing(platform: &Platform, has_zig: bool, must: bool) -> Option<String> {
    if platform.has_c && !has_zig {
        return Some(NO_ZIG.into());
    }
    missing_target(platform.target, must)
}

/// Returns why nothing can be compiled for the target, if so.
pub(super) fn missing_target(target: &str, must: bool) -> Option<String> {
    // The command with musl contains a library for programs with glibc.
    if let Some(kernel) = target.strip_suffix("-musl")
        && let Some(why) = missing_target(&format!("{kernel}-gnu"), must)
    {
        return Some(why);
    }
    let installed = output(&mut command("rustup", &["target", "list", "--installed"]));
    if installed.is_ok_and(|list| list.lines().any(|line| line.trim() == target)) {
        return None;
    }
    if must && check(&mut command("rustup", &["target", "add", target])).is_ok() {
        return None;
    }
    Some(format!("the target is missing: rustup target add {target}"))
}

fn check_platform(platform: &Platform, zig: Option<&str>) -> Result<(), String> {
    let mut check_all = match (platform.has_c, zig) {
        (true, Some(zig)) => with_zig(zig, &["check"]),
        _ => command("cargo", &["check"]),
    };
    check_all.args(["--locked", "--target", platform.target]);
    for package in platform.packages {
        check_all.args(["-p", package]);
    }
    check_all.env(CC_FOR_ANDROID.0, CC_FOR_ANDROID.1);
    // No warning of ours; those of dependencies are capped.
    check(check_all.env("RUSTFLAGS", "-D warnings"))
}

/// Returns a command with cargo-zigbuild, which build scripts find, too.
pub(crate) fn with_zig(zig: &str, arguments: &[&str]) -> Command {
    let mut with_zig = command(zig, arguments);
    if let Some(folder) = Path::new(zig).parent().filter(|folder| folder.is_absolute()) {
        let path = std::env::var("PATH").unwrap_or_default();
        with_zig.env("PATH", format!("{}:{path}", folder.display()));
    }
    with_zig.env("EYAS_PRELOAD_GLIBC", OLDEST_GLIBC);
    with_zig
}

/// Returns the program cargo-zigbuild. If it must be there, it is installed in the target directory.
pub(super) fn zig(must: bool) -> Option<String> {
    const PROGRAM: &str = "cargo-zigbuild";
    if works(PROGRAM, &["--version"]) {
        return Some(PROGRAM.into());
    }
    let folder = target().join("zig");
    let program = folder.join("bin").join(PROGRAM).display().to_string();
    if works(&program, &["--version"]) {
        return Some(program);
    }
    if !must {
        return None;
    }
    let folder = folder.display().to_string();
    check(&mut command("python3", &["-m", "venv", &folder])).ok()?;
    let pip = format!("{folder}/bin/pip");
    check(command(&pip, &["install", "--quiet"]).args(ZIG_FROM_PYPI)).ok()?;
    works(&program, &["--version"]).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_platform_is_in_the_table_of_the_docs() {
        let page = crate::run::workspace().join("docs/reference/platforms.md");
        let page = std::fs::read_to_string(page).unwrap();
        for platform in PLATFORMS {
            assert!(page.contains(platform.target), "{} is missing", platform.target);
        }
    }
}
