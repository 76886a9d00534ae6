//! The programs that are measured: where they are, how they are installed and started.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::arena::{Arena, Place, WELL, WITHOUT_IPV6, WITHOUT_UDP};
use super::rival::Rival;
use super::versions::{self, Versions};
use crate::run::{check, command, works, workspace};

/// Release, with what the rivals in Rust have in their own release profiles.
const OUR_PROFILE: &str = "measured";
/// What the tables call hyper and quinn without anything of eyas.
pub(super) const PLAIN: &str = "plain hyper, quinn";
/// What they call the same with noq in the place of quinn.
pub(super) const NOQ: &str = "plain noq";
/// What eyas is built on and `plain` as well: a ratio of the two is fair where these are the same.
const FOUNDATION: [&str; 6] = ["hyper", "h2", "quinn", "h3", "rustls", "tokio"];

/// These print what the interpreter has of the rivals from PyPI.
const LIBCURL: &str = "import pycurl; print(pycurl.version.split('libcurl/')[1])";
pub(super) const NIQUESTS: &str =
    "import niquests as it, qh3; print(it.__version__, 'qh3', qh3.__version__)";

/// Where each program is, once installed.
pub(super) struct Programs {
    /// The server.
    pub(super) caddy: PathBuf,
    /// An interpreter with the rivals from PyPI.
    pub(super) python: PathBuf,
    eyas: PathBuf,
    reqwest: PathBuf,
    plain: PathBuf,
    noq: PathBuf,
    /// The client in Go.
    pub(super) go: PathBuf,
}

impl Programs {
    /// Installs or builds whatever is not up to date.
    pub(super) fn install() -> Result<(), String> {
        let programs = Self::installed();
        programs.install_caddy()?;
        programs.install_python()?;
        check(build_ours().args(["-p", "eyas-http", "--example", "ttfb"]))?;
        for name in ["reqwest", "plain", "noq"] {
            let manifest = Path::new("bench/rivals").join(name).join("Cargo.toml");
            // reqwest has HTTP/3 for those who say that they know it to be unstable.
            let mut build = build(&manifest, &cache().join("target"));
            check(build.env("RUSTFLAGS", "--cfg reqwest_unstable"))?;
        }
        programs.install_go()
    }

    /// The client in Go.
    pub(super) fn install_go(&self) -> Result<(), String> {
        if works("go", &["version"]) {
            let directory = workspace().join("bench/rivals/go");
            let mut build = command("go", &["build", "-o"]);
            check(build.arg(&self.go).arg(".").current_dir(directory))
        } else {
            println!("go is not installed: its client is left out");
            Ok(())
        }
    }

    /// Where everything is.
    pub(super) fn installed() -> Self {
        let peers = std::env::var_os("EYAS_PEERS")
            .map_or_else(|| workspace().join("interop/.peers"), PathBuf::from);
        let rivals = cache().join("target/release");
        Self {
            caddy: peers.join("bin/caddy"),
            python: cache().join("venv/bin/python"),
            eyas: our_example("ttfb"),
            reqwest: rivals.join("rival-reqwest"),
            plain: rivals.join("rival-plain"),
            noq: rivals.join("rival-noq"),
            go: cache().join("rival-go"),
        }
    }

    /// The server.
    pub(super) fn install_caddy(&self) -> Result<(), String> {
        check(&mut command("interop/install", &["caddy"]))?;
        if self.caddy.exists() { Ok(()) } else { Err("Caddy could not be installed".into()) }
    }

    /// The interpreter, which also makes the certificates.
    pub(super) fn install_python(&self) -> Result<(), String> {
        if !self.python.exists() {
            check(command("python3", &["-m", "venv"]).arg(cache().join("venv")))?;
        }
        let requirements = "bench/rivals/requirements.txt";
        let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        check(command(&self.python.to_string_lossy(), &words).arg(requirements))
    }

    /// Starts every client.
    pub(super) fn start_all(&self, arena: &Arena) -> Result<Vec<Rival>, String> {
        let mut rivals = vec![self.start_eyas(arena)?];
        for (name, script) in [("libcurl", "libcurl_rounds.py"), ("niquests", "niquests_rounds.py")]
        {
            let mut command = Command::new(&self.python);
            command.arg(workspace().join("bench/rivals").join(script));
            rivals.push(start(arena, name, command)?);
        }
        rivals.push(start(arena, "reqwest", Command::new(&self.reqwest))?);
        if self.go.exists() {
            rivals.push(start(arena, "Go", Command::new(&self.go))?);
        }
        rivals.push(self.start_plain(arena)?);
        rivals.push(self.start_noq(arena)?);
        Ok(rivals)
    }

    /// What is measured, as the programs themselves and the lock files they were built by say.
    pub(super) fn versions(&self) -> Result<Versions, String> {
        let python = |expression| versions::python(&self.python, expression);
        let lock = |rival: &str| format!("bench/rivals/{rival}/Cargo.lock");
        let mut all = vec![
            ("eyas", versions::locked("Cargo.lock", &[&["eyas-http"][..], &FOUNDATION].concat())?),
            ("libcurl", python(LIBCURL)?),
            ("niquests", python(NIQUESTS)?),
            ("reqwest", versions::locked(&lock("reqwest"), &["reqwest", "hyper", "quinn", "h3"])?),
        ];
        if self.go.exists() {
            all.push(("Go", versions::modules(&self.go, &["github.com/quic-go/quic-go"])?));
        }
        all.push((PLAIN, versions::locked(&lock("plain"), &FOUNDATION)?));
        all.push((NOQ, versions::locked(&lock("noq"), &["noq", "h3", "rustls", "tokio"])?));
        all.push(("Caddy, the server", self.caddy_version()));
        Ok(Versions(all))
    }

    /// What the interpreter has of libcurl.
    pub(super) fn libcurl_version(&self) -> Result<String, String> {
        versions::python(&self.python, LIBCURL)
    }

    /// Caddy itself knows its version only where its own release process built it.
    pub(super) fn caddy_version(&self) -> String {
        let caddy = versions::modules(&self.caddy, &["github.com/caddyserver/caddy/v2"]);
        caddy.unwrap_or_else(|_| "unknown".into())
    }

    /// Starts the client of eyas-http.
    pub(super) fn start_eyas(&self, arena: &Arena) -> Result<Rival, String> {
        start(arena, "eyas", Command::new(&self.eyas))
    }

    /// Starts plain hyper and quinn.
    pub(super) fn start_plain(&self, arena: &Arena) -> Result<Rival, String> {
        start(arena, PLAIN, Command::new(&self.plain))
    }

    /// Starts the same with noq in the place of quinn: over TCP there is no difference.
    pub(super) fn start_noq(&self, arena: &Arena) -> Result<Rival, String> {
        Ok(start(arena, NOQ, Command::new(&self.noq))?.only("h3"))
    }
}

/// Every client is told whom to trust, and the addresses of every place.
pub(super) fn start(
    arena: &Arena,
    name: &'static str,
    mut command: Command,
) -> Result<Rival, String> {
    let places = [&WELL, &WITHOUT_UDP, &WITHOUT_IPV6].map(Place::resolve);
    command.arg(arena.authority()).args(places);
    Rival::start(name, command)
}

/// A build of the workspace, optimised as the rivals are; what is built is still to be said.
pub(super) fn build_ours() -> Command {
    let mut cargo = command("cargo", &["build", "--profile", OUR_PROFILE, "--target-dir"]);
    cargo.arg(our_target());
    cargo
}

/// Where such a build leaves an example.
pub(super) fn our_example(name: &str) -> PathBuf {
    our_target().join(OUR_PROFILE).join("examples").join(name)
}

/// Where it leaves a program.
pub(super) fn our_program(name: &str) -> PathBuf {
    our_target().join(OUR_PROFILE).join(name)
}

/// A build of a package of Rust that is not in the workspace.
pub(super) fn build(manifest: &Path, target: &Path) -> Command {
    let mut cargo = command("cargo", &["build", "--release", "--manifest-path"]);
    cargo.arg(manifest).arg("--target-dir").arg(target);
    cargo
}

/// Where the workspace's own binaries are built.
pub(super) fn our_target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), |directory| workspace().join(directory))
}

/// What git ignores and a second run finds again.
pub(super) fn cache() -> PathBuf {
    workspace().join("bench/.cache")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_in_rust_is_optimised_alike() {
        let rivals = ["reqwest", "plain", "noq", "sctp"].map(|name| format!("bench/rivals/{name}"));
        let outside = rivals.iter().map(String::as_str).chain(["bench/simulation"]);
        let manifests = outside.map(|directory| (format!("{directory}/Cargo.toml"), "release"));
        for (manifest, profile) in manifests.chain([("Cargo.toml".to_owned(), OUR_PROFILE)]) {
            let text = std::fs::read_to_string(workspace().join(&manifest)).unwrap();
            let (_, said) = text.split_once(&format!("[profile.{profile}]\n")).expect(&manifest);
            let said = said.split("\n[").next().unwrap();
            for line in ["lto = \"fat\"", "codegen-units = 1"] {
                assert!(said.lines().any(|it| it == line), "{manifest} lacks {line}");
            }
        }
    }
}
