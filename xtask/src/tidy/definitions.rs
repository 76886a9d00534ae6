//! A test or a bound that a document names with its file, as in `crates/x/src/y.rs::NAME`, is defined
//! there, so that no claim refers to evidence that no longer exists.

use super::Finding;

/// Checks one document against the files that it names. `read` returns the content of a file.
pub(super) fn check(
    file: &str,
    content: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in content.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let Some((path, name)) = quoted.split_once("::") else { continue };
            if !is_source(path) {
                continue;
            }
            let defined = read(path).is_some_and(|source| defines(&source, name));
            if !defined {
                let message = format!("{path} does not define {name}");
                findings.push(Finding::error(file, index + 1, message));
            }
        }
    }
    findings
}

fn is_source(path: &str) -> bool {
    let roots = ["crates/", "fuzz/", "xtask/", "interop/"];
    roots.iter().any(|root| path.starts_with(root)) && path.ends_with(".rs")
}

/// Returns whether a function, a constant or a field has this name.
fn defines(source: &str, name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = ["fn ", "const ", "pub ", "struct "];
    !name.is_empty()
        && source.lines().any(|line| {
            begins.iter().any(|begin| {
                line.match_indices(begin).any(|(at, _)| {
                    line[at + begin.len()..]
                        .strip_prefix(name)
                        .is_some_and(|rest| !rest.starts_with(plain))
                })
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(content: &str) -> Vec<String> {
        let read = |path: &str| {
            let source =
                "pub(crate) const MOST: usize = 9;\n    fn works() {}\n    pub bad: u64,\n";
            (path == "crates/a/src/b.rs").then(|| source.to_owned())
        };
        check("A.md", content, read).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn definitions_are_found() {
        let content = "`crates/a/src/b.rs::MOST` `crates/a/src/b.rs::works` \
                       `crates/a/src/b.rs::bad`";
        assert_eq!(messages(content), [""; 0]);
    }

    #[test]
    fn undefined_names_are_reported() {
        assert_eq!(
            messages("`crates/a/src/b.rs::MOS` `crates/a/src/c.rs::MOST`"),
            ["crates/a/src/b.rs does not define MOS", "crates/a/src/c.rs does not define MOST"]
        );
    }

    #[test]
    fn paths_of_the_standard_library_are_ignored() {
        assert_eq!(messages("`eyas_sctp::Endpoint` `crates/a::b`"), [""; 0]);
    }
}
