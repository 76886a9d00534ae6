//! Tests of the preloaded library with its supervisor. The programs that run under the library are
//! this test binary itself, started again as a child process.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the programs call libc's functions, as C does")]

mod echo;
mod programs;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use echo::Echo;
use eyas_supervisor::local::ENVIRONMENT;
use eyas_supervisor::{PreloadedLibrary, Supervisor, SupervisorPlace};
use programs::{PROGRAM, name_of};

/// Runs a program, if this process was started as one.
#[test]
fn programs_have_unique_names() {
    programs::begin();
}

/// Runs one of `programs` under the library, and returns the sockets that the service saw closed.
fn run(program: &str) -> Vec<u64> {
    run_with(false, program, |echo| echo.closed.clone())
}

/// Runs one of `programs` under the library, where it may write its messages to its descriptors or
/// not, and returns what the service saw.
fn run_with<T>(lets_write: bool, program: &str, seen: impl FnOnce(&mut Echo) -> T) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &SupervisorPlace::Private).unwrap();
    supervisor.with_service(|echo| echo.lets_write = lets_write);
    let library = PreloadedLibrary::new().unwrap();
    let status = under(program, &library, &supervisor).status().unwrap();
    assert!(status.success(), "{program}: {status}");
    runtime.block_on(supervisor.until_unused());
    supervisor.with_service(seen)
}

/// Runs one of `programs` whose messages may be written to its descriptors, and returns how many
/// were, and how many there were in all.
fn run_writing(program: &str) -> (usize, usize) {
    run_with(true, program, |echo| (echo.written, echo.sent))
}

fn under(program: &str, library: &PreloadedLibrary, supervisor: &Arc<Supervisor<Echo>>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--nocapture", name_of(programs_have_unique_names)])
        .env(PROGRAM, program)
        .env("LD_PRELOAD", library.path())
        .env(ENVIRONMENT, supervisor.address())
        .stdout(Stdio::null());
    command
}

#[test]
fn a_message_is_received_in_parts() {
    assert_eq!(run("message"), [1]);
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

//= hostile sctp-run
//# data written without a call, as with stdio
//= bound: `MAX_WRITTEN` at a time
#[test]
fn stdio_sends_what_it_writes() {
    run("stdio");
}

#[test]
fn a_number_can_come_to_mean_another_descriptor() {
    run("ranges");
    run("passed");
}

#[test]
fn a_call_that_waits_keeps_its_socket_open() {
    assert_eq!(run("closed_elsewhere"), [1]);
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
fn a_message_that_opens_an_association_waits_for_it() {
    run("opening");
}

#[test]
fn a_socket_lives_until_its_last_descriptor_is_closed() {
    assert_eq!(run("copies"), [1, 2]);
}

#[test]
fn children_share_sockets() {
    assert_eq!(run("children"), [1]);
}

#[test]
fn a_program_that_closes_all_descriptors_continues() {
    run("closing");
}

#[test]
fn a_thread_that_waits_can_be_cancelled() {
    run("cancelled");
}

#[test]
fn other_protocols_are_passed_to_the_kernel() {
    assert_eq!(run("others"), [] as [u64; 0]);
}

#[test]
fn written_messages_are_received_in_order() {
    let (written, sent) = run_writing("in_order");
    assert_eq!(sent - written, 16, "requests");
}

#[test]
fn a_full_buffer_blocks_and_hides_pollout() {
    run_writing("full");
}

#[test]
fn a_request_that_waits_hides_pollout_again() {
    run_writing("request_when_full");
}

#[test]
fn the_end_of_an_association_is_an_error_at_once() {
    run_writing("ended_while_writing");
}

#[test]
fn processes_write_to_the_same_socket() {
    run_writing("forked");
}

#[test]
fn closing_loses_no_written_message() {
    let (written, sent) = run_writing("closed_with_unsent");
    assert_eq!((written, sent), (15, 31));
}

#[test]
fn an_option_is_set_after_what_was_written_before() {
    run_writing("option");
}

//= hostile sctp-run
//# other data written to a descriptor in the place of messages
//= bound: `MAX_WRITTEN`; further writes fail
#[test]
fn invalid_messages_harm_only_their_own_socket() {
    run_writing("garbage");
}

#[test]
fn a_program_that_is_killed_leaves_no_socket() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &SupervisorPlace::Private).unwrap();
    let library = PreloadedLibrary::new().unwrap();
    let mut child = under("endless", &library, &supervisor).spawn().unwrap();
    while supervisor.with_service(|echo| echo.closed.is_empty()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    runtime.block_on(supervisor.until_unused());
    assert_eq!(supervisor.with_service(|echo| echo.closed.len()), 2);
}

#[test]
fn a_program_gets_errors_without_its_supervisor() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let library = PreloadedLibrary::new().unwrap();
    let mut child = {
        let _runtime_context = runtime.enter();
        let supervisor = Supervisor::start(Echo::default(), &SupervisorPlace::Private).unwrap();
        let child = under("abandoned", &library, &supervisor).spawn().unwrap();
        while supervisor.with_service(|echo| echo.closed.is_empty()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    };
    runtime.shutdown_background();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_service_that_ends_hangs_up_on_its_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a socket");
    let place = SupervisorPlace::Path { path: path.clone(), mode: 0o600 };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _runtime_context = runtime.enter();
    let supervisor = Supervisor::start(Echo::default(), &place).unwrap();
    let library = PreloadedLibrary::new().unwrap();
    let mut child = under("ended", &library, &supervisor).spawn().unwrap();
    while supervisor.with_service(|echo| echo.closed.is_empty()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    supervisor.end();
    assert!(!path.exists());
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(supervisor.with_service(|echo| echo.closed.clone()), [2, 1]);
}
