//! The measurements as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::statistics::Rounds;
use crate::verdict::{Bound, Expectation};

/// The rounds of each program in each column.
#[derive(Default)]
pub(crate) struct Figures(BTreeMap<(String, &'static str), Rounds>);

/// One column of a table.
pub(crate) struct Column {
    /// Its heading.
    pub(crate) name: &'static str,
    /// The number of decimals.
    pub(crate) digits: usize,
}

impl Figures {
    /// Adds the figure of one round, or the reason why there is none.
    pub(crate) fn add(&mut self, name: &str, column: &'static str, figure: Result<f64, String>) {
        if let Err(error) = &figure {
            println!("{name}, {column}: {error}");
        }
        self.0.entry((name.to_owned(), column)).or_default().add(figure);
    }

    /// Parses the output of another process: on each line a name, a column, and a figure or the reason why
    /// there is none.
    pub(crate) fn take(&mut self, output: &str, columns: &[&'static str]) {
        for line in output.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [name, column, figure] = words[..] else { continue };
            if let Some(column) = columns.iter().find(|known| **known == column) {
                self.add(name, column, figure.parse().map_err(|_| figure.to_owned()));
            }
        }
    }

    /// Returns all figures of one program in one column.
    pub(crate) fn rounds(&self, name: &str, column: &'static str) -> Option<&Rounds> {
        self.0.get(&(name.to_owned(), column))
    }

    /// Returns the median, if more than half of the rounds have a figure.
    pub(crate) fn median(&self, name: &str, column: &'static str) -> Option<f64> {
        self.rounds(name, column)?.median()
    }

    /// Returns a table of medians with a row for each program.
    pub(crate) fn table(&self, head: &str, names: &[&str], columns: &[Column]) -> String {
        let mut text = format!("| {head} |");
        columns.iter().for_each(|column| _ = write!(text, " {} |", column.name));
        let _ = writeln!(text, "\n| --- |{}", " ---: |".repeat(columns.len()));
        for name in names {
            let _ = write!(text, "| {name} |");
            for Column { name: column, digits } in columns {
                let median = self.median(name, column);
                let shown = median.map_or("–".into(), |figure| format!("{figure:.digits$}"));
                let _ = write!(text, " {shown} |");
            }
            text.push('\n');
        }
        text
    }
}

/// Returns an expectation about one figure.
pub(crate) fn expectation(
    target: &str,
    measured: Option<f64>,
    bound: Bound,
    unit: &str,
) -> Expectation {
    let measured = measured.map(|measured| {
        let shown = if measured.abs() < 100.0 {
            format!("{measured:.2}")
        } else {
            format!("{measured:.0}")
        };
        (format!("{shown} {unit}").trim_end().to_owned(), bound.holds(measured))
    });
    Expectation { target: target.to_owned(), measured }
}

/// Returns the ratio of two figures.
pub(crate) fn ratio(ours: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    Some(ours? / theirs?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_their_columns() {
        let mut figures = Figures::default();
        for figure in [Ok(3.0), Ok(1.0), Ok(2.0), Err("no".to_owned())] {
            figures.add("eyas", "ms", figure);
        }
        let columns = [Column { name: "ms", digits: 1 }, Column { name: "KiB", digits: 0 }];
        let text = figures.table("program", &["eyas", "HAProxy"], &columns);
        assert!(text.starts_with("| program | ms | KiB |\n| --- | ---: | ---: |\n"), "{text}");
        assert!(text.ends_with("| eyas | 2.0 | – |\n| HAProxy | – | – |\n"), "{text}");
    }

    #[test]
    fn figures_from_another_process_are_used() {
        let mut figures = Figures::default();
        let output =
            "eyas\tms\t1.5\neyas\tms\tit broke\neyas\tms\t2.5\n$ ip link\neyas\tother\t3\n";
        figures.take(output, &["ms", "KiB"]);
        let rounds = figures.rounds("eyas", "ms").unwrap();
        assert_eq!((rounds.times.as_slice(), rounds.errors.len()), (&[1.5, 2.5][..], 1));
        assert!(figures.rounds("eyas", "KiB").is_none());
    }

    #[test]
    fn expectations_show_the_measured_values() {
        let row = |measured, bound| expectation("w", measured, bound, "ms").row();
        assert_eq!(row(Some(0.5), Bound::AtMost(1.0)), "| w | 0.50 ms | yes |\n");
        assert_eq!(row(Some(1999.0), Bound::AtLeast(2000.0)), "| w | 1999 ms | **no** |\n");
        assert_eq!(row(None, Bound::AtMost(1.0)), "| w | – | not measured |\n");
        assert_eq!(ratio(Some(1.0), Some(2.0)), Some(0.5));
        assert_eq!(ratio(Some(1.0), None), None);
    }
}
