use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use eyas_race::candidate::{Candidate, Origin, Security, Transport};
use eyas_race::evidence::{Cause, Evidence, Failure, Level, NetworkId};
use eyas_race::memory::{Config, Verdict};
use eyas_race::target::Host;

use super::{MemoryStore, now};

fn network() -> NetworkId {
    NetworkId("net/1".into())
}

fn host(name: &str) -> Host {
    Host::Name(name.into())
}

fn candidate(port: u16) -> Candidate {
    Candidate {
        address: SocketAddr::from(([127, 0, 0, 1], port)),
        transport: Transport::Quic,
        security: Security::Tls,
        alpn: vec![],
        ech: None,
        priority: None,
        origin: Origin::Address,
    }
}

fn evidence(name: &str, port: u16, cause: Option<Cause>) -> Evidence {
    Evidence {
        at: now(),
        network: network(),
        host: host(name),
        candidate: candidate(port),
        level: if cause.is_some() { Level::Started } else { Level::Security },
        failure: cause.map(|cause| Failure {
            cause,
            reached: Level::Started,
            detail: String::new(),
        }),
        doubt: None,
        rtt: Some(Duration::from_millis(20)),
        sent_again: None,
    }
}

fn verdict(store: &MemoryStore, name: &str) -> Verdict {
    store.view(&network(), &host(name)).verdict(&candidate(443), now())
}

fn open(path: &Path) -> MemoryStore {
    MemoryStore::open(path, Config::default())
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn two_handles_share_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let (one, other) = (open(&path), open(&path));
    one.learn(&evidence("a.example", 443, None));
    other.learn(&evidence("b.example", 443, Some(Cause::Silent)));
    assert!(matches!(verdict(&other, "a.example"), Verdict::Good { .. }));
    assert!(matches!(verdict(&one, "b.example"), Verdict::Bad { cause: Cause::Silent, .. }));
    drop((one, other));
    let later = open(&path);
    assert!(matches!(verdict(&later, "a.example"), Verdict::Good { .. }));
    assert_eq!(later.warnings(), Vec::<String>::new());
}

#[test]
fn the_file_is_for_its_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("below").join("memory.db");
    let store = open(&path);
    store.learn(&evidence("a.example", 443, None));
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for name in names(path.parent().unwrap()) {
        assert_eq!(mode(&path.parent().unwrap().join(&name)), 0o600, "{name}");
    }
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    open(&path);
    assert_eq!(mode(&path), 0o600, "a mode that was too wide is narrowed");
}

#[test]
fn a_damaged_file_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    std::fs::write(&path, b"this is no database at all, only some text of enough length").unwrap();
    let store = open(&path);
    let warnings = store.warnings();
    assert!(warnings[0].contains("set aside"), "{warnings:?}");
    store.learn(&evidence("a.example", 443, None));
    drop(store);
    assert!(matches!(verdict(&open(&path), "a.example"), Verdict::Good { .. }));
    assert!(names(directory.path()).iter().any(|name| name.starts_with("memory.db.damaged-")));
}

#[test]
fn a_file_cut_in_the_middle_is_set_aside_when_that_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    for n in 0..500 {
        store.learn(&evidence(&format!("host-{n}.example"), 443, None));
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut broken = whole.clone();
    for byte in &mut broken[4096..] {
        *byte = 0xa5;
    }
    std::fs::write(&path, broken).unwrap();
    let store = open(&path);
    store.learn(&evidence("a.example", 443, None));
    assert!(matches!(verdict(&store, "a.example"), Verdict::Good { .. } | Verdict::Unknown));
    store.learn(&evidence("a.example", 443, None));
    assert!(matches!(verdict(&store, "a.example"), Verdict::Good { .. }));
    assert!(!store.warnings().is_empty());
}

#[test]
fn an_unknown_version_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    drop(open(&path));
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 999).unwrap();
    drop(raw);
    let store = open(&path);
    let warnings = store.warnings();
    assert!(warnings[0].contains("999"), "{warnings:?}");
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("theirs.db");
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);").unwrap();
    drop(raw);
    let store = open(&path);
    assert!(store.warnings()[0].contains("another program"));
    store.learn(&evidence("a.example", 443, None));
    assert!(matches!(verdict(&store, "a.example"), Verdict::Good { .. }), "it goes on in memory");
    let raw = rusqlite::Connection::open(&path).unwrap();
    let count: i64 = raw.query_row("SELECT count(*) FROM theirs", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn a_file_that_cannot_be_made_is_a_warning() {
    let store = open(Path::new("/proc/no-such-directory/memory.db"));
    assert_eq!(store.warnings().len(), 1);
    store.learn(&evidence("a.example", 443, None));
    assert!(matches!(verdict(&store, "a.example"), Verdict::Good { .. }));
}

#[test]
fn a_read_only_file_is_read_and_learning_goes_on_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    open(&path).learn(&evidence("a.example", 443, None));
    let store = open(&path);
    match &mut *store.kept() {
        super::Kept::File(file) => file.make_read_only(),
        _ => panic!("not a file"),
    }
    store.learn(&evidence("b.example", 443, None));
    store.learn(&evidence("c.example", 443, None));
    assert_eq!(store.warnings().len(), 1, "one trouble is told once");
    for name in ["a.example", "b.example", "c.example"] {
        assert!(matches!(verdict(&store, name), Verdict::Good { .. }), "{name}");
    }
    drop(store);
    assert_eq!(verdict(&open(&path), "b.example"), Verdict::Unknown);
}

#[test]
fn a_locked_file_is_waited_for_and_then_done_without() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    let mut raw = rusqlite::Connection::open(&path).unwrap();
    let lock = raw.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    store.learn(&evidence("a.example", 443, None));
    assert!(store.warnings()[0].contains("locked"));
    assert!(matches!(verdict(&store, "a.example"), Verdict::Good { .. }));
    drop(lock);
    store.learn(&evidence("a.example", 443, None));
    drop(store);
    assert!(matches!(verdict(&open(&path), "a.example"), Verdict::Good { .. }));
}

#[test]
fn a_full_disk_is_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    match &mut *store.kept() {
        super::Kept::File(file) => file.make_full(),
        _ => panic!("not a file"),
    }
    for n in 0..200 {
        store.learn(&evidence(&format!("host-{n}.example"), 443, None));
    }
    assert!(store.warnings()[0].contains("full"));
    assert!(matches!(verdict(&store, "host-199.example"), Verdict::Good { .. }));
}

#[test]
fn what_is_forgotten_is_gone_from_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    store.learn(&evidence("secret.example", 443, None));
    store.learn(&evidence("other.example", 443, None));
    assert_eq!(store.forget(&host("secret.example")), 1);
    assert!(store.entries().iter().all(|row| row.key.host() != Some(&host("secret.example"))));
    assert!(matches!(verdict(&store, "other.example"), Verdict::Good { .. }));
    for name in names(directory.path()) {
        let bytes = std::fs::read(directory.path().join(&name)).unwrap();
        assert!(!bytes.windows(14).any(|window| window == b"secret.example"), "in {name}");
    }
    store.clear();
    assert!(store.entries().is_empty());
}

#[test]
fn a_host_has_no_more_rows_than_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { max_rows_per_host: 4, ..Config::default() };
    let store = MemoryStore::open(directory.path().join("memory.db"), config);
    for port in 1..20 {
        store.learn(&evidence("a.example", port, None));
    }
    let rows = store.entries();
    let of_host = rows.iter().filter(|row| row.key.host().is_some()).count();
    assert_eq!(of_host, 4);
}

#[tokio::test]
async fn what_waits_for_the_disk_is_seen_at_once_and_never_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let (store, other) = (open(&path), open(&path));
    store.learn_soon(evidence("a.example", 443, None));
    assert!(matches!(verdict(&store, "a.example"), Verdict::Good { .. }));
    store.learn_soon(evidence("b.example", 443, None));
    store.settle().await;
    assert!(matches!(verdict(&other, "b.example"), Verdict::Good { .. }), "settled is written");
    store.learn_soon(evidence("c.example", 443, None));
    drop(store);
    assert!(matches!(verdict(&other, "c.example"), Verdict::Good { .. }), "the last one writes");
}

#[test]
fn private_mode_writes_and_knows_nothing() {
    let store = MemoryStore::none();
    store.learn(&evidence("a.example", 443, None));
    assert_eq!(verdict(&store, "a.example"), Verdict::Unknown);
    assert!(store.entries().is_empty());
}
