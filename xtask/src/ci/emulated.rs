//! Runs the command for Windows under Wine and that for 64-bit ARM under qemu-user, and there the tests of the crates
//! without sockets. What is missing is a reason to skip, but for the targets and zig, as in `platforms`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::Outcome;
use super::platforms::{self, PURE_CRATES, with_zig};
use crate::run::{check, command, file_error, target, works, workspace};
use crate::trial_server::TrialServer;

/// What a page of the server has, in bytes.
const PAGE_BYTES: u64 = 100_000;
/// The number of cases of each property test: emulation is slow, and what the tests compute is the same everywhere.
const PROPERTY_CASES: &str = "16";
const DLL: &str = "bcryptprimitives.dll";

/// Variables with their values.
pub(crate) type Environment = Vec<(&'static str, PathBuf)>;

/// A machine that this one can be.
struct EmulatedMachine {
    /// The target of rustc.
    target: &'static str,
    /// The name of the command's file.
    program: &'static str,
    /// The program that runs one for this machine.
    runner: &'static str,
    /// The package of Debian that has the runner.
    package: &'static str,
    /// Prepares the runner, and returns variables for its environment.
    prepare: fn(&str) -> Result<Environment, String>,
}

const MACHINES: [EmulatedMachine; 2] = [
    EmulatedMachine {
        target: "x86_64-pc-windows-gnu",
        program: "eyas.exe",
        runner: "wine",
        package: "wine64",
        prepare: |zig| wine_prefix(|arguments| with_zig(zig, arguments)),
    },
    EmulatedMachine {
        target: "aarch64-unknown-linux-musl",
        program: "eyas",
        runner: "qemu-aarch64-static",
        package: "qemu-user-static",
        prepare: |_| Ok(Vec::new()),
    },
];

/// Tries the command on each machine.
pub(super) fn run() -> Result<Outcome, String> {
    let must = platforms::must_be_complete();
    let Some(zig) = platforms::zig(must) else {
        return Ok(Outcome::Skipped(platforms::NO_ZIG.into()));
    };
    let mut skipped = Vec::new();
    for machine in &MACHINES {
        let EmulatedMachine { target, runner, package, .. } = machine;
        if !works(runner, &["--version"]) {
            skipped.push(format!("{target}: {runner} is missing: apt install {package}"));
        } else if let Some(why) = platforms::missing_target(target, must) {
            skipped.push(format!("{target}: {why}"));
        } else {
            machine.attempt(&zig).map_err(|why| format!("{target}: {why}"))?;
        }
    }
    match skipped.is_empty() {
        true => Ok(Outcome::Passed),
        false => Ok(Outcome::Skipped(skipped.join("; "))),
    }
}

impl EmulatedMachine {
    fn attempt(&self, zig: &str) -> Result<(), String> {
        check(&mut with_zig(
            zig,
            &["build", "--locked", "-p", "eyas-cli", "--target", self.target],
        ))?;
        let environment = (self.prepare)(zig)?;
        let program = target().join(self.target).join("debug").join(self.program);
        let eyas = |arguments: &[&str]| {
            let mut eyas = command(self.runner, &[&program]);
            eyas.args(arguments).envs(environment.iter().cloned());
            eyas
        };
        check(&mut eyas(&["--version", "--verbose"]))?;
        check(&mut eyas(&["demo"]))?;
        self.fetch(&eyas)?;

        let runner =
            format!("CARGO_TARGET_{}_RUNNER", self.target.to_uppercase().replace('-', "_"));
        let mut tests =
            with_zig(zig, &["test", "--locked", "--target", self.target, "--lib", "--tests"]);
        for package in PURE_CRATES {
            tests.args(["-p", package]);
        }
        // What is emulated has to be optimised, or simulations take an hour.
        tests.env("PROPTEST_CASES", PROPERTY_CASES).env("CARGO_PROFILE_DEV_OPT_LEVEL", "2");
        check(tests.env(runner, self.runner).envs(environment))
    }

    /// A server, a page from it directly and through a proxy, and a race to it over all that there is.
    fn fetch(&self, eyas: &impl Fn(&[&str]) -> Command) -> Result<(), String> {
        let server = TrialServer::start(&mut eyas(&[]))?;
        let page = format!("{}bytes/{PAGE_BYTES}", server.url);
        let file = target().join(format!("page-of-{}", self.target));
        let name = file.to_string_lossy();
        let get = ["get", "--insecure", "--silent", "--output", &*name, &*page];
        let whole = || match fs::metadata(&file).map(|metadata| metadata.len()) {
            Ok(PAGE_BYTES) => fs::remove_file(&file).map_err(|error| file_error(&file, &error)),
            other => Err(format!("{name} has {other:?}, not {PAGE_BYTES} bytes")),
        };
        check(&mut eyas(&get))?;
        whole()?;
        check(&mut eyas(&["race", "--all", "--insecure", &server.url]))?;
        // The program in the command is for this machine, too.
        let itself = eyas(&get);
        let arguments: Vec<_> =
            [itself.get_program()].into_iter().chain(itself.get_args()).collect();
        // Wine starts programs for Windows by itself.
        let arguments = &arguments[usize::from(self.runner == "wine")..];
        check(eyas(&["proxy", "run", "--"]).args(arguments).stderr(Stdio::inherit()))?;
        whole()
    }
}

/// Makes a directory for Wine, with the one library that Rust's programs need and Wine has had since version 9 only.
/// What is given starts cargo-zigbuild with arguments.
pub(crate) fn wine_prefix(zig: impl Fn(&[&str]) -> Command) -> Result<Environment, String> {
    let prefix = target().join("wine");
    let environment = vec![("WINEPREFIX", prefix.clone()), ("WINEDEBUG", "-all".into())];
    check(command("wine", &["wineboot", "--init"]).envs(environment.iter().cloned()))?;
    let system = prefix.join("drive_c/windows/system32").join(DLL);
    if !system.exists() {
        let source = workspace().join("xtask/src/ci/emulated/bcryptprimitives.c");
        let compile =
            ["zig", "cc", "--", "-shared", "-target", "x86_64-windows-gnu", "-ladvapi32", "-o"];
        check(zig(&compile).arg(&system).arg(source))?;
    }
    Ok(environment)
}
