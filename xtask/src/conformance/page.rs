//! The pages, as Markdown.

use std::collections::BTreeMap;

use super::Tables;
use super::document::{Document, Row};

/// The folder with the programs that attack the whole command.
const PROGRAMS: &str = "interop/hostile/";

/// Returns the list of documents, with the number of their rows by status.
pub(super) fn index(tables: &Tables) -> String {
    let mut text = "| name | document | held | otherwise, on purpose | not met | not tested |\n\
                    | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (name, document) in &tables.documents {
        let rows = tables.rows_of(name);
        let counts = [None, Some("otherwise"), Some("not-met"), Some("untested")].map(|status| {
            let count = |row: &&&Row| row.status().map(|note| note.key) == status;
            rows.iter().filter(count).count().to_string()
        });
        text.push_str(&format!("| {name} | {} | {} |\n", document.title, counts.join(" | ")));
    }
    text
}

/// Returns the page of a document with its rows.
pub(super) fn page(name: &str, document: &Document, rows: &[&Row]) -> String {
    let mut text = format!("# {}\n", document.title);
    if let Some(address) = address(name) {
        text.push_str(&format!("\n{address}\n"));
    }
    if !document.about.is_empty() {
        text.push_str(&format!("\n{}\n", document.about));
    }
    let mut heading = None;
    for (index, row) in rows.iter().enumerate() {
        let found = document.heading(row);
        if index == 0 || found != heading {
            heading = found;
            if let Some(heading) = found.and_then(|index| document.headings.get(index)) {
                text.push_str(&format!("\n## {}\n", heading.title));
            }
            let head =
                if document.attacks { "attack | bound" } else { "section | requirement | status" };
            let columns = head.split('|').count() + 1;
            text.push_str(&format!("\n| {head} | test |\n|{}\n", " --- |".repeat(columns)));
        }
        let cells = if document.attacks {
            let bound = row.bound().map_or("", |note| &note.text);
            let reason = row.status().map(|note| format!("; {}: {}", note.key, note.text));
            [row.text.clone(), format!("{bound}{}", reason.unwrap_or_default())].join(" | ")
        } else {
            [escaped(&row.section), escaped(&row.text), status(row)].join(" | ")
        };
        text.push_str(&format!("| {cells} | {} |\n", test(row)));
    }
    text
}

/// Returns the programs that attack the whole command, with what they say that they do.
pub(super) fn programs(files: &BTreeMap<String, String>) -> String {
    let mut text =
        "\n## Programs that attack the command\n\n| `interop/run --only` | |\n| --- | --- |\n"
            .to_owned();
    for (file, source) in files {
        let Some(name) = file.strip_prefix(PROGRAMS).and_then(|name| name.strip_suffix(".py"))
        else {
            continue;
        };
        if name.starts_with('_') {
            continue;
        }
        let about = source.strip_prefix("\"\"\"").and_then(|rest| rest.split("\"\"\"").next());
        let words: Vec<&str> = about.unwrap_or_default().split_whitespace().collect();
        text.push_str(&format!("| {name} | {} |\n", escaped(&words.join(" "))));
    }
    text
}

/// Returns where an RFC can be read; other documents say it themselves.
fn address(name: &str) -> Option<String> {
    let number = name.strip_prefix("rfc")?;
    let is_rfc = number.chars().all(|c| c.is_ascii_digit());
    is_rfc.then(|| format!("https://www.rfc-editor.org/rfc/{name}"))
}

fn status(row: &Row) -> String {
    let Some(note) = row.status() else { return "held".to_owned() };
    let word = match note.key {
        "not-met" => "**not met**",
        "untested" => "not tested",
        other => &format!("**{other}**"),
    };
    format!("{word}: {}", escaped(&note.text))
}

fn test(row: &Row) -> String {
    match row.test.as_deref() {
        Some("") => format!("`{}`", row.file),
        Some(name) => format!("`{}::{name}`", row.file),
        None => String::new(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(section: &str, notes: &str) -> Row {
        let text = format!("//= rfc1 {section}\n//# a | b\n{notes}#[test]\nfn works() {{}}\n");
        super::super::annotation::parse("crates/a/src/b.rs", &text).0.remove(0)
    }

    #[test]
    fn a_page_has_a_table_for_each_heading() {
        let text =
            "title = \"RFC 1\"\nabout = \"Hosts.\"\n[[heading]]\nof = [\"§1\"]\ntitle = \"One\"\n";
        let (document, _) = Document::parse("docs/reference/conformance/rfc1.toml", text).unwrap();
        let rows = [row("§1.2, §3", ""), row("§2", "//= not-met: why\n")];
        let page = page("rfc1", &document, &rows.iter().collect::<Vec<_>>());
        let head = "| section | requirement | status | test |\n| --- | --- | --- | --- |\n";
        let test = "`crates/a/src/b.rs::works`";
        assert_eq!(
            page,
            format!(
                "# RFC 1\n\nhttps://www.rfc-editor.org/rfc/rfc1\n\nHosts.\n\n## One\n\n{head}| §1.2, §3 | a \\| b | held | {test} |\n\
                 \n{head}| §2 | a \\| b | **not met**: why | {test} |\n"
            )
        );
    }

    #[test]
    fn attacks_have_bounds_and_programs() {
        let text = "title = \"Attacks\"\nattacks = true\n";
        let (document, _) = Document::parse("docs/reference/conformance/a.toml", text).unwrap();
        let page = page("a", &document, &[&row("http", "//= bound: `MOST`\n")]);
        assert!(page.ends_with("| a | b | `MOST` | `crates/a/src/b.rs::works` |\n"), "{page}");
        let program = |name: &str| {
            (format!("{PROGRAMS}{name}.py"), "\"\"\"Noise\nat night.\n\"\"\"\n".to_owned())
        };
        let list = programs(&[program("noise"), program("_noise")].into());
        assert!(list.ends_with("| --- | --- |\n| noise | Noise at night. |\n"), "{list}");
    }
}
