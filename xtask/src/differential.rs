//! `cargo xtask differential`: compares the decisions of races in random worlds, in this tree and in
//! another revision of it.
//!
//! `crates/race/examples/worlds.rs` of this tree is built against both, and what they print is
//! compared world by world. Differences are grouped by the cause of the first one; differences without a
//! known cause count as unexplained, and make the command fail.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};

use crate::run::{check, command, output, workspace};

mod cause;

use cause::Cause;

const GENERATOR: &str = "crates/race/examples/worlds.rs";

/// The decisions of one revision in one world.
pub(crate) struct World {
    /// Its number and its description.
    pub(crate) title: String,
    /// The decisions, with their times.
    pub(crate) lines: Vec<String>,
}

/// The number of worlds with each cause, their kind where that is informative, and an example.
type Found = BTreeMap<(Cause, String), (u64, String)>;

struct Options {
    base: String,
    worlds: u64,
    from: u64,
}

/// Compares the two revisions and prints a table.
pub(crate) fn main(args: &[&str]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let root = workspace();
    let revision = output(&mut command("git", &["rev-parse", "--short=12", &options.base]))?;
    let base = checked_out(&root, revision.trim())?;
    let mut before = Reader::start(&program(&base, "worlds-before", &root)?, &options)?;
    let mut after = Reader::start(&program(&root, "worlds-after", &root)?, &options)?;
    let mut found = Found::new();
    let (mut worlds, mut equal) = (0_u64, 0_u64);
    while let (Some(old), Some(new)) = (before.world()?, after.world()?) {
        if old.title != new.title {
            return Err(format!("the worlds differ: `{}`, `{}`", old.title, new.title));
        }
        worlds += 1;
        match cause::of(&old, &new) {
            None => equal += 1,
            Some((cause, difference)) => {
                let example = format!("{}: {difference}", old.title);
                let kind = match cause {
                    Cause::Plan => old.title.split(' ').nth(2).unwrap_or_default(),
                    _ => "",
                };
                found.entry((cause, kind.to_owned())).or_insert((0, example)).0 += 1;
            }
        }
    }
    if worlds != options.worlds {
        return Err(format!("only {worlds} of {} worlds were completed", options.worlds));
    }
    print(revision.trim(), worlds, equal, &found);
    match found.get(&(Cause::Unexplained, String::new())) {
        Some((number, _)) => Err(format!("{number} worlds differ without a known cause")),
        None => Ok(()),
    }
}

fn print(base: &str, worlds: u64, equal: u64, found: &Found) {
    let name = |(cause, kind): &(Cause, String)| match kind.as_str() {
        "" => cause.text().to_owned(),
        kind => format!("{}: {kind}", cause.text()),
    };
    println!("{worlds} worlds, {equal} decided as by {base}\n");
    println!("| first difference | worlds |\n| --- | ---: |");
    for (cause, (number, _)) in found {
        println!("| {} | {number} |", name(cause));
    }
    println!();
    for (cause, (_, example)) in found {
        println!("{}\n  {example}", name(cause));
    }
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self { base: String::new(), worlds: 100_000, from: 0 };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            let number = || value.parse().map_err(|error| format!("{arg} {value}: {error}"));
            match *arg {
                "--base" => options.base = (*value).to_owned(),
                "--worlds" => options.worlds = number()?,
                "--from" => options.from = number()?,
                _ => return Err(format!("no such option: {arg}")),
            }
        }
        match options.base.is_empty() {
            true => Err("--base REVISION is missing: the revision to compare with".into()),
            false => Ok(options),
        }
    }
}

/// Checks out this revision with the current generator, and returns its directory.
fn checked_out(root: &Path, revision: &str) -> Result<PathBuf, String> {
    let tree = root.join("target/differential").join(revision);
    let show = |error: std::io::Error| format!("{}: {error}", tree.display());
    if !tree.join("Cargo.toml").exists() {
        std::fs::create_dir_all(&tree).map_err(show)?;
        let archive = tree.with_extension("tar");
        let archive = archive.to_string_lossy();
        check(&mut command("git", &["archive", "--output", &archive, revision]))?;
        check(&mut command("tar", &["-xf", &archive, "-C", &tree.to_string_lossy()]))?;
        std::fs::remove_file(&*archive).map_err(show)?;
    }
    let copy = tree.join(GENERATOR);
    std::fs::create_dir_all(copy.parent().unwrap_or(&tree)).map_err(show)?;
    std::fs::copy(root.join(GENERATOR), copy).map_err(show)?;
    Ok(tree)
}

/// Builds the generator against the crate of this tree, and returns its path. Both builds share dependencies.
fn program(tree: &Path, name: &str, root: &Path) -> Result<PathBuf, String> {
    let target = root.join("target/differential/build");
    let manifest = tree.join("Cargo.toml");
    // Cargo considers both crates to be the same one, and the other build to be up to date.
    let clean = ["clean", "--release", "-p", "eyas-race"];
    let build = ["build", "--release", "-p", "eyas-race", "--example", "worlds"];
    for args in [&clean[..], &build] {
        let mut cargo = command("cargo", args);
        cargo.arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(&target);
        check(&mut cargo)?;
    }
    let program = root.join("target/differential").join(name);
    std::fs::copy(target.join("release/examples/worlds"), &program)
        .map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(program)
}

/// Reads what a generator prints, one world at a time.
struct Reader {
    lines: Lines<BufReader<ChildStdout>>,
    /// The title of the next world.
    title: Option<String>,
}

impl Reader {
    fn start(program: &Path, options: &Options) -> Result<Self, String> {
        let numbers = [options.from.to_string(), options.worlds.to_string()];
        let mut child = command(&program.to_string_lossy(), &numbers)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let out = child.stdout.take().ok_or("the generator has no output")?;
        let mut reader = Self { lines: BufReader::new(out).lines(), title: None };
        reader.title = reader.line()?;
        Ok(reader)
    }

    fn line(&mut self) -> Result<Option<String>, String> {
        self.lines.next().transpose().map_err(|error| format!("the generator: {error}"))
    }

    fn world(&mut self) -> Result<Option<World>, String> {
        let Some(title) = self.title.take() else { return Ok(None) };
        let mut lines = Vec::new();
        while let Some(line) = self.line()? {
            if line.starts_with("world ") {
                self.title = Some(line);
                break;
            }
            lines.push(line);
        }
        Ok(Some(World { title, lines }))
    }
}
