//! The Python wheel and the command have the same dependencies with the same features. Otherwise a build of
//! both compiles shared dependencies, and everything that depends on them, twice.

use std::collections::BTreeMap;

use super::Finding;
use crate::run::{command, output};

const COMMAND: &str = "eyas-cli";
const WHEEL: &str = "eyas-python";
/// Features that only dependencies of the wheel need, by crate: with these, the command would depend on a crate for
/// nothing else. The macros of pyo3 use this one, so the macros of both are compiled twice.
const OF_WHEEL_ONLY: [(&str, &str); 1] = [("syn v3", "visit-mut")];

/// The features of each dependency, by its name and version.
type Features = BTreeMap<String, String>;

/// Reads `cargo tree` of both.
pub(super) fn check() -> Result<Vec<Finding>, String> {
    Ok(compare(&features(COMMAND)?, &features(WHEEL)?))
}

fn features(package: &str) -> Result<Features, String> {
    let args = ["tree", "--package", package, "--edges", "normal", "--prefix", "none"];
    let tree = output(command("cargo", &args).args(["--no-dedupe", "--format", "{p}|{f}"]))?;
    Ok(read(&tree))
}

fn read(tree: &str) -> Features {
    let rows = tree.lines().filter_map(|line| line.split_once('|'));
    rows.map(|(dependency, features)| (dependency.to_owned(), features.to_owned())).collect()
}

fn compare(command: &Features, wheel: &Features) -> Vec<Finding> {
    let of_both = wheel.iter().filter_map(|(dependency, features)| {
        Some((dependency, command.get(dependency)?, features))
    });
    let is_own = |dependency: &str, feature: &str| {
        OF_WHEEL_ONLY.iter().any(|(name, own)| dependency.starts_with(name) && feature == *own)
    };
    let differ = of_both.filter(|(dependency, wanted, features)| {
        let shared = features.split(',').filter(|feature| !is_own(dependency, feature));
        wanted != features && !shared.eq(wanted.split(','))
    });
    let findings = differ.map(|(dependency, wanted, features)| {
        let message = format!(
            "has {dependency} with [{features}] where {COMMAND} has [{wanted}]: name the same features \
             in its Cargo.toml, or it is compiled twice"
        );
        Finding::error(WHEEL, 0, message)
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_feature_is_an_error_and_an_extra_one_is_not() {
        let command = read("nix v1|net,poll\nclap v4|std\ntokio v1|rt");
        assert_eq!(compare(&command, &read("nix v1|net,poll\npyo3 v0|\ntokio v1|rt")), []);
        let found = compare(&command, &read("nix v1|net\ntokio v1|rt"));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.starts_with("has nix v1 with [net]"), "{found:?}");
    }

    #[test]
    fn a_feature_of_the_wheel_alone_may_be_more() {
        let command = read("syn v3.1|full,visit");
        assert_eq!(compare(&command, &read("syn v3.1|full,visit,visit-mut")), []);
        assert_eq!(compare(&command, &read("syn v3.1|full,visit-mut")).len(), 1);
        let command = read("syn v3.1|full,visit,visit-mut");
        assert_eq!(compare(&command, &command), []);
    }
}
