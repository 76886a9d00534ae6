//! One run: which processes, what they said, what they took.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::super::cost::resident;
use super::super::sctp::run::Answer;
use super::{Programs, Way};
use crate::run::{command, output};

/// No run may take longer, in seconds.
const LIMIT: &str = "120";
/// The UDP port of the receiver; usrsctp takes the one above for the sender.
const UDP: &str = "--udp=29899";
/// Where receivers are: those that have the UDP port themselves, and those that have sockets.
const DRIVEN: &str = "127.0.0.1:29899";
const BOUND: &str = "127.0.0.1:5000";
/// How often it is looked whether a process still closes descriptors, at most, and how long it gets between.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// Runs a command and says what its processes took.
const TIMED: &str = "\"$@\"; times";

/// Associations that are all there at once.
pub(super) struct Many {
    pub(super) count: u64,
    /// Seconds until the last one was there.
    pub(super) wall: f64,
    /// Resident KiB for each, of the process of `eyas sctp run` that accepts, and of the other.
    pub(super) accepting: f64,
    pub(super) connecting: f64,
}

/// What both processes of `eyas sctp run` have after associations were opened and closed.
pub(super) struct Kept {
    pub(super) count: u64,
    /// Descriptors after the first of two series, and after the second.
    pub(super) descriptors: [usize; 2],
    /// Resident KiB then.
    pub(super) memory: [f64; 2],
}

/// Messages of one size from one process to another.
pub(super) fn carried(
    programs: &Programs,
    way: Way,
    size: usize,
    bytes: u64,
) -> Result<Answer, String> {
    let (size, bytes) = (size.to_string(), bytes.to_string());
    let mut receiver = Talker::start(&mut timed(programs, way, &["receive", &size, &bytes]))?;
    let sent = reported(&output(&mut timed(programs, way, &["send", &size, &bytes]))?)?;
    let received = receiver.end()?;
    Ok(Answer { cpu: sent.cpu + received.cpu, ..received })
}

/// Messages of 64 bytes there and back.
pub(super) fn asked(programs: &Programs, way: Way, count: u64) -> Result<Answer, String> {
    let count = count.to_string();
    let mut receiver = Talker::start(&mut timed(programs, way, &["echo", &count]))?;
    let asked = reported(&output(&mut timed(programs, way, &["ping", &count]))?)?;
    let answered = receiver.end()?;
    Ok(Answer { cpu: asked.cpu + answered.cpu, ..asked })
}

/// `sendmsg` and `recvmsg` on TCP, under `eyas sctp run` or not.
pub(super) fn tcp(programs: &Programs, way: Way, count: u64) -> Result<Answer, String> {
    let (sockets, count) = (text(&programs.sockets), count.to_string());
    let words = ["tcp", &count];
    let mut command = match way {
        Way::Sockets => under(programs, &sockets, &words),
        _ => limited(&sockets, &words),
    };
    Answer::parse(output(&mut command)?.trim())
}

/// Messages of iperf3, 64 KiB each, for so long.
pub(super) fn iperf(programs: &Programs, seconds: u32) -> Result<Answer, String> {
    let seconds = seconds.to_string();
    let server = ["-s", "-1", "-B", "127.0.0.1", "-p", "5201", "--forceflush"];
    let client = ["--sctp", "-c", "127.0.0.1", "-p", "5201", "-t", &seconds, "-J"];
    let mut server = Talker::begin(&mut with_times(under(programs, "iperf3", &server)))?;
    while !server.line()?.contains("listening") {}
    let said = output(&mut with_times(under(programs, "iperf3", &client)))?;
    let (report, times) = said.split_at(said.rfind('}').map_or(0, |end| end + 1));
    let report: Value = serde_json::from_str(report).map_err(|error| error.to_string())?;
    let received = &report["end"]["sum_received"];
    let number = |name: &str| received[name].as_f64().ok_or(format!("iperf3 says no {name}"));
    let (bytes, wall) = (number("bytes")?, number("seconds")?);
    let cpu = cpu(times)? + cpu(&server.rest()?)?;
    Ok(Answer { bytes: bytes as u64, wall, cpu, ..Answer::default() })
}

/// So many associations at once.
pub(super) fn many(programs: &Programs, count: u64) -> Result<Many, String> {
    let (sockets, number) = (text(&programs.sockets), count.to_string());
    let mut accepting = Talker::start(&mut direct(programs, &sockets, &["hold", BOUND, &number]))?;
    let before = resident(accepting.id())?;
    let mut connecting = Talker::begin(&mut direct(programs, &sockets, &["open", BOUND, &number]))?;
    let opened = Answer::parse(connecting.line()?.trim())?;
    accepting.line()?;
    let each = |after: f64| (after - before) / count as f64;
    Ok(Many {
        count,
        wall: opened.wall,
        accepting: each(resident(accepting.id())?),
        connecting: each(resident(connecting.id())?),
    })
}

/// So many associations opened and closed one after the other, twice.
pub(super) fn opened_and_closed(programs: &Programs, count: u64) -> Result<Kept, String> {
    let (sockets, number) = (text(&programs.sockets), count.to_string());
    let accepting = Talker::start(&mut direct(programs, &sockets, &["turns", BOUND]))?;
    let churn = ["churn", BOUND, &number];
    let mut connecting = Talker::begin(&mut direct(programs, &sockets, &churn))?;
    let mut kept = Kept { count, descriptors: [0; 2], memory: [0.0; 2] };
    for series in 0..2 {
        connecting.say("again\n")?;
        Answer::parse(connecting.line()?.trim())?;
        for id in [accepting.id(), connecting.id()] {
            kept.descriptors[series] += settled(id)?;
            kept.memory[series] += resident(id)?;
        }
    }
    Ok(kept)
}

/// The descriptors of a process once there are no fewer of them any more: the last associations end while
/// nobody waits for them.
fn settled(id: u32) -> Result<usize, String> {
    let mut last = descriptors(id)?;
    for _ in 0..LOOKS {
        std::thread::sleep(BETWEEN_LOOKS);
        let now = descriptors(id)?;
        if now >= last {
            break;
        }
        last = now;
    }
    descriptors(id)
}

fn descriptors(id: u32) -> Result<usize, String> {
    let path = format!("/proc/{id}/fd");
    fs::read_dir(&path).map(Iterator::count).map_err(|error| format!("{path}: {error}"))
}

/// A program that goes this way, and says behind its answer what its processes took.
fn timed(programs: &Programs, way: Way, words: &[&str]) -> Command {
    let (word, rest) = words.split_first().expect("a word for what to do");
    let with = |address| [&[*word, address][..], rest].concat();
    let usrsctp = programs.usrsctp.as_deref().map(text).unwrap_or_default();
    with_times(match way {
        Way::Usrsctp => limited(&usrsctp, &with(DRIVEN)),
        Way::Driver => limited(&text(&programs.driver), &with(DRIVEN)),
        Way::Sockets | Way::Iperf => under(programs, &text(&programs.sockets), &with(BOUND)),
    })
}

/// The same, under a shell that says what it took.
fn with_times(inner: Command) -> Command {
    let mut shell = command("sh", &["-c", TIMED, "sh"]);
    shell.arg(inner.get_program()).args(inner.get_args());
    shell
}

/// A program under `eyas sctp run`, ended if it takes too long.
fn under(programs: &Programs, program: &str, words: &[&str]) -> Command {
    let run = ["sctp", "run", UDP, "--", program];
    limited(&text(&programs.eyas), &[&run[..], words].concat())
}

/// The same as a child of this process, which is then that of `eyas sctp run`.
fn direct(programs: &Programs, program: &str, words: &[&str]) -> Command {
    let run = ["sctp", "run", UDP, "--", program];
    command(&text(&programs.eyas), &[&run[..], words].concat())
}

fn limited(program: &str, words: &[&str]) -> Command {
    command("timeout", &[&["--signal=KILL", LIMIT, program][..], words].concat())
}

/// The answer of a program, with the CPU time of all processes.
fn reported(said: &str) -> Result<Answer, String> {
    let line = said.lines().find(|line| line.starts_with('{')).ok_or("it says nothing")?;
    Ok(Answer { cpu: cpu(said)?, ..Answer::parse(line)? })
}

/// CPU-seconds of the children of a shell: the last line of `times`.
fn cpu(said: &str) -> Result<f64, String> {
    let line = said.trim_end().lines().next_back().unwrap_or_default();
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

/// A process that is spoken with; ended with this.
struct Talker {
    child: Child,
    hears: Option<ChildStdin>,
    says: Box<dyn BufRead>,
}

impl Talker {
    fn begin(command: &mut Command) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start it: {error}"))?;
        let says = child.stdout.take().ok_or("it has no pipe")?;
        Ok(Self { hears: child.stdin.take(), child, says: Box::new(BufReader::new(says)) })
    }

    /// Waits until it can be connected to.
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut talker = Self::begin(command)?;
        let line = talker.line()?;
        if line.trim() == "ready" { Ok(talker) } else { Err(format!("it is not ready: {line}")) }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn say(&mut self, line: &str) -> Result<(), String> {
        let hears = self.hears.as_mut().ok_or("it does not hear")?;
        hears.write_all(line.as_bytes()).map_err(|error| error.to_string())
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.says.read_line(&mut line) {
            Ok(0) => Err("it has ended".into()),
            Ok(_) => Ok(line),
            Err(error) => Err(error.to_string()),
        }
    }

    fn rest(&mut self) -> Result<String, String> {
        let mut text = String::new();
        self.says.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn end(&mut self) -> Result<Answer, String> {
        reported(&self.rest()?)
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // Programs that wait to be told end without this.
        drop(self.hears.take());
        // What cannot be ended has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_processes_is_parsed() {
        assert_eq!(cpu("0m0.00s 0m0.01s\n1m2.50s 0m0.25s\n"), Ok(62.75));
        assert_eq!(cpu("0m0,000s\n0m0.000s 0m0.500s"), Ok(0.5));
        assert!(cpu("{}").is_err());
        let said = "{\"messages\": 1, \"bytes\": 2, \"cpu\": 3, \"wall\": 4, \"memory\": 0}\n\
            0m0.00s 0m0.00s\n0m5.00s 0m1.00s\n";
        let answer = reported(said).unwrap();
        assert_eq!((answer.messages, answer.wall, answer.cpu), (1, 4.0, 6.0));
    }

    #[test]
    fn processes_exchange_lines() {
        let script = "echo ready; read line; echo \"$line\"; exit 0";
        let mut talker = Talker::start(Command::new("sh").args(["-c", script])).unwrap();
        talker.say("hello\n").unwrap();
        assert_eq!(talker.line().unwrap(), "hello\n");
        assert!(talker.line().is_err());
        assert!(Talker::start(Command::new("sh").args(["-c", "echo no"])).is_err());
    }
}
