//! The versions that were measured: reported by the programs, and for programs in Rust read from the
//! lock files that they were built with, because a crate does not report its version at run time.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::run::{command, output, workspace};

/// The name of each program in the tables, and its version with those of its main dependencies.
pub(crate) struct Versions(pub(crate) Vec<(&'static str, String)>);

impl Versions {
    /// Returns a table with one row for each program.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from("| program | versions |\n| --- | --- |\n");
        for (name, versions) in &self.0 {
            let _ = writeln!(text, "| {name} | {versions} |");
        }
        text
    }

    /// Returns the version of a program itself.
    pub(crate) fn of(&self, name: &str) -> Option<&str> {
        let (_, versions) = self.0.iter().find(|(program, _)| *program == name)?;
        let mut words = versions.split_whitespace();
        let version = words.find(|word| word.starts_with(|sign: char| sign.is_ascii_digit()))?;
        Some(version.trim_end_matches(','))
    }
}

/// Returns the versions of some crates in a lock file: `hyper 1.2.3, quinn 0.11.1`. Several versions of
/// a crate are an error, because choosing one would be a guess.
pub(crate) fn locked(lock: &str, crates: &[&str]) -> Result<String, String> {
    let text =
        fs::read_to_string(workspace().join(lock)).map_err(|error| format!("{lock}: {error}"))?;
    let found = crates.iter().map(|name| {
        let versions = in_lock(&text, name);
        match versions.as_slice() {
            [version] => Ok(format!("{name} {version}")),
            _ => Err(format!("{lock} has {} versions of {name}", versions.len())),
        }
    });
    found.collect::<Result<Vec<_>, _>>().map(|found| found.join(", "))
}

/// Returns the versions of a package: its entries begin with a line for the name and one for the version.
fn in_lock<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!("name = \"{name}\"");
    let lines = text.lines().zip(text.lines().skip(1));
    let versions = lines
        .filter(|(line, _)| *line == head)
        .filter_map(|(_, version)| version.strip_prefix("version = \"")?.strip_suffix('"'));
    versions.collect()
}

/// Returns what a program in Python prints about installed packages.
pub(crate) fn python(python: &Path, program: &str) -> Result<String, String> {
    let output = output(&mut command(&python.to_string_lossy(), &["-c", program]))?;
    Ok(output.trim().to_owned())
}

/// Returns the versions of some modules in a program in Go, and of Go itself.
pub(crate) fn modules(program: &Path, modules: &[&str]) -> Result<String, String> {
    let output = output(command("go", &["version", "-m"]).arg(program))?;
    in_program(&output, modules)
        .ok_or_else(|| format!("cannot parse the build information of {program:?}: {output}"))
}

/// Parses build information: the first line is `PROGRAM: goVERSION`, those of modules are `dep NAME
/// vVERSION HASH`, with `mod` for the program's own. The name of a module may end with its major version.
fn in_program(output: &str, modules: &[&str]) -> Option<String> {
    let (_, go) = output.lines().next()?.rsplit_once(": go")?;
    let mut found = Vec::new();
    for module in modules {
        let mut lines = output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(
            |words| matches!(words.as_slice(), ["dep" | "mod", name, ..] if name == module),
        )?;
        let is_major =
            |part: &&str| part.strip_prefix('v').is_some_and(|it| it.parse::<u8>().is_ok());
        let name = module.rsplit('/').find(|part| !is_major(part))?;
        found.push(format!("{name} {}", line.get(2)?.trim_start_matches('v')));
    }
    found.push(format!("Go {go}"));
    Some(found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_a_lock_file() {
        let text = "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\n\
                    [[package]]\nname = \"ab\"\nversion = \"4.5.6\"\n";
        assert_eq!(in_lock(text, "a"), ["1.2.3"]);
        assert_eq!(in_lock(text, "b"), [""; 0]);
        let workspaces = locked("Cargo.lock", &["eyas", "quinn"]).unwrap();
        assert!(workspaces.starts_with("eyas 0."), "{workspaces}");
        assert!(locked("Cargo.lock", &["no-such-crate"]).unwrap_err().contains("0 versions"));
    }

    #[test]
    fn versions_are_read_from_a_go_program() {
        let output = "/x/rival: go1.26.8\n\tpath\tx\n\tmod\tx\t(devel)\t\n\
                    \tdep\tgithub.com/pion/sctp\tv1.12.1\th1:abc=\n";
        let found = in_program(output, &["github.com/pion/sctp"]).unwrap();
        assert_eq!(found, "sctp 1.12.1, Go 1.26.8");
        assert_eq!(in_program(output, &["github.com/quic-go/quic-go"]), None);
    }

    #[test]
    fn a_go_program_names_its_own_version() {
        let output = "caddy: go1.26.8\n\tmod\tgithub.com/caddyserver/caddy/v2\tv2.11.9\th1:abc=\n";
        let found = in_program(output, &["github.com/caddyserver/caddy/v2"]);
        assert_eq!(found.as_deref(), Some("caddy 2.11.9, Go 1.26.8"));
    }

    #[test]
    fn the_version_of_a_program_is_the_first_number() {
        let versions = Versions(vec![
            ("libcurl", "8.23.0 OpenSSL/3.6.5".into()),
            ("reqwest", "reqwest 0.13.5, hyper 1.12.0".into()),
        ]);
        assert_eq!(versions.of("libcurl"), Some("8.23.0"));
        assert_eq!(versions.of("reqwest"), Some("0.13.5"));
        assert_eq!(versions.of("unknown"), None);
        assert!(versions.table().ends_with("| reqwest | reqwest 0.13.5, hyper 1.12.0 |\n"));
    }
}
