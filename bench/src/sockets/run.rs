//! One run: its processes, their output and their cost.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Programs, Stack};
use crate::process::resident;
use crate::run::{command, output};
use crate::transfer::TransferReport;

/// The time limit of a run, in seconds.
const LIMIT: &str = "120";
/// The UDP port of the receiver; usrsctp uses the next one for the sender.
const UDP: &str = "--udp=29899";
/// The addresses of receivers: those that use the UDP port themselves, and those that use sockets.
const DRIVEN: &str = "127.0.0.1:29899";
const BOUND: &str = "127.0.0.1:5000";
/// The maximum number of checks whether a process still closes descriptors, and the time between two.
const MAX_CHECKS: u32 = 20;
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Runs a command and prints the CPU time of its processes.
const TIMED: &str = "\"$@\"; times";

/// Concurrent associations.
pub(super) struct ConcurrentAssociations {
    pub(super) count: u64,
    /// Seconds until the last one was established.
    pub(super) wall: f64,
    /// Resident KiB for each, of the accepting `eyas sctp run` process, and of the connecting one.
    pub(super) accepting: f64,
    pub(super) connecting: f64,
}

/// The resources of both `eyas sctp run` processes after associations were opened and closed.
pub(super) struct AfterClosing {
    pub(super) count: u64,
    /// Descriptors after the first of two series, and after the second.
    pub(super) descriptors: [usize; 2],
    /// Resident KiB at the same times.
    pub(super) memory: [f64; 2],
}

/// Sends messages of one size from one process to another.
pub(super) fn messages(
    programs: &Programs,
    stack: Stack,
    size: usize,
    bytes: u64,
) -> Result<TransferReport, String> {
    let (size, bytes) = (size.to_string(), bytes.to_string());
    let mut receiver = Process::start(&mut timed(programs, stack, &["receive", &size, &bytes]))?;
    let sent = reported(&output(&mut timed(programs, stack, &["send", &size, &bytes]))?)?;
    let received = receiver.end()?;
    Ok(TransferReport { cpu: sent.cpu + received.cpu, ..received })
}

/// Sends messages of 64 bytes back and forth.
pub(super) fn round_trips(
    programs: &Programs,
    stack: Stack,
    count: u64,
) -> Result<TransferReport, String> {
    let count = count.to_string();
    let mut receiver = Process::start(&mut timed(programs, stack, &["echo", &count]))?;
    let round_trips = reported(&output(&mut timed(programs, stack, &["ping", &count]))?)?;
    let answered = receiver.end()?;
    Ok(TransferReport { cpu: round_trips.cpu + answered.cpu, ..round_trips })
}

/// Runs `sendmsg` and `recvmsg` on TCP, with or without `eyas sctp run`.
pub(super) fn tcp(programs: &Programs, stack: Stack, count: u64) -> Result<TransferReport, String> {
    let (sockets, count) = (text(&programs.sockets), count.to_string());
    let args = ["tcp", &count];
    let mut command = match stack {
        Stack::Sockets => sctp_run(programs, &sockets, &args),
        _ => limited(&sockets, &args),
    };
    TransferReport::parse(output(&mut command)?.trim())
}

/// Runs iperf3 with messages of 64 KiB for this time.
pub(super) fn iperf(programs: &Programs, seconds: u32) -> Result<TransferReport, String> {
    let seconds = seconds.to_string();
    let server = ["-s", "-1", "-B", "127.0.0.1", "-p", "5201", "--forceflush"];
    let client = ["--sctp", "-c", "127.0.0.1", "-p", "5201", "-t", &seconds, "-J"];
    let mut server = Process::spawn(&mut with_times(sctp_run(programs, "iperf3", &server)))?;
    while !server.line()?.contains("listening") {}
    let output = output(&mut with_times(sctp_run(programs, "iperf3", &client)))?;
    let (report, times) = output.split_at(output.rfind('}').map_or(0, |end| end + 1));
    let report: Value = serde_json::from_str(report).map_err(|error| error.to_string())?;
    let received = &report["end"]["sum_received"];
    let number =
        |name: &str| received[name].as_f64().ok_or(format!("iperf3 does not report {name}"));
    let (bytes, wall) = (number("bytes")?, number("seconds")?);
    let cpu = cpu(times)? + cpu(&server.remaining_output()?)?;
    Ok(TransferReport { bytes: bytes as u64, wall, cpu, ..TransferReport::default() })
}

/// Opens this number of concurrent associations.
pub(super) fn concurrent(
    programs: &Programs,
    count: u64,
) -> Result<ConcurrentAssociations, String> {
    let (sockets, number) = (text(&programs.sockets), count.to_string());
    let mut accepting = Process::start(&mut direct(programs, &sockets, &["hold", BOUND, &number]))?;
    let before = resident(accepting.id())?;
    let mut connecting =
        Process::spawn(&mut direct(programs, &sockets, &["open", BOUND, &number]))?;
    let opened = TransferReport::parse(connecting.line()?.trim())?;
    accepting.line()?;
    let per_association = |after: f64| (after - before) / count as f64;
    Ok(ConcurrentAssociations {
        count,
        wall: opened.wall,
        accepting: per_association(resident(accepting.id())?),
        connecting: per_association(resident(connecting.id())?),
    })
}

/// Opens and closes this number of associations one after the other, twice.
pub(super) fn open_and_close(programs: &Programs, count: u64) -> Result<AfterClosing, String> {
    let (sockets, number) = (text(&programs.sockets), count.to_string());
    let accepting = Process::start(&mut direct(programs, &sockets, &["turns", BOUND]))?;
    let churn = ["churn", BOUND, &number];
    let mut connecting = Process::spawn(&mut direct(programs, &sockets, &churn))?;
    let mut after_closing = AfterClosing { count, descriptors: [0; 2], memory: [0.0; 2] };
    for series in 0..2 {
        connecting.send("again\n")?;
        TransferReport::parse(connecting.line()?.trim())?;
        for id in [accepting.id(), connecting.id()] {
            after_closing.descriptors[series] += stable_descriptors(id)?;
            after_closing.memory[series] += resident(id)?;
        }
    }
    Ok(after_closing)
}

/// Returns the number of descriptors of a process once it no longer decreases: the last associations end
/// in the background.
fn stable_descriptors(id: u32) -> Result<usize, String> {
    let mut previous = descriptors(id)?;
    for _ in 0..MAX_CHECKS {
        std::thread::sleep(CHECK_INTERVAL);
        let current = descriptors(id)?;
        if current >= previous {
            break;
        }
        previous = current;
    }
    descriptors(id)
}

fn descriptors(id: u32) -> Result<usize, String> {
    let path = format!("/proc/{id}/fd");
    fs::read_dir(&path).map(Iterator::count).map_err(|error| format!("{path}: {error}"))
}

/// Returns a program for this stack that prints the CPU time of its processes after its report.
fn timed(programs: &Programs, stack: Stack, args: &[&str]) -> Command {
    let (action, options) = args.split_first().expect("an action");
    let with = |address| [&[*action, address][..], options].concat();
    let usrsctp = programs.usrsctp.as_deref().map(text).unwrap_or_default();
    with_times(match stack {
        Stack::Usrsctp => limited(&usrsctp, &with(DRIVEN)),
        Stack::Driver => limited(&text(&programs.driver), &with(DRIVEN)),
        Stack::Sockets | Stack::Iperf => sctp_run(programs, &text(&programs.sockets), &with(BOUND)),
    })
}

/// Returns the same command under a shell that prints its CPU time.
fn with_times(inner: Command) -> Command {
    let mut shell = command("sh", &["-c", TIMED, "sh"]);
    shell.arg(inner.get_program()).args(inner.get_args());
    shell
}

/// Returns a program under `eyas sctp run`, with a time limit.
fn sctp_run(programs: &Programs, program: &str, args: &[&str]) -> Command {
    let run = ["sctp", "run", UDP, "--", program];
    limited(&text(&programs.eyas), &[&run[..], args].concat())
}

/// Returns the same as a direct child of this process, so that the child is `eyas sctp run` itself.
fn direct(programs: &Programs, program: &str, args: &[&str]) -> Command {
    let run = ["sctp", "run", UDP, "--", program];
    command(&text(&programs.eyas), &[&run[..], args].concat())
}

fn limited(program: &str, args: &[&str]) -> Command {
    command("timeout", &[&["--signal=KILL", LIMIT, program][..], args].concat())
}

/// Parses the report of a program, with the CPU time of all processes.
fn reported(output: &str) -> Result<TransferReport, String> {
    let line = output.lines().find(|line| line.starts_with('{')).ok_or("it prints nothing")?;
    Ok(TransferReport { cpu: cpu(output)?, ..TransferReport::parse(line)? })
}

/// Parses the CPU seconds of the children of a shell: the last line of `times`.
fn cpu(output: &str) -> Result<f64, String> {
    let line = output.trim_end().lines().next_back().unwrap_or_default();
    let seconds = |word: &str| -> Option<f64> {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let both: Option<Vec<f64>> = line.split_whitespace().map(seconds).collect();
    let both = both.filter(|both| both.len() == 2).ok_or_else(|| format!("no times: {line}"))?;
    Ok(both.iter().sum())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A process with which lines are exchanged; it is killed when this is dropped.
struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Box<dyn BufRead>,
}

impl Process {
    fn spawn(command: &mut Command) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start it: {error}"))?;
        let stdout = child.stdout.take().ok_or("it has no pipe")?;
        Ok(Self { stdin: child.stdin.take(), child, stdout: Box::new(BufReader::new(stdout)) })
    }

    /// Starts it and waits until it is ready.
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut process = Self::spawn(command)?;
        let line = process.line()?;
        if line.trim() == "ready" { Ok(process) } else { Err(format!("it is not ready: {line}")) }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, line: &str) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("it has no standard input")?;
        stdin.write_all(line.as_bytes()).map_err(|error| error.to_string())
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(0) => Err("it has ended".into()),
            Ok(_) => Ok(line),
            Err(error) => Err(error.to_string()),
        }
    }

    fn remaining_output(&mut self) -> Result<String, String> {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn end(&mut self) -> Result<TransferReport, String> {
        reported(&self.remaining_output()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Programs that wait for input end without it.
        drop(self.stdin.take());
        // If it cannot be killed, it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_processes_is_parsed() {
        assert_eq!(cpu("0m0.00s 0m0.01s\n1m2.50s 0m0.25s\n"), Ok(62.75));
        assert_eq!(cpu("0m0,000s\n0m0.000s 0m0.500s"), Ok(0.5));
        assert!(cpu("{}").is_err());
        let output = "{\"messages\": 1, \"bytes\": 2, \"cpu\": 3, \"wall\": 4, \"memory\": 0}\n\
            0m0.00s 0m0.00s\n0m5.00s 0m1.00s\n";
        let answer = reported(output).unwrap();
        assert_eq!((answer.messages, answer.wall, answer.cpu), (1, 4.0, 6.0));
    }

    #[test]
    fn processes_exchange_lines() {
        let script = "echo ready; read line; echo \"$line\"; exit 0";
        let mut process = Process::start(Command::new("sh").args(["-c", script])).unwrap();
        process.send("hello\n").unwrap();
        assert_eq!(process.line().unwrap(), "hello\n");
        assert!(process.line().is_err());
        assert!(Process::start(Command::new("sh").args(["-c", "echo no"])).is_err());
    }
}
