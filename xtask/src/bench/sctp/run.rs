//! One run of one program, in memory or as two processes over UDP.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::programs::Program;
use super::{ASSOCIATIONS, Column, ON_ONE_SOCKET};
use crate::run::output;

/// The time limit of a run, in seconds.
const LIMIT: &str = "60";
/// The address of the receiver. usrsctp uses the next port for the sender.
const ADDRESS: &str = "127.0.0.1:29899";

/// The report of a program about its run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::bench) struct Answer {
    /// The number of messages transferred, or of associations set up.
    pub(in crate::bench) messages: u64,
    /// The bytes of messages transferred.
    pub(in crate::bench) bytes: u64,
    /// CPU time of both ends, in seconds.
    pub(in crate::bench) cpu: f64,
    /// Seconds from the first to the last message at the receiver.
    pub(in crate::bench) wall: f64,
    /// Resident memory for each idle association, both ends, in bytes.
    pub(in crate::bench) memory: f64,
}

impl Answer {
    /// Returns the CPU seconds per gigabyte of messages.
    pub(in crate::bench) fn cost(&self) -> f64 {
        self.cpu * 1e9 / self.bytes as f64
    }

    /// Returns the rate of messages in Mbit/s.
    pub(in crate::bench) fn speed(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.wall / 1e6
    }

    /// Returns the messages, or associations, per second of CPU time.
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
            run(&mut limited(&program.pure, &["memory", &size.to_string(), &bytes]))
        }
        Column::Associations => {
            run(&mut limited(&program.pure, &["associations", &ASSOCIATIONS.to_string()]))
        }
        Column::Sockets => {
            let driven = program.driven.as_ref().ok_or("it has no carrier for UDP")?;
            run(&mut limited(driven, &["associations", &ON_ONE_SOCKET.to_string()]))
        }
        Column::Udp(size) => over_udp(program, &size.to_string(), &bytes),
    }
}

fn run(command: &mut Command) -> Result<Answer, String> {
    Answer::parse(output(command)?.trim())
}

fn over_udp(program: &Program, size: &str, bytes: &str) -> Result<Answer, String> {
    let driven = program.driven.as_ref().ok_or("it has no carrier for UDP")?;
    let mut receive = limited(driven, &["receive", ADDRESS, size, bytes]);
    let mut receiver = Receiver::start(&mut receive)?;
    let sent = run(&mut limited(driven, &["send", ADDRESS, size, bytes]))?;
    let received = receiver.answer()?;
    Ok(Answer { cpu: sent.cpu + received.cpu, ..received })
}

/// Returns a command with a time limit.
fn limited(program: &str, args: &[&str]) -> Command {
    let args = [&["--signal=KILL", LIMIT, program][..], args].concat();
    crate::run::command("timeout", &args)
}

/// The receiving process, which is killed when this is dropped.
struct Receiver {
    child: Child,
    stdout: Box<dyn BufRead>,
}

impl Receiver {
    /// Starts it and waits until it is ready to receive.
    fn start(command: &mut Command) -> Result<Self, String> {
        let spawned = command.stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start the receiver: {error}"))?;
        let stdout = child.stdout.take().ok_or("the receiver has no pipe")?;
        let mut receiver = Self { child, stdout: Box::new(BufReader::new(stdout)) };
        let mut line = String::new();
        let read = receiver.stdout.read_line(&mut line);
        match read {
            Ok(_) if line.trim() == "ready" => Ok(receiver),
            _ => Err(format!("the receiver is not ready: {line}")),
        }
    }

    fn answer(&mut self) -> Result<Answer, String> {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Answer::parse(text.trim())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // If it cannot be killed, it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed() {
        let line = r#"{"messages": 10, "bytes": 1000000, "cpu": 0.5, "wall": 2, "memory": 0}"#;
        let answer = Answer::parse(line).unwrap();
        assert_eq!((answer.messages, answer.cost(), answer.speed()), (10, 500.0, 4.0));
        assert_eq!(answer.rate(), 20.0);
        assert!(Answer::parse("").is_err());
        assert!(Answer::parse(r#"{"messages": 10}"#).unwrap_err().contains("bytes"));
    }

    #[test]
    fn a_receiver_reports_that_it_is_ready() {
        let line = r#"{"messages": 1, "bytes": 2, "cpu": 3, "wall": 4, "memory": 5}"#;
        let script = format!("echo ready; echo '{line}'");
        let mut receiver = Receiver::start(Command::new("sh").args(["-c", &script])).unwrap();
        assert_eq!(receiver.answer().unwrap().memory, 5.0);
        let error = Receiver::start(Command::new("sh").args(["-c", "echo no"])).err().unwrap();
        assert!(error.contains("no"));
    }
}
