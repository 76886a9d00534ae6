//! The name of the code that runs.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

/// Names code by its commit and by the contents of the program or library that it is in, which change
/// when the code was changed without a commit, and are the same on all machines that have the same file.
/// A file that cannot be read leaves the commit.
#[must_use]
pub fn code_version(commit: &str, program: &Path) -> String {
    let Ok(program) = fs::read(program) else { return commit.to_owned() };
    // The hash need be the same within one program alone.
    let mut hasher = DefaultHasher::new();
    hasher.write(&program);
    format!("{commit} {:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_is_other_code() {
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
