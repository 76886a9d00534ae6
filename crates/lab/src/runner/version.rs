//! The version of the running code.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

/// Identifies code by its commit and by the contents of the program or library that contains it,
/// which differ if the code was changed without a commit, and are the same on all machines with the
/// same file. If the file cannot be read, only the commit is used.
#[must_use]
pub fn code_version(commit: &str, program: &Path) -> String {
    let Ok(program) = fs::read(program) else { return commit.to_owned() };
    // The hash only needs to be the same within one program.
    let mut hasher = DefaultHasher::new();
    hasher.write(&program);
    format!("{commit} {:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_counts_as_different_code() {
        let directory = tempfile::tempdir().unwrap();
        let name = |content: &str| {
            let file = directory.path().join("program");
            fs::write(&file, content).unwrap();
            code_version("abc", &file)
        };
        assert_eq!(name("one"), name("one"));
        assert_ne!(name("one"), name("two"));
        assert_eq!(code_version("abc", &directory.path().join("none")), "abc");
    }
}
