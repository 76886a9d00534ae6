//! The crates: packed as crates.io gets them, each built from what was packed, in an order in which nothing is missing.

use super::Release;
use crate::run::{check, command};

/// What cargo does until it would upload.
const REHEARSAL: [&str; 4] = ["publish", "--workspace", "--dry-run", "--locked"];

/// Packs all crates that are published.
pub(super) fn make(_release: &Release) -> Result<(), String> {
    // Cargo refuses files that differ from the commit, of which the release has already spoken.
    check(command("cargo", &REHEARSAL).args(["--no-verify", "--allow-dirty"]))
}

/// Builds each from what was packed alone.
pub(super) fn attempt(_release: &Release) -> Result<(), String> {
    check(command("cargo", &REHEARSAL).arg("--allow-dirty"))
}
