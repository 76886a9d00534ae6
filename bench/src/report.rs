//! What a benchmark reports, as the files that are kept: a CSV file for each table, and for the page the rest of the
//! text, the targets that were missed, and links to the tables.

use std::fmt::Write as _;

/// The heading of the column that says whether a target is met.
const MET: &str = "met";
/// The cells of that column, without emphasis.
const YES: &str = "yes";
const NO: &str = "no";

/// The report of a benchmark, taken apart.
pub(crate) struct Report {
    /// The lines between the tables.
    prose: String,
    tables: Vec<Table>,
}

/// A table with its headings as the first row.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Report {
    /// Parses paragraphs and tables in Markdown.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut prose, mut tables) = (String::new(), Vec::<Table>::new());
        let mut is_in_table = false;
        for line in text.lines() {
            let Some(row) = line.strip_prefix('|') else {
                is_in_table = false;
                let _ = writeln!(prose, "{line}");
                continue;
            };
            if !is_in_table {
                tables.push(Table { rows: Vec::new() });
            }
            is_in_table = true;
            let is_rule = row.chars().all(|letter| "-:| ".contains(letter)) && row.contains('-');
            if let (Some(table), false) = (tables.last_mut(), is_rule) {
                table.rows.push(cells(row));
            }
        }
        // Where a table was, an empty line is left on both sides.
        while prose.contains("\n\n\n") {
            prose = prose.replace("\n\n\n", "\n\n");
        }
        Self { prose: prose.trim().to_owned(), tables }
    }

    /// Returns the name of the file of each table, and its content.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut names = Vec::<String>::new();
        for table in &self.tables {
            let name = file_name(&table.title());
            let same = names.iter().filter(|other| **other == name).count();
            names.push(if same == 0 { name } else { format!("{name}-{}", same + 1) });
        }
        let files = names.into_iter().zip(&self.tables);
        files.map(|(name, table)| (format!("{name}.csv"), table.to_csv())).collect()
    }

    /// Returns the part of the page that says what was measured, when the files are in this directory.
    pub(crate) fn summary(&self, directory: &str) -> String {
        let mut text = format!("{}\n", self.prose);
        let verdicts: Vec<Verdict> = self.tables.iter().flat_map(Table::verdicts).collect();
        if !verdicts.is_empty() {
            let met = verdicts.iter().filter(|verdict| verdict.outcome == YES).count();
            let _ = write!(text, "\nTargets met: {met} of {}.", verdicts.len());
            let missed: Vec<&Verdict> =
                verdicts.iter().filter(|verdict| verdict.outcome != YES).collect();
            text.push_str(if missed.is_empty() { "\n" } else { " The others:\n\n" });
            for verdict in missed {
                let note = if verdict.outcome == NO { "" } else { " (not measured)" };
                let _ = writeln!(text, "- {}{note}", verdict.text);
            }
        }
        let links: Vec<String> = self
            .files()
            .iter()
            .zip(&self.tables)
            .map(|((file, _), table)| format!("[{}]({directory}/{file})", table.title()))
            .collect();
        if !links.is_empty() {
            let _ = writeln!(text, "\nTables: {}.", links.join(", "));
        }
        text
    }
}

/// Whether a target is met.
struct Verdict {
    /// The target, with what was measured.
    text: String,
    outcome: String,
}

impl Table {
    fn title(&self) -> String {
        let title = self.rows.first().and_then(|row| row.first());
        title.filter(|title| !title.is_empty()).cloned().unwrap_or_else(|| "results".to_owned())
    }

    fn to_csv(&self) -> String {
        let row = |row: &Vec<String>| row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>();
        self.rows.iter().map(|cells| row(cells).join(",") + "\n").collect()
    }

    /// Returns the verdicts of the rows, if this table has any: either its rows are targets, or they are figures of
    /// which a column gives the target.
    fn verdicts(&self) -> Vec<Verdict> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let column = |name: &str| head.iter().position(|heading| heading == name);
        let Some(met) = column(MET) else { return Vec::new() };
        let cell = |row: &Vec<String>, index: Option<usize>| {
            index.and_then(|index| row.get(index)).cloned().unwrap_or_default()
        };
        let verdict = |row: &Vec<String>| {
            let text = match column("target") {
                Some(0) | None => {
                    format!("{}: {}", cell(row, Some(0)), cell(row, column("measured")))
                }
                target => {
                    let (figure, ratio) = (cell(row, Some(0)), cell(row, column("ratio")));
                    format!("{figure}: {ratio}, target {}", cell(row, target))
                }
            };
            Verdict { text, outcome: cell(row, Some(met)) }
        };
        rows.iter().map(verdict).collect()
    }
}

/// Returns the cells of a row, without the marks of Markdown.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim_end().strip_suffix('|').unwrap_or(row);
    row.split('|').map(|cell| cell.trim().replace("**", "").replace('`', "")).collect()
}

/// Returns a cell as RFC 4180 has it.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// Returns the title of a table as the name of a file: its letters and digits, and hyphens between words.
fn file_name(title: &str) -> String {
    let title = title.to_lowercase().replace('µ', "u");
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "`cargo eyas-bench x` at 1.\n\n\
        | client | h1 | h2, later |\n| --- | ---: | ---: |\n| `eyas` | 1.50 (1.94) | – |\n\nIn words.\n\n\
        | target | measured | met |\n| --- | --- | --- |\n\
        | h1: a | 1.0 / 2.0 = 0.5 | yes |\n| h1: b | 3 | **no** |\n| h1: c | – | not measured |\n\n\
        | per connection | eyas | ratio | target | met |\n| --- | ---: | ---: | --- | --- |\n\
        | h1 CPU | 2 ms | 1.25 | ≤ 1.10 | **no** |\n";

    #[test]
    fn each_table_is_a_file() {
        let files = Report::parse(TEXT).files();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["client.csv", "target.csv", "per-connection.csv"]);
        assert_eq!(files[0].1, "client,h1,\"h2, later\"\neyas,1.50 (1.94),–\n");
        assert_eq!(
            files[2].1,
            "per connection,eyas,ratio,target,met\nh1 CPU,2 ms,1.25,≤ 1.10,no\n"
        );
    }

    #[test]
    fn the_page_has_the_text_and_what_was_missed() {
        let expected = "`cargo eyas-bench x` at 1.\n\nIn words.\n\n\
            Targets met: 1 of 4. The others:\n\n\
            - h1: b: 3\n- h1: c: – (not measured)\n- h1 CPU: 1.25, target ≤ 1.10\n\n\
            Tables: [client](b/x/client.csv), [target](b/x/target.csv), \
            [per connection](b/x/per-connection.csv).\n";
        assert_eq!(Report::parse(TEXT).summary("b/x"), expected);
        let met = "a\n\n| target | measured | met |\n| --- | --- | --- |\n| x | 1 | yes |\n";
        assert!(Report::parse(met).summary("b").contains("\nTargets met: 1 of 1.\n"));
        assert_eq!(Report::parse("a\n").summary("b"), "a\n");
    }

    #[test]
    fn names_of_files_are_unique_and_plain() {
        let table = |head: &str| format!("| {head} | n |\n| --- | ---: |\n| a | 1 |\n\n");
        let text = ["", "20/10 + 5/80", "times, µs", ""].map(table).concat();
        let names: Vec<String> = Report::parse(&text).files().into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["results.csv", "20-10-5-80.csv", "times-us.csv", "results-2.csv"]);
    }

    #[test]
    fn quotes_in_a_cell_are_doubled() {
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(quoted("a b"), "a b");
    }
}
