//! Calls that a filter stops, and a supervisor, together: what makes system calls of its own is not
//! told apart from what goes by libc, so the programs are those of the library's tests.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "programs call libc's functions, as C does")]

mod echo;
mod programs;

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use echo::Echo;
use eyas_supervisor::{Address, Place, Supervisor, Trap, Trapped};
use programs::PROGRAM;
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

/// Begins a program, where this process is to be one.
#[test]
fn programs_have_names_of_their_own() {
    programs::begin();
}

/// A supervisor, and a program whose calls stop for it.
struct Run {
    runtime: Runtime,
    supervisor: Arc<Supervisor<Echo>>,
    child: Child,
    trapped: Trapped,
}

impl Run {
    /// Begins one of `programs`. None where the kernel does not do this.
    fn begin(program: &str) -> Option<Self> {
        let runtime = Runtime::new().unwrap();
        let inside = runtime.enter();
        let supervisor = Supervisor::start(Echo::default(), &Place::Private).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", "programs_have_names_of_their_own"]);
        command.env(PROGRAM, program).stdout(Stdio::null()).kill_on_drop(true);
        let trap = match Trap::set(&mut command) {
            Ok(trap) => trap,
            Err(error) => {
                eprintln!("skipped: the kernel stops no calls: {error}");
                return None;
            }
        };
        let child = command.spawn().unwrap();
        let trapped = trap.serve(Address::parse(supervisor.address()).unwrap()).unwrap();
        drop(inside);
        Some(Self { runtime, supervisor, child, trapped })
    }

    /// Waits until the program has closed a socket.
    fn until_it_signs(&self) {
        while self.supervisor.with(|echo| echo.closed.is_empty()) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end of all; gives what the service saw.
    fn end(mut self) -> (ExitStatus, Vec<u64>) {
        let status = self.runtime.block_on(async {
            let status = self.child.wait().await.unwrap();
            self.trapped.until_ended().await;
            self.supervisor.until_unused().await;
            status
        });
        (status, self.supervisor.with(|echo| echo.closed.clone()))
    }
}

/// Runs one of `programs`; gives what the service saw. None where the kernel does not do this.
fn run(program: &str) -> Option<Vec<u64>> {
    let (status, closed) = Run::begin(program)?.end();
    assert!(status.success(), "{program}: {status}");
    Some(closed)
}

#[test]
fn a_message_comes_back_in_parts() {
    if let Some(closed) = run("message") {
        assert_eq!(closed, [1]);
    }
}

#[test]
fn poll_shows_what_the_socket_is_ready_for() {
    run("readiness");
}

#[test]
fn calls_wait_until_they_can_proceed() {
    run("waiting");
}

#[test]
fn a_time_limit_and_a_signal_end_a_wait() {
    run("limits");
}

#[test]
fn signals_take_no_message_away() {
    run("interrupted");
}

#[test]
fn connects_report_their_outcome() {
    run("connecting");
}

#[test]
fn a_socket_lives_until_its_last_descriptor_is_closed() {
    if let Some(mut closed) = run("copies") {
        // Nobody says when a descriptor is closed, and what watches them runs in any order.
        closed.sort_unstable();
        assert_eq!(closed, [1, 2]);
    }
}

#[test]
fn a_program_that_closes_all_descriptors_continues() {
    run("closing");
}

#[test]
fn other_protocols_go_to_the_kernel() {
    if let Some(closed) = run("others") {
        assert_eq!(closed, [] as [u64; 0]);
    }
}

#[test]
fn a_program_that_is_killed_leaves_no_socket() {
    let Some(mut run) = Run::begin("endless") else { return };
    run.until_it_signs();
    run.child.start_kill().unwrap();
    assert_eq!(run.end().1.len(), 2);
}

#[test]
fn a_service_that_ends_hangs_up_on_its_programs() {
    let Some(run) = Run::begin("ended") else { return };
    run.until_it_signs();
    run.supervisor.end();
    let (status, closed) = run.end();
    assert!(status.success(), "{status}");
    assert_eq!(closed, [2, 1]);
}
