//! The tools that packages are made with: from PyPI and the Go module proxy, at fixed versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::platform::OLDEST_GLIBC;
use super::{Release, created};
use crate::run::{check, command, target, workspace};

/// A C compiler and linker for every platform, and what lets cargo use it.
pub(crate) const ZIG_FROM_PYPI: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
/// The maker of wheels, and the root certificates that Mozilla's browsers trust.
const MORE_FROM_PYPI: [&str; 2] = ["maturin==1.16.0", "certifi==2026.10.19.post1"];
/// The maker of packages for Debian and Fedora.
const NFPM: &str = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0";
/// What writes the list of dependencies into each program, where `cargo audit bin`, trivy and others find it.
const AUDITABLE: &str = "cargo-auditable@0.7.7";
/// The profile in `Cargo.toml` of everything that is handed out.
pub(super) const PROFILE: &str = "dist";

/// The tools, installed in a directory of their own.
pub(super) struct DistTools {
    directory: PathBuf,
}

impl DistTools {
    /// Installs the tools of Python that are missing.
    pub(super) fn open(directory: &Path) -> Result<Self, String> {
        let tools = Self { directory: created(directory)? };
        if !tools.python().exists() {
            check(command("python3", &["-m", "venv"]).arg(directory))?;
        }
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        check(tools.run_python(&install).args(ZIG_FROM_PYPI).args(MORE_FROM_PYPI))?;
        Ok(tools)
    }

    /// Returns a command with the interpreter of the tools.
    pub(super) fn run_python(&self, arguments: &[&str]) -> Command {
        command(&self.python().to_string_lossy(), arguments)
    }

    /// Returns the program cargo-zigbuild.
    pub(super) fn zigbuild(&self) -> String {
        self.directory.join("bin/cargo-zigbuild").to_string_lossy().into_owned()
    }

    /// Returns the program that makes packages for Debian and Fedora.
    pub(super) fn nfpm(&self) -> Result<PathBuf, String> {
        let bin = self.directory.join("go");
        let program = bin.join("nfpm");
        if !program.exists() {
            check(command("go", &["install", NFPM]).env("GOBIN", &bin))?;
        }
        Ok(program)
    }

    /// Installs what writes the list of dependencies, if it is missing.
    fn install_auditable(&self) -> Result<(), String> {
        if self.directory.join("bin/cargo-auditable").exists() {
            return Ok(());
        }
        let arguments = ["install", "--quiet", "--locked", "--debug", AUDITABLE, "--root"];
        check(command("cargo", &arguments).arg(&self.directory))
    }

    /// Returns the file with the root certificates.
    pub(super) fn root_certificates(&self) -> Result<PathBuf, String> {
        let path = crate::run::output(&mut self.run_python(&["-m", "certifi"]))?;
        Ok(PathBuf::from(path.trim()))
    }

    fn python(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    /// Has a command find the tools, and makes what it compiles the same in every folder.
    pub(super) fn lend(&self, to: &mut Command, release: &Release) {
        let path = std::env::var("PATH").unwrap_or_default();
        to.env("PATH", format!("{}:{path}", self.directory.join("bin").display()));
        to.env("EYAS_COMMIT", &release.commit);
        to.env("SOURCE_DATE_EPOCH", &release.time);
        to.env("EYAS_PRELOAD_GLIBC", OLDEST_GLIBC);
        to.env("CARGO_INCREMENTAL", "0");
        // What a developer or .ci/run has set for quick builds.
        to.env_remove("CARGO_PROFILE_RELEASE_LTO");
        let registry = std::env::var("CARGO_HOME").unwrap_or_else(|_| {
            let home = std::env::var("HOME").unwrap_or_default();
            format!("{home}/.cargo")
        });
        // In this order: the last one that matches is used.
        let folders = [(registry, "/cargo"), (workspace().to_string_lossy().into_owned(), "/eyas")];
        let remap = folders.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
        to.env("RUSTFLAGS", remap.collect::<Vec<_>>().join(" "));
        let map = folders.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
        to.env("CFLAGS", format!("-g0 {}", map.collect::<Vec<_>>().join(" ")));
    }

    /// Builds a package for a target and returns the directory with the result.
    pub(super) fn build(
        &self,
        release: &Release,
        package: &str,
        triple: &str,
        linked_with: &str,
    ) -> Result<PathBuf, String> {
        // The command also contains a library for programs that are linked with glibc.
        let with_glibc = triple.replace("-musl", "-gnu");
        check(&mut command("rustup", &["target", "add", triple, &with_glibc]))?;
        self.install_auditable()?;
        let arguments =
            ["auditable", "zigbuild", "--locked", "--profile", PROFILE, "--package", package];
        let mut cargo = command("cargo", &arguments);
        cargo.args(["--target", &format!("{triple}{linked_with}")]);
        self.lend(&mut cargo, release);
        check(&mut cargo)?;
        Ok(target().join(triple).join(PROFILE))
    }
}
