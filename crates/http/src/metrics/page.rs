//! The Prometheus text format: families of samples, one after the other.

use std::fmt::{Display, Write as _};

/// Builds a page. Each family begins with [`counter`](Self::counter) or [`gauge`](Self::gauge),
/// followed by its samples.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    family: &'static str,
}

// Writing to a string does not fail.
impl Page {
    /// Begins a family of counters; by convention `name` ends in `_total`.
    pub fn counter(&mut self, name: &'static str, help: &str) {
        self.announce(name, "counter", help);
    }

    /// Begins a family of gauges.
    pub fn gauge(&mut self, name: &'static str, help: &str) {
        self.announce(name, "gauge", help);
    }

    fn announce(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds the only sample of a family.
    pub fn row(&mut self, value: impl Display) {
        let _ = writeln!(self.text, "{} {value}", self.family);
    }

    /// Adds a sample for each value of a label.
    pub fn rows<'a, V: Display>(
        &mut self,
        label: &str,
        rows: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        for (name, value) in rows {
            let _ = writeln!(self.text, "{}{{{label}=\"{name}\"}} {value}", self.family);
        }
    }

    /// Returns the page.
    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_samples() {
        let mut page = Page::default();
        page.gauge("open", "Open now.");
        page.row(3);
        page.counter("seen_total", "Seen.");
        page.rows("kind", [("a", 1), ("b", 2)]);
        let wanted = "# HELP open Open now.\n# TYPE open gauge\nopen 3\n\
             # HELP seen_total Seen.\n# TYPE seen_total counter\n\
             seen_total{kind=\"a\"} 1\nseen_total{kind=\"b\"} 2\n";
        assert_eq!(page.into_text(), wanted);
    }
}
