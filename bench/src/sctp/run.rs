//! One run of one program, in memory or as two processes over UDP.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use super::programs::Program;
use super::{ASSOCIATIONS, Column, ON_ONE_SOCKET};
use crate::run::output;
use crate::transfer::TransferReport;

/// The time limit of a run, in seconds.
const LIMIT: &str = "60";
/// The address of the receiver. usrsctp uses the next port for the sender.
const ADDRESS: &str = "127.0.0.1:29899";

/// Runs a program once.
pub(super) fn once(
    program: &Program,
    column: Column,
    bytes: u64,
) -> Result<TransferReport, String> {
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

fn run(command: &mut Command) -> Result<TransferReport, String> {
    TransferReport::parse(output(command)?.trim())
}

fn over_udp(program: &Program, size: &str, bytes: &str) -> Result<TransferReport, String> {
    let driven = program.driven.as_ref().ok_or("it has no carrier for UDP")?;
    let mut receive = limited(driven, &["receive", ADDRESS, size, bytes]);
    let mut receiver = Receiver::start(&mut receive)?;
    let sent = run(&mut limited(driven, &["send", ADDRESS, size, bytes]))?;
    let received = receiver.answer()?;
    Ok(TransferReport { cpu: sent.cpu + received.cpu, ..received })
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

    fn answer(&mut self) -> Result<TransferReport, String> {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
        TransferReport::parse(text.trim())
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
    fn a_receiver_reports_that_it_is_ready() {
        let line = r#"{"messages": 1, "bytes": 2, "cpu": 3, "wall": 4, "memory": 5}"#;
        let script = format!("echo ready; echo '{line}'");
        let mut receiver = Receiver::start(Command::new("sh").args(["-c", &script])).unwrap();
        assert_eq!(receiver.answer().unwrap().memory, 5.0);
        let error = Receiver::start(Command::new("sh").args(["-c", "echo no"])).err().unwrap();
        assert!(error.contains("no"));
    }
}
