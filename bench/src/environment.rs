//! Environments for programs in Python, and the wheel of our own package.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{check, command, target};

/// A virtual environment.
pub(crate) struct PythonEnvironment {
    interpreter: PathBuf,
}

impl PythonEnvironment {
    /// Creates it in this directory, unless it is there already.
    pub(crate) fn new(directory: &Path) -> Result<Self, String> {
        let interpreter = directory.join("bin/python");
        if !interpreter.exists() {
            check(command("python3", &["-m", "venv"]).arg(directory))?;
        }
        Ok(Self { interpreter })
    }

    /// Returns the path of its interpreter.
    pub(crate) fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// Runs `pip install` with these arguments.
    pub(crate) fn install(&self, what: &[&str]) -> Result<(), String> {
        let args = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        check(command(&self.interpreter.to_string_lossy(), &args).args(what))
    }

    /// Installs our own wheel, whatever version of it is there.
    pub(crate) fn install_wheel(&self, wheel: &Path) -> Result<(), String> {
        self.install(&["--force-reinstall", "--no-deps", &wheel.to_string_lossy()])
    }
}

/// Builds our wheel; returns `None` where its build tool is not available, which has then been reported.
pub(crate) fn build_wheel() -> Result<Option<PathBuf>, String> {
    let directory = target().join("python/wheels");
    let failure = |error: std::io::Error| format!("{}: {error}", directory.display());
    // One of an earlier build would otherwise be taken for the result.
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(failure)?;
    }
    check(&mut command("cargo", &["xtask", "python", "--build"]))?;
    if !directory.exists() {
        return Ok(None);
    }
    let entries = fs::read_dir(&directory).map_err(failure)?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.find(|path| path.extension().is_some_and(|ending| ending == "whl")))
}
