//! A client that runs rounds: it reads a line `MODE URL` and writes a line with milliseconds.
//!
//! It is started with the PEM file of the trusted certificate authority and the addresses of the hosts, as
//! `HOST:PORT:ADDRESS,ADDRESS`, so that DNS takes no time. Its answers to lines of standard input are:
//!
//! - `h1 URL`, `h2 URL`, `h3 URL`: milliseconds from the start of the request to the head of the response.
//! - `race URL`: the same, when the client may choose between HTTP/3 and HTTP over TCP (eyas, libcurl, niquests).
//! - `later URL`: the same, after an earlier `race` with this server (eyas, libcurl, niquests).
//! - `many MODE N URL`: milliseconds for N rounds, one after another; `*` in the URL is the number (eyas, plain, noq).
//! - `hold MODE N URL`: N, once N connections are open and have each answered once; `*` as above (eyas, plain, noq).
//! - `drop`: 0, once they are closed (eyas, plain, noq).
//!
//! Failures are `error` and the reason.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// One client, running.
pub(crate) struct Rival {
    /// Its name in the tables.
    pub(crate) name: &'static str,
    /// The only mode that is measured; all if `None`.
    only: Option<&'static str>,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Rival {
    /// Starts it.
    pub(crate) fn start(name: &'static str, mut command: Command) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start {name}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{name} has no pipes"));
        };
        Ok(Self { name, only: None, child, input, output: BufReader::new(output) })
    }

    /// Restricts it to one mode, if it does not differ from another client in the others.
    pub(crate) fn only(mut self, mode: &'static str) -> Self {
        self.only = Some(mode);
        self
    }

    /// Returns whether it is measured in a mode.
    pub(crate) fn is_for(&self, mode: &str) -> bool {
        self.only.is_none_or(|only| only == mode)
    }

    /// Runs one round and returns its time in milliseconds.
    pub(crate) fn round(&mut self, mode: &str, url: &str) -> Result<f64, String> {
        self.query(&format!("{mode} {url}"))
    }

    /// Lets it end by itself, as after its last line.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        let ended = |error: std::io::Error| format!("{} has ended: {error}", self.name);
        writeln!(self.input, "end").and_then(|()| self.input.flush()).map_err(ended)?;
        let status = self.child.wait().map_err(ended)?;
        if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", self.name)) }
    }

    /// Returns its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line and returns the number in the reply; the error is another reply, or that the
    /// client has ended.
    pub(crate) fn query(&mut self, line: &str) -> Result<f64, String> {
        let ended = |error: std::io::Error| format!("{} has ended: {error}", self.name);
        writeln!(self.input, "{line}").and_then(|()| self.input.flush()).map_err(ended)?;
        let mut line = String::new();
        if self.output.read_line(&mut line).map_err(ended)? == 0 {
            return Err(format!("{} ended in the middle of a round", self.name));
        }
        parse(&line)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // If it cannot be killed, it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses milliseconds, or `error` and a message.
fn parse(line: &str) -> Result<f64, String> {
    let line = line.trim();
    match line.parse::<f64>() {
        Ok(time) if time.is_finite() && time >= 0.0 => Ok(time),
        _ => Err(line.strip_prefix("error ").unwrap_or(line).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed() {
        assert_eq!(parse("1.25\n"), Ok(1.25));
        assert_eq!(parse("error the status is 404\n"), Err("the status is 404".into()));
        assert!(parse("NaN\n").is_err());
        assert!(parse("-1\n").is_err());
    }

    #[test]
    fn a_client_answers_until_it_ends() {
        let mut command = Command::new("sh");
        command.args(["-c", "read line; echo 2.5; read line; echo error no; read line"]);
        let mut rival = Rival::start("sh", command).unwrap();
        assert_eq!(rival.round("h1", "https://a.test/"), Ok(2.5));
        assert_eq!(rival.round("h1", "https://a.test/"), Err("no".into()));
        assert!(rival.round("h1", "https://a.test/").unwrap_err().contains("ended"));
        assert!(rival.is_for("h1"));
        let rival = rival.only("h3");
        assert!(rival.is_for("h3") && !rival.is_for("h1"));
    }
}
