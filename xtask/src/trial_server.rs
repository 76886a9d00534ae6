//! A server for trials of the command as others get it.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::run::{check, command};

/// `eyas serve`, until it is dropped.
pub(crate) struct TrialServer {
    process: Child,
    /// Of its first page.
    pub(crate) url: String,
    /// Open as long as it runs: it ends when nobody reads what it prints.
    _output: Lines<BufReader<ChildStdout>>,
}

impl TrialServer {
    /// Starts it with the command that is given, which gets the arguments.
    pub(crate) fn start(eyas: &mut Command) -> Result<Self, String> {
        eyas.args(["serve", "--listen", "127.0.0.1:0", "--no-sctp", "--json"]);
        let started = eyas.stdout(Stdio::piped()).spawn();
        let mut process =
            started.map_err(|error| format!("the server cannot be started: {error}"))?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("no output")?).lines();
        let address = lines.by_ref().find_map(|line| {
            Some(
                line.ok()?
                    .trim()
                    .strip_prefix("\"address\": \"")?
                    .trim_end_matches("\",")
                    .to_owned(),
            )
        });
        match address {
            Some(address) => {
                Ok(Self { process, url: format!("https://{address}/"), _output: lines })
            }
            None => {
                let _ = process.kill();
                let _ = process.wait();
                Err("the server did not say where it listens".into())
            }
        }
    }
}

impl Drop for TrialServer {
    fn drop(&mut self) {
        // With a signal that Node passes on: it is only the parent of the server.
        let _ = check(&mut command("kill", &[self.process.id().to_string()]));
        let _ = self.process.wait();
    }
}
