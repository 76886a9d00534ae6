//! What another process has found out about the same server, on the same network.

use std::time::Duration;

use eyas_race::memory::{
    DesignatedEndpoint, DesignationEntry, DesignationOutcome, MemoryEntry, MemoryKey, MemoryRecord,
};
use eyas_race::target::TargetHost;
use proptest::prelude::*;

use super::*;
use crate::memory_store::now;

const HOME: &str = "home";

fn question() -> Vec<u8> {
    wire("_dns.resolver.arpa")
}

/// Returns how often a server was asked about this, in the clear.
fn count(server: &Server, name: &[u8]) -> usize {
    server.asked.lock().unwrap().iter().filter(|asked| asked.name() == name).count()
}

fn is_remembered(servers: &NameServers) -> bool {
    match &servers.encryption()[..] {
        [ServerEncryption::Designated(resolver)] => resolver.is_remembered,
        other => panic!("{other:?}"),
    }
}

fn key(server: &Server, network: &str) -> MemoryKey {
    let host = TargetHost::Literal(server.address.ip(), 0);
    MemoryKey::resolver(&NetworkId(network.into()), &host, server.address)
}

/// A row about a server that holds for this long, as anybody may have written it.
fn store_with(server: &Server, holds: Duration, outcome: DesignationOutcome) -> MemoryStore {
    let entry = DesignationEntry { at: now(), until: now() + holds, outcome };
    let (key, entry) = (key(server, HOME), MemoryEntry::Resolver(entry));
    MemoryStore::in_memory_with(Default::default(), [MemoryRecord { key, entry }])
}

fn endpoint(alpn: &str, address: SocketAddr) -> DesignatedEndpoint {
    let (name, path) = (NAME.to_owned(), "/dns-query".to_owned());
    DesignatedEndpoint { name, alpn: alpn.to_owned(), address, path }
}

/// A resolver over TLS, and the server that designates it.
async fn over_tls() -> (ServerIdentity, EncryptedResolver, Server) {
    let identity = identity("127.0.0.1");
    let resolver = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
    let server = designating(binding(&["dot"], resolver.address)).await;
    (identity, resolver, server)
}

#[tokio::test]
async fn the_next_process_goes_straight_to_the_resolver_that_worked() {
    for found_by in PROTOCOLS {
        let identity = identity("127.0.0.1");
        let resolver = EncryptedResolver::start(*found_by, &identity, "127.0.0.1").await;
        let server = designating(binding(&[alpn(*found_by)], resolver.address)).await;
        let store = MemoryStore::default();
        for (process, policy) in [AUTO, REQUIRED, AUTO].into_iter().enumerate() {
            let servers = client_on(HOME, &store, &server, &identity, policy);
            let answer = ask(&servers, "a.example.net").await;
            assert_eq!((answer.records, answer.is_authentic), (found(), true), "{found_by:?}");
            assert_eq!(is_remembered(&servers), process > 0, "{found_by:?}");
            assert_eq!(protocol(&servers), *found_by);
        }
        assert_eq!(count(&server, &question()), 1, "{found_by:?}");
        assert_eq!(names(&server), [question()], "nothing else in the clear");
        // An examination tells how things are now.
        let servers = client_on(HOME, &store, &server, &identity, AUTO);
        servers.examine_encryption().await;
        assert!(!is_remembered(&servers) && count(&server, &question()) == 2);
    }
}

//= rfc9462 §4.1.1
//# SHOULD repeat the discovery on each network, also in another process
#[tokio::test]
async fn what_was_found_on_one_network_is_not_used_on_another() {
    let (identity, _resolver, server) = over_tls().await;
    let store = MemoryStore::default();
    // Nothing is remembered of a network that could be two.
    for (network, asked) in [("", 1), (HOME, 2), ("abroad", 3), ("", 4), (HOME, 4)] {
        let servers = client_on(network, &store, &server, &identity, REQUIRED);
        assert_eq!(ask(&servers, "a.example.net").await.records, found());
        assert_eq!(count(&server, &question()), asked, "{network}");
    }
}

#[tokio::test]
async fn nothing_is_written_for_a_network_that_was_left_meanwhile() {
    let (identity, _resolver, server) = over_tls().await;
    let store = MemoryStore::default();
    let asked = Arc::clone(&server.asked);
    // The network is another one as soon as the server has been asked.
    let id = move || {
        let network = if asked.lock().unwrap().is_empty() { HOME } else { "abroad" };
        Some(NetworkId(network.into()))
    };
    let memory = Arc::<std::sync::OnceLock<_>>::default();
    memory.set(ResolverMemory::new(store.clone(), "trust".to_owned(), id)).unwrap();
    let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let setting = EncryptionSetting::of_named_server(REQUIRED, trust, memory);
    let servers = NameServers::with_encryption([server.address], options(), &setting);
    assert_eq!(ask(&servers, "a.example.net").await.records, found());
    assert_eq!(store.entries(), []);
}

//= rfc9462 §4.2
//# SHOULD use a designation for no longer than the time to live of its record
#[tokio::test]
async fn a_row_lasts_as_long_as_the_record_said() {
    let (identity, resolver, server) = over_tls().await;
    let store = MemoryStore::default();
    let servers = client_on(HOME, &store, &server, &identity, REQUIRED);
    assert_eq!(ask(&servers, "a.example.net").await.records, found());
    let Some(MemoryEntry::Resolver(entry)) = store.row(&key(&server, HOME)) else {
        panic!("{:?}", store.entries())
    };
    assert_eq!(entry.until - entry.at, Duration::from_mins(1), "a time to live of 60");
    let resolvers = DesignationOutcome::Resolvers(vec![endpoint("dot", resolver.address)]);
    for (holds, asked) in [(Duration::from_mins(1), 1), (Duration::ZERO, 2)] {
        let store = store_with(&server, holds, resolvers.clone());
        let servers = client_on(HOME, &store, &server, &identity, REQUIRED);
        assert_eq!(ask(&servers, "a.example.net").await.records, found());
        assert_eq!(count(&server, &question()), asked, "{holds:?}");
    }
}

#[tokio::test]
async fn a_resolver_that_has_moved_is_asked_for_again() {
    let (identity, _resolver, server) = over_tls().await;
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    for policy in [AUTO, REQUIRED] {
        let moved = DesignationOutcome::Resolvers(vec![endpoint("dot", closed)]);
        let store = store_with(&server, Duration::from_mins(1), moved);
        for is_known in [false, true] {
            let servers = client_on(HOME, &store, &server, &identity, policy);
            assert_eq!(ask(&servers, "a.example.net").await.records, found(), "{policy:?}");
            assert_eq!(is_remembered(&servers), is_known, "{policy:?}");
        }
    }
    assert_eq!(names(&server), [question()]);
}

#[tokio::test]
async fn that_there_is_none_is_remembered_only_where_queries_may_go_unencrypted() {
    for (server, why) in [
        (Server::start(designates_nothing, true).await, UnencryptedReason::NotDesignated),
        (Server::start(is_silent_about_resolvers, true).await, UnencryptedReason::NotAnswered),
    ] {
        let (identity, store) = (identity(NAME), MemoryStore::default());
        let first = client_on(HOME, &store, &server, &identity, AUTO);
        assert_eq!(first.examine_encryption().await, absent(why));
        let asked = count(&server, &question());
        let second = client_on(HOME, &store, &server, &identity, AUTO);
        assert_eq!(ask(&second, "a.example.net").await.records, found_in_the_clear());
        assert_eq!((second.encryption(), count(&server, &question())), (absent(why), asked));
        server.asked.lock().unwrap().clear();
        let required = client_on(HOME, &store, &server, &identity, REQUIRED);
        assert!(refused(why)(&ask(&required, "a.example.net").await));
        assert_eq!(names(&server), [question()], "it may have one by now");
    }
}

//= rfc9462 §4.2
//# SHOULD suppress further queries for resolvers where verification failed, for the record's time to live
#[tokio::test]
async fn a_resolver_that_failed_is_left_alone_until_its_time_has_come() {
    let (right, wrong) = (identity("127.0.0.1"), identity(NAME));
    let resolver = EncryptedResolver::start(DnsProtocol::Tls, &wrong, "127.0.0.2").await;
    let closed = SocketAddr::from(([127, 0, 0, 2], 1));
    for (address, why) in [
        (resolver.address, UnencryptedReason::NotVerified),
        (closed, UnencryptedReason::NotReachable),
    ] {
        let server = designating(binding(&["dot"], address)).await;
        let store = MemoryStore::default();
        for _ in 0..2 {
            let auto = client_on(HOME, &store, &server, &wrong, AUTO);
            assert_eq!(auto.examine_encryption().await, absent(why));
        }
        let asked = count(&server, &question());
        let rows = store.entries();
        let auto = client_on(HOME, &store, &server, &wrong, AUTO);
        assert_eq!(ask(&auto, "a.example.net").await.records, found_in_the_clear());
        assert_eq!((auto.encryption(), store.entries()), (absent(why), rows), "nothing was tried");
        assert_eq!(count(&server, &question()), asked, "{why}");
        server.asked.lock().unwrap().clear();
        let required = client_on(HOME, &store, &server, &right, REQUIRED);
        assert!(refused(why)(&ask(&required, "a.example.net").await), "{why}");
        assert_eq!(names(&server), [question()], "nothing leaks");
    }
    assert_eq!(resolver.count(), 0);
}

#[tokio::test]
async fn a_resolver_that_was_silent_costs_the_next_process_nothing() {
    let (identity, store) = (identity("127.0.0.1"), MemoryStore::default());
    let connections: Arc<Mutex<usize>> = Arc::default();
    let listener = ListenParameters::new("127.0.0.1:0".parse().unwrap());
    let listener = listener.security(identity.clone()).with_alpn(["dot"]);
    let listener = Listener::bind(listener).await.unwrap();
    let server = designating(binding(&["dot"], listener.local_addr())).await;
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            open.push(listener.accept().await);
            *counted.lock().unwrap() += 1;
        }
    });
    for process in 0..2 {
        let auto = client_on(HOME, &store, &server, &identity, AUTO);
        if process == 0 {
            // However slow this machine is.
            auto.examine_encryption().await;
        }
        assert_eq!(ask(&auto, "a.example.net").await.records, found_in_the_clear());
        assert_eq!(*connections.lock().unwrap(), 1, "process {process}");
    }
    assert_eq!(count(&server, &question()), 1);
}

#[tokio::test]
async fn where_a_silent_resolver_is_required_the_server_is_asked_for_another_one() {
    let (identity, store) = (identity("127.0.0.1"), MemoryStore::default());
    let former = resolver(&identity, silent).await;
    let current = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
    let bindings = [binding(&["dot"], former), binding(&["dot"], current.address)];
    let behaviour = move |asked: &Asked| match (asked.kind(), asked.before) {
        (SVCB, 0) => reply(asked).answer(&rr(SAME, SVCB, 1, 60, &bindings[0])).opt(0, 0).send(),
        (SVCB, _) => reply(asked).answer(&rr(SAME, SVCB, 1, 60, &bindings[1])).opt(0, 0).send(),
        _ => in_the_clear(asked),
    };
    let server = Server::start(behaviour, true).await;
    // Nobody waits for an answer of the former one as long as for others: this is what a user does.
    let first = client_on(HOME, &store, &server, &identity, REQUIRED);
    let patience = Duration::from_secs(4);
    let answer = tokio::time::timeout(patience, ask(&first, "a.example.net")).await;
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.records.is_err()));
    for is_known in [false, true] {
        let next = client_on(HOME, &store, &server, &identity, REQUIRED);
        assert_eq!(ask(&next, "a.example.net").await.records, found());
        assert_eq!(is_remembered(&next), is_known);
    }
    assert_eq!(names(&server), [question()]);
}

/// Servers of all kinds: the resolver that the name server means, one that is a stranger's, one that is closed, and the
/// name server itself.
struct World {
    server: Server,
    resolver: EncryptedResolver,
    stranger: EncryptedResolver,
    identity: ServerIdentity,
}

impl World {
    async fn new() -> Self {
        let identity = identity("127.0.0.1");
        let resolver = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
        let stranger = self::identity(NAME);
        let stranger = EncryptedResolver::start(DnsProtocol::Tls, &stranger, "127.0.0.1").await;
        let server = designating(binding(&["dot"], resolver.address)).await;
        Self { server, resolver, stranger, identity }
    }

    fn address(&self, number: usize) -> SocketAddr {
        let closed = SocketAddr::from(([127, 0, 0, 1], 1));
        [self.resolver.address, self.stranger.address, closed, self.server.address][number]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever stands in a memory: stale, of others, or nonsense.
    #[test]
    fn no_row_makes_a_name_leak_that_has_to_be_encrypted(
        ways in prop::collection::vec((0..4_usize, 0..3_usize, "(dns\\.example|\\PC{0,9})"), 0..6),
        holds in 0..3_u64,
        is_silence in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            // Over QUIC every wrong one would take its time.
            let alpns = ["dot", "h2", "nonsense"];
            let ways = ways.into_iter().map(|(address, protocol, name)| DesignatedEndpoint {
                name,
                ..endpoint(alpns[protocol], world.address(address))
            });
            let outcome = match ways.len() {
                0 if is_silence => DesignationOutcome::Silence,
                0 => DesignationOutcome::Nothing,
                _ => DesignationOutcome::Resolvers(ways.collect()),
            };
            let holds = [0, 60, u64::from(u32::MAX)][usize::try_from(holds).unwrap()];
            let store = store_with(&world.server, Duration::from_secs(holds), outcome);
            let required = client_on(HOME, &store, &world.server, &world.identity, REQUIRED);
            let answer = ask(&required, "a.example.net").await;
            let leaked: Vec<_> =
                names(&world.server).into_iter().filter(|name| *name != question()).collect();
            prop_assert_eq!(leaked, Vec::<Vec<u8>>::new());
            prop_assert_eq!(world.stranger.count(), 0);
            // It is used, or it fails: a slow attempt may have taken all the time there is.
            match answer.records {
                Ok(records) => prop_assert_eq!(Ok(records), found()),
                Err(why) => prop_assert!(matches!(why, DnsFailure::Local(_) | DnsFailure::Timeout)),
            }
            Ok(())
        })?;
    }
}
