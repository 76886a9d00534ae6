//! Starting programs and reading their output.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the directory of the workspace, whatever directory the command was started in.
///
/// The environment takes precedence: worktrees that share a target directory also share this program.
pub(crate) fn workspace() -> PathBuf {
    let built_in = env!("CARGO_MANIFEST_DIR").into();
    let here: PathBuf = std::env::var_os("CARGO_MANIFEST_DIR").map_or(built_in, PathBuf::from);
    here.parent().unwrap_or(&here).to_path_buf()
}

/// Returns the target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), |directory| workspace().join(directory))
}

/// Returns a command that runs in the workspace and inherits the terminal.
///
/// The variables that `cargo run` sets are removed: with them a nested `cargo` would stay on this
/// toolchain, or rebuild everything.
pub(crate) fn command<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let from_cargo = text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "CARGO"
            || text == "RUSTUP_TOOLCHAIN"
            || text == "LD_LIBRARY_PATH";
        if from_cargo {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command to its end; an error names the command and its exit status.
pub(crate) fn check(command: &mut Command) -> Result<(), String> {
    let line = command_line(command);
    println!("$ {line}");
    let status = command.status().map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
}

/// Runs a command to its end and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let line = command_line(command);
    let output = command
        .stdout(Stdio::piped())
        .output()
        .map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{line}` ended with {}: {}", output.status, stderr.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns whether a program can be started and exits successfully.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    command(program, arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// Returns the files that git tracks or would add.
pub(crate) fn tracked_files() -> Result<Vec<String>, String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let list = output(&mut command("git", &arguments))?;
    let mut files: Vec<String> = list.lines().map(str::to_owned).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Returns what failed with a file, as text.
pub(crate) fn file_error(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
