//! `cargo xtask tidy`: rules of this repository that neither the compiler nor clippy checks.
//!
//! | module | rule |
//! | --- | --- |
//! | `documents` | paths named in a document or in the map of a crate exist; documents do not grow |
//! | `links` | relative links of a document lead to files and headings that exist |
//! | `definitions` | tests and bounds named in a document with their file exist, and cases of `interop/run` |
//! | `bounds` | a claim whose bound was changed states why |
//! | `conformance` | comments above tests, and rows without a test, say what a document requires |
//! | `dependencies` | which of our crates may depend on which |
//! | `features` | the wheel and the command have the same dependencies and features |
//! | `forms` | a module with children is a file beside their folder |
//! | `layers`, `modules` | which modules of a crate may depend on which |
//! | `ceilings` | modules that go round in circles and tuple parameters do not become more |
//! | `names` | words in public names of the core are in the glossary or in a named source |
//! | `plain_names` | names of one word and functions called by a preposition do not become more |
//! | `surface` | the number of public items in a crate's README is that of its `api.txt` |
//! | `text` | length of files, tabs, trailing spaces, to-do marks, machine-specific paths |
//! | `tokens` | length of functions, macros and attributes that mean "not done" |
//! | `purity` | pure crates: no unsafe code, no operating system, no hash maps |

mod bounds;
mod ceilings;
mod conformance;
mod definitions;
mod dependencies;
mod documents;
mod features;
mod forms;
mod layers;
mod links;
mod modules;
mod names;
mod plain_names;
mod purity;
mod surface;
mod text;
mod tokens;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::conformance::Tables;
use crate::finding::Finding;
use crate::run::{tracked_files, workspace};

/// Crates that do no I/O and read no clock, by the name of their directory under `crates/`.
const PURE: [&str; 4] = ["race", "sctp", "netem", "h3"];

/// Checks the repository against every rule and prints the findings.
pub(crate) fn main() -> Result<(), String> {
    let root = workspace();
    let files = tracked_files()?;
    let paths = documents::paths(&files);
    let bounds_list = fs::read_to_string(root.join(bounds::LIST)).unwrap_or_default();
    let mut findings = dependencies::check()?;
    findings.extend(features::check()?);
    let mut sources = BTreeMap::new();
    let mut pages = BTreeMap::new();
    let mut annotated = BTreeMap::new();
    let mut programs = Vec::new();
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    for file in &files {
        // A deleted file is listed until the deletion is committed.
        let Ok(bytes) = fs::read(root.join(file)) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        findings.extend(check_file(file, &text));
        if file.ends_with(".md") {
            findings.extend(documents::check(file, &text, &paths));
            findings.extend(definitions::check(file, &text, read));
            findings.extend(surface::check(file, &text, read));
            pages.insert(file.clone(), text.clone());
        }
        if file.starts_with("interop/") && file.ends_with(".py") {
            programs.push((file.clone(), text.clone()));
        }
        if crate::conformance::is_read(file) {
            annotated.insert(file.clone(), text.clone());
        }
        findings.extend(bounds::check(file, &text, &bounds_list));
        findings.extend(documents::check_map(file, &text, &paths));
        if file.ends_with(".rs") {
            sources.insert(file.clone(), text);
        }
    }
    let anchors = pages.iter().map(|(file, text)| (file.clone(), links::anchors(text))).collect();
    for (file, text) in &pages {
        findings.extend(links::check(file, text, &paths, &anchors));
        findings.extend(definitions::check_cases(file, text, &programs));
    }
    let list = pages.get(conformance::PAGE).map_or("", String::as_str);
    findings.extend(conformance::check(&Tables::parse(&annotated), list, &sources));
    findings.extend(documents::check_size(&pages));
    findings.extend(layers::check(&sources));
    findings.extend(forms::check(&sources));
    findings.extend(ceilings::check(&sources));
    findings.extend(plain_names::check(&sources));
    let glossary = fs::read_to_string(root.join(names::GLOSSARY)).unwrap_or_default();
    findings.extend(names::check(&sources, &glossary));
    findings.sort();
    for finding in &findings {
        let kind = if finding.warning { "warning" } else { "error" };
        println!("{kind}: {}:{}: {}", finding.place, finding.line, finding.message);
    }
    let errors = findings.iter().filter(|finding| !finding.warning).count();
    println!("tidy: {} files, {errors} errors, {} warnings", files.len(), findings.len() - errors);
    if errors == 0 { Ok(()) } else { Err(format!("tidy found {errors} errors")) }
}

fn check_file(file: &str, content: &str) -> Vec<Finding> {
    let mut findings = text::check(file, content);
    if Path::new(file).extension().is_some_and(|extension| extension == "rs") {
        findings.extend(tokens::check(file, content));
        if PURE.iter().any(|name| file.starts_with(&format!("crates/{name}/src/"))) {
            findings.extend(purity::check(file, content));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_file_has_no_finding() {
        let content = "//! A crate.\n#![forbid(unsafe_code)]\n#![no_std]\n\nfn one() {}\n";
        assert_eq!(check_file("crates/race/src/lib.rs", content), []);
    }

    #[test]
    fn pure_crates_have_stricter_rules() {
        let content = "//! A map.\nuse std::collections::HashMap;\n";
        assert_eq!(check_file("crates/eyas/src/map.rs", content), []);
        assert_eq!(check_file("crates/race/src/map.rs", content).len(), 1);
    }
}
