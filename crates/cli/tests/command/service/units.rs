//! The units for systemd in `dist/systemd`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::*;

/// The exposure that systemd calls OK at most, in tenths.
const MAX_EXPOSURE: u32 = 20;

fn units() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/systemd");
    let entries = fs::read_dir(folder).expect("the units are there");
    let mut units: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    units.sort();
    assert_eq!(units.len(), 6, "{units:?}");
    units
}

/// Runs systemd-analyze on a copy of the units with the binary of this test; `None` if it is not installed.
fn analyze(arguments: &[&str], unit: &Path) -> Option<Output> {
    let directory = tempfile::tempdir().expect("a directory");
    for unit in units() {
        let text = fs::read_to_string(&unit).expect("readable");
        let text = text.replace("/usr/bin/eyas", env!("CARGO_BIN_EXE_eyas"));
        let name = unit.file_name().expect("a file");
        fs::write(directory.path().join(name), text).expect("writes");
    }
    let copy = directory.path().join(unit.file_name().expect("a file"));
    let run = Command::new("systemd-analyze").args(arguments).arg(&copy).output();
    run.inspect_err(|_| eprintln!("SKIPPED: systemd-analyze is not installed")).ok()
}

#[test]
fn systemd_understands_them() {
    for unit in units() {
        let Some(output) = analyze(&["verify"], &unit) else { return };
        let err = String::from_utf8_lossy(&output.stderr);
        // What is wrong elsewhere on this machine is not about them.
        let ours: Vec<_> = err.lines().filter(|line| line.contains("eyas")).collect();
        assert!(ours.is_empty(), "{}: {ours:#?}", unit.display());
    }
}

#[test]
fn they_expose_little() {
    for unit in units().iter().filter(|unit| unit.extension().is_some_and(|kind| kind == "service"))
    {
        let arguments = ["security", "--offline=true", "--threshold", &MAX_EXPOSURE.to_string()];
        let Some(output) = analyze(&arguments, unit) else { return };
        let text = String::from_utf8_lossy(&output.stdout);
        if !text.contains("Overall exposure level") {
            let err = String::from_utf8_lossy(&output.stderr);
            return eprintln!("SKIPPED: this systemd-analyze cannot judge files: {err}");
        }
        assert!(output.status.success(), "{}: {text}", unit.display());
    }
}

/// Their command lines are accepted. Unknown flags are found before that for help.
#[test]
fn their_flags_exist() {
    for unit in units() {
        let text = fs::read_to_string(&unit).expect("readable");
        let Some(line) =
            text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/eyas "))
        else {
            continue;
        };
        Eyas::new(&format!("{line} --help")).run().exits(0);
    }
}
