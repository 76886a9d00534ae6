//! Tests of intercepted calls with a supervisor. Direct system calls are not distinguished from
//! those made through libc, so the programs are those of the library's tests.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the programs call libc's functions, as C does")]

mod echo;
mod programs;

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use echo::Echo;
use eyas_supervisor::{CallTrap, Supervisor, SupervisorAddress, SupervisorPlace, TrappedProgram};
use programs::{PROGRAM, name_of};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

/// Runs a program, if this process was started as one.
#[test]
fn programs_have_unique_names() {
    programs::begin();
}

/// A supervisor, and a program whose calls are intercepted.
struct Run {
    runtime: Runtime,
    supervisor: Arc<Supervisor<Echo>>,
    child: Child,
    trapped: TrappedProgram,
}

impl Run {
    /// Starts one of `programs`. Returns `None` if the kernel does not support this.
    fn start(program: &str) -> Option<Self> {
        let runtime = Runtime::new().unwrap();
        let runtime_context = runtime.enter();
        let supervisor = Supervisor::start(Echo::default(), &SupervisorPlace::Private).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", name_of(programs_have_unique_names)]);
        command.env(PROGRAM, program).stdout(Stdio::null()).kill_on_drop(true);
        let trap = match CallTrap::set(&mut command) {
            Ok(trap) => trap,
            Err(error) => {
                eprintln!("skipped: the kernel does not support user notification: {error}");
                return None;
            }
        };
        let child = command.spawn().unwrap();
        let trapped = trap.serve(SupervisorAddress::parse(supervisor.address()).unwrap()).unwrap();
        drop(runtime_context);
        Some(Self { runtime, supervisor, child, trapped })
    }

    /// Waits until the program has closed a socket, which is how programs signal that they are
    /// ready.
    fn until_ready(&self) {
        while self.supervisor.with_service(|echo| echo.closed.is_empty()) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until everything has ended, and returns the exit status and the closed sockets.
    fn end(mut self) -> (ExitStatus, Vec<u64>) {
        let status = self.runtime.block_on(async {
            let status = self.child.wait().await.unwrap();
            self.trapped.until_ended().await;
            self.supervisor.until_unused().await;
            status
        });
        (status, self.supervisor.with_service(|echo| echo.closed.clone()))
    }
}

/// Runs one of `programs`, and returns the sockets that the service saw closed, or `None` if the
/// kernel does not support this.
fn run(program: &str) -> Option<Vec<u64>> {
    let (status, closed) = Run::start(program)?.end();
    assert!(status.success(), "{program}: {status}");
    Some(closed)
}

#[test]
fn a_message_is_received_in_parts() {
    if let Some(closed) = run("message") {
        assert_eq!(closed, [1]);
    }
}

#[test]
fn poll_shows_what_the_socket_is_ready_for() {
    run("readiness");
}

#[test]
fn each_message_is_an_edge() {
    run("edges");
}

#[test]
fn too_many_arguments_are_refused_as_by_the_kernel() {
    run("too_many");
}

#[test]
fn calls_wait_until_they_can_proceed() {
    run("waiting");
}

#[test]
fn timeouts_and_signals_end_a_wait() {
    run("limits");
}

#[test]
fn signals_lose_no_message() {
    run("interrupted");
}

#[test]
fn connects_report_their_outcome() {
    run("connecting");
}

#[test]
fn a_socket_lives_until_its_last_descriptor_is_closed() {
    if let Some(mut closed) = run("copies") {
        // Closes are not reported here, and the tasks that watch descriptors run in any order.
        closed.sort_unstable();
        assert_eq!(closed, [1, 2]);
    }
}

#[test]
fn a_program_that_closes_all_descriptors_continues() {
    run("closing");
}

#[test]
fn other_protocols_are_passed_to_the_kernel() {
    if let Some(closed) = run("others") {
        assert_eq!(closed, [] as [u64; 0]);
    }
}

#[test]
fn a_program_that_is_killed_leaves_no_socket() {
    let Some(mut run) = Run::start("endless") else { return };
    run.until_ready();
    run.child.start_kill().unwrap();
    assert_eq!(run.end().1.len(), 2);
}

#[test]
fn a_service_that_ends_hangs_up_on_its_programs() {
    let Some(run) = Run::start("ended") else { return };
    run.until_ready();
    run.supervisor.end();
    let (status, closed) = run.end();
    assert!(status.success(), "{status}");
    assert_eq!(closed, [2, 1]);
}
