//! Writes tables between the marks of a page; describes the machine and the commit.

use std::fs;

use crate::run::{command, output, workspace};

/// The page with all tables.
const PAGE: &str = "docs/results/benchmarks.md";
/// The page with a short version of one of them.
pub(super) const README: &str = "README.md";

/// Prints a table and, unless it is a dry run, puts it between the marks of that name.
pub(super) fn publish(name: &str, table: &str, dry: bool) -> Result<(), String> {
    publish_in(PAGE, name, table, dry)
}

/// The same for another page of this repository.
pub(super) fn publish_in(page: &str, name: &str, table: &str, dry: bool) -> Result<(), String> {
    println!("\n{table}");
    if dry {
        return Ok(());
    }
    let path = workspace().join(page);
    let text = fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
    let text = replaced(&text, name, table).map_err(|error| format!("{page} {error}"))?;
    fs::write(&path, text).map_err(|error| format!("{page}: {error}"))?;
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
pub(super) fn circumstances(line: &str) -> String {
    let run = |program: &str, args: &[&str]| {
        output(&mut command(program, args)).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    let commit = run("git", &["rev-parse", "--short=12", "HEAD"]);
    // Tables written by an earlier benchmark do not affect measurements.
    let pages = [PAGE, README, super::lab::PAGE].map(|page| format!(":(exclude){page}"));
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

    #[test]
    fn only_content_between_the_marks_is_replaced() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n";
        let expected = "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n";
        assert_eq!(replaced(page, "x", "new\n").unwrap(), expected);
        assert_eq!(replaced(expected, "x", "new").unwrap(), expected);
    }

    #[test]
    fn the_pages_have_their_marks() {
        use super::super::lab;
        let marks = ["bulk", "http", "instructions", "python", "relay", "sctp", "sim"]
            .map(|name| (PAGE, name));
        for (page, name) in marks.into_iter().chain([(README, "http"), (lab::PAGE, lab::MARK)]) {
            let text = fs::read_to_string(workspace().join(page)).unwrap();
            assert!(replaced(&text, name, "new").is_ok(), "{page}: {name}");
        }
    }

    #[test]
    fn missing_marks_are_named() {
        assert!(replaced("a\n", "x", "new").unwrap_err().contains("<!-- x -->"));
        assert!(replaced("<!-- x -->\n", "x", "new").unwrap_err().contains("<!-- /x -->"));
    }
}
