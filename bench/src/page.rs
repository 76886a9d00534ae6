//! Writes what a benchmark reports: its tables beside the page, the rest between the marks of the page. Describes the
//! machine and the commit.

use std::fs;

use crate::report::Report;
use crate::run::{command, output, workspace};

/// The page with what the tables mean.
const PAGE: &str = "docs/results/benchmarks.md";
/// The directory with the tables of all benchmarks, and its name in links of the page.
const TABLES: &str = "docs/results/benchmarks";
const LINKED: &str = "benchmarks";
/// The page with a short version of one table.
pub(crate) const README: &str = "README.md";

/// Prints a report and, unless it is a dry run, writes its tables as files and puts the rest between the marks of that
/// name.
pub(crate) fn publish(name: &str, text: &str, dry: bool) -> Result<(), String> {
    println!("\n{text}");
    if dry {
        return Ok(());
    }
    let report = Report::parse(text);
    let directory = workspace().join(TABLES).join(name);
    let failure = |error: std::io::Error| format!("{}: {error}", directory.display());
    // Tables that the benchmark does not have any more go.
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(failure)?;
    }
    fs::create_dir_all(&directory).map_err(failure)?;
    for (file, content) in report.files() {
        fs::write(directory.join(file), content).map_err(failure)?;
    }
    println!("written to {TABLES}/{name}");
    replace(PAGE, name, &report.summary(&format!("{LINKED}/{name}")))
}

/// Prints a table and, unless it is a dry run, puts it between the marks of the README.
pub(crate) fn publish_in_readme(name: &str, table: &str, dry: bool) -> Result<(), String> {
    println!("\n{table}");
    if dry { Ok(()) } else { replace(README, name, table) }
}

/// Puts text between the marks of a page of this repository.
fn replace(page: &str, name: &str, text: &str) -> Result<(), String> {
    let path = workspace().join(page);
    let old = fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
    let new = replaced(&old, name, text).map_err(|error| format!("{page} {error}"))?;
    fs::write(&path, new).map_err(|error| format!("{page}: {error}"))?;
    println!("written to {page}");
    Ok(())
}

/// Returns the page with new content between `<!-- NAME -->` and `<!-- /NAME -->`.
fn replaced(page: &str, name: &str, content: &str) -> Result<String, String> {
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let missing = || format!("has no {} … {close}", open.trim());
    let (before, rest) = page.split_once(&open).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&close).ok_or_else(missing)?;
    Ok(format!("{before}{open}{}\n{close}{after}", content.trim_end()))
}

/// Returns one paragraph: the command, the commit, the machine.
pub(crate) fn circumstances(line: &str) -> String {
    let run = |program: &str, args: &[&str]| {
        output(&mut command(program, args)).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    let commit = run("git", &["rev-parse", "--short=12", "HEAD"]);
    // Tables written by an earlier benchmark do not affect measurements.
    let pages = [PAGE, README, TABLES].map(|page| format!(":(exclude){page}"));
    let status = ["status", "--porcelain", "--untracked-files=no", "--", "."];
    let status: Vec<&str> = status.into_iter().chain(pages.iter().map(String::as_str)).collect();
    let changed = !run("git", &status).is_empty();
    let changed = if changed { " with changes" } else { "" };
    let rust = run("rustc", &["--version"]);
    let kernel = run("uname", &["-sr"]);
    let day = run("date", &["-u", "+%Y-%m-%d"]);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = processor();
    format!("`{line}` at {commit}{changed}, {day}; {processor}, {cores} cores, {kernel}; {rust}.\n")
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or("unknown processor").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCHMARKS: [&str; 11] = [
        "bulk",
        "h3",
        "http",
        "instructions",
        "lab",
        "python",
        "relay",
        "sctp",
        "sim",
        "sockets",
        "tls",
    ];

    #[test]
    fn only_content_between_the_marks_is_replaced() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n";
        let expected = "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n";
        assert_eq!(replaced(page, "x", "new\n").unwrap(), expected);
        assert_eq!(replaced(expected, "x", "new").unwrap(), expected);
    }

    #[test]
    fn the_pages_have_their_marks() {
        for (page, name) in
            BENCHMARKS.map(|name| (PAGE, name)).into_iter().chain([(README, "http")])
        {
            let text = fs::read_to_string(workspace().join(page)).unwrap();
            assert!(replaced(&text, name, "new").is_ok(), "{page}: {name}");
        }
    }

    #[test]
    fn the_page_links_to_each_table() {
        let page = fs::read_to_string(workspace().join(PAGE)).unwrap();
        let directories = fs::read_dir(workspace().join(TABLES)).unwrap();
        let mut names: Vec<_> = directories.map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, BENCHMARKS);
        for name in BENCHMARKS {
            for file in fs::read_dir(workspace().join(TABLES).join(name)).unwrap() {
                let file = file.unwrap().file_name().into_string().unwrap();
                let link = format!("({LINKED}/{name}/{file})");
                assert!(page.contains(&link), "{link}");
            }
        }
    }

    #[test]
    fn missing_marks_are_named() {
        assert!(replaced("a\n", "x", "new").unwrap_err().contains("<!-- x -->"));
        assert!(replaced("<!-- x -->\n", "x", "new").unwrap_err().contains("<!-- /x -->"));
    }
}
