//! The layers of a crate: each module names only those of the layers before its own, and no modules
//! go round in a circle.

use std::collections::BTreeMap;

use super::Finding;
use super::modules::{Module, Modules};

/// The layers of a crate, lowest first; modules of one layer may name each other.
struct Layered {
    source: &'static str,
    layers: &'static [&'static [&'static str]],
}

const LAYERED: [Layered; 1] = [Layered {
    source: "crates/lab/src/",
    layers: &[
        &["units", "statistics"],
        &["emulator", "load"],
        &["situation"],
        &["run"],
        &["measure"],
        &["claim"],
        &["plan"],
        &["simulation"],
        &["live"],
        &["results"],
        &["runner"],
        &["report"],
    ],
}];

/// Crates whose modules are in no order of layers, but go round in no circle either.
const WITHOUT_CIRCLES: [&str; 3] = ["crates/eyas/src/", "crates/http/src/", "crates/relay/src/"];

/// Holds the sources, by their paths, against the layers.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<Finding> {
    let layered = LAYERED.iter().flat_map(|layered| check_crate(layered, sources));
    let others = WITHOUT_CIRCLES.iter();
    layered.chain(others.flat_map(|source| circles(&Modules::of(source, sources.iter())))).collect()
}

fn check_crate(layered: &Layered, sources: &BTreeMap<String, String>) -> Vec<Finding> {
    let modules = Modules::of(layered.source, sources.iter());
    let mut findings = upwards(layered, &modules);
    findings.extend(circles(&modules));
    findings
}

fn circles(modules: &Modules) -> Vec<Finding> {
    let mut findings = Vec::new();
    for circle in modules.circles() {
        let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        let message = format!("goes round in a circle: {}", names.join(", "));
        findings.push(Finding::error(&modules.files[circle[0]], 0, message));
    }
    findings
}

fn upwards(layered: &Layered, modules: &Modules) -> Vec<Finding> {
    let layer = |module: &Module| {
        let top = module.first()?;
        layered.layers.iter().position(|names| names.contains(&top.as_str()))
    };
    let mut findings = Vec::new();
    for (module, names) in &modules.names {
        let file = &modules.files[module];
        let Some(own) = layer(module) else {
            if !module.is_empty() {
                findings.push(Finding::error(file, 0, "is in no layer that tidy knows"));
            }
            continue;
        };
        for (other, line) in names {
            if layer(other).is_some_and(|other| other > own) {
                let message = format!("names {}, which is of a layer above", other.join("::"));
                findings.push(Finding::error(file, *line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Layered = Layered { source: "src/", layers: &[&["low"], &["high", "peer"]] };

    fn said(files: &[(&str, &str)]) -> Vec<String> {
        let text = |(file, text): &(&str, &str)| (format!("src/{file}"), (*text).to_owned());
        let sources = files.iter().map(text).collect();
        let tell = |finding: Finding| format!("{}: {}", finding.place, finding.message);
        check_crate(&SMALL, &sources).into_iter().map(tell).collect()
    }

    #[test]
    fn a_lower_module_that_names_a_higher_one_is_found() {
        let high = ("high.rs", "use crate::low::L;");
        assert_eq!(said(&[("lib.rs", "mod low; mod high;"), ("low.rs", ""), high]), [""; 0]);
        let low = ("low/inner.rs", "fn f() { crate::high::go() }");
        let found = said(&[("lib.rs", ""), ("low/mod.rs", ""), low, ("high.rs", "")]);
        assert_eq!(found, ["src/low/inner.rs: names high, which is of a layer above"]);
    }

    #[test]
    fn a_cycle_is_found() {
        let files =
            [("lib.rs", ""), ("high.rs", "use crate::peer;"), ("peer.rs", "use crate::high;")];
        assert_eq!(said(&files), ["src/high.rs: goes round in a circle: high, peer"]);
    }

    #[test]
    fn a_module_without_a_layer_is_found() {
        assert_eq!(said(&[("new.rs", "")]), ["src/new.rs: is in no layer that tidy knows"]);
    }
}
