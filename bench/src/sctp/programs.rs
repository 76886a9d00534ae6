//! The programs, and how they are built and run.
//!
//! Each ends with one line of JSON on standard output: `messages`, `bytes`, `cpu` (seconds of user and kernel time of
//! this process), `wall` (seconds), `memory` (resident bytes per association, both ends).
//!
//! - `memory SIZE BYTES`, `receive`, `send ADDRESS SIZE BYTES` carry messages of one size.
//! - `associations COUNT` sets up associations that carry one message each. Stacks other than eyas have no endpoint for
//!   many of them over UDP.
//! - `link` and `channel`, of eyas alone, send for a minute of virtual time over a path of 100 Mbit/s, a round trip of
//!   100 ms and 0.1 % loss, and answer with the `share` of it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::programs::{build, build_ours, build_usrsctp, cache, our_example};
use crate::run::{check, command, output, works, workspace};
use crate::versions::{self, Versions};

/// The name of our own stack.
pub(super) const OURS: &str = "eyas";
/// The tests over the simulated link: the name in the table, the program, and its arguments.
const LINKS: [(&str, &str, &[&str]); 6] = [
    ("eyas, new-reno", OURS, &["link", "new-reno"]),
    ("eyas, cubic", OURS, &["link", "cubic"]),
    (WITH_BBR, OURS, &["link", "bbr"]),
    (CHANNEL, OURS, &["channel"]),
    ("rtc-sctp", "rtc-sctp", &["link"]),
    (DCSCTP, DCSCTP, &["link"]),
];
/// Our BBR over the link.
pub(super) const WITH_BBR: &str = "eyas, bbr";
/// A data channel of ours over the link.
pub(super) const CHANNEL: &str = "eyas, a data channel";
/// The stack that Chromium is going to have.
pub(super) const DCSCTP: &str = "dcsctp";

/// One stack.
pub(super) struct Program {
    /// Its name in the tables.
    pub(super) name: &'static str,
    /// The program for `memory` and `associations`.
    pub(super) pure: String,
    /// The program for `receive` and `send`, if the stack has one.
    pub(super) driven: Option<String>,
}

/// The result of one stack over the simulated link.
pub(super) struct Link {
    pub(super) name: &'static str,
    /// The share of the link's rate, from 0 to 1.
    pub(super) share: f64,
}

/// All stacks that could be built.
pub(super) struct Programs {
    pub(super) all: Vec<Program>,
}

impl Programs {
    /// Builds whatever is not up to date. A rival that cannot be built is left out, with a message.
    pub(super) fn build() -> Result<Self, String> {
        check(build_ours().args(["-p", "eyas-sctp", "--example", "transfer"]))?;
        let mut all =
            vec![Program { name: OURS, pure: text(&our_example("transfer")), driven: None }];
        let ours = ["-p", "eyas-sctp-tokio", "--example", "sctp-transfer"];
        if workspace().join("crates/sctp-tokio/examples/sctp-transfer.rs").exists() {
            check(build_ours().args(ours))?;
            all[0].driven = Some(text(&our_example("sctp-transfer")));
        }
        check(&mut build(Path::new("bench/rivals/sctp/Cargo.toml"), &cache().join("target")))?;
        for name in ["rtc-sctp", DCSCTP] {
            all.push(rival(name, &cache().join("target/release").join(name)));
        }
        for (name, built) in [("usrsctp", build_usrsctp()), ("pion", pion())] {
            match built {
                Ok(program) => all.push(rival(name, &program)),
                Err(why) => println!("{name} is left out: {why}"),
            }
        }
        Ok(Self { all })
    }

    /// Returns the versions of the measured programs.
    pub(super) fn versions(&self) -> Result<Versions, String> {
        let of = |program: &Program| match program.name {
            OURS => versions::locked("Cargo.lock", &["eyas-sctp"]),
            "usrsctp" => {
                let version = output(&mut command("pkg-config", &["--modversion", "usrsctp"]))?;
                Ok(format!("usrsctp {}", version.trim()))
            }
            "pion" => versions::modules(Path::new(&program.pure), &["github.com/pion/sctp"]),
            name => versions::locked("bench/rivals/sctp/Cargo.lock", &[name]),
        };
        let all = self.all.iter().map(|program| Ok((program.name, of(program)?)));
        all.collect::<Result<_, String>>().map(Versions)
    }

    /// Runs each stack that supports it over the simulated link.
    pub(super) fn links(&self) -> Result<Vec<Link>, String> {
        let mut links = Vec::new();
        for (name, owner, args) in LINKS {
            let Some(program) = self.all.iter().find(|program| program.name == owner) else {
                continue;
            };
            let output = output(&mut command(&program.pure, args))?;
            let value: Value =
                serde_json::from_str(output.trim()).map_err(|error| error.to_string())?;
            let share = value["share"].as_f64();
            links.push(Link { name, share: share.ok_or("the output has no share")? });
        }
        Ok(links)
    }
}

fn rival(name: &'static str, program: &Path) -> Program {
    Program { name, pure: text(program), driven: Some(text(program)) }
}

fn pion() -> Result<PathBuf, String> {
    if !works("go", &["version"]) {
        return Err("go is not installed".into());
    }
    let program = cache().join("pion");
    let directory = workspace().join("bench/rivals/pion");
    let mut build = command("go", &["build", "-o"]);
    check(build.arg(&program).arg(".").current_dir(directory))?;
    Ok(program)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
