//! The file of a document below `docs/reference/conformance/`, and a row of its table.

use toml::{Table, Value};

/// The folder of the files.
pub(crate) const FOLDER: &str = "docs/reference/conformance/";

/// What can be said about a row, in the words of comments and files: how it deviates, why there is no
/// test for it, or what limits an attack.
const KEYS: [&str; 4] = ["otherwise", "not-met", "untested", BOUND];

/// The key of what limits an attack.
pub(crate) const BOUND: &str = "bound";

/// A document of which tests show that it is followed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) title: String,
    /// The text above its tables, as Markdown.
    pub(crate) about: String,
    /// Whether its rows are attacks, each with its bound.
    pub(crate) attacks: bool,
    /// Whether its sections have names instead of numbers.
    pub(crate) unnumbered: bool,
    pub(crate) headings: Vec<Heading>,
}

/// A part of a document with a table of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) title: String,
    /// The sections that belong to it, with those below them.
    of: Vec<String>,
    /// The folders with the bounds of its attacks.
    pub(crate) below: Vec<String>,
}

/// One requirement, or one attack.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The name of its document.
    pub(crate) document: String,
    pub(crate) section: String,
    pub(crate) text: String,
    pub(crate) notes: Vec<Note>,
    /// Where it is written.
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The name of its test in that file, which is empty if the file is itself the test.
    pub(crate) test: Option<String>,
}

/// Something that is said about a row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) key: &'static str,
    pub(crate) text: String,
}

impl Note {
    /// Returns the note of a line `KEY: TEXT`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (key, text) = line.split_once(':')?;
        let key = KEYS.into_iter().find(|known| *known == key)?;
        Some(Self { key, text: text.trim().to_owned() })
    }
}

impl Row {
    pub(super) fn new(document: &str, section: &str, file: &str, line: usize) -> Self {
        let [document, section, file] = [document, section, file].map(str::to_owned);
        Self { document, section, text: String::new(), notes: Vec::new(), file, line, test: None }
    }

    /// Returns what is said about the status: how the row deviates, or why it has no test.
    pub(crate) fn status(&self) -> Option<&Note> {
        self.notes.iter().find(|note| note.key != BOUND)
    }

    /// Returns what limits the attack.
    pub(crate) fn bound(&self) -> Option<&Note> {
        self.notes.iter().find(|note| note.key == BOUND)
    }
}

/// Returns the name of the document whose file this is.
pub(crate) fn name(file: &str) -> Option<&str> {
    file.strip_prefix(FOLDER)?.strip_suffix(".toml")
}

impl Document {
    /// Reads the file of a document, with its rows.
    pub(super) fn parse(file: &str, text: &str) -> Result<(Self, Vec<Row>), String> {
        let mut table: Table = text.parse().map_err(|error| format!("{error}"))?;
        let mut document = Self {
            title: string(&mut table, "title")?,
            about: string(&mut table, "about").unwrap_or_default().trim().to_owned(),
            attacks: table.remove("attacks").is_some_and(|value| value == Value::Boolean(true)),
            unnumbered: table
                .remove("unnumbered")
                .is_some_and(|value| value == Value::Boolean(true)),
            headings: Vec::new(),
        };
        for mut heading in tables(&mut table, "heading")? {
            document.headings.push(Heading {
                title: string(&mut heading, "title")?,
                of: strings(&mut heading, "of")?,
                below: strings(&mut heading, "below").unwrap_or_default(),
            });
            none_left(&heading)?;
        }
        let mut rows = Vec::new();
        for mut entry in tables(&mut table, "row")? {
            let section = string(&mut entry, "section")?;
            let mut row = Row::new(name(file).unwrap_or(file), &section, file, 0);
            row.text = string(&mut entry, "text")?;
            row.line = line(text, &row.text);
            for key in KEYS {
                if entry.contains_key(key) {
                    row.notes.push(Note { key, text: string(&mut entry, key)? });
                }
            }
            none_left(&entry)?;
            rows.push(row);
        }
        none_left(&table)?;
        Ok((document, rows))
    }

    /// Returns the index of the heading to which a row belongs.
    pub(crate) fn heading(&self, row: &Row) -> Option<usize> {
        let is_below = |of: &String| {
            let rest = row.section.strip_prefix(of.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        self.headings.iter().position(|heading| heading.of.iter().any(is_below))
    }
}

/// Returns the line with a text, which is unique enough in such a file.
fn line(file: &str, text: &str) -> usize {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    file.lines().position(|line| line.contains(&quoted)).map_or(0, |index| index + 1)
}

fn string(table: &mut Table, key: &str) -> Result<String, String> {
    match table.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("{key} is a string, not {other}")),
        None => Err(format!("{key} is missing")),
    }
}

fn strings(table: &mut Table, key: &str) -> Result<Vec<String>, String> {
    let values = table.remove(key).ok_or_else(|| format!("{key} is missing"))?;
    values.try_into().map_err(|error| format!("{key}: {error}"))
}

fn tables(table: &mut Table, key: &str) -> Result<Vec<Table>, String> {
    let values = table.remove(key).unwrap_or_else(|| Value::Array(Vec::new()));
    values.try_into().map_err(|error| format!("{key}: {error}"))
}

fn none_left(table: &Table) -> Result<(), String> {
    table.keys().next().map_or(Ok(()), |key| Err(format!("there is no key {key}")))
}

/// A part of a section's name. Numbers are compared as such.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u32),
    Text(String),
}

/// What sections are ordered by: numbered ones first, by their numbers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    is_unnumbered: bool,
    parts: Vec<Part>,
}

/// Returns what a section is ordered by.
pub(super) fn order(section: &str) -> Order {
    let mut parts = Vec::new();
    let mut rest = section;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(part.parse().map_or_else(|_| Part::Text(part.to_owned()), Part::Number));
        rest = after;
    }
    Order { is_unnumbered: !section.starts_with('§'), parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "docs/reference/conformance/rfc1.toml";

    #[test]
    fn a_file_has_a_title_headings_and_rows() {
        let text = "title = \"RFC 1\"\n[[heading]]\nof = [\"§1\", \"RFC\"]\ntitle = \"Hosts\"\n\
                    [[row]]\nsection = \"§1.2\"\ntext = \"a \\\"word\\\"\"\nnot-met = \"why\"\n";
        let (document, rows) = Document::parse(FILE, text).expect("it is a file");
        assert_eq!((&*document.title, document.attacks), ("RFC 1", false));
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&*row.document, &*row.text, row.line), ("rfc1", "a \"word\"", 7));
        assert_eq!(row.status().map(|note| note.key), Some("not-met"));
        let heading = |section| document.heading(&Row::new("rfc1", section, FILE, 1));
        assert_eq!([heading("§1"), heading("§1.2, §3"), heading("RFC 2 §1")], [Some(0); 3]);
        assert_eq!([heading("§10"), heading("§2"), heading("RFCs")], [None; 3]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("", "title is missing"),
            ("title = 1", "title is a string, not 1"),
            ("title = \"a\"\ntitel = \"b\"", "there is no key titel"),
            ("title = \"a\"\n[[row]]\nsection = \"§1\"", "text is missing"),
            (
                "title = \"a\"\n[[row]]\nsection = \"§1\"\ntext = \"b\"\nmet = \"c\"",
                "there is no key met",
            ),
        ] {
            assert_eq!(Document::parse(FILE, text), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn sections_are_ordered_by_number() {
        let mut sections = ["beyond §3", "§10", "§9.2", "§9.10 A2", "§9.10 A10", "RFC 9 §1"];
        sections.sort_by_key(|section| order(section));
        assert_eq!(sections, ["§9.2", "§9.10 A2", "§9.10 A10", "§10", "RFC 9 §1", "beyond §3"]);
    }
}
