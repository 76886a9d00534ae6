use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use eyas_race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas_race::evidence::{
    AttemptFailure, Evidence, EvidenceLevel, FailureCause, NetworkId, TrustContext,
};
use eyas_race::memory::{MemoryConfig, MemoryEntry, MemoryVerdict};
use eyas_race::target::TargetHost;

use proptest::prelude::*;

use super::inspection::companion;
use super::platform::FileId;
use super::recent::WRITE_EVERY;
use super::set_aside::set_aside;
use super::{MemoryStore, ObservedOutcome, now};

fn network() -> NetworkId {
    NetworkId("net/1".into())
}

fn host(name: &str) -> TargetHost {
    TargetHost::Name(name.into())
}

fn candidate(port: u16) -> Candidate {
    Candidate {
        address: SocketAddr::from(([127, 0, 0, 1], port)),
        transport: Transport::Quic,
        security: Security::Tls,
        alpn: vec![],
        ech: None,
        priority: None,
        origin: AddressOrigin::Address,
    }
}

fn evidence(name: &str, port: u16, cause: Option<FailureCause>) -> Evidence {
    Evidence {
        at: now(),
        network: network(),
        host: host(name),
        candidate: candidate(port),
        level: if cause.is_some() { EvidenceLevel::Started } else { EvidenceLevel::Security },
        failure: cause.map(|cause| AttemptFailure::new(cause, EvidenceLevel::Started, "")),
        doubt: None,
        rtt: Some(Duration::from_millis(20)),
        sent_again: None,
    }
}

fn trust() -> TrustContext {
    TrustContext { parameters: "platform".into(), certificate_host: None }
}

fn observation(evidence: Evidence) -> ObservedOutcome {
    ObservedOutcome { evidence, trust: trust(), network_name: Some("wlan0 via 192.0.2.1".into()) }
}

fn verdict(store: &MemoryStore, name: &str) -> MemoryVerdict {
    store.view(&network(), &host(name), &trust()).verdict(&candidate(443), now())
}

fn open(path: &Path) -> MemoryStore {
    MemoryStore::open(path)
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
    let (first, second) = (open(&path), open(&path));
    first.learn(&evidence("a.example", 443, None), &trust());
    second.learn(&evidence("b.example", 443, Some(FailureCause::Silent)), &trust());
    assert!(matches!(verdict(&second, "a.example"), MemoryVerdict::Good { .. }));
    assert!(matches!(
        verdict(&first, "b.example"),
        MemoryVerdict::Bad { cause: FailureCause::Silent, .. }
    ));
    drop((first, second));
    let later = open(&path);
    assert!(matches!(verdict(&later, "a.example"), MemoryVerdict::Good { .. }));
    assert_eq!(later.warnings(), Vec::<String>::new());
}

#[test]
fn the_file_is_for_its_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("below").join("memory.db");
    let store = open(&path);
    store.learn(&evidence("a.example", 443, None), &trust());
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for name in names(path.parent().unwrap()) {
        assert_eq!(mode(&path.parent().unwrap().join(&name)), 0o600, "{name}");
    }
    drop(store);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = open(&path).warnings();
    assert!(warnings[0].contains("chmod 600"), "{warnings:?}");
    assert_eq!(mode(&path), 0o644, "the user is warned, and the mode is unchanged");
}

/// Asserts that a file that is not a memory is unchanged, and learning continues without a file.
fn assert_unchanged(path: &Path, why: &str) {
    let directory = path.parent().unwrap();
    let state = |name: &String| {
        let path = directory.join(name);
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let (mode, inode) = (metadata.mode(), metadata.ino());
        (mode, inode, metadata.is_file().then(|| std::fs::read(&path).unwrap()))
    };
    let everything = || names(directory).iter().map(state).collect::<Vec<_>>();
    let (names_before, before) = (names(directory), everything());
    let store = open(path);
    assert!(!store.is_persistent());
    store.learn(&evidence("a.example", 443, None), &trust());
    assert!(
        matches!(verdict(&store, "a.example"), MemoryVerdict::Good { .. }),
        "learning continues in memory"
    );
    store.forget(&host("b.example"));
    store.clear();
    let warnings = store.warnings();
    assert!(warnings[0].contains("is not an eyas memory"), "{warnings:?}");
    assert!(warnings[0].contains("nothing was changed"), "{warnings:?}");
    assert!(warnings[0].contains(why), "{warnings:?}");
    drop(store);
    assert_eq!(names(directory), names_before);
    assert_eq!(everything(), before);
}

/// Writes a file with a mode other than ours.
fn write(path: &Path, contents: &[u8]) {
    std::fs::write(path, contents).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o664)).unwrap();
}

/// Writes a database of another program.
fn write_database(path: &Path) {
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);").unwrap();
    drop(raw);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o664)).unwrap();
}

#[test]
fn a_text_file_is_left_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes");
    write(&path, b"short");
    assert_unchanged(&path, "not a database");
    write(&path, "long enough for a header, and no header all the same\n".repeat(100).as_bytes());
    assert_unchanged(&path, "not a database");
}

#[test]
fn a_link_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (link, target) = (directory.path().join("link"), directory.path().join("target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_unchanged(&link, "symbolic link");
    write(&target, b"a text");
    assert_unchanged(&link, "symbolic link");
    std::fs::remove_file(&target).unwrap();
    drop(open(&target));
    assert_unchanged(&link, "symbolic link");
}

#[test]
fn a_link_to_the_directory_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    open(&link.join("memory.db")).learn(&evidence("a.example", 443, None), &trust());
    let store = open(&real.join("memory.db"));
    assert!(matches!(verdict(&store, "a.example"), MemoryVerdict::Good { .. }));
}

#[test]
fn the_database_of_another_program_is_left_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("theirs.db");
    write_database(&path);
    assert_unchanged(&path, "another program");
}

#[test]
fn a_path_that_is_not_a_file_is_left_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let inside = directory.path().join("directory");
    std::fs::create_dir(&inside).unwrap();
    assert_unchanged(&inside, "not a regular file");
    let socket = directory.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_unchanged(&socket, "not a regular file");
}

/// SQLite would delete or replay a journal or log that belongs to no database.
#[test]
fn files_that_sqlite_would_overwrite_are_left_unchanged() {
    for suffix in ["-journal", "-wal", "-shm"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory.db");
        let name = format!("memory.db{suffix}");
        write(&directory.path().join(&name), b"a text of the user");
        assert_unchanged(&path, &name);
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("memory.db");
        drop(open(&path));
        std::os::unix::fs::symlink("nowhere", elsewhere.path().join(&name)).unwrap();
        assert_unchanged(&path, &name);
    }
}

#[test]
fn an_empty_file_is_used_with_the_mode_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    write(&path, b"");
    open(&path).learn(&evidence("a.example", 443, None), &trust());
    assert!(matches!(verdict(&open(&path), "a.example"), MemoryVerdict::Good { .. }));
    assert_eq!(mode(&path), 0o664);
}

/// Leaves only the header of a memory.
fn damage(path: &Path) {
    drop(open(path));
    let whole = std::fs::read(path).unwrap();
    std::fs::write(path, &whole[..512]).unwrap();
}

#[test]
fn a_damaged_memory_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    damage(&path);
    let store = open(&path);
    let warnings = store.warnings();
    assert!(warnings[0].contains("set aside"), "{warnings:?}");
    store.learn(&evidence("a.example", 443, None), &trust());
    drop(store);
    assert!(matches!(verdict(&open(&path), "a.example"), MemoryVerdict::Good { .. }));
    assert!(names(directory.path()).iter().any(|name| name.starts_with("memory.db.damaged-")));
}

#[test]
fn a_file_set_aside_is_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let now = Duration::from_secs(1_800_000_000);
    let mut aside = Vec::new();
    for number in 0..5_u8 {
        std::fs::write(&path, [number]).unwrap();
        std::fs::write(directory.path().join("memory.db-wal"), [number, number]).unwrap();
        let id = FileId::from_path(&path).unwrap();
        aside
            .push(set_aside(&path, id, || false, now).unwrap().expect("the file was not replaced"));
    }
    for (number, name) in (0_u8..).zip(&aside) {
        assert_eq!(std::fs::read(name).unwrap(), [number]);
        assert_eq!(std::fs::read(companion(name, "-wal")).unwrap(), [number, number]);
    }
    assert_eq!(names(directory.path()).len(), 10);
}

/// Two processes detect the same damage; before the second acts, the first has created a new file.
#[test]
fn only_the_file_seen_damaged_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    damage(&path);
    let seen = FileId::from_path(&path).unwrap();
    // Keep the inode from being reused.
    let _kept = std::fs::hard_link(&path, directory.path().join("kept"));
    let store = open(&path);
    assert_eq!(set_aside(&path, seen, || false, now()).unwrap(), None);
    let present = FileId::from_path(&path).expect("a file");
    assert_eq!(set_aside(&path, present, || true, now()).unwrap(), None, "the file is sound");
    store.learn(&evidence("a.example", 443, None), &trust());
    assert!(matches!(verdict(&open(&path), "a.example"), MemoryVerdict::Good { .. }));
}

#[test]
fn a_memory_is_recognisable_from_its_first_commit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    // The log was never written back, as after a crash.
    let header = std::fs::read(&path).unwrap();
    assert_eq!(&header[68..72], b"eyas");
    assert_eq!(open(&path).warnings(), Vec::<String>::new());
    drop(store);
}

#[test]
fn a_file_keeps_its_secret_until_it_is_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("memory.db"), directory.path().join("other.db"));
    let store = open(&path);
    let secret = store.secret();
    assert!(secret == open(&path).secret(), "processes that share a file share its secret");
    assert!(secret != open(&other).secret(), "each installation has its own");
    assert!(secret != MemoryStore::none().secret());
    store.clear();
    drop(store);
    assert!(secret != open(&path).secret());
}

#[test]
fn a_running_process_keeps_the_secret_of_a_damaged_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    let secret = store.secret();
    let warnings = match &mut *store.storage() {
        super::StoreBackend::File(file) => file.find_damage(),
        _ => panic!("not a file"),
    };
    assert!(warnings[0].contains("set aside"), "{warnings:?}");
    assert!(secret == store.secret() && secret == open(&path).secret());
}

#[test]
fn networks_have_names() {
    let directory = tempfile::tempdir().unwrap();
    let kept = [
        open(&directory.path().join("memory.db")),
        MemoryStore::in_memory(MemoryConfig::default()),
    ];
    for store in kept {
        store.learn_in_background(observation(evidence("a.example", 443, None)));
        let named = store.entries().into_iter().find_map(|row| match row.entry {
            MemoryEntry::Network(named) => Some((row.key.network, named.name)),
            _ => None,
        });
        assert_eq!(named, Some((network(), "wlan0 via 192.0.2.1".to_owned())));
        let mut moved = observation(evidence("a.example", 443, None));
        moved.network_name = Some("wlan1 via 192.0.2.1".into());
        store.learn_in_background(moved);
        let names = store.entries().into_iter().filter_map(|row| match row.entry {
            MemoryEntry::Network(named) => Some(named.name),
            _ => None,
        });
        assert_eq!(names.collect::<Vec<_>>(), ["wlan1 via 192.0.2.1"]);
    }
}

#[test]
fn a_truncated_file_is_set_aside_when_that_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    for n in 0..500 {
        store.learn(&evidence(&format!("host-{n}.example"), 443, None), &trust());
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut broken = whole.clone();
    for byte in &mut broken[4096..] {
        *byte = 0xa5;
    }
    std::fs::write(&path, broken).unwrap();
    let store = open(&path);
    store.learn(&evidence("a.example", 443, None), &trust());
    assert!(matches!(
        verdict(&store, "a.example"),
        MemoryVerdict::Good { .. } | MemoryVerdict::Unknown
    ));
    store.learn(&evidence("a.example", 443, None), &trust());
    assert!(matches!(verdict(&store, "a.example"), MemoryVerdict::Good { .. }));
    assert!(!store.warnings().is_empty());
}

#[test]
fn an_unknown_version_is_rejected() {
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
fn a_file_that_cannot_be_created_is_a_warning() {
    let store = open(Path::new("/proc/no-such-directory/memory.db"));
    assert_eq!(store.warnings().len(), 1);
    store.learn(&evidence("a.example", 443, None), &trust());
    assert!(matches!(verdict(&store, "a.example"), MemoryVerdict::Good { .. }));
}

#[test]
fn a_read_only_file_is_read_and_learning_continues_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    open(&path).learn(&evidence("a.example", 443, None), &trust());
    let store = open(&path);
    match &mut *store.storage() {
        super::StoreBackend::File(file) => file.make_read_only(),
        _ => panic!("not a file"),
    }
    store.learn(&evidence("b.example", 443, None), &trust());
    store.learn(&evidence("c.example", 443, None), &trust());
    assert_eq!(store.warnings().len(), 1, "repeated errors are reported once");
    for name in ["a.example", "b.example", "c.example"] {
        assert!(matches!(verdict(&store, name), MemoryVerdict::Good { .. }), "{name}");
    }
    drop(store);
    assert_eq!(verdict(&open(&path), "b.example"), MemoryVerdict::Unknown);
}

#[test]
fn a_locked_file_is_waited_for_and_then_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    let mut raw = rusqlite::Connection::open(&path).unwrap();
    let lock = raw.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    store.learn(&evidence("a.example", 443, None), &trust());
    assert!(store.warnings()[0].contains("locked"));
    assert!(matches!(verdict(&store, "a.example"), MemoryVerdict::Good { .. }));
    drop(lock);
    store.learn(&evidence("a.example", 443, None), &trust());
    drop(store);
    assert!(matches!(verdict(&open(&path), "a.example"), MemoryVerdict::Good { .. }));
}

#[test]
fn a_full_disk_is_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    match &mut *store.storage() {
        super::StoreBackend::File(file) => file.make_full(),
        _ => panic!("not a file"),
    }
    for n in 0..200 {
        store.learn(&evidence(&format!("host-{n}.example"), 443, None), &trust());
    }
    assert!(store.warnings()[0].contains("full"));
    assert!(matches!(verdict(&store, "host-199.example"), MemoryVerdict::Good { .. }));
}

#[test]
fn forgotten_rows_are_erased_from_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    store.learn(&evidence("secret.example", 443, None), &trust());
    store.learn(&evidence("other.example", 443, None), &trust());
    assert_eq!(store.forget(&host("secret.example")), 1);
    assert!(store.entries().iter().all(|row| row.key.host() != Some(&host("secret.example"))));
    assert!(matches!(verdict(&store, "other.example"), MemoryVerdict::Good { .. }));
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
    let config = MemoryConfig { max_rows_per_host: 4, ..MemoryConfig::default() };
    let store = MemoryStore::open_with(directory.path().join("memory.db"), config);
    for port in 1..20 {
        store.learn(&evidence("a.example", port, None), &trust());
    }
    let rows = store.entries();
    let of_host = rows.iter().filter(|row| row.key.host().is_some()).count();
    assert_eq!(of_host, 4);
}

#[tokio::test]
async fn unwritten_evidence_is_visible_at_once_and_never_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let (store, other) = (open(&path), open(&path));
    store.learn_in_background(observation(evidence("a.example", 443, None)));
    assert!(matches!(verdict(&store, "a.example"), MemoryVerdict::Good { .. }));
    store.learn_in_background(observation(evidence("b.example", 443, None)));
    store.flush().await;
    assert!(
        matches!(verdict(&other, "b.example"), MemoryVerdict::Good { .. }),
        "flushed data is written"
    );
    store.learn_in_background(observation(evidence("c.example", 443, None)));
    drop(store);
    assert!(
        matches!(verdict(&other, "c.example"), MemoryVerdict::Good { .. }),
        "dropping the last handle writes"
    );
}

#[tokio::test]
async fn outcomes_in_quick_succession_are_written_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let (store, other) = (open(&path), open(&path));
    let began = Instant::now();
    for port in 1..=20 {
        store.learn_in_background(observation(evidence("a.example", port, None)));
    }
    let rows = || other.entries().iter().filter(|row| row.key.host().is_some()).count();
    assert_eq!(rows(), 0, "the task that writes has not run");
    while rows() < 20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    store.learn_in_background(observation(evidence("a.example", 21, None)));
    while rows() < 21 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(began.elapsed() >= WRITE_EVERY, "the next time comes later");
}

#[tokio::test]
async fn what_another_process_forgets_is_forgotten_soon() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let (store, other) = (open(&path), open(&path));
    store.learn(&evidence("a.example", 443, None), &trust());
    assert!(matches!(verdict(&store, "a.example"), MemoryVerdict::Good { .. }));
    other.forget(&host("a.example"));
    let began = Instant::now();
    while verdict(&store, "a.example") != MemoryVerdict::Unknown {
        assert!(began.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.learn(&evidence("b.example", 443, None), &trust());
    assert!(matches!(verdict(&store, "b.example"), MemoryVerdict::Good { .. }));
    store.forget(&host("b.example"));
    assert_eq!(verdict(&store, "b.example"), MemoryVerdict::Unknown);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_view_is_the_same_with_and_without_a_file(
        steps in prop::collection::vec((0_usize..4, 1_u16..4, 0_u8..4), 1..60),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let kept = open(&directory.path().join("memory.db"));
        let expected = MemoryStore::in_memory(MemoryConfig::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for (number, port, what) in steps {
                let name = ["a.example", "b.example", "c.example", "d.example"][number];
                let view = |store: &MemoryStore| store.view(&network(), &host(name), &trust());
                let cause = [None, None, Some(FailureCause::Silent), Some(FailureCause::Refused)];
                let seen = evidence(name, port, cause[usize::from(what)]);
                for store in [&kept, &expected] {
                    store.learn_in_background(observation(seen.clone()));
                }
                if what == 1 {
                    kept.flush().await;
                }
                assert_eq!(view(&kept), view(&expected));
            }
        });
    }
}

#[test]
fn private_mode_neither_writes_nor_remembers() {
    let store = MemoryStore::none();
    store.learn(&evidence("a.example", 443, None), &trust());
    assert_eq!(verdict(&store, "a.example"), MemoryVerdict::Unknown);
    assert!(store.entries().is_empty());
}
