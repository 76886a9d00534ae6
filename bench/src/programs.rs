//! The programs that are measured: where they are, and how they are installed and started.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arena::{Arena, HEALTHY, Site, WITHOUT_IPV6, WITHOUT_UDP};
use crate::environment::PythonEnvironment;
use crate::rival::Rival;
use crate::run::{check, command, target, works, workspace};
use crate::versions::{self, Versions};

/// A release profile with the same settings as the release profiles of the rivals in Rust.
const OUR_PROFILE: &str = "measured";
/// The name of hyper and quinn without eyas in the tables.
pub(crate) const PLAIN: &str = "plain hyper, quinn";
/// The same with noq instead of quinn.
pub(crate) const NOQ: &str = "plain noq";
/// eyas with the key exchange that does not hold against quantum computers.
pub(crate) const X25519: &str = "eyas, X25519";
/// What both eyas and `plain` are built on: a ratio of the two is fair if the versions are the same.
const FOUNDATION: [&str; 5] = ["hyper", "h2", "quinn", "rustls", "tokio"];

/// These print the versions of the rivals from PyPI.
const LIBCURL: &str = "import pycurl; print(pycurl.version.split('libcurl/')[1])";
pub(crate) const NIQUESTS: &str =
    "import niquests as it, qh3; print(it.__version__, 'qh3', qh3.__version__)";

/// The paths of the programs, once installed.
pub(crate) struct Programs {
    /// The server.
    pub(crate) caddy: PathBuf,
    /// An interpreter with the rivals from PyPI.
    pub(crate) python: PathBuf,
    eyas: PathBuf,
    reqwest: PathBuf,
    plain: PathBuf,
    noq: PathBuf,
    /// The client in Go.
    pub(crate) go: PathBuf,
}

impl Programs {
    /// Installs or builds whatever is not up to date.
    pub(crate) fn install() -> Result<(), String> {
        let programs = Self::installed();
        programs.install_caddy()?;
        programs.install_python()?;
        check(build_ours().args(["-p", "eyas-http", "--example", "ttfb"]))?;
        for name in ["reqwest", "plain", "noq"] {
            let manifest = Path::new("bench/rivals").join(name).join("Cargo.toml");
            // reqwest only has HTTP/3 with this flag, because it is unstable.
            let mut build = build(&manifest, &cache().join("target"));
            check(build.env("RUSTFLAGS", "--cfg reqwest_unstable"))?;
        }
        programs.install_go()
    }

    /// Installs the client in Go.
    pub(crate) fn install_go(&self) -> Result<(), String> {
        if works("go", &["version"]) {
            let directory = workspace().join("bench/rivals/go");
            let mut build = command("go", &["build", "-o"]);
            check(build.arg(&self.go).arg(".").current_dir(directory))
        } else {
            println!("go is not installed: its client is left out");
            Ok(())
        }
    }

    /// Returns where everything is.
    pub(crate) fn installed() -> Self {
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

    /// Installs the server.
    pub(crate) fn install_caddy(&self) -> Result<(), String> {
        check(&mut command("interop/install", &["caddy"]))?;
        if self.caddy.exists() { Ok(()) } else { Err("Caddy could not be installed".into()) }
    }

    /// Installs the interpreter, which also creates the certificates.
    pub(crate) fn install_python(&self) -> Result<(), String> {
        let environment = PythonEnvironment::new(&cache().join("venv"))?;
        environment.install(&["-r", "bench/rivals/requirements.txt"])
    }

    /// Starts every client.
    pub(crate) fn start_all(&self, arena: &Arena) -> Result<Vec<Rival>, String> {
        let mut rivals = vec![self.start_eyas(arena)?, self.start_x25519(arena)?];
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

    /// Returns the versions, as reported by the programs and by the lock files that they were built with.
    pub(crate) fn versions(&self) -> Result<Versions, String> {
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
        all.push((PLAIN, versions::locked(&lock("plain"), &[&FOUNDATION[..], &["h3"]].concat())?));
        all.push((NOQ, versions::locked(&lock("noq"), &["noq", "h3", "rustls", "tokio"])?));
        all.push(("Caddy, the server", self.caddy_version()));
        Ok(Versions(all))
    }

    /// Returns the version of libcurl that the interpreter has.
    pub(crate) fn libcurl_version(&self) -> Result<String, String> {
        versions::python(&self.python, LIBCURL)
    }

    /// Returns the version of Caddy, which only knows it itself if its own release process built it.
    pub(crate) fn caddy_version(&self) -> String {
        let caddy = versions::modules(&self.caddy, &["github.com/caddyserver/caddy/v2"]);
        caddy.unwrap_or_else(|_| "unknown".into())
    }

    /// Starts the client of eyas-http.
    pub(crate) fn start_eyas(&self, arena: &Arena) -> Result<Rival, String> {
        start(arena, "eyas", Command::new(&self.eyas))
    }

    /// Starts the same with X25519 instead of X25519MLKEM768.
    pub(crate) fn start_x25519(&self, arena: &Arena) -> Result<Rival, String> {
        let mut command = Command::new(&self.eyas);
        command.args(["--key-exchange", "X25519"]);
        start(arena, X25519, command)
    }

    /// Starts plain hyper and quinn.
    pub(crate) fn start_plain(&self, arena: &Arena) -> Result<Rival, String> {
        start(arena, PLAIN, Command::new(&self.plain))
    }

    /// Starts the same with noq instead of quinn: over TCP there is no difference.
    pub(crate) fn start_noq(&self, arena: &Arena) -> Result<Rival, String> {
        Ok(start(arena, NOQ, Command::new(&self.noq))?.only("h3"))
    }
}

/// Starts a client with the authority to trust and the addresses of every site.
pub(crate) fn start(
    arena: &Arena,
    name: &'static str,
    mut command: Command,
) -> Result<Rival, String> {
    let addresses = [&HEALTHY, &WITHOUT_UDP, &WITHOUT_IPV6].map(Site::resolve);
    command.arg(arena.authority()).args(addresses);
    Rival::start(name, command)
}

/// Returns a build command for the workspace, with the same optimisation as the rivals; the caller
/// adds what to build.
pub(crate) fn build_ours() -> Command {
    let mut cargo = command("cargo", &["build", "--profile", OUR_PROFILE, "--target-dir"]);
    cargo.arg(target());
    cargo
}

/// Returns where such a build places an example.
pub(crate) fn our_example(name: &str) -> PathBuf {
    target().join(OUR_PROFILE).join("examples").join(name)
}

/// Returns where it places a program.
pub(crate) fn our_program(name: &str) -> PathBuf {
    target().join(OUR_PROFILE).join(name)
}

/// Returns a build command for a Rust package outside the workspace.
pub(crate) fn build(manifest: &Path, target: &Path) -> Command {
    let mut cargo = command("cargo", &["build", "--release", "--manifest-path"]);
    cargo.arg(manifest).arg("--target-dir").arg(target);
    cargo
}

/// Builds the program that uses usrsctp's own API.
pub(crate) fn build_usrsctp() -> Result<PathBuf, String> {
    if !Path::new("/usr/include/usrsctp.h").exists() {
        return Err("usrsctp.h is missing (Debian: libusrsctp-dev)".into());
    }
    let program = cache().join("usrsctp");
    let args = ["-O2", "-Wall", "-DINET", "-DINET6", "bench/rivals/usrsctp/transfer.c", "-o"];
    check(command("cc", &args).arg(&program).args(["-lusrsctp", "-lpthread"]))?;
    Ok(program)
}

/// Returns the directory of files that git ignores and that later runs reuse.
pub(crate) fn cache() -> PathBuf {
    workspace().join("bench/.cache")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rust_programs_have_the_same_optimisation() {
        let rivals =
            ["h3", "reqwest", "plain", "noq", "sctp"].map(|name| format!("bench/rivals/{name}"));
        let outside = rivals.iter().map(String::as_str).chain(["bench/simulation"]);
        let manifests = outside.map(|directory| (format!("{directory}/Cargo.toml"), "release"));
        for (manifest, profile) in manifests.chain([("Cargo.toml".to_owned(), OUR_PROFILE)]) {
            let text = std::fs::read_to_string(workspace().join(&manifest)).unwrap();
            let (_, settings) =
                text.split_once(&format!("[profile.{profile}]\n")).expect(&manifest);
            let settings = settings.split("\n[").next().unwrap();
            for line in ["lto = \"fat\"", "codegen-units = 1"] {
                assert!(settings.lines().any(|it| it == line), "{manifest} lacks {line}");
            }
        }
    }
}
