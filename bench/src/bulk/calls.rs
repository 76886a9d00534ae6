//! Counts system calls with strace.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::run::{check, command, output};
use crate::server::Server;

/// How long strace may take to attach.
const ATTACHED_WITHIN: Duration = Duration::from_secs(10);
/// How long strace may take to write its summary, once nothing keeps it.
const SUMMARY_WITHIN: Duration = Duration::from_secs(20);
/// How long a client may take, in seconds; the slowest needs five.
const CLIENT_WITHIN: &str = "120";

/// The calls that are counted apart from the others.
const READING: [&str; 7] =
    ["read", "readv", "recvfrom", "recvmsg", "recvmmsg", "pread64", "splice"];
const WRITING: [&str; 6] = ["write", "writev", "sendto", "sendmsg", "sendmmsg", "pwrite64"];

/// Numbers of system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Calls {
    pub(super) all: u64,
    /// Threads that wait for each other.
    pub(super) futex: u64,
    pub(super) reading: u64,
    pub(super) writing: u64,
}

/// What a server does once its client has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AfterClient {
    KeepsRunning,
    Ends,
}

/// Runs a program to its end and counts its calls. What it writes to standard output goes through a pipe.
pub(super) fn of_client(program: &Command, directory: &Path) -> Result<Calls, String> {
    let summary = directory.join("strace");
    let mut strace = command("strace", &["-f", "-c", "-o"]);
    strace.arg(&summary);
    append(&mut strace, program);
    run_into_pipe(&strace)?;
    read(&summary)
}

/// Runs a program whose standard output is a pipe that somebody reads.
pub(super) fn run_into_pipe(program: &Command) -> Result<(), String> {
    let name = program.get_program();
    let spawned = limited(program).stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| format!("{name:?}: {error}"))?;
    let reader = child.stdout.take().map(|pipe| {
        command("cat", &[""; 0]).stdin(Stdio::from(pipe)).stdout(Stdio::null()).spawn()
    });
    let status = child.wait().map_err(|error| error.to_string())?;
    if let Some(Ok(mut reader)) = reader {
        // It ends with the pipe.
        let _ = reader.wait();
    }
    match status.code() {
        Some(0) => Ok(()),
        Some(_) => Err(format!("{name:?} ended with {status}")),
        None => Err(format!("{name:?} ended with {status}, as it does after {CLIENT_WITHIN} s")),
    }
}

/// Returns a command that runs this program, and kills it with all that it has started if it takes too long.
pub(super) fn limited(program: &Command) -> Command {
    let mut limited = command("timeout", &["--signal=KILL", CLIENT_WITHIN]);
    append(&mut limited, program);
    limited
}

/// Appends a program with its arguments and environment.
fn append(command: &mut Command, program: &Command) {
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Counts the calls of a running server while a client uses it.
pub(super) fn of_server(
    server: &Server,
    then: AfterClient,
    directory: &Path,
    client: impl FnOnce() -> Result<(), String>,
) -> Result<Calls, String> {
    let summary = directory.join("strace");
    let mut strace = command("strace", &["-f", "-c", "-o"]);
    strace.arg(&summary).args(["-p", &server.id().to_string()]).stderr(Stdio::null());
    let mut strace = strace.spawn().map_err(|error| format!("strace: {error}"))?;
    let interrupt =
        |strace: &Child| check(&mut command("kill", &["-INT", &strace.id().to_string()]));
    let done = attached(server.id()).and_then(|()| client()).and_then(|()| match then {
        // It detaches, and writes the summary.
        AfterClient::KeepsRunning => interrupt(&strace),
        // strace ends with it. Interrupted while the server ends, it would wait for the first thread, which
        // cannot end before the others, which strace has stopped.
        AfterClient::Ends => Ok(()),
    });
    let within = if done.is_ok() { SUMMARY_WITHIN } else { Duration::ZERO };
    let ended = end_within(&mut strace, within).map_err(|why| format!("strace {why}"));
    done.and(ended)?;
    read(&summary)
}

/// Waits until a program ends, and kills it if that takes too long.
fn end_within(program: &mut Child, limit: Duration) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    loop {
        match program.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) if Instant::now() < deadline => sleep(Duration::from_millis(20)),
            Ok(None) => break,
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
    // If it cannot be killed, it has ended by itself.
    let _ = program.kill();
    let _ = program.wait();
    Err(format!("did not end within {} s and was killed", limit.as_secs()))
}

fn attached(id: u32) -> Result<(), String> {
    let deadline = Instant::now() + ATTACHED_WITHIN;
    while Instant::now() < deadline {
        let threads = output(&mut command("sh", &["-c", &format!("cat /proc/{id}/task/*/status")]));
        let threads = threads.unwrap_or_default();
        let mut tracers = threads.lines().filter_map(|line| line.strip_prefix("TracerPid:"));
        if tracers.clone().next().is_some() && tracers.all(|tracer| tracer.trim() != "0") {
            return Ok(());
        }
        sleep(Duration::from_millis(50));
    }
    Err("strace does not attach: is another tracer there, or is it not allowed to?".into())
}

fn read(summary: &Path) -> Result<Calls, String> {
    let text = fs::read_to_string(summary).map_err(|error| format!("{summary:?}: {error}"))?;
    let calls = parse(&text);
    if calls.all == 0 { Err(format!("strace counted nothing: {text}")) } else { Ok(calls) }
}

/// Parses a summary: on each line the share of time, two times, the number of calls, of errors if there were any, and
/// the name.
fn parse(summary: &str) -> Calls {
    let mut calls = Calls::default();
    for line in summary.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(name), Some(Ok(count))) =
            (words.last(), words.get(3).map(|it| it.parse::<u64>()))
        else {
            continue;
        };
        if *name == "total" {
            continue;
        }
        calls.all += count;
        if *name == "futex" {
            calls.futex += count;
        } else if READING.contains(name) {
            calls.reading += count;
        } else if WRITING.contains(name) {
            calls.writing += count;
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_parsed() {
        let summary = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n \
             61.02    0.011206           3      2938        17 recvfrom\n \
             24.60    0.004518           4       995           futex\n  \
              8.00    0.001000           4       100           writev\n  \
              6.38    0.001171          16        70         5 openat\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.018365           4      4103        22 total\n";
        let parsed = parse(summary);
        assert_eq!(parsed, Calls { all: 4103, futex: 995, reading: 2938, writing: 100 });
    }
    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let mut endless = Command::new("sleep").arg("infinity").spawn().unwrap();
        let error = end_within(&mut endless, Duration::ZERO).unwrap_err();
        assert_eq!(error, "did not end within 0 s and was killed");
        assert!(!endless.wait().unwrap().success());
        let mut short = Command::new("true").spawn().unwrap();
        assert_eq!(end_within(&mut short, Duration::from_secs(60)), Ok(()));
    }

    #[test]
    fn a_limited_program_has_its_arguments_and_environment() {
        let mut program = Command::new("sh");
        program.args(["-c", "test \"$WORD $0\" = 'one two'", "two"]).env("WORD", "one");
        assert_eq!(run_into_pipe(&program), Ok(()));
        let error = run_into_pipe(program.env("WORD", "no")).unwrap_err();
        assert_eq!(error, "\"sh\" ended with exit status: 1");
    }
}
