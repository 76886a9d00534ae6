//! `eyas memory`, and memory files in every condition.

use std::fs;

use eyas_http::serve::personality::Personality;

use crate::stage::{Eyas, Peer, validate};

#[test]
fn what_is_learnt_is_shown_and_can_be_forgotten() {
    let peer = Peer::start(Personality::Well);
    let state = tempfile::tempdir().expect("a directory");
    let memory = |line: &str| {
        let object = Eyas::new(line).state(state.path()).arg("--json").run().exits(0).json();
        validate("memory", &object);
        object
    };
    assert_eq!(memory("memory")["rows"].as_array().map(Vec::len), Some(0));
    let path = state.path().join("eyas/memory.sqlite");
    assert_eq!(memory("memory path")["path"], path.display().to_string());
    // On a busy machine 50 ms are soon over.
    let line = format!("get --head-start 2s {}", peer.url("/bytes/1"));
    peer.eyas(&line).state(state.path()).run().exits(0);
    let rows = memory("memory list peer.test");
    assert_eq!(rows["rows"][0]["host"], "peer.test");
    assert_eq!(rows["rows"][0]["transport"], "quic");
    assert_eq!(rows["rows"][0]["verdict"], "good");
    assert_eq!(memory("memory list other.test")["rows"].as_array().map(Vec::len), Some(0));
    let table = Eyas::new("memory").state(state.path()).run().exits(0).out;
    assert!(table.contains("peer.test") && table.contains("good for"), "{table}");
    assert!(memory("memory forget peer.test")["forgotten"].as_u64().is_some_and(|gone| gone > 0));
    assert_eq!(memory("memory list peer.test")["rows"].as_array().map(Vec::len), Some(0));
    memory("memory clear");
    assert_eq!(memory("memory")["rows"].as_array().map(Vec::len), Some(0));
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let peer = Peer::start(Personality::Well);
    let state = tempfile::tempdir().expect("a directory");
    peer.eyas(&format!("get {}", peer.url("/bytes/1"))).state(state.path()).run().exits(0);
    let file = fs::metadata(state.path().join("eyas/memory.sqlite")).expect("it is there");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn none_leaves_no_trace() {
    let peer = Peer::start(Personality::Well);
    let state = tempfile::tempdir().expect("a directory");
    let line = format!("get --memory none {}", peer.url("/bytes/1"));
    peer.eyas(&line).state(state.path()).run().exits(0);
    assert!(fs::read_dir(state.path()).expect("a directory").next().is_none());
}

#[test]
fn a_damaged_file_is_set_aside_and_never_fatal() {
    let peer = Peer::start(Personality::Well);
    let path = peer.directory().join("memory.sqlite");
    fs::write(&path, b"this is no database, and never was one").expect("writes");
    let line = format!("get --memory memory.sqlite {}", peer.url("/bytes/3"));
    let got = peer.eyas(&line).run().exits(0);
    assert_eq!(got.length, 3);
    assert!(got.err.contains("memory"), "{}", got.err);
    let again = peer.eyas(&line).run().exits(0);
    assert_eq!(again.err, "", "the new file is fine");
}

#[test]
fn a_place_that_cannot_be_written_is_never_fatal() {
    let peer = Peer::start(Personality::Well);
    fs::write(peer.directory().join("file"), b"").expect("writes");
    let line = format!("get --memory file/memory.sqlite {}", peer.url("/bytes/3"));
    let got = peer.eyas(&line).run().exits(0);
    assert_eq!(got.length, 3);
    assert!(got.err.contains("memory"), "{}", got.err);
}

#[test]
fn a_private_memory_has_nothing_to_show() {
    Eyas::new("memory --memory none").run().exits(2);
}
