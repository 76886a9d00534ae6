//! What is measured, as far as it is installed.

use std::path::PathBuf;
use std::process::Command;

use super::super::programs::{self as clients, build_ours, our_program};
use super::super::versions::{self, Versions};
use crate::run::{check, command, output};

/// Where the programs are.
pub(super) struct Programs {
    eyas: PathBuf,
    pub(super) caddy: Option<PathBuf>,
    /// An interpreter that has what certificates are made with.
    pub(super) python: PathBuf,
    pub(super) haproxy: Option<PathBuf>,
    pub(super) microsocks: Option<PathBuf>,
}

impl Programs {
    /// Builds what is ours.
    pub(super) fn install() -> Result<(), String> {
        check(build_ours().args(["-p", "eyas-cli"]))?;
        let others = clients::Programs::installed();
        if let Err(why) = others.install_caddy() {
            println!("Caddy is left out: {why}");
        }
        others.install_python()
    }

    /// Where everything is. A rival that is not installed is left out, aloud.
    pub(super) fn find() -> Self {
        let others = clients::Programs::installed();
        Self {
            caddy: others.caddy.exists().then_some(others.caddy),
            python: others.python,
            eyas: our_program("eyas"),
            haproxy: installed("/usr/sbin/haproxy", "haproxy"),
            microsocks: installed("/usr/bin/microsocks", "microsocks"),
        }
    }

    /// The command, with such words.
    pub(super) fn eyas(&self, words: &[&str]) -> Command {
        command(&self.eyas.to_string_lossy(), words)
    }

    /// What is measured.
    pub(super) fn versions(&self) -> Result<Versions, String> {
        let ours = ["eyas-relay", "eyas-sctp", "hyper", "quinn", "rustls", "tokio"];
        let mut all = vec![("eyas", versions::locked("Cargo.lock", &ours)?)];
        if self.caddy.is_some() {
            all.push(("Caddy", clients::Programs::installed().caddy_version()));
        }
        for (name, there, package) in [
            ("HAProxy", self.haproxy.is_some(), "haproxy"),
            ("microsocks", self.microsocks.is_some(), "microsocks"),
        ] {
            if there {
                let asked = ["-W", "-f", "${Version} of Debian", package];
                all.push((name, output(&mut command("dpkg-query", &asked))?));
            }
        }
        Ok(Versions(all))
    }
}

/// A program of one of Debian's packages.
fn installed(program: &str, package: &str) -> Option<PathBuf> {
    let path = PathBuf::from(program);
    if !path.exists() {
        println!("{package} is left out: {program} is not there (Debian: {package})");
        return None;
    }
    Some(path)
}
