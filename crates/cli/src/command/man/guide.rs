//! The guides of `docs/` as pages of section 7, so that whoever installs the binary has them, too.

use std::fmt::Write;

use crate::failure::{Failure, FailureKind};

/// A guide in Markdown.
struct GuideSource {
    folder: &'static str,
    topic: &'static str,
    text: &'static str,
}

macro_rules! guides {
    ($($folder:literal / $topic:literal),* $(,)?) => {
        [$(GuideSource {
            folder: $folder,
            topic: $topic,
            text: include_str!(concat!("../../../docs/", $folder, "/", $topic, ".md")),
        }),*]
    };
}

const GUIDES: &[GuideSource] = &guides![
    "reference" / "alt-svc",
    "guide" / "curl",
    "guide" / "doctor",
    "guide" / "gateway",
    "guide" / "http",
    "reference" / "json",
    "guide" / "lab",
    "guide" / "load",
    "reference" / "memory",
    "guide" / "names",
    "guide" / "netem",
    "guide" / "operating",
    "guide" / "perf",
    "guide" / "proxy",
    "guide" / "sctp-run",
    "guide" / "tunnel",
    "guide" / "with-other-servers",
];

/// Where files are that are no guides: their names stay.
const FOLDERS: [&str; 4] = ["docs/guide/", "docs/reference/", "docs/results/", "docs/"];

/// Returns the guide on a topic, as a page.
pub(super) fn page(topic: &[String]) -> Result<String, Failure> {
    let found = GUIDES.iter().find(|guide| topic == [guide.topic]);
    found.map(to_page).ok_or_else(|| {
        let topics: Vec<&str> = GUIDES.iter().map(|guide| guide.topic).collect();
        let text = match topic.is_empty() {
            true => "which guide?".to_owned(),
            false => format!("there is no guide {:?}", topic.join(" ")),
        };
        Failure::new(FailureKind::Usage, text).hint(format!("there are {}", topics.join(", ")))
    })
}

/// Returns the name and the text of each page.
pub(super) fn all() -> impl Iterator<Item = (String, Vec<u8>)> {
    GUIDES.iter().map(|guide| (format!("eyas-guide-{}", guide.topic), to_page(guide).into_bytes()))
}

/// Returns the names of the pages as other pages refer to them.
pub(super) fn names() -> impl Iterator<Item = String> {
    GUIDES.iter().map(|guide| format!("eyas-guide-{}(7)", guide.topic))
}

/// Returns a text that refers to guides by their pages, instead of the command that prints them.
pub(super) fn as_pages(text: &str) -> String {
    GUIDES.iter().fold(text.to_owned(), |text, guide| {
        let command = format!("eyas man guide {}", guide.topic);
        let page = format!("eyas\\-guide\\-{}(7)", guide.topic.replace('-', "\\-"));
        text.replace(&format!("\\*(Aq{}\\*(Aq", command.replace('-', "\\-")), &page)
            .replace(&format!("\\*(Aq{command}\\*(Aq"), &page)
            .replace(&format!("'{command}'"), &page)
    })
}

fn to_page(guide: &GuideSource) -> String {
    let name = format!("eyas-guide-{}", guide.topic);
    let mut page = format!(
        ".TH {} 7 \" \" \"eyas {}\" \"Guides\"\n",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    );
    let mut is_code = false;
    let lines: Vec<&str> = guide.text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let before = number.checked_sub(1).map_or("", |before| lines[before]);
        if line.trim_start().starts_with("```") {
            page.push_str(if is_code { ".fi\n" } else { ".PP\n.nf\n" });
            is_code = !is_code;
        } else if is_code {
            let _ = writeln!(page, "{}", escaped(line));
        } else if lines.get(number + 1).is_some_and(|below| is_rule(below)) {
            add_head(&mut page, line);
        } else {
            let is_first = before.trim().is_empty() || before.trim_start().starts_with("```");
            add_line(&mut page, line, is_first, &name);
        }
    }
    page
}

fn add_line(page: &mut String, line: &str, is_first: bool, name: &str) {
    let text = inline(line.trim());
    let _ = if let Some(title) = line.strip_prefix("# ") {
        writeln!(page, ".SH NAME\n{} \\- {}\n.SH DESCRIPTION", escaped(name), inline(title))
    } else if let Some(title) = line.strip_prefix("## ") {
        writeln!(page, ".SH {}", inline(title).to_uppercase())
    } else if let Some(title) = line.strip_prefix("### ") {
        writeln!(page, ".SS {}", inline(title))
    } else if line.starts_with("<!--") {
        Ok(())
    } else if let Some(row) = line.strip_prefix('|') {
        add_row(page, row)
    } else if let Some(item) = line.strip_prefix("- ") {
        writeln!(page, ".IP \\(bu 2\n{}", inline(item))
    } else if line.trim().is_empty() {
        Ok(())
    } else if is_first && !line.starts_with("  ") {
        writeln!(page, ".PP\n{text}")
    } else {
        writeln!(page, "{text}")
    };
}

/// Returns whether a line separates the head of a table from its rows.
fn is_rule(line: &str) -> bool {
    line.starts_with('|') && line.chars().all(|c| "-:| ".contains(c))
}

fn cells(row: &str) -> impl Iterator<Item = String> {
    row.trim_matches(['|', ' ']).split(" | ").map(|cell| inline(cell.trim()))
}

/// Adds the head of a table, unless it is empty.
fn add_head(page: &mut String, row: &str) {
    let names: Vec<String> = cells(row).filter(|name| !name.is_empty()).collect();
    if !names.is_empty() {
        let _ = writeln!(page, ".PP\n\\fI{}\\fR", names.join(" | "));
    }
}

/// Adds a row of a table as an entry: its first cell, then the others.
fn add_row(page: &mut String, row: &str) -> std::fmt::Result {
    if is_rule(&format!("|{row}")) {
        return Ok(());
    }
    let mut cells = cells(row);
    let first = cells.next().filter(|first| !first.is_empty());
    let rest: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
    writeln!(page, ".TP\n{}\n\\&{}", first.as_deref().unwrap_or("\\&"), rest.join("; "))
}

/// Returns a line of text without the marks of Markdown; links to other guides name their pages.
fn inline(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, label, to, after)) = link(rest) {
        text.push_str(before);
        let file = to.split('#').next().unwrap_or_default().trim_end_matches(".md");
        let file = file.rsplit('/').next().unwrap_or_default();
        match GUIDES.iter().find(|guide| guide.topic == file) {
            Some(guide) if label.contains(".md") => {
                let _ = write!(text, "eyas-guide-{}(7)", guide.topic);
            }
            Some(guide) => {
                let _ = write!(text, "{label} (eyas-guide-{}(7))", guide.topic);
            }
            None => text.push_str(label.trim_end_matches(".md")),
        }
        rest = after;
    }
    text.push_str(rest);
    let text = GUIDES.iter().fold(text, |text, guide| {
        let page = format!("eyas-guide-{}(7)", guide.topic);
        text.replace(&format!("docs/{}/{}.md", guide.folder, guide.topic), &page)
    });
    let text = FOLDERS.iter().fold(text, |text, folder| text.replace(folder, ""));
    escaped(&without_emphasis(&text.replace("**", "").replace('`', "")))
}

/// Removes the asterisks around words, but not those of patterns.
fn without_emphasis(text: &str) -> String {
    let (mut words, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('*') {
        let after = &rest[at + 1..];
        let end = after.find('*').filter(|end| {
            let inner = &after[..*end];
            inner.starts_with(char::is_alphabetic) && inner.ends_with(char::is_alphanumeric)
        });
        words.push_str(&rest[..at]);
        match end {
            Some(end) => {
                words.push_str(&after[..end]);
                rest = &after[end + 1..];
            }
            None => {
                words.push('*');
                rest = after;
            }
        }
    }
    words + rest
}

/// Splits a line at its first link: the text before, its label, where it leads, the text after.
fn link(line: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = line.find("](")?;
    let start = line[..middle].rfind('[')?;
    let end = middle + line[middle..].find(')')?;
    Some((&line[..start], &line[start + 1..middle], &line[middle + 2..end], &line[end + 1..]))
}

/// Returns a text that roff prints as it is.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_a_page() {
        let text = "# Load\n\nA `word`, **bold** and *more*, `*.a`, [names](../guide/names.md#x) and\n[more](results.md).\n\n\
                    ## What it is\n\n- one\n  two\n\n| a | b |\n| --- | --- |\n| `-x` | text |\n\n\
                    ```\n.so -x\n```\n";
        let page = to_page(&GuideSource { folder: "guide", topic: "load", text });
        let expected = ".SH NAME\neyas\\-guide\\-load \\- Load\n.SH DESCRIPTION\n.PP\nA word, bold and more, *.a, names \
                        (eyas\\-guide\\-names(7)) and\nmore.\n.SH WHAT IT IS\n.IP \\(bu 2\none\ntwo\n.PP\n\\fIa | b\\fR\n\
                        .TP\n\\-x\n\\&text\n.PP\n.nf\n\\&.so \\-x\n.fi\n";
        assert_eq!(page.split_once('\n').expect("a title").1, expected);
    }

    #[test]
    fn no_page_refers_to_a_file_that_is_not_installed() {
        for (name, page) in all() {
            let page = String::from_utf8(page).expect("text");
            assert!(!page.contains("docs/") && !page.contains(".md)"), "{name}");
        }
    }
}
