//! A test or a bound that a document names with its file, as in `crates/x/src/y.rs::NAME`, is defined
//! there, so that no claim refers to evidence that no longer exists. A case of `interop/run` that a
//! document tells its reader to run exists as well.

use super::Finding;

/// What precedes the directories to which the paths in the rest of a document are relative, on one line.
const BASES: &str = "Paths are relative to ";

/// A name in a document, with the file that is to define it.
#[derive(Debug, PartialEq, Eq)]
struct Reference<'a> {
    /// The line of the document, starting at 1.
    line: usize,
    /// The directories that the document states for its paths.
    bases: Vec<&'a str>,
    path: &'a str,
    name: &'a str,
}

impl Reference<'_> {
    /// Returns the source that defines the name, or what is wrong. `read` returns the content of a file.
    fn source(&self, read: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let Self { bases, path, name, .. } = self;
        let mut problem = None;
        for base in bases.iter().copied().chain([""]) {
            let place = format!("{base}{path}");
            match read(&place) {
                Some(source) if definition(&source, name).is_some() => return Ok(source),
                Some(_) => problem = Some(format!("{place} does not define {name}")),
                None => {}
            }
        }
        let base = bases.first().copied().unwrap_or_default();
        Err(problem.unwrap_or_else(|| format!("{base}{path} does not exist")))
    }
}

/// Returns every name that a document gives with its file.
fn references(content: &str) -> Vec<Reference<'_>> {
    let mut references = Vec::new();
    let mut bases = Vec::new();
    for (index, line) in content.lines().enumerate() {
        bases = stated_bases(line).unwrap_or(bases);
        for quoted in line.split('`').skip(1).step_by(2) {
            let Some((path, name)) = quoted.split_once("::") else { continue };
            if [".rs", ".py"].iter().any(|ending| path.ends_with(ending)) {
                let name = name.rsplit("::").next().unwrap_or(name);
                references.push(Reference { line: index + 1, bases: bases.clone(), path, name });
            }
        }
    }
    references
}

/// Returns the directories that a line states for the paths below it.
fn stated_bases(line: &str) -> Option<Vec<&str>> {
    let (_, rest) = line.split_once(BASES)?;
    Some(rest.split('`').skip(1).step_by(2).filter(|quoted| quoted.ends_with('/')).collect())
}

/// Checks one document against the files that it names. `read` returns the content of a file.
pub(super) fn check(
    file: &str,
    content: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for reference in references(content) {
        if let Err(message) = reference.source(&read) {
            findings.push(Finding::error(file, reference.line, message));
        }
    }
    findings
}

/// Checks the cases that a document selects with `interop/run --only`. `programs` are the files of
/// `interop/` with their contents.
pub(super) fn check_cases(
    file: &str,
    content: &str,
    programs: &[(String, String)],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in content.lines().enumerate() {
        for rest in line.split("interop/run --only ").skip(1) {
            let end = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-');
            let word = rest.split(end).next().unwrap_or_default();
            let is_placeholder = word.chars().all(|c| c.is_ascii_uppercase());
            if !is_placeholder && !programs.iter().any(|(path, text)| has_case(path, text, word)) {
                let message = format!("interop/run has no case {word}");
                findings.push(Finding::error(file, index + 1, message));
            }
        }
    }
    findings
}

/// Returns whether the word is in the name of the file, of a function, or in a string of the program.
fn has_case(path: &str, text: &str, word: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.contains(word)
        || text.lines().any(|line| {
            let is_function = line.trim_start().starts_with("def ");
            let mut strings = line.split(['"', '\'']).skip(1).step_by(2);
            is_function && line.contains(word) || strings.any(|string| string.contains(word))
        })
}

/// Returns the line, starting at 0, on which a function, a constant, a type or a field has this name.
pub(super) fn definition(source: &str, name: &str) -> Option<usize> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = ["fn ", "const ", "pub ", "struct ", "enum ", "static ", "def ", "class "];
    let is_defined = |line: &str| {
        begins.iter().any(|begin| {
            line.match_indices(begin).any(|(at, _)| {
                line[at + begin.len()..]
                    .strip_prefix(name)
                    .is_some_and(|rest| !rest.starts_with(plain))
            })
        })
    };
    let is_code = |line: &str| !line.trim_start().starts_with("//");
    let named = source.lines().position(|line| is_code(line) && is_defined(line));
    named.filter(|_| !name.is_empty() && name.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "pub(crate) const MOST: usize = 9;\n\n    #[tokio::test]\n    /// Why.\n    \
                          async fn works() {\n    }\n\n    fn helps() {}\n    pub bad: u64,\n\
                          // fn gone() {}\n";

    fn read(path: &str) -> Option<String> {
        match path {
            "crates/a/src/b.rs" => Some(SOURCE.to_owned()),
            "a/tests/test_b.py" => Some("class One:\n    def test_it(self):\n".to_owned()),
            _ => None,
        }
    }

    fn messages(content: &str) -> Vec<String> {
        check("A.md", content, read).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn definitions_are_found() {
        let content = "`crates/a/src/b.rs::MOST` `crates/a/src/b.rs::works` \
                       `crates/a/src/b.rs::bad` `a/tests/test_b.py::One::test_it`";
        assert_eq!(messages(content), [""; 0]);
        let relative = "`crates/a/src/b.rs::bad`. Paths are relative to `fuzz/`, `crates/a/`.\n\
                        `src/b.rs::works`";
        assert_eq!(messages(relative), [""; 0]);
    }

    #[test]
    fn undefined_names_are_reported() {
        for (reference, message) in [
            ("crates/a/src/b.rs::MOS", "crates/a/src/b.rs does not define MOS"),
            ("crates/a/src/b.rs::gone", "crates/a/src/b.rs does not define gone"),
            ("crates/a/src/c.rs::MOST", "crates/a/src/c.rs does not exist"),
            ("src/b.rs::works", "src/b.rs does not exist"),
            ("a/tests/test_b.py::test_i", "a/tests/test_b.py does not define test_i"),
        ] {
            assert_eq!(messages(&format!("`{reference}`")), [message]);
        }
        let relative = "Paths are relative to `crates/a/`.\n`src/c.rs::works`";
        assert_eq!(messages(relative), ["crates/a/src/c.rs does not exist"]);
    }

    #[test]
    fn paths_of_the_standard_library_are_ignored() {
        assert_eq!(messages("`eyas_sctp::Endpoint` `crates/a::b`"), [""; 0]);
    }

    #[test]
    fn cases_of_interop_are_found_by_a_word() {
        let program = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let programs = [
            program("interop/hostile/h2_tiny.py", ""),
            program(
                "interop/eyas_interop/cases/a.py",
                "def swallowed(world):\n    run(\"sctp\")\n",
            ),
        ];
        let words = |text: &str| check_cases("A.md", text, &programs).len();
        assert_eq!(words("`interop/run --only swallowed`, `interop/run --only WORD`"), 0);
        assert_eq!(words("interop/run --only h2_tiny # x\ninterop/run --only sctp"), 0);
        assert_eq!(words("`interop/run --only swollen` `interop/run --only world`"), 1);
    }
}
