//! `cargo xtask tidy`: rules of this repository that neither the compiler nor clippy checks.
//!
//! | module | rule |
//! | --- | --- |
//! | `documents` | paths named in a document or in the map of a crate exist; documents do not grow |
//! | `links` | relative links of a document lead to files and headings that exist |
//! | `definitions` | tests and bounds named in a document with their file exist, and cases of `interop/run` |
//! | `bounds` | a claim whose bound was changed states why |
//! | `conformance` | a row of the tables of clauses and attacks names its test, or states why it has none |
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

use crate::run::{command, output, workspace};

/// Crates that do no I/O and read no clock, by the name of their directory under `crates/`.
const PURE: [&str; 3] = ["race", "sctp", "netem"];

/// A finding of a rule about a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file, relative to the root of the repository, or the name of a package.
    pub(crate) place: String,
    /// The line, starting at 1; 0 for the whole file.
    pub(crate) line: usize,
    /// What is wrong and what to do.
    pub(crate) message: String,
    /// Whether it is only a warning.
    pub(crate) warning: bool,
}

impl Finding {
    fn error(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self { place: place.into(), line, message: message.into(), warning: false }
    }

    fn warning(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::error(place, line, message) }
    }
}

/// Checks the repository against every rule and prints the findings.
pub(crate) fn main() -> Result<(), String> {
    let root = workspace();
    let files = tracked_files()?;
    let paths = documents::paths(&files);
    let index = fs::read_to_string(root.join(conformance::INDEX)).unwrap_or_default();
    let bounds_list = fs::read_to_string(root.join(bounds::LIST)).unwrap_or_default();
    let mut findings = dependencies::check()?;
    findings.extend(features::check()?);
    let mut sources = BTreeMap::new();
    let mut pages = BTreeMap::new();
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
            findings.extend(conformance::check(file, &text, &index, read));
            pages.insert(file.clone(), text.clone());
        }
        if file.starts_with("interop/") && file.ends_with(".py") {
            programs.push((file.clone(), text.clone()));
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
    findings.extend(conformance::check_attacks(&pages, &sources));
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

/// Returns the files that git tracks or would add.
fn tracked_files() -> Result<Vec<String>, String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let list = output(&mut command("git", &arguments))?;
    let mut files: Vec<String> = list.lines().map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
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

    #[test]
    fn findings_sort_by_place() {
        let later = Finding::error("b.rs", 1, "x");
        let earlier = Finding::warning("a.rs", 9, "y");
        let mut both = vec![later.clone(), earlier.clone()];
        both.sort();
        assert_eq!(both, [earlier, later]);
    }
}
