//! `cargo xtask api`: compares the public API of each library, item by item, with the reviewed list.
//!
//! The output of `cargo public-api` is compared with the crate's `api.txt`, so that nothing becomes public, or
//! stops being public, by accident. Derived, automatic and blanket implementations are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::run::{command, output, works, workspace};

/// The program that lists public items. Other versions may print the same item differently.
const TOOL_VERSION: &str = "0.52.0";

/// A library with a list.
struct Library {
    package: &'static str,
    folder: &'static str,
    /// The features with which its surface must match the list, each as options of cargo.
    features: &'static [&'static [&'static str]],
}

const DEFAULT: &[&[&str]] = &[&[]];

const LIBRARIES: [Library; 19] = [
    Library { package: "eyas-race", folder: "crates/race", features: DEFAULT },
    Library {
        package: "eyas-sctp",
        folder: "crates/sctp",
        features: &[&[], &["--no-default-features"]],
    },
    Library { package: "eyas-sctp-tokio", folder: "crates/sctp-tokio", features: DEFAULT },
    Library { package: "eyas-host", folder: "crates/host", features: DEFAULT },
    Library { package: "eyas-sockets", folder: "crates/sockets", features: DEFAULT },
    Library { package: "eyas-netem", folder: "crates/netem", features: DEFAULT },
    Library { package: "eyas-h3", folder: "crates/h3", features: DEFAULT },
    Library { package: "eyas", folder: "crates/eyas", features: DEFAULT },
    Library { package: "eyas-http", folder: "crates/http", features: DEFAULT },
    Library { package: "eyas-emulator", folder: "crates/emulator", features: DEFAULT },
    Library { package: "eyas-relay", folder: "crates/relay", features: DEFAULT },
    Library { package: "eyas-proxy", folder: "crates/proxy", features: DEFAULT },
    Library { package: "eyas-gateway", folder: "crates/gateway", features: DEFAULT },
    Library { package: "eyas-tunnel", folder: "crates/tunnel", features: DEFAULT },
    Library { package: "eyas-load", folder: "crates/load", features: DEFAULT },
    Library { package: "eyas-perf", folder: "crates/perf", features: DEFAULT },
    Library { package: "eyas-lab", folder: "crates/lab", features: DEFAULT },
    Library { package: "eyas-supervisor", folder: "crates/supervisor", features: DEFAULT },
    Library { package: "eyas-testserver", folder: "crates/testserver", features: DEFAULT },
];

/// Compares the lists of the named packages, or of all, with their public items; `--bless` writes the lists.
pub(crate) fn main(options: &[&str]) -> Result<(), String> {
    let (flags, packages): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|option| option.starts_with('-'));
    let is_blessed = match flags.as_slice() {
        [] => false,
        ["--bless"] => true,
        _ => return Err("api takes --bless and the names of packages".into()),
    };
    let chosen = choose(&packages)?;
    if let Some(missing) = missing() {
        return Err(missing);
    }
    let mut failed = Vec::new();
    for library in chosen {
        match if is_blessed { bless(library) } else { check(library) } {
            Ok(surface) => println!("{}: {}", library.package, sizes(&surface)),
            Err(why) => {
                println!("{}: {why}", library.package);
                failed.push(library.package);
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "the public API differs from the reviewed list: {}\nif the changes are intended, accept them with `cargo xtask api --bless {}`",
            failed.join(", "),
            failed.join(" ")
        )),
    }
}

/// Returns which required tool is missing on this machine, if any.
pub(crate) fn missing() -> Option<String> {
    if !works("cargo", &["+nightly", "--version"]) {
        return Some("no nightly Rust: rustup toolchain install nightly".into());
    }
    let version = output(&mut command("cargo", &["+nightly", "public-api", "--version"]));
    let is_wanted =
        version.is_ok_and(|version| version.trim().ends_with(&format!(" {TOOL_VERSION}")));
    let how = "cargo install --locked cargo-public-api --version";
    (!is_wanted)
        .then(|| format!("cargo-public-api {TOOL_VERSION} is missing: {how} {TOOL_VERSION}"))
}

fn choose(packages: &[&str]) -> Result<Vec<&'static Library>, String> {
    let is_known = |name: &&str| LIBRARIES.iter().any(|library| library.package == *name);
    if let Some(unknown) = packages.iter().find(|name| !is_known(name)) {
        let names = LIBRARIES.map(|library| library.package).join(", ");
        return Err(format!("{unknown} has no list of its public items; these have: {names}"));
    }
    let is_chosen = |library: &&Library| packages.is_empty() || packages.contains(&library.package);
    Ok(LIBRARIES.iter().filter(is_chosen).collect())
}

/// Writes the list and returns it.
fn bless(library: &Library) -> Result<String, String> {
    let found = library.surface(library.features[0])?;
    let path = library.list();
    fs::write(&path, &found).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(found)
}

/// Compares the public items with the list and returns them.
fn check(library: &Library) -> Result<String, String> {
    let path = library.list();
    let listed = fs::read_to_string(&path)
        .map_err(|error| format!("no list to compare with: {}: {error}", path.display()))?;
    for features in library.features {
        let differences = differences(&listed, &library.surface(features)?);
        if !differences.is_empty() {
            let with = match features.is_empty() {
                true => String::new(),
                false => format!(" with {}", features.join(" ")),
            };
            return Err(format!(
                "{} differs from what is public{with}:\n{}",
                path.display(),
                differences.join("\n")
            ));
        }
    }
    Ok(listed)
}

impl Library {
    fn list(&self) -> PathBuf {
        workspace().join(self.folder).join("api.txt")
    }

    /// Returns the public items, one per line.
    fn surface(&self, features: &[&str]) -> Result<String, String> {
        let mut args = vec!["+nightly", "public-api", "--package", self.package, "-sss"];
        args.extend_from_slice(features);
        output(&mut command("cargo", &args))
    }
}

/// Returns the number of public items, and how many of them are fields and variants.
fn sizes(surface: &str) -> String {
    let is_part = |line: &&str| {
        let line = line.strip_prefix("#[non_exhaustive] ").unwrap_or(line);
        let named = line.strip_prefix("pub ").and_then(|item| item.split([' ', ':', '(']).next());
        named.is_some_and(|first| first.starts_with("eyas"))
    };
    let parts = surface.lines().filter(is_part).count();
    format!("{} public items, {parts} of them fields and variants", surface.lines().count())
}

/// Returns the lines that only one of the two has, or has more often than the other.
fn differences(listed: &str, found: &str) -> Vec<String> {
    let mut counts: BTreeMap<&str, i32> = BTreeMap::new();
    for line in found.lines() {
        *counts.entry(line).or_default() += 1;
    }
    for line in listed.lines() {
        *counts.entry(line).or_default() -= 1;
    }
    let changed = counts.iter().filter(|(_, count)| **count != 0);
    changed
        .map(|(line, count)| format!("  {} {line}", if *count > 0 { "added  " } else { "removed" }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_and_removals_are_reported() {
        let listed = "pub fn a::one()\npub fn a::two()\n";
        assert!(differences(listed, listed).is_empty());
        let found = "pub fn a::two()\npub fn a::three()\n";
        let reported = ["  removed pub fn a::one()", "  added   pub fn a::three()"];
        assert_eq!(differences(listed, found), reported);
        // Two implementations may have the same text.
        assert_eq!(differences("impl A\n", "impl A\nimpl A\n"), ["  added   impl A"]);
    }

    #[test]
    fn fields_and_variants_are_counted_separately() {
        let surface = "pub mod eyas_a\npub struct eyas_a::B\npub eyas_a::B::c: u8\n\
            #[non_exhaustive] pub enum eyas_a::D\npub eyas_a::D::E(u8)\n\
            #[non_exhaustive] pub eyas_a::D::F\nimpl eyas_a::D\n";
        assert_eq!(sizes(surface), "7 public items, 3 of them fields and variants");
    }

    #[test]
    fn a_crate_without_a_list_is_refused() {
        assert!(main(&["--fast"]).is_err_and(|why| why.contains("--bless")));
        assert!(main(&["eyas-cli"]).is_err_and(|why| why.contains("eyas-http")));
    }

    #[test]
    fn each_library_has_its_list() {
        for library in LIBRARIES {
            let manifest = workspace().join(library.folder).join("Cargo.toml");
            let text = fs::read_to_string(&manifest).expect("the manifest");
            assert!(text.contains(&format!("name = \"{}\"", library.package)));
        }
    }
}
