//! One run of one program, in memory or as two processes over UDP.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::programs::Program;
use super::{ASSOCIATIONS, Column, ON_ONE_SOCKET};
use crate::run::output;

/// No run may take longer, in seconds.
const LIMIT: &str = "60";
/// Where the receiver waits. usrsctp takes the port above for the sender.
const ADDRESS: &str = "127.0.0.1:29899";

/// What a program says of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::bench) struct Answer {
    /// Messages carried, or associations set up.
    pub(in crate::bench) messages: u64,
    /// Bytes of messages carried.
    pub(in crate::bench) bytes: u64,
    /// CPU time of both ends, in seconds.
    pub(in crate::bench) cpu: f64,
    /// Seconds from the first to the last message at the receiver.
    pub(in crate::bench) wall: f64,
    /// Resident memory for each idle association, both ends, in bytes.
    pub(in crate::bench) memory: f64,
}

impl Answer {
    /// CPU-seconds for a gigabyte of messages.
    pub(in crate::bench) fn cost(&self) -> f64 {
        self.cpu * 1e9 / self.bytes as f64
    }

    /// Mbit/s of messages.
    pub(in crate::bench) fn speed(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.wall / 1e6
    }

    /// Messages, or associations, for a second of CPU time.
    pub(super) fn rate(&self) -> f64 {
        self.messages as f64 / self.cpu
    }

    pub(in crate::bench) fn parse(line: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        let number = |name: &str| {
            let number = value[name].as_f64().filter(|number| number.is_finite());
            number.ok_or_else(|| format!("no {name} in {line}"))
        };
        Ok(Self {
            messages: number("messages")? as u64,
            bytes: number("bytes")? as u64,
            cpu: number("cpu")?,
            wall: number("wall")?,
            memory: number("memory")?,
        })
    }
}

/// Runs a program once.
pub(super) fn once(program: &Program, column: Column, bytes: u64) -> Result<Answer, String> {
    let bytes = bytes.to_string();
    match column {
        Column::Memory(size) => {
            ask(&mut limited(&program.pure, &["memory", &size.to_string(), &bytes]))
        }
        Column::Associations => {
            ask(&mut limited(&program.pure, &["associations", &ASSOCIATIONS.to_string()]))
        }
        Column::Sockets => {
            let driven = program.driven.as_ref().ok_or("it has no carrier for UDP")?;
            ask(&mut limited(driven, &["associations", &ON_ONE_SOCKET.to_string()]))
        }
        Column::Udp(size) => over_udp(program, &size.to_string(), &bytes),
    }
}

fn ask(command: &mut Command) -> Result<Answer, String> {
    Answer::parse(output(command)?.trim())
}

fn over_udp(program: &Program, size: &str, bytes: &str) -> Result<Answer, String> {
    let driven = program.driven.as_ref().ok_or("it has no carrier for UDP")?;
    let mut receive = limited(driven, &["receive", ADDRESS, size, bytes]);
    let mut receiver = Receiver::start(&mut receive)?;
    let sent = ask(&mut limited(driven, &["send", ADDRESS, size, bytes]))?;
    let received = receiver.answer()?;
    Ok(Answer { cpu: sent.cpu + received.cpu, ..received })
}

/// The command, ended if it takes too long.
fn limited(program: &str, words: &[&str]) -> Command {
    let words = [&["--signal=KILL", LIMIT, program][..], words].concat();
    crate::run::command("timeout", &words)
}

/// The receiving process; ended with this.
struct Receiver {
    child: Child,
    said: Box<dyn BufRead>,
}

impl Receiver {
    /// Waits until it can be sent to.
    fn start(command: &mut Command) -> Result<Self, String> {
        let spawned = command.stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start the receiver: {error}"))?;
        let said = child.stdout.take().ok_or("the receiver has no pipe")?;
        let mut receiver = Self { child, said: Box::new(BufReader::new(said)) };
        let mut line = String::new();
        let read = receiver.said.read_line(&mut line);
        match read {
            Ok(_) if line.trim() == "ready" => Ok(receiver),
            _ => Err(format!("the receiver is not ready: {line}")),
        }
    }

    fn answer(&mut self) -> Result<Answer, String> {
        let mut text = String::new();
        self.said.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Answer::parse(text.trim())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // What cannot be ended has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let line = r#"{"messages": 10, "bytes": 1000000, "cpu": 0.5, "wall": 2, "memory": 0}"#;
        let answer = Answer::parse(line).unwrap();
        assert_eq!((answer.messages, answer.cost(), answer.speed()), (10, 500.0, 4.0));
        assert_eq!(answer.rate(), 20.0);
        assert!(Answer::parse("").is_err());
        assert!(Answer::parse(r#"{"messages": 10}"#).unwrap_err().contains("bytes"));
    }

    #[test]
    fn a_receiver_says_that_it_is_ready() {
        let line = r#"{"messages": 1, "bytes": 2, "cpu": 3, "wall": 4, "memory": 5}"#;
        let script = format!("echo ready; echo '{line}'");
        let mut receiver = Receiver::start(Command::new("sh").args(["-c", &script])).unwrap();
        assert_eq!(receiver.answer().unwrap().memory, 5.0);
        let error = Receiver::start(Command::new("sh").args(["-c", "echo no"])).err().unwrap();
        assert!(error.contains("no"));
    }
}
