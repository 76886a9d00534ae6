//! Rules for the pure crates, beyond what their `clippy.toml` and the build for a target without
//! an operating system already prove.

use proc_macro2::{TokenStream, TokenTree};

use super::Finding;

/// Collections whose order of iteration differs between runs.
const HASHED: [&str; 4] = ["HashMap", "HashSet", "RandomState", "hashbrown"];

/// Checks one file of a pure crate.
pub(super) fn check(file: &str, content: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.ends_with("/src/lib.rs") {
        for wanted in ["forbid(unsafe_code)", "no_std"] {
            if !content.lines().any(|line| line.starts_with("#![") && line.contains(wanted)) {
                let message = format!("a pure crate must have #![{wanted}]");
                findings.push(Finding::error(file, 0, message));
            }
        }
    }
    if let Ok(stream) = content.parse::<TokenStream>() {
        hashed(file, stream, &mut findings);
    }
    findings
}

fn hashed(file: &str, stream: TokenStream, findings: &mut Vec<Finding>) {
    for tree in stream {
        match tree {
            TokenTree::Ident(ident) if HASHED.iter().any(|name| ident == name) => {
                let message =
                    format!("{ident}: use a BTreeMap, which has a defined order of iteration");
                findings.push(Finding::error(file, ident.span().start().line, message));
            }
            TokenTree::Group(group) => hashed(file, group.stream(), findings),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_maps_are_found_only_in_code() {
        let content = "// HashMap\nuse alloc::collections::BTreeMap;\nfn a(_: HashSet<u8>) {}\n";
        let lines: Vec<_> = check("crates/race/src/a.rs", content)
            .into_iter()
            .map(|finding| finding.line)
            .collect();
        assert_eq!(lines, [3]);
    }

    #[test]
    fn the_root_of_a_pure_crate_forbids_unsafe_code() {
        let root = "crates/race/src/lib.rs";
        assert_eq!(check(root, "#![no_std]\n#![forbid(unsafe_code)]\n"), []);
        assert_eq!(check(root, "#![cfg_attr(not(test), no_std)]\n").len(), 1);
        assert_eq!(check(root, "//! forbid(unsafe_code) no_std\n").len(), 2);
        assert_eq!(check("crates/race/src/a.rs", ""), []);
    }
}
