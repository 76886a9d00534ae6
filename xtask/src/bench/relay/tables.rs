//! What was measured, as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::statistics::Rounds;
use super::super::verdict::{Bound, Expectation};

/// The rounds of each program in each column.
#[derive(Default)]
pub(super) struct Figures(BTreeMap<(String, &'static str), Rounds>);

/// One column of a table.
pub(super) struct Column {
    /// Its head.
    pub(super) name: &'static str,
    /// Digits behind the point.
    pub(super) digits: usize,
}

impl Figures {
    /// Takes the figure of one round, or why there is none.
    pub(super) fn add(&mut self, who: &str, column: &'static str, figure: Result<f64, String>) {
        if let Err(error) = &figure {
            println!("{who}, {column}: {error}");
        }
        self.0.entry((who.to_owned(), column)).or_default().add(figure);
    }

    /// Takes what another process tells: on each line who, the column, and the figure or why there is none.
    pub(super) fn take(&mut self, told: &str, columns: &[&'static str]) {
        for line in told.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [who, column, figure] = words[..] else { continue };
            if let Some(column) = columns.iter().find(|known| **known == column) {
                self.add(who, column, figure.parse().map_err(|_| figure.to_owned()));
            }
        }
    }

    /// All figures of one program in one column.
    pub(super) fn rounds(&self, who: &str, column: &'static str) -> Option<&Rounds> {
        self.0.get(&(who.to_owned(), column))
    }

    /// The median, if more than half of the rounds gave a figure.
    pub(super) fn median(&self, who: &str, column: &'static str) -> Option<f64> {
        self.rounds(who, column)?.median()
    }

    /// Medians, a row for each program.
    pub(super) fn table(&self, head: &str, names: &[&str], columns: &[Column]) -> String {
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

/// An expectation about one figure.
pub(super) fn expectation(
    wanted: &str,
    seen: Option<f64>,
    bound: Bound,
    unit: &str,
) -> Expectation {
    let seen = seen.map(|seen| {
        let shown = if seen.abs() < 100.0 { format!("{seen:.2}") } else { format!("{seen:.0}") };
        (format!("{shown} {unit}").trim_end().to_owned(), bound.holds(seen))
    });
    Expectation { wanted: wanted.to_owned(), seen }
}

/// One figure over another.
pub(super) fn ratio(ours: Option<f64>, theirs: Option<f64>) -> Option<f64> {
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
        let text = figures.table("way", &["eyas", "HAProxy"], &columns);
        assert!(text.starts_with("| way | ms | KiB |\n| --- | ---: | ---: |\n"), "{text}");
        assert!(text.ends_with("| eyas | 2.0 | – |\n| HAProxy | – | – |\n"), "{text}");
    }

    #[test]
    fn figures_from_another_process_are_used() {
        let mut figures = Figures::default();
        let told = "eyas\tms\t1.5\neyas\tms\tit broke\neyas\tms\t2.5\n$ ip link\neyas\tother\t3\n";
        figures.take(told, &["ms", "KiB"]);
        let rounds = figures.rounds("eyas", "ms").unwrap();
        assert_eq!((rounds.times.as_slice(), rounds.errors.len()), (&[1.5, 2.5][..], 1));
        assert!(figures.rounds("eyas", "KiB").is_none());
    }

    #[test]
    fn expectations_show_the_measured_values() {
        let row = |seen, bound| expectation("w", seen, bound, "ms").row();
        assert_eq!(row(Some(0.5), Bound::AtMost(1.0)), "| w | 0.50 ms | yes |\n");
        assert_eq!(row(Some(1999.0), Bound::AtLeast(2000.0)), "| w | 1999 ms | **no** |\n");
        assert_eq!(row(None, Bound::AtMost(1.0)), "| w | – | not measured |\n");
        assert_eq!(ratio(Some(1.0), Some(2.0)), Some(0.5));
        assert_eq!(ratio(Some(1.0), None), None);
    }
}
