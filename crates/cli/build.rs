//! Tells the program which commit it was built from, if git knows, and for which target; the Python package uses it, too.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    println!("cargo::rerun-if-env-changed=EYAS_COMMIT");
    // What cargo packs beside a published crate, which is in no repository, or in somebody else's.
    let packed = std::fs::read_to_string(".cargo_vcs_info.json").ok();
    let packed = packed.as_deref().and_then(|text| text.split("\"sha1\": \"").nth(1)?.get(..12));
    // The log of the head changes with every commit; without git there is nothing to watch.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && std::path::Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = std::env::var("EYAS_COMMIT")
        .ok()
        .or_else(|| packed.map(str::to_owned))
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]))
        .unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=EYAS_COMMIT={commit}");
    let target = std::env::var("TARGET").unwrap_or_else(|_| "unknown".to_owned());
    println!("cargo::rustc-env=EYAS_TARGET={target}");
}
