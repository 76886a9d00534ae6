//! One memory file shared by several processes. The test executes itself for the others.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::MemoryStore;
use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::evidence::{Evidence, EvidenceLevel, NetworkId, TrustContext};
use eyas::race::memory::MemoryVerdict;
use eyas::race::target::TargetHost;

/// Environment variables of the processes that the test starts: the file, and the name of the
/// process.
const FILE: &str = "EYAS_TEST_MEMORY_FILE";
const NAME: &str = "EYAS_TEST_PROCESS";

/// The number of hosts that every process learns; enough for the processes to run concurrently.
const HOSTS: usize = 50;

fn network() -> NetworkId {
    NetworkId("net/1".into())
}

fn candidate() -> Candidate {
    Candidate {
        address: SocketAddr::from(([192, 0, 2, 7], 443)),
        transport: Transport::Quic,
        security: Security::Tls,
        alpn: vec![],
        ech: None,
        priority: None,
        origin: AddressOrigin::Address,
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn open(path: &Path) -> MemoryStore {
    MemoryStore::open(path)
}

fn learn(store: &MemoryStore, host: &str) {
    let evidence = Evidence {
        at: now(),
        network: network(),
        host: TargetHost::Name(host.into()),
        candidate: candidate(),
        level: EvidenceLevel::FirstByte,
        failure: None,
        doubt: None,
        rtt: Some(Duration::from_millis(20)),
        sent_again: None,
    };
    store.learn(&evidence, &TrustContext::default());
}

fn knows(store: &MemoryStore, host: &str) -> bool {
    let view = store.view(&network(), &TargetHost::Name(host.into()), &TrustContext::default());
    matches!(view.verdict(&candidate(), now()), MemoryVerdict::Good { .. })
}

fn host_of(process: &str, number: usize) -> String {
    format!("{number}.{process}.example")
}

/// The work of the other processes.
fn learn_in_another_process(path: &Path, process: &str) {
    let store = open(path);
    assert!(knows(&store, "first.example"), "what the first process wrote is there");
    for number in 0..HOSTS {
        learn(&store, &host_of(process, number));
    }
    assert_eq!(store.warnings(), Vec::<String>::new());
}

fn start(path: &Path, process: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes_share_one_memory_file", "--nocapture"])
        .env(FILE, path)
        .env(NAME, process)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn processes_share_one_memory_file() {
    if let (Some(path), Ok(process)) = (std::env::var_os(FILE), std::env::var(NAME)) {
        return learn_in_another_process(&PathBuf::from(path), &process);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let store = open(&path);
    learn(&store, "first.example");
    let others = ["one", "two", "three"];
    let children = others.map(|process| start(&path, process));
    for number in 0..HOSTS {
        learn(&store, &host_of("this", number));
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    }
    for process in others.into_iter().chain(["this"]) {
        for number in 0..HOSTS {
            let host = host_of(process, number);
            assert!(knows(&store, &host), "{host} is lost");
        }
    }
    assert_eq!(store.warnings(), Vec::<String>::new());
}
