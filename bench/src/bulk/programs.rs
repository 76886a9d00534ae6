//! The programs that are measured, and how they are built.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::programs::{build_ours, cache, our_program};
use crate::run::{check, command, output, works, workspace};
use crate::versions::{self, Versions};

/// The paths of the programs.
pub(super) struct Programs {
    eyas: PathBuf,
    /// The client that uses the C library.
    pub(super) c: PathBuf,
    /// The directory that contains the Python package.
    packages: PathBuf,
    /// Whether curl is built with HTTP/3.
    pub(super) curl_has_http3: bool,
}

impl Programs {
    /// Builds what is measured.
    pub(super) fn install() -> Result<(), String> {
        for program in ["curl", "strace"] {
            if !works(program, &["--version"]) {
                return Err(format!("{program} is not installed"));
            }
        }
        let packages = ["-p", "eyas-cli", "-p", "eyas-capi", "-p", "eyas-python"];
        check(build_ours().args(packages))?;
        let programs = Self::find();
        programs.compile_c()?;
        programs.install_package()
    }

    /// Returns where everything is.
    pub(super) fn find() -> Self {
        let features = output(&mut command("curl", &["--version"])).unwrap_or_default();
        Self {
            eyas: our_program("eyas"),
            c: cache().join("doors/read"),
            packages: cache().join("doors/python"),
            curl_has_http3: features.contains("HTTP3"),
        }
    }

    fn compile_c(&self) -> Result<(), String> {
        let library = our_program("libeyas.so");
        let directory = library.parent().unwrap_or(&library).to_string_lossy();
        make_directory(&cache().join("doors"))?;
        let mut cc = command("cc", &["-std=c11", "-O2", "-Wall", "-Werror", "-I"]);
        cc.arg("crates/capi/include").arg("bench/doors/read.c").arg("-o").arg(&self.c);
        check(cc.args([format!("-L{directory}"), format!("-Wl,-rpath,{directory}")]).arg("-leyas"))
    }

    /// Puts the package together as the wheel does, which would also contain the command.
    fn install_package(&self) -> Result<(), String> {
        make_directory(&self.packages)?;
        let package = workspace().join("bindings/python/python/eyas");
        check(command("cp", &["-r"]).arg(package).arg(&self.packages))?;
        let module = self.packages.join("eyas/_native.abi3.so");
        fs::copy(our_program("libeyas_python.so"), &module)
            .map(|_| ())
            .map_err(|error| format!("{module:?}: {error}"))
    }

    /// Returns a command that runs eyas with these arguments.
    pub(super) fn eyas(&self, args: &[&str]) -> Command {
        command(&self.eyas.to_string_lossy(), args)
    }

    /// Returns a command that runs a client of the Python package.
    pub(super) fn python(&self, args: &[&str]) -> Command {
        let mut python = command("python3", &["bench/doors/read.py"]);
        python.args(args).env("PYTHONPATH", &self.packages);
        python
    }

    /// Returns the versions of what is measured.
    pub(super) fn versions(&self) -> Result<Versions, String> {
        let ours = ["eyas-http", "eyas-h3", "hyper", "h2", "quinn", "rustls", "tokio"];
        let curl = output(&mut command("curl", &["--version"]))?;
        let curl = curl.lines().next().unwrap_or_default().trim_start_matches("curl ").to_owned();
        Ok(Versions(vec![("eyas", versions::locked("Cargo.lock", &ours)?), ("curl", curl)]))
    }
}

fn make_directory(directory: &std::path::Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{directory:?}: {error}"))
}
