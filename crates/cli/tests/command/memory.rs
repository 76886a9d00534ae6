//! Tests of `eyas memory`, and of damaged and invalid memory files.

use std::fs;

use eyas_testserver::ServerPersonality;

use serde_json::Value;

use crate::stage::{Eyas, Peer, validate};

#[test]
fn the_memory_is_shown_and_can_be_deleted() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let state = tempfile::tempdir().expect("a directory");
    let memory = |line: &str| {
        let object = Eyas::new(line).state(state.path()).arg("--json").run().exits(0).json();
        validate("memory", &object);
        object
    };
    assert_eq!(memory("memory")["rows"].as_array().map(Vec::len), Some(0));
    let path = state.path().join("eyas/memory.sqlite");
    assert_eq!(memory("memory path")["path"], path.display().to_string());
    // On a busy machine, the default of 30 ms is too short.
    let line = format!("get --head-start 2s {}", peer.url("/bytes/1"));
    peer.eyas(&line).state(state.path()).run().exits(0);
    let rows = memory("memory list peer.test");
    assert_eq!(rows["rows"][0]["host"], "peer.test");
    assert_eq!(rows["rows"][0]["transport"], "quic");
    assert_eq!(rows["rows"][0]["verdict"], "good");
    assert_eq!(memory("memory list other.test")["rows"].as_array().map(Vec::len), Some(0));
    let table = Eyas::new("memory").state(state.path()).run().exits(0).out;
    assert!(table.contains("peer.test") && table.contains("good for"), "{table}");
    // The network has a name, on a separate line, and its properties are described in words.
    let all = memory("memory");
    let name = all["rows"][0]["network_name"].as_str().expect("the network has a name");
    assert!(table.starts_with(name), "{name} heads {table}");
    assert!(!table.contains("v4:") && table.contains("IPv4, port"), "{table}");
    assert!(memory("memory forget peer.test")["forgotten"].as_u64().is_some_and(|gone| gone > 0));
    assert_eq!(memory("memory list peer.test")["rows"].as_array().map(Vec::len), Some(0));
    memory("memory clear");
    assert_eq!(memory("memory")["rows"].as_array().map(Vec::len), Some(0));
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let peer = Peer::start(ServerPersonality::Healthy);
    let state = tempfile::tempdir().expect("a directory");
    peer.eyas(&format!("get {}", peer.url("/bytes/1"))).state(state.path()).run().exits(0);
    let file = fs::metadata(state.path().join("eyas/memory.sqlite")).expect("it is there");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

/// Whatever the environment has in place of a home directory: the run goes on, with a warning.
#[test]
fn without_a_home_there_is_a_warning_and_no_memory() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("get --connect-timeout 20s {}", peer.url("/bytes/1"));
    let unset: [&[(&str, &str)]; 4] = [
        &[],
        &[("HOME", "")],
        &[("HOME", "relative")],
        &[("XDG_STATE_HOME", "relative"), ("HOME", "also/relative")],
    ];
    for environment in unset {
        for command in [line.as_str(), &line.replace("get", "race"), &line.replace("get", "plan")] {
            let mut run = peer.eyas(command).command();
            run.env_clear().envs(environment.iter().copied());
            let output = run.output().expect("it runs");
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{environment:?}: {command}: {err}");
            let warning = "eyas: memory: neither XDG_STATE_HOME nor HOME";
            assert!(err.contains(warning), "{environment:?}: {command}: {err}");
        }
        let mut show = Eyas::new("memory").command();
        let shown = show.env_clear().envs(environment.iter().copied()).output().expect("it runs");
        assert_eq!(shown.status.code(), Some(110), "there is nothing to show");
    }
}

/// A directory that cannot be created.
#[test]
fn an_unusable_home_is_a_warning() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let line = format!("get --connect-timeout 20s {}", peer.url("/bytes/1"));
    for home in ["/dev/null", "/proc/nonexistent"] {
        let output = peer.eyas(&line).command().env_clear().env("HOME", home).output();
        let output = output.expect("it runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{home}: {err}");
        assert!(err.contains("eyas: memory: memory file"), "{home}: {err}");
    }
}

#[test]
fn none_writes_no_file() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let state = tempfile::tempdir().expect("a directory");
    let line = format!("get --memory none {}", peer.url("/bytes/1"));
    peer.eyas(&line).state(state.path()).run().exits(0);
    assert!(fs::read_dir(state.path()).expect("a directory").next().is_none());
}

/// QUIC works with `h3`; without it the server refuses QUIC. That does not affect `h3`, and shows
/// that UDP works.
#[test]
fn a_protocol_that_was_not_offered_is_not_held_against_another() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let state = tempfile::tempdir().expect("a directory");
    let get = || {
        let line = format!("get --head-start 2s --json {}", peer.url("/bytes/1"));
        peer.eyas(&line).state(state.path()).run().exits(0).json()
    };
    assert_eq!(get()["connection"]["transport"], "quic");
    let line = format!("race --all quic+tcp://peer.test:{}", peer.port());
    let race = peer.eyas(&line).state(state.path()).run().exits(0);
    assert!(!race.out.contains("nothing comes back"), "{}", race.out);
    let rows = Eyas::new("memory --json").state(state.path()).run().exits(0).json();
    let of_quic = |row: &&Value| row["transport"] == "quic" && !row["host"].is_null();
    let rows = rows["rows"].as_array().expect("rows").iter().filter(of_quic);
    let mut verdicts: Vec<String> =
        rows.map(|row| format!("{} {}", row["alpn"], row["verdict"])).collect();
    verdicts.sort();
    assert_eq!(verdicts, [r#"["h3"] "good""#, r#"[] "bad""#]);
    let line = format!("plan --json {}", peer.url("/"));
    let plan = peer.eyas(&line).state(state.path()).run().exits(0).json();
    assert_eq!(plan["entries"][0]["transport"], "quic", "{plan}");
    assert_eq!(plan["entries"][0]["from_memory"], true, "{plan}");
    assert_eq!(get()["connection"]["transport"], "quic");
}

/// Without `--cacert` the certificate is not accepted; with it everything works as before.
#[test]
fn a_missing_root_does_not_count_against_runs_that_give_it() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let state = tempfile::tempdir().expect("a directory");
    let get = || {
        let line = format!("get --head-start 2s --json {}", peer.url("/bytes/1"));
        peer.eyas(&line).state(state.path()).run().exits(0).json()
    };
    assert_eq!(get()["connection"]["transport"], "quic");
    let without_root = Eyas::new(&format!("race --all {}", peer.url("/")))
        .arg("--resolve")
        .arg(format!("peer.test:{}:127.0.0.1", peer.port()))
        .state(state.path())
        .run();
    assert_ne!(without_root.code, Some(0), "{}", without_root.out);
    let line = format!("plan --json {}", peer.url("/"));
    let plan = peer.eyas(&line).state(state.path()).run().exits(0).json();
    assert_eq!(plan["entries"][0]["transport"], "quic", "{plan}");
    assert_eq!(plan["entries"][0]["from_memory"], true, "{plan}");
    assert_eq!(get()["connection"]["transport"], "quic");
    let table = Eyas::new("memory").state(state.path()).run().exits(0).out;
    assert!(table.contains("roots "), "{table}");
}

/// A mistyped path must not change a file: neither its content nor its mode.
#[cfg(unix)]
#[test]
fn a_file_that_is_not_a_memory_is_left_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let peer = Peer::start(ServerPersonality::Healthy);
    let text = peer.directory().join("notes");
    fs::write(&text, b"this is no database, and never was one").expect("writes");
    fs::set_permissions(&text, fs::Permissions::from_mode(0o664)).expect("it is ours");
    symlink("notes", peer.directory().join("link")).expect("makes a link");
    symlink("nowhere", peer.directory().join("dangling")).expect("makes a link");
    let names = || {
        let entries = fs::read_dir(peer.directory()).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for file in ["notes", "link", "dangling"] {
        let line = format!("get --memory {file} {}", peer.url("/bytes/3"));
        let finished = peer.eyas(&line).run().exits(0);
        assert_eq!(finished.length, 3, "it is never fatal to a request");
        assert!(finished.err.contains("is not an eyas memory"), "{}", finished.err);
        assert!(finished.err.contains("nothing was changed"), "{}", finished.err);
        for action in ["list", "clear", "forget peer.test"] {
            let line = format!("memory --memory {file} {action}");
            let verdicts = Eyas::new(&line).within(&peer.directory()).run().exits(110);
            assert!(verdicts.err.contains("is not an eyas memory"), "{}", verdicts.err);
        }
    }
    assert_eq!(names(), before);
    assert_eq!(fs::read(&text).expect("reads"), b"this is no database, and never was one");
    assert_eq!(fs::metadata(&text).expect("it is there").permissions().mode() & 0o777, 0o664);
}

#[test]
fn damaged_memories_are_set_aside_and_never_fatal() {
    let peer = Peer::start(ServerPersonality::Healthy);
    let path = peer.directory().join("memory.sqlite");
    let line = format!("get --memory memory.sqlite {}", peer.url("/bytes/3"));
    peer.eyas(&line).run().exits(0);
    // Within about one second.
    for _ in 0..3 {
        let undamaged = fs::read(&path).expect("reads");
        fs::write(&path, &undamaged[..512]).expect("writes");
        let finished = peer.eyas(&line).run().exits(0);
        assert_eq!(finished.length, 3);
        assert!(finished.err.contains("set aside"), "{}", finished.err);
    }
    let next = peer.eyas(&line).run().exits(0);
    assert_eq!(next.err, "", "the new file is fine");
    let entries = fs::read_dir(peer.directory()).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let aside = names.filter(|name| name.to_string_lossy().contains(".damaged-")).count();
    assert_eq!(aside, 3, "none took the place of another");
}

#[test]
fn an_unwritable_directory_is_never_fatal() {
    let peer = Peer::start(ServerPersonality::Healthy);
    fs::write(peer.directory().join("file"), b"").expect("writes");
    let line = format!("get --memory file/memory.sqlite {}", peer.url("/bytes/3"));
    let finished = peer.eyas(&line).run().exits(0);
    assert_eq!(finished.length, 3);
    assert!(finished.err.contains("memory"), "{}", finished.err);
}

#[test]
fn a_private_memory_has_nothing_to_show() {
    Eyas::new("memory --memory none").run().exits(2);
}
