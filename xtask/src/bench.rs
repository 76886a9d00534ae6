//! `cargo xtask bench`: the tables of `docs/benchmarks.md`.

/// Runs the benchmark that the options name.
pub(crate) fn main(options: &[&str]) -> Result<(), String> {
    Err(format!("bench knows http and race, not {options:?}"))
}
