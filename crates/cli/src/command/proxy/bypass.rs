//! Programs that connect past the proxy of `eyas proxy run`, since they do not read its variables: what the user is
//! told before, and after a run without any connection.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Programs that read no variables of a proxy, whatever their version.
const HEEDLESS: [&str; 12] = [
    "ssh",
    "scp",
    "sftp",
    "telnet",
    "nc",
    "ncat",
    "netcat",
    "ping",
    "psql",
    "mysql",
    "redis-cli",
    "mosquitto_pub",
];
/// Programs for Node that have settings of their own for a proxy, which `eyas proxy run` sets.
const WITH_SETTINGS: [&str; 4] = ["npm", "yarn", "pnpm", "corepack"];
/// How much of a file is read for its first line.
const FIRST_LINE: u64 = 256;
/// How long Node may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(2);
/// What helps whatever a program reads.
const REMEDY: &str = "--all-traffic (on Linux) captures its connections all the same";

/// Returns what to tell the user of a program that is known to connect past the proxy.
pub(super) async fn warning(program: &OsStr) -> Option<String> {
    let path = located(program)?;
    let name = path.file_name()?.to_str()?.to_owned();
    if HEEDLESS.contains(&name.as_str()) {
        return Some(format!("{name} reads no proxy variables: {REMEDY}"));
    }
    // npm and its like are links to scripts with longer names.
    let node = node_of(&path).filter(|_| !WITH_SETTINGS.contains(&name.as_str()))?;
    let mut command = Command::new(&node);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let printed = timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
    let version = String::from_utf8(printed.stdout).ok()?;
    let version = version.trim();
    if reads_variables(version)? {
        return None;
    }
    Some(format!(
        "Node {version} reads no proxy variables, as 22.21 and 24.5 do: use a later one, or {REMEDY}"
    ))
}

/// Returns what to tell the user after a run in which no client came.
pub(super) fn unused(program: &OsStr) -> String {
    let name = program.to_string_lossy();
    format!(
        "{name} made no connection through the proxy; if it made others, it does not read the variables: {REMEDY}"
    )
}

/// Returns the file that is run for a program, as the system finds it.
fn located(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_path_buf());
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(path))
        .find(|file| file.is_file())
}

/// Returns the Node that runs this file: itself, or the interpreter in its first line.
fn node_of(file: &Path) -> Option<PathBuf> {
    if file.file_name()? == "node" {
        return Some(file.to_path_buf());
    }
    let mut start = Vec::new();
    File::open(file).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    // `/usr/bin/node`, `/usr/bin/env node` or `/usr/bin/env -S node --option`.
    let mut words =
        std::str::from_utf8(line).ok()?.split_ascii_whitespace().filter(|word| *word != "-S");
    let first = Path::new(words.next()?);
    let interpreter = if first.file_name()? == "env" { Path::new(words.next()?) } else { first };
    if interpreter.file_name()? != "node" {
        return None;
    }
    located(interpreter.as_os_str())
}

/// Returns whether this version of Node, such as `v22.21.0`, heeds `NODE_USE_ENV_PROXY`.
fn reads_variables(version: &str) -> Option<bool> {
    let mut numbers = version.strip_prefix('v')?.split('.').map(str::parse::<u32>);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(match major {
        22 => minor >= 21,
        24 => minor >= 5,
        _ => major > 24,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_of_node_that_read_the_variables_are_known() {
        for (version, expected) in [
            ("v20.20.2", Some(false)),
            ("v22.20.9", Some(false)),
            ("v22.21.0", Some(true)),
            ("v23.11.1", Some(false)),
            ("v24.4.1", Some(false)),
            ("v24.5.0", Some(true)),
            ("v26.0.0-nightly", Some(true)),
            ("v24", None),
            ("", None),
        ] {
            assert_eq!(reads_variables(version), expected, "{version}");
        }
    }

    #[test]
    fn the_interpreter_of_a_script_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tool");
        let node = folder.path().join("node");
        for (first, expected) in [
            (format!("#!{}\n", node.display()), true),
            (format!("#!/usr/bin/env -S {} --no-warnings\n", node.display()), true),
            ("#!/bin/sh\nnode".to_owned(), false),
            ("#!\n".to_owned(), false),
            (String::new(), false),
            ("\u{7f}ELF node".to_owned(), false),
        ] {
            std::fs::write(&file, &first).expect("a file");
            assert_eq!(node_of(&file), expected.then(|| node.clone()), "{first}");
        }
        assert_eq!(node_of(&folder.path().join("missing")), None);
    }

    #[tokio::test]
    async fn a_program_that_reads_no_variables_is_named() {
        let text = warning(OsStr::new("/usr/bin/ssh")).await.expect("it is known");
        assert!(text.starts_with("ssh reads no proxy variables") && text.contains("--all-traffic"));
        assert_eq!(warning(OsStr::new("/usr/bin/curl")).await, None);
        assert_eq!(warning(OsStr::new("no-such-command-anywhere")).await, None);
    }
}
