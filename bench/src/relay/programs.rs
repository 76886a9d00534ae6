//! The programs that are measured, if they are installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{self as clients, build_ours, cache, our_program};
use crate::run::{check, command, output, works, workspace};
use crate::versions::{self, Versions};

/// The paths of the programs.
pub(super) struct Programs {
    eyas: PathBuf,
    pub(super) caddy: Option<PathBuf>,
    /// An interpreter with the packages for creating certificates.
    pub(super) python: PathBuf,
    pub(super) haproxy: Option<PathBuf>,
    pub(super) microsocks: Option<PathBuf>,
    go: PathBuf,
    mptcpize: Option<PathBuf>,
    pub(super) socat: Option<PathBuf>,
    pub(super) sshd: Option<PathBuf>,
    pub(super) wireguard: Option<PathBuf>,
}

/// WireGuard in user space, from its authors.
const WIREGUARD: &str = "golang.zx2c4.com/wireguard";
const WIREGUARD_VERSION: &str = "v0.0.0-20260522210424-ecfc5a8d5446";

impl Programs {
    /// Builds our program, and installs others.
    pub(super) fn install() -> Result<(), String> {
        check(build_ours().args(["-p", "eyas-cli"]))?;
        let others = clients::Programs::installed();
        if let Err(why) = others.install_caddy() {
            println!("Caddy is left out: {why}");
        }
        install_wireguard()?;
        others.install_go()?;
        others.install_python()
    }

    /// Finds the programs. A rival that is not installed is left out, with a message.
    pub(super) fn find() -> Self {
        let others = clients::Programs::installed();
        Self {
            caddy: others.caddy.exists().then_some(others.caddy),
            python: others.python,
            go: others.go,
            eyas: our_program("eyas"),
            haproxy: installed("/usr/sbin/haproxy", "haproxy"),
            microsocks: installed("/usr/bin/microsocks", "microsocks"),
            mptcpize: installed("/usr/bin/mptcpize", "mptcpize"),
            socat: installed("/usr/bin/socat", "socat"),
            sshd: installed("/usr/sbin/sshd", "openssh-server"),
            wireguard: Some(wireguard()).filter(|program| program.exists()),
        }
    }

    /// Returns a command that runs eyas with these arguments.
    pub(super) fn eyas(&self, args: &[&str]) -> Command {
        command(&self.eyas.to_string_lossy(), args)
    }

    /// Returns the command line of a client for [`Rival`](crate::rival::Rival) that trusts this
    /// authority; `None` if it is not installed.
    pub(super) fn client(&self, name: &str, authority: &Path) -> Option<Vec<PathBuf>> {
        let script = |name: &str| workspace().join("bench/rivals").join(name);
        let found = |program: &str| works(program, &["--version"]).then(|| PathBuf::from(program));
        let mut args = match name {
            "libcurl" => vec![self.python.clone(), script("libcurl_rounds.py")],
            "Python" => vec![self.python.clone(), script("urllib_rounds.py")],
            "Go" => vec![Some(&self.go).filter(|program| program.exists())?.clone()],
            "Node" => vec![found("node")?, script("https_rounds.mjs")],
            _ => {
                let allowed = ["run", "--quiet", "--allow-all"].map(PathBuf::from);
                let mut args = vec![found("deno")?];
                args.extend(allowed);
                args.push(script("https_rounds.mjs"));
                args
            }
        };
        args.push(authority.to_owned());
        Some(args)
    }

    /// Returns the program that makes others use MPTCP, and the proxy at the other end.
    pub(super) fn mptcp(&self) -> Option<(&Path, &Path)> {
        Some((self.mptcpize.as_deref()?, self.microsocks.as_deref()?))
    }

    /// Returns the versions of the measured programs.
    pub(super) fn versions(&self) -> Result<Versions, String> {
        let ours = ["eyas-relay", "eyas-sctp", "hyper", "quinn", "rustls", "tokio"];
        let mut all = vec![("eyas", versions::locked("Cargo.lock", &ours)?)];
        if self.caddy.is_some() {
            all.push(("Caddy", clients::Programs::installed().caddy_version()));
        }
        for (name, is_installed, package) in [
            ("HAProxy", self.haproxy.is_some(), "haproxy"),
            ("microsocks", self.microsocks.is_some(), "microsocks"),
            ("mptcpize", self.mptcpize.is_some(), "mptcpize"),
            ("ssh", self.sshd.is_some(), "openssh-server"),
        ] {
            if is_installed {
                let args = ["-W", "-f", "${Version} of Debian", package];
                all.push((name, output(&mut command("dpkg-query", &args))?));
            }
        }
        let rivals = clients::Programs::installed();
        all.push(("libcurl", rivals.libcurl_version()?));
        for (name, program) in [("Node", "node"), ("Deno", "deno")] {
            if works(program, &["--version"]) {
                let output = output(&mut command(program, &["--version"]))?;
                let first = output.lines().next().unwrap_or_default();
                all.push((
                    name,
                    first.trim_start_matches(['v', 'd', 'e', 'n', 'o', ' ']).to_owned(),
                ));
            } else {
                println!("{name} is left out: it is not installed");
            }
        }
        let python = "import platform; print(platform.python_version())";
        all.push(("Python", versions::python(&self.python, python)?));
        if let Some(program) = &self.wireguard {
            all.push(("WireGuard", versions::modules(program, &[WIREGUARD])?));
        }
        Ok(Versions(all))
    }
}

fn wireguard() -> PathBuf {
    cache().join("bin/wireguard")
}

fn install_wireguard() -> Result<(), String> {
    if wireguard().exists() {
        return Ok(());
    }
    if !works("go", &["version"]) {
        println!("WireGuard is left out: go is not installed");
        return Ok(());
    }
    let mut install = command("go", &["install", &format!("{WIREGUARD}@{WIREGUARD_VERSION}")]);
    check(install.env("GOBIN", cache().join("bin")))
}

/// Returns the path of a program from a Debian package, if it is installed.
fn installed(program: &str, package: &str) -> Option<PathBuf> {
    let path = PathBuf::from(program);
    if !path.exists() {
        println!("{package} is left out: {program} does not exist (Debian: {package})");
        return None;
    }
    Some(path)
}
