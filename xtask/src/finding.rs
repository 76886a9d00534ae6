//! What is wrong in a file, and where.

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
    pub(crate) fn error(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self { place: place.into(), line, message: message.into(), warning: false }
    }

    pub(crate) fn warning(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::error(place, line, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_sort_by_place() {
        let later = Finding::error("b.rs", 1, "x");
        let earlier = Finding::warning("a.rs", 9, "y");
        let mut both = vec![later.clone(), earlier.clone()];
        both.sort();
        assert_eq!(both, [earlier, later]);
    }
}
