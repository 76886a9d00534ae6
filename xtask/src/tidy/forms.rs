//! A module with children is `x.rs` beside its folder `x/`, everywhere.
//!
//! `x/mod.rs` is left to the two kinds that cannot be otherwise: what several test programs share, since Cargo makes
//! a test of each file in `tests/`, and what another crate includes by its path, since its children are then looked
//! for in the folder of the file.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::links::resolve;
use crate::run::workspace;

/// Folders each of whose files is a program.
const OF_PROGRAMS: [&str; 4] = ["tests", "benches", "examples", "fuzz_targets"];

/// Checks the sources, by path.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<Finding> {
    let included: BTreeSet<String> =
        sources.iter().flat_map(|(file, text)| included(file, text)).collect();
    let modules = sources.keys().filter_map(|file| Some((file, file.strip_suffix("/mod.rs")?)));
    let wrong = modules.filter(|(file, module)| {
        let mut folders = module.rsplit('/').skip(1);
        let is_shared = folders.next().is_some_and(|parent| OF_PROGRAMS.contains(&parent))
            && !folders.any(|folder| folder == "src");
        !is_shared && !included.contains(*file)
    });
    wrong.map(|(file, module)| Finding::error(file, 0, format!("move it to {module}.rs"))).collect()
}

/// Returns the files that this one includes by their path.
fn included<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    text.split("#[path = \"").skip(1).filter_map(move |rest| {
        let (path, _) = rest.split_once('"')?;
        resolve(file, path).map(|path| followed(&path).unwrap_or(path))
    })
}

/// Returns the file that a path through a link leads to.
fn followed(path: &str) -> Option<String> {
    let root = workspace().canonicalize().ok()?;
    let file = root.join(path).canonicalize().ok()?;
    Some(file.strip_prefix(root).ok()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Finding> {
        let sources = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        check(&sources.collect())
    }

    #[test]
    fn a_module_in_its_own_folder_is_named() {
        let expected = Finding::error("crates/a/src/b/mod.rs", 0, "move it to crates/a/src/b.rs");
        assert_eq!(found(&[("crates/a/src/b/mod.rs", ""), ("crates/a/src/c.rs", "")]), [expected]);
        for nested in ["crates/a/tests/command/b/mod.rs", "crates/a/src/tests/b/mod.rs"] {
            assert_eq!(found(&[(nested, "")]).len(), 1, "{nested}");
        }
    }

    #[test]
    fn what_cannot_be_otherwise_is_left() {
        assert_eq!(found(&[("crates/a/tests/common/mod.rs", "")]), []);
        let includes = "#[path = \"../../b/src/c/mod.rs\"]\nmod c;\n";
        assert_eq!(found(&[("crates/b/src/c/mod.rs", ""), ("crates/a/src/lib.rs", includes)]), []);
        let through_a_link = "#[path = \"../preload/local/mod.rs\"]\npub mod local;\n";
        let sources = [
            ("crates/preload/src/local/mod.rs", ""),
            ("crates/supervisor/src/lib.rs", through_a_link),
        ];
        assert_eq!(found(&sources), []);
    }
}
