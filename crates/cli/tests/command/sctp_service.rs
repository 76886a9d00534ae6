//! Tests of `eyas sctp serve`, `run --join` and `status`, without programs that use SCTP.

use std::path::Path;

use crate::stage::{Eyas, Running, validate};

const EYAS: &str = env!("CARGO_BIN_EXE_eyas");

/// Starts a server at a path, and waits until it answers.
fn serving(path: &Path, more: &str) -> Running {
    let eyas = Eyas::new("sctp serve --udp --json --socket").arg(path);
    let eyas = more.split_whitespace().fold(eyas, |eyas, word| eyas.arg(word));
    let running = eyas.start();
    // The file exists slightly before the server answers, so its status is requested.
    running.until("it serves", || {
        let status = Eyas::new("sctp status --json --socket").arg(path).run();
        status.code == Some(0)
    });
    running
}

#[test]
fn within_a_command_status_shows_its_own() {
    let line = format!("sctp run --udp --multipath -- {EYAS} sctp status --json");
    let object = Eyas::new(&line).run().exits(0).json();
    validate("sctp-status", &object);
    let supervisors = object["supervisors"].as_array().expect("a list");
    assert_eq!(supervisors.len(), 1, "{object:#}");
    assert_eq!(supervisors[0]["serves"], format!("{EYAS} sctp status --json"));
    assert_eq!(supervisors[0]["carrier"], "udp");
    assert_eq!(supervisors[0]["multipath"], true);
}

#[test]
fn programs_join_the_server_at_a_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sctp");
    let library = folder.path().join("sctp.so");
    let running = serving(&path, &format!("--mode 660 --library {}", library.display()));
    assert!(library.exists());
    let join = |what: &str| {
        let eyas = Eyas::new("sctp run --join").arg(&path);
        what.split_whitespace().fold(eyas.arg("--"), |eyas, word| eyas.arg(word))
    };
    let object = join(&format!("{EYAS} sctp status --json")).run().exits(0).json();
    validate("sctp-status", &object);
    let socket = path.to_str().expect("text");
    assert_eq!(object["supervisors"][0]["serves"], socket);
    assert_eq!(object["supervisors"].as_array().map(Vec::len), Some(1));
    let page = Eyas::new("sctp status").run().exits(0).out;
    assert!(page.contains("SCTP inside UDP, port "), "{page}");
    assert_eq!(join("sh -c").arg("exit 7").run().code, Some(7));
    let second = Eyas::new("sctp serve --udp --socket").arg(&path).run().exits(45);
    assert!(second.err.contains("another process already serves there"), "{}", second.err);
    running.signal("TERM");
    let object = running.end().exits(0).json();
    validate("sctp-serve", &object);
    assert_eq!(object["library"], library.to_str().expect("text"));
    assert!(!path.exists() && !library.exists());
    let late = join("true").run().exits(7);
    assert!(late.err.contains("cannot reach a supervisor there"), "{}", late.err);
}

#[test]
fn background_children_of_the_command_are_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, marker) = (folder.path().join("sctp"), folder.path().join("sign"));
    let running = serving(&path, "");
    let line = format!("(sleep 0.3; touch {}) & exit 3", marker.display());
    let joined = Eyas::new("sctp run --join").arg(&path).arg("--").arg("sh").arg("-c").arg(line);
    joined.run().exits(3);
    assert!(marker.exists(), "it has ended before this");
    running.signal("INT");
    running.end().exits(0);
}

#[test]
fn the_flags_of_an_own_stack_cannot_be_used_with_join() {
    for flag in ["--udp", "--ip", "--multipath", "--local-address=127.0.0.1", "--capture=f"] {
        let refused = Eyas::new(&format!("sctp run --join s {flag} -- true")).run().exits(2);
        assert!(refused.err.contains("cannot be used with"), "{}", refused.err);
    }
    let refused = Eyas::new("sctp serve --mode 9").run().exits(2);
    assert!(refused.err.contains("octal"), "{}", refused.err);
}
