//! `eyas lab results`: the results of several plans as Markdown.

use std::fs;
use std::path::{Path, PathBuf};

use eyas_lab::report::{NoChapterError, ResultsPage, chapter};
use eyas_lab::results::ResultsDocument;

use super::{read_failure, value};
use crate::failure::{Failure, FailureKind};
use crate::flags::{ColorChoice, LabResultsFlags};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// Prints chapters, or puts them into a page.
pub(super) fn run(flags: &LabResultsFlags) -> Result<(), Failure> {
    let read = |directory: &PathBuf| {
        let document = ResultsDocument::read(directory).map_err(|cause| {
            read_failure(&cause).hint("give the output directories of finished 'eyas lab run's")
        });
        document.map(ResultsDocument::compact)
    };
    let documents: Vec<ResultsDocument> =
        flags.directories.iter().map(read).collect::<Result<_, _>>()?;
    match &flags.into {
        Some(page) => put_into(page, &documents),
        None => print(&documents),
    }
}

fn print(documents: &[ResultsDocument]) -> Result<(), Failure> {
    let of = |document: &ResultsDocument| format!("## {}\n\n{}", document.plan, chapter(document));
    let text: String = documents.iter().map(of).collect();
    let lines: Vec<PaintedLine> =
        text.lines().map(|line| PaintedLine::new().with_span(Paint::Plain, line)).collect();
    output::page(&lines, OutputStyle::of_stdout(ColorChoice::Never))
}

/// Writes compact results beside a page, and the page from all of them.
fn put_into(page: &Path, new: &[ResultsDocument]) -> Result<(), Failure> {
    let beside = page.with_extension("");
    fs::create_dir_all(&beside).map_err(|cause| write_failure(&beside, &cause))?;
    for document in new {
        let path = beside.join(format!("{}.json", document.plan));
        write(&path, &format!("{}\n", value(document)?))?;
    }
    let text = fs::read_to_string(page).map_err(|cause| read_page_failure(page, &cause))?;
    let folder = beside.file_name().map(|name| name.to_string_lossy().into_owned());
    let documents = documents_in(&beside)?;
    let result = ResultsPage::new(&text, &folder.unwrap_or_default(), &documents);
    let result = result.map_err(|NoChapterError { plan }| {
        let message = format!("{} has no chapter for {plan}", page.display());
        let lines = format!("'<!-- {plan}: eyas lab results -->' and '<!-- end -->'");
        Failure::new(FailureKind::Usage, message).hint(format!("add the lines {lines}"))
    })?;
    for (name, content) in &result.files {
        write(&beside.join(name), content)?;
    }
    write(page, &result.text)
}

/// Returns the compact results in a directory, in the order of their names.
fn documents_in(directory: &Path) -> Result<Vec<ResultsDocument>, Failure> {
    let entries = fs::read_dir(directory).map_err(|cause| read_page_failure(directory, &cause))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut paths: Vec<PathBuf> = paths.filter(is_json).collect();
    paths.sort();
    let read =
        |path: &PathBuf| ResultsDocument::read_file(path).map_err(|cause| read_failure(&cause));
    paths.iter().map(read).collect()
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|cause| write_failure(path, &cause))
}

fn write_failure(path: &Path, cause: &std::io::Error) -> Failure {
    Failure::write(&path.display().to_string(), cause)
}

fn read_page_failure(path: &Path, cause: &std::io::Error) -> Failure {
    Failure::read(&path.display().to_string(), cause)
}
