//! Access logs that are rotated, and on disks that are full.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_renamed_log_is_opened_again_after_sighup() {
    let server = Server::start("--plain --log access.log", |_| {});
    let lines =
        |name: &str| fs::read_to_string(server.path(name)).map_or(0, |text| text.lines().count());
    server.ask(GET);
    server.running.until("logs the first", || lines("access.log") == 1);
    fs::rename(server.path("access.log"), server.path("access.log.1")).expect("renames");
    server.ask(GET);
    server.running.until("goes on in the old file", || lines("access.log.1") == 2);
    server.running.signal("HUP");
    server.running.wait_for_stderr("reopened access.log");
    server.ask(GET);
    server.running.until("goes on in a new file", || lines("access.log") == 1);
    assert_eq!(lines("access.log.1"), 2);
    server.stop();
}

#[test]
fn the_log_goes_on_after_the_disk_was_full() {
    let server = Server::start("--plain --log access.log", |directory| {
        symlink("/dev/full", directory.join("access.log")).expect("links");
    });
    server.ask(GET);
    server.running.wait_for_stderr("cannot write access.log: No space left");
    // They are served, and nothing more is said.
    for _ in 0..4 {
        assert!(server.ask(GET).starts_with("HTTP/1.1 200 "));
    }
    fs::remove_file(server.path("access.log")).expect("removes");
    server.running.signal("HUP");
    server.running.wait_for_stderr("reopened access.log");
    server.ask(GET);
    server.running.wait_for_stderr("access.log goes on; requests that are not in it: 5");
    server.running.signal("TERM");
    let Server { directory, running, .. } = server;
    let finished = running.end().exits(0);
    assert_eq!(finished.err.matches("No space left").count(), 1, "{}", finished.err);
    assert_eq!(finished.err.matches("goes on;").count(), 1, "{}", finished.err);
    let text = fs::read_to_string(directory.path().join("access.log")).expect("a log");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn what_is_lost_at_the_end_is_a_failure() {
    let server = Server::start("--plain --log /dev/full", |_| {});
    server.ask(GET);
    server.running.wait_for_stderr("No space left");
    server.running.signal("TERM");
    let finished = server.running.end().exits(23);
    assert!(finished.err.contains("requests that are not in /dev/full: 1"), "{}", finished.err);
}
