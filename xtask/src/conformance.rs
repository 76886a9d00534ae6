//! `cargo xtask conformance`: the tables of what documents require, and of attacks, with the test for each row.
//!
//! A row stands in a comment above its test, after the manner of [duvet](https://github.com/awslabs/duvet):
//!
//! ```text
//! //= rfc9260 §8.5.1 B
//! //# the T bit: ABORT with our own tag ends the association
//! //= otherwise: not from an address that is unverified
//! #[test]
//! ```
//!
//! Rows without a test are in the file of their document below `docs/reference/conformance/`, together
//! with its title.

pub(crate) mod annotation;
pub(crate) mod document;
mod page;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use self::document::{Document, Row};
use crate::finding::Finding;
use crate::run::{tracked_files, workspace};

const USAGE: &str = "\
cargo xtask conformance [DOCUMENT] [--into FOLDER]

  without a DOCUMENT the list of documents, with the number of rows of each; with --into all
  pages, as Markdown, in this folder";

/// Every document with its rows.
pub(crate) struct Tables {
    /// The documents, by their names.
    pub(crate) documents: BTreeMap<String, Document>,
    /// Their rows: of one document in the order of its page.
    pub(crate) rows: Vec<Row>,
    /// Comments and files that cannot be read.
    pub(crate) findings: Vec<Finding>,
}

impl Tables {
    /// Reads the documents and the comments of these files, which are given with their paths.
    pub(crate) fn parse(files: &BTreeMap<String, String>) -> Self {
        let mut tables =
            Self { documents: BTreeMap::new(), rows: Vec::new(), findings: Vec::new() };
        for (file, text) in files {
            if let Some(name) = document::name(file) {
                match Document::parse(file, text) {
                    Ok((document, rows)) => {
                        tables.documents.insert(name.to_owned(), document);
                        tables.rows.extend(rows);
                    }
                    Err(message) => tables.findings.push(Finding::error(file, 0, message)),
                }
            } else {
                let (rows, findings) = annotation::parse(file, text);
                tables.rows.extend(rows);
                tables.findings.extend(findings);
            }
        }
        let documents = &tables.documents;
        tables.rows.sort_by_cached_key(|row| {
            let heading = documents.get(&row.document).and_then(|document| document.heading(row));
            (
                row.document.clone(),
                heading,
                document::order(&row.section),
                row.file.clone(),
                row.line,
            )
        });
        tables
    }

    /// Returns the rows of a document.
    fn rows_of(&self, name: &str) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.document == name).collect()
    }
}

/// Returns whether a file can have comments with rows, or is a file of a document.
pub(crate) fn is_read(file: &str) -> bool {
    document::name(file).is_some() || annotation::is_read(file)
}

/// Prints or writes the pages.
pub(crate) fn main(options: &[&str]) -> Result<(), String> {
    let (name, folder) = match options {
        [] => (None, None),
        ["--into", folder] => (None, Some(Path::new(folder))),
        [name] if !name.starts_with('-') => (Some(*name), None),
        [name, "--into", folder] => (Some(*name), Some(Path::new(folder))),
        _ => return Err(format!("no such option\n\n{USAGE}")),
    };
    let mut files = BTreeMap::new();
    for file in tracked_files()?.into_iter().filter(|file| is_read(file)) {
        if let Ok(text) = fs::read_to_string(workspace().join(&file)) {
            files.insert(file, text);
        }
    }
    let tables = Tables::parse(&files);
    let mut pages = BTreeMap::new();
    for (known, document) in &tables.documents {
        let programs = if document.attacks { page::programs(&files) } else { String::new() };
        pages.insert(
            known.as_str(),
            page::page(known, document, &tables.rows_of(known)) + &programs,
        );
    }
    let index = page::index(&tables);
    if let Some(name) = name {
        if !pages.contains_key(name) {
            let known: Vec<&str> = pages.keys().copied().collect();
            return Err(format!("no document {name}; there are {}", known.join(", ")));
        }
        pages.retain(|known, _| *known == name);
    }
    match folder {
        Some(folder) => {
            write(folder, &pages, name.is_none().then_some(&index))?;
            println!("written to {}", folder.display());
        }
        None => print!("{}", name.map_or(&index, |name| &pages[name])),
    }
    Ok(())
}

fn write(
    folder: &Path,
    pages: &BTreeMap<&str, String>,
    index: Option<&String>,
) -> Result<(), String> {
    let failure = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| failure(folder, error))?;
    for (name, text) in
        pages.iter().map(|(name, text)| (*name, text)).chain(index.map(|text| ("index", text)))
    {
        let path = folder.join(format!("{name}.md"));
        fs::write(&path, text).map_err(|error| failure(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns tables of one document with two comments, of which the second comes first on the page.
    fn tables() -> Tables {
        let document = "title = \"RFC 1, hosts\"\n[[row]]\nsection = \"§1\"\ntext = \"later\"\n\
                        not-met = \"nobody asked\"\n";
        let source = "//= rfc1 §10\n//# ends\n#[test]\nfn ends() {}\n\n//= rfc1 §9.1\n//# begins\n\
                      #[test]\nfn begins() {}\n";
        let files =
            [("docs/reference/conformance/rfc1.toml", document), ("crates/a/src/b.rs", source)];
        Tables::parse(&files.map(|(file, text)| (file.to_owned(), text.to_owned())).into())
    }

    #[test]
    fn rows_of_tests_and_files_are_one_table_in_the_order_of_sections() {
        let tables = tables();
        assert_eq!(tables.findings, []);
        let sections: Vec<&str> =
            tables.rows_of("rfc1").iter().map(|row| row.section.as_str()).collect();
        assert_eq!(sections, ["§1", "§9.1", "§10"]);
        let index = page::index(&tables);
        assert!(index.contains("| rfc1 | RFC 1, hosts | 2 | 0 | 1 | 0 |"), "{index}");
    }
}
