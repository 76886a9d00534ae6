//! Tests of the output of `eyas get`: pipes, existing files, and cleaning up.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Eyas, Faulty, Peer, Running, validate};
use eyas_testserver::ServerPersonality;

/// Returns a new directory, and a pipe in it without a reader.
fn pipe() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    let created = Command::new("mkfifo").arg(&pipe).status();
    assert!(created.expect("mkfifo is there").success());
    (directory, pipe)
}

/// Returns the temporary files of incomplete bodies.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "part")).collect()
}

/// Starts a run that has received ten bytes of a body and waits for more.
fn stalled(directory: &Path, flags: &str) -> Running {
    let line = format!("get {flags} http://{}/ -o", Faulty::Stalls.start());
    let run = Eyas::new(&line).arg(directory.join("body")).start();
    run.until("writes a part", || {
        parts(directory).iter().any(|part| fs::metadata(part).is_ok_and(|part| part.len() == 10))
    });
    run
}

//= hostile client
//# a pipe without a reader, or one that stalls
//= bound: `--max-time`; after a signal `EXIT_TIMEOUT`
#[test]
fn opening_a_pipe_without_a_reader_is_aborted() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let (_directory, pipe) = pipe();
    let line = format!("get --json --max-time 1s {}", peer.url("/bytes/10"));
    let object = peer.eyas(&line).arg("-o").arg(&pipe).run().exits(28).json();
    validate("error", &object);
    for (signal, code) in endings() {
        let line = format!("get {}", peer.url("/bytes/10"));
        let run = peer.eyas(&line).arg("-o").arg(&pipe).start();
        run.until("opens the pipe", || handles_sigterm(&run));
        run.signal(signal);
        assert_eq!(run.end().code, Some(code), "{signal}");
    }
}

/// Returns the signals that end a run, with their exit codes. Under nohup, SIGHUP is ignored here
/// and in every run.
pub(crate) fn endings() -> Vec<(&'static str, i32)> {
    let mut endings = vec![("TERM", 143), ("INT", 130), ("HUP", 129)];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if ignored.is_some_and(|mask| mask & 1 == 1) {
        eprintln!("SKIPPED SIGHUP: it is ignored here");
        endings.pop();
    }
    endings
}

/// Returns whether a run handles SIGTERM, bit 14 of the caught signals.
fn handles_sigterm(run: &Running) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap_or_default();
    let caught_signals = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught_signals = caught_signals.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught_signals.is_some_and(|mask| mask >> 14 & 1 == 1)
}

#[test]
fn opening_a_pipe_waits_for_a_reader() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let (_directory, pipe) = pipe();
    let line = format!("get {}", peer.url("/bytes/100000"));
    let run = peer.eyas(&line).arg("-o").arg(&pipe).start();
    // The reader hangs without a writer, so the run is checked first.
    let reader = std::thread::spawn(move || fs::read(&pipe));
    run.end().exits(0);
    assert_eq!(reader.join().expect("reads").expect("a pipe").len(), 100_000);
}

#[test]
fn a_stopped_reader_does_not_block_a_run() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let (_directory, pipe) = pipe();
    let line = format!("get --max-time 2s {}", peer.url("/bytes/10000000"));
    let run = peer.eyas(&line).arg("-o").arg(&pipe).start();
    let reader = std::thread::spawn(move || fs::File::open(&pipe));
    run.end().exits(28);
    drop(reader.join().expect("opens").expect("a pipe"));
}

#[test]
fn missing_input_does_not_block_a_run() {
    let (_directory, pipe) = pipe();
    let run = Eyas::new("get https://127.0.0.1:1/ -d").arg(format!("@{}", pipe.display())).start();
    run.until("listens", || handles_sigterm(&run));
    run.signal("TERM");
    assert_eq!(run.end().code, Some(143));
    let object = Eyas::new("get --json --max-time 500ms https://127.0.0.1:1/ -d")
        .arg(format!("@{}", pipe.display()))
        .run()
        .exits(28)
        .json();
    validate("error", &object);
}

#[test]
fn an_interrupt_reports_the_removed_file() {
    for (signal, code) in endings() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("body"), b"old").expect("writes");
        let run = stalled(directory.path(), "");
        run.signal(signal);
        let ended = run.end();
        assert_eq!(ended.code, Some(code), "{}", ended.err);
        assert!(ended.err.contains("the 10 bytes received so far were removed"), "{}", ended.err);
        assert_eq!(fs::read(directory.path().join("body")).expect("reads"), b"old");
        assert_eq!(parts(directory.path()), Vec::<PathBuf>::new(), "{signal}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let run = stalled(directory.path(), "--json");
    run.signal("INT");
    let object: serde_json::Value = serde_json::from_str(&run.end().out).expect("an object");
    validate("error", &object);
    assert_eq!(object["error"]["hint"], "the 10 bytes received so far were removed");
}

#[test]
fn a_command_survives_its_terminal() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = format!("http://{}/", Faulty::Stalls.start());
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_eyas")).args(["get", "--max-time", "60s", &line, "-o", "body"]);
    command.env("EYAS_MEMORY", "none").current_dir(directory.path());
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("nohup is there");
    let kill = |signal: &str, id: u32| {
        let sent = Command::new("kill").args(["-s", signal, &id.to_string()]).status();
        assert!(sent.expect("kill is there").success());
    };
    while parts(directory.path()).is_empty() {
        assert_eq!(child.try_wait().expect("a child"), None, "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill("HUP", child.id());
    // Signals are handled in order, if SIGHUP is handled at all.
    kill("TERM", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
}

#[test]
fn existing_files_keep_their_kind_and_mode() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let page = peer.directory().join("page");
    fs::write(&page, b"old").expect("writes");
    fs::set_permissions(&page, fs::Permissions::from_mode(0o600)).expect("is its owner");
    std::os::unix::fs::symlink("page", peer.directory().join("link")).expect("links");
    for name in ["page", "link"] {
        let line = format!("get {} -o {name}", peer.url("/bytes/100"));
        peer.eyas(&line).run().exits(0);
        let found = fs::metadata(&page).expect("it is there");
        assert_eq!((found.len(), found.permissions().mode() & 0o777), (100, 0o600), "{name}");
    }
    let server = Faulty::NotModified.start();
    let line = format!("get http://{server}/ -o page -H If-None-Match:x");
    Eyas::new(&line).within(&peer.directory()).run().exits(0);
    assert_eq!(fs::metadata(&page).expect("it is there").len(), 100);
}

#[test]
fn passwords_are_never_shown() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let url = peer.url("/bytes/10").replace("://", "://ada:secret@");
    let object = peer.eyas(&format!("get --json {url}")).run().exits(0);
    assert!(!object.out.contains("secret"), "{}", object.out);
    let url = object.json()["url"].as_str().expect("a URL").to_owned();
    assert!(url.contains("://ada:***@"), "{url}");
    for line in [
        format!("get -v {url}"),
        format!("get -O {}", peer.url("/").replace("://", "://ada:secret@")),
        format!("get --fail {}", peer.url("/status/404").replace("://", "://ada:secret@")),
        "get https://ada:secret@127.0.0.1:1/".to_owned(),
        "get https://ada:secret@127.0.0.1:99999/".to_owned(),
        "race ada:secret@peer.test:x".to_owned(),
    ] {
        let ended = peer.eyas(&line).run();
        assert!(!ended.err.contains("secret") && !ended.out.contains("secret"), "{}", ended.err);
    }
    let line = format!("get -v {}", peer.url("/bytes/10"));
    let text = peer.eyas(&line).arg("-H").arg("Authorization: secret").run().exits(0);
    assert!(!text.err.contains("secret") && text.err.contains("(not shown)"), "{}", text.err);
}
