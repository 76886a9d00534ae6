//! Servers that designate encrypted resolvers, and what is asked in the clear then.

#[cfg(feature = "quic")]
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

#[cfg(feature = "quic")]
use eyas_h3::{Role, qpack::Sensitivity, whole::Event};
use eyas_race::evidence::NetworkId;

use super::super::super::encryption::{
    DnsProtocol, EncryptedDnsPolicy, EncryptionSetting, ResolverMemory, ServerEncryption,
    UnencryptedReason,
};
use super::super::{FoundRecords, NameServers};
use super::encrypted::serve_https;
#[cfg(feature = "quic")]
use super::encrypted::serve_https_announcing;
use super::server::{Asked, SVCB, record, rr, serve_stream, wire};
use super::*;
use crate::{ListenParameters, Listener, MemoryStore, SecurityParameters, ServerIdentity};

#[cfg(feature = "quic")]
mod announced;
mod remembered;

#[cfg(feature = "quic")]
#[path = "../../../../../h3/examples/over_quinn/mod.rs"]
mod over_quinn;

#[cfg(feature = "quic")]
use over_quinn::H3OverQuinn;

const NAME: &str = "dns.example";
const AUTO: EncryptedDnsPolicy = EncryptedDnsPolicy::Auto;
const REQUIRED: EncryptedDnsPolicy = EncryptedDnsPolicy::Required;

const PROTOCOLS: &[DnsProtocol] = &[
    DnsProtocol::Tls,
    DnsProtocol::Https,
    #[cfg(feature = "quic")]
    DnsProtocol::Quic,
    #[cfg(feature = "quic")]
    DnsProtocol::Http3,
];

/// What is answered in the clear, unlike what `good` does.
fn in_the_clear(asked: &Asked) -> Vec<Act> {
    reply(asked).answer(&rr(SAME, A, 1, 60, &[192, 0, 2, 9])).opt(0, 0).send()
}

fn found_in_the_clear() -> Result<DnsRecords, DnsFailure> {
    Ok(DnsRecords::A(vec![Ipv4Addr::new(192, 0, 2, 9)]))
}

/// The value of an SVCB record with these protocols at this address (RFC 9460 §2.2).
fn binding(protocols: &[&str], resolver: SocketAddr) -> Vec<u8> {
    let SocketAddr::V4(resolver) = resolver else { panic!("{resolver}") };
    let parameter = |key: u16, value: &[u8]| {
        let len = u16::try_from(value.len()).unwrap();
        [&key.to_be_bytes()[..], &len.to_be_bytes(), value].concat()
    };
    let alpn: Vec<u8> = protocols
        .iter()
        .flat_map(|text| std::iter::once(u8::try_from(text.len()).unwrap()).chain(text.bytes()))
        .collect();
    [
        &[0, 1][..],
        &wire(NAME),
        &parameter(1, &alpn),
        &parameter(3, &resolver.port().to_be_bytes()),
        &parameter(4, &resolver.ip().octets()),
        &parameter(7, b"/dns-query{?dns}"),
    ]
    .concat()
}

/// Starts a server that designates a resolver with this binding.
async fn designating(binding: Vec<u8>) -> Server {
    let behaviour = move |asked: &Asked| {
        if asked.name() == wire("_dns.resolver.arpa") && asked.kind() == SVCB {
            reply(asked).answer(&rr(SAME, SVCB, 1, 60, &binding)).opt(0, 0).send()
        } else {
            in_the_clear(asked)
        }
    };
    Server::start(behaviour, true).await
}

/// A resolver that speaks one protocol.
struct EncryptedResolver {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    tasks: tokio::task::JoinSet<()>,
}

impl EncryptedResolver {
    async fn start(protocol: DnsProtocol, identity: &ServerIdentity, ip: &str) -> Self {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (shared, mut tasks) = (Arc::clone(&asked), tokio::task::JoinSet::new());
        let address = SocketAddr::new(ip.parse().unwrap(), 0);
        #[cfg(feature = "quic")]
        if matches!(protocol, DnsProtocol::Quic | DnsProtocol::Http3) {
            let endpoint = quic_endpoint(identity, address, alpn(protocol));
            let address = endpoint.local_addr().unwrap();
            if protocol == DnsProtocol::Quic {
                tasks.spawn(serve_quic(endpoint, shared));
            } else {
                tasks.spawn(serve_http3(endpoint, shared));
            }
            return Self { address, asked, tasks };
        }
        let alpn = if protocol == DnsProtocol::Https { "h2" } else { "dot" };
        let parameters = ListenParameters::new(address).security(identity.clone());
        let listener = Listener::bind(parameters.with_alpn([alpn])).await.unwrap();
        let address = listener.local_addr();
        tasks.spawn(async move {
            loop {
                let connection = listener.accept().await;
                let shared = Arc::clone(&shared);
                let note = move |query: &[u8]| record(&shared, query, true, 0);
                match protocol {
                    DnsProtocol::Https => drop(tokio::spawn(serve_https(connection, good, note))),
                    _ => drop(tokio::spawn(serve_stream(connection, good, note))),
                }
            }
        });
        Self { address, asked, tasks }
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[cfg(feature = "quic")]
fn quic_endpoint(identity: &ServerIdentity, address: SocketAddr, alpn: &str) -> quinn::Endpoint {
    let mut tls = identity.server_config().unwrap();
    tls.alpn_protocols = vec![alpn.into()];
    let tls = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    quinn::Endpoint::server(quinn::ServerConfig::with_crypto(Arc::new(tls)), address).unwrap()
}

#[cfg(feature = "quic")]
async fn serve_quic(endpoint: quinn::Endpoint, asked: Arc<Mutex<Vec<Asked>>>) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else { continue };
        let asked = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((send, receive)) = connection.accept_bi().await {
                let note = |query: &[u8]| {
                    assert_eq!(query[..2], [0, 0], "RFC 9250 §4.2.1");
                    record(&asked, query, true, 0)
                };
                serve_stream(tokio::io::join(receive, send), good, note).await;
            }
        });
    }
}

#[cfg(feature = "quic")]
async fn serve_http3(endpoint: quinn::Endpoint, asked: Arc<Mutex<Vec<Asked>>>) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else { continue };
        let asked = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut h3 = H3OverQuinn::new(connection, Role::Server);
            let mut bodies = BTreeMap::<_, Vec<u8>>::new();
            while let Ok(event) = h3.next_event().await {
                match event {
                    Event::Head { stream, fields, .. } => {
                        let path = fields.iter().find(|field| field.name == ":path");
                        assert_eq!(path.map(|path| &path.value[..]), Some(&b"/dns-query"[..]));
                        bodies.insert(stream, Vec::new());
                    }
                    Event::Data { stream, data } => {
                        bodies.get_mut(&stream).unwrap().extend_from_slice(&data);
                    }
                    Event::End { stream } => {
                        let query = bodies.remove(&stream).unwrap();
                        assert_eq!(query[..2], [0, 0], "RFC 8484 §4.1");
                        let acts = good(&record(&asked, &query, true, 0));
                        let [Act::Send(message)] = &acts[..] else { panic!("{acts:?}") };
                        let fields =
                            [(":status", "200"), ("content-type", "application/dns-message")];
                        let fields = fields.map(|(name, value)| {
                            (name.as_bytes(), value.as_bytes(), Sensitivity::Ordinary)
                        });
                        h3.core.send_response(stream, fields.into_iter(), false).unwrap();
                        h3.core.send_data(stream, message.clone().into(), true).unwrap();
                    }
                    _ => {}
                }
            }
        });
    }
}

fn identity(name: &str) -> ServerIdentity {
    ServerIdentity::self_signed([name]).unwrap()
}

/// Returns the designating server as a client with this policy asks it.
fn client(server: &Server, identity: &ServerIdentity, policy: EncryptedDnsPolicy) -> NameServers {
    let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let setting = EncryptionSetting::of_named_server(policy, trust, Arc::default());
    NameServers::with_encryption([server.address], options(), &setting)
}

/// Returns such a client on this network, with a memory.
fn client_on(
    network: &'static str,
    store: &MemoryStore,
    server: &Server,
    identity: &ServerIdentity,
    policy: EncryptedDnsPolicy,
) -> NameServers {
    let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    // Without a name it is uncertain.
    let id = move || (!network.is_empty()).then(|| NetworkId(network.into()));
    let memory = Arc::<std::sync::OnceLock<_>>::default();
    memory.set(ResolverMemory::new(store.clone(), "trust".to_owned(), id)).unwrap();
    let setting = EncryptionSetting::of_named_server(policy, trust, memory);
    NameServers::with_encryption([server.address], options(), &setting)
}

async fn ask(servers: &NameServers, name: &str) -> FoundRecords {
    servers.query(name, RecordType::A).await
}

/// Returns the names that a server was asked for.
fn names(server: &Server) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = server.asked.lock().unwrap().iter().map(Asked::name).collect();
    names.dedup();
    names
}

const fn alpn(protocol: DnsProtocol) -> &'static str {
    match protocol {
        DnsProtocol::Tls => "dot",
        DnsProtocol::Https => "h2",
        DnsProtocol::Quic => "doq",
        DnsProtocol::Http3 => "h3",
    }
}

fn absent(why: UnencryptedReason) -> Vec<ServerEncryption> {
    vec![ServerEncryption::Absent(why)]
}

fn refused(why: UnencryptedReason) -> impl Fn(&FoundRecords) -> bool {
    move |found| match &found.records {
        Err(DnsFailure::Local(text)) => text.contains(&why.to_string()),
        _ => false,
    }
}

//= rfc9462 §4.2
//# MUST NOT use a resolver whose certificate lacks the address of its designator; one that has it is used
#[tokio::test]
async fn a_verified_resolver_is_asked_by_each_protocol_and_nobody_else_is() {
    for protocol in PROTOCOLS {
        for policy in [AUTO, REQUIRED] {
            let identity = identity("127.0.0.1");
            let resolver = EncryptedResolver::start(*protocol, &identity, "127.0.0.1").await;
            let server = designating(binding(&[alpn(*protocol)], resolver.address)).await;
            let servers = client(&server, &identity, policy);
            assert_eq!(servers.encryption(), [ServerEncryption::Unknown]);
            for name in ["a.test.example", "b.test.example"] {
                let answer = ask(&servers, name).await;
                assert_eq!(answer.records, found(), "{protocol:?} {policy:?}");
                assert!(answer.is_authentic, "it has proved who it is");
            }
            assert_eq!(names(&server), [wire("_dns.resolver.arpa")], "{protocol:?} {policy:?}");
            let queries = resolver.asked.lock().unwrap().clone();
            assert!(queries.iter().all(|query| query.octets.len() % 128 == 0), "RFC 8467 §4.1");
            let [ServerEncryption::Designated(found)] = &servers.encryption()[..] else {
                panic!("{:?}", servers.encryption())
            };
            assert_eq!((&*found.name, found.protocol, found.is_verified), (NAME, *protocol, true));
        }
    }
}

//= rfc9462 §4.3
//# MAY use a resolver without that proof at the designator's own address; only a private one, never if encryption is required
#[tokio::test]
async fn an_unverified_resolver_is_used_at_the_same_private_address_alone() {
    let identity = identity(NAME);
    let resolver = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
    let elsewhere = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.2").await;
    let server = designating(binding(&["dot"], resolver.address)).await;
    let auto = client(&server, &identity, AUTO);
    let answer = ask(&auto, "a.example.net").await;
    assert_eq!((answer.records, answer.is_authentic), (found(), false));
    let required = client(&server, &identity, REQUIRED);
    assert!(refused(UnencryptedReason::NotVerified)(&ask(&required, "a.example.net").await));
    assert_eq!(names(&server), [wire("_dns.resolver.arpa")], "nothing else in the clear");

    let server = designating(binding(&["dot"], elsewhere.address)).await;
    let auto = client(&server, &identity, AUTO);
    assert_eq!(ask(&auto, "a.example.net").await.records, found_in_the_clear());
    assert_eq!(auto.examine_encryption().await, absent(UnencryptedReason::NotVerified));
    assert_eq!(elsewhere.count(), 0);
    // With a proof it may be anywhere.
    let identity = self::identity("127.0.0.1");
    let elsewhere = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.2").await;
    let server = designating(binding(&["dot"], elsewhere.address)).await;
    let required = client(&server, &identity, REQUIRED);
    assert_eq!(ask(&required, "a.example.net").await.records, found());
}

fn designates_nothing(asked: &Asked) -> Vec<Act> {
    match asked.kind() {
        SVCB => reply(asked).record(2, &soa()).send(),
        _ => in_the_clear(asked),
    }
}

fn is_silent_about_resolvers(asked: &Asked) -> Vec<Act> {
    match asked.kind() {
        SVCB => Vec::new(),
        _ => in_the_clear(asked),
    }
}

#[tokio::test]
async fn a_server_without_a_resolver_is_asked_in_the_clear_or_not_at_all() {
    let identity = identity(NAME);
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    for (server, why) in [
        (Server::start(designates_nothing, true).await, UnencryptedReason::NotDesignated),
        (Server::start(is_silent_about_resolvers, true).await, UnencryptedReason::NotAnswered),
        (
            designating(binding(&["dot", "doq", "h2"], closed)).await,
            UnencryptedReason::NotReachable,
        ),
        (designating(vec![0, 1]).await, UnencryptedReason::NotUsable("its records are malformed")),
    ] {
        let auto = client(&server, &identity, AUTO);
        assert_eq!(ask(&auto, "a.example.net").await.records, found_in_the_clear(), "{why}");
        assert_eq!(auto.examine_encryption().await, absent(why));
        server.asked.lock().unwrap().clear();
        let required = client(&server, &identity, REQUIRED);
        let answer = ask(&required, "a.example.net").await;
        assert!(refused(why)(&answer), "{why}: {answer:?}");
        assert_eq!(names(&server), [wire("_dns.resolver.arpa")], "{why}");
    }
}

//= rfc9462 §8.2
//# queries for names in resolver.arpa go to the network's own resolver
#[tokio::test]
async fn names_of_the_network_stay_with_its_server() {
    let identity = identity("127.0.0.1");
    let resolver = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
    let server = designating(binding(&["dot"], resolver.address)).await;
    let auto = client(&server, &identity, AUTO);
    for name in ["printer", "nas.local", "1.0.0.10.in-addr.arpa", "ipv4only.arpa"] {
        assert_eq!(ask(&auto, name).await.records, found_in_the_clear(), "{name}");
    }
    let required = client(&server, &identity, REQUIRED);
    assert_eq!(ask(&required, "nas.local").await.records, found());
    assert_eq!(ask(&required, "ipv4only.arpa").await.records, found_in_the_clear());
}

#[tokio::test]
async fn a_resolver_that_goes_is_looked_for_again_or_done_without() {
    let identity = identity("127.0.0.1");
    let mut resolver = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
    let server = designating(binding(&["dot"], resolver.address)).await;
    let (auto, required) = (client(&server, &identity, AUTO), client(&server, &identity, REQUIRED));
    for servers in [&auto, &required] {
        assert_eq!(ask(servers, "a.example.net").await.records, found());
    }
    resolver.tasks.shutdown().await;
    for servers in [&auto, &required] {
        servers.forget();
    }
    assert_eq!(ask(&auto, "b.example.net").await.records, found_in_the_clear());
    let answer = ask(&required, "b.example.net").await;
    assert!(refused(UnencryptedReason::NotReachable)(&answer), "{answer:?}");
}

/// Starts a resolver over TLS that behaves like this, and returns its address.
async fn resolver(identity: &ServerIdentity, behaviour: Behaviour) -> SocketAddr {
    let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
    let parameters = parameters.security(identity.clone()).with_alpn(["dot"]);
    let listener = Listener::bind(parameters).await.unwrap();
    let address = listener.local_addr();
    tokio::spawn(async move {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        loop {
            let (connection, asked) = (listener.accept().await, Arc::clone(&asked));
            let note = move |query: &[u8]| record(&asked, query, true, 0);
            tokio::spawn(serve_stream(connection, behaviour, note));
        }
    });
    address
}

#[tokio::test]
async fn a_resolver_that_is_silent_is_done_without_and_that_is_told() {
    let identity = identity("127.0.0.1");
    let server = designating(binding(&["dot"], resolver(&identity, silent).await)).await;
    let auto = client(&server, &identity, AUTO);
    assert!(matches!(auto.examine_encryption().await[..], [ServerEncryption::Designated(_)]));
    assert_eq!(ask(&auto, "a.example.net").await.records, found_in_the_clear());
    assert_eq!(auto.encryption(), absent(UnencryptedReason::NotReachable));
}

#[tokio::test]
async fn a_resolver_that_is_silent_about_one_question_is_still_used() {
    let identity = identity("127.0.0.1");
    let silent_about_https: Behaviour =
        |asked| if asked.kind() == HTTPS { Vec::new() } else { good(asked) };
    let address = resolver(&identity, silent_about_https).await;
    let server = designating(binding(&["dot"], address)).await;
    let auto = client(&server, &identity, AUTO);
    let designated = auto.examine_encryption().await;
    assert!(matches!(designated[..], [ServerEncryption::Designated(_)]));
    let https = auto.query("a.example.net", RecordType::Https);
    let (_, address) = tokio::join!(https, ask(&auto, "a.example.net"));
    assert_eq!(address.records, found());
    assert_eq!(auto.encryption(), designated);
}

//= rfc9462 §7
//# SHOULD NOT use unencrypted DNS where a resolver was found: also not to repeat what a verified one fails to answer
#[tokio::test]
async fn what_a_verified_resolver_fails_to_answer_is_not_asked_in_the_clear() {
    // Only that it does not serve this client, or not this question, makes the server itself better.
    for (code, expected) in [(2, Err(DnsFailure::ServerFailure)), (5, found_in_the_clear())] {
        let fails: Behaviour = match code {
            2 => |asked| reply(asked).code(2).opt(0, 0).send(),
            _ => |asked| reply(asked).code(5).opt(0, 0).send(),
        };
        for (of_identity, is_verified) in [("127.0.0.1", true), (NAME, false)] {
            let identity = identity(of_identity);
            let server = designating(binding(&["dot"], resolver(&identity, fails).await)).await;
            let auto = client(&server, &identity, AUTO);
            let answer = ask(&auto, "a.example.net").await;
            let expected = if is_verified { expected.clone() } else { found_in_the_clear() };
            assert_eq!(answer.records, expected, "{code} {of_identity}");
            let question = wire("_dns.resolver.arpa");
            let is_plain = names(&server).iter().any(|name| *name != question);
            assert_eq!(is_plain, answer.records.is_ok(), "{code} {of_identity}");
            assert!(matches!(auto.encryption()[..], [ServerEncryption::Designated(_)]));
        }
    }
}

//= rfc9460 §3.1
//# over protected DNS a failure counts as protected, too: also that of a resolver which has to be asked encrypted
#[tokio::test]
async fn what_a_required_resolver_fails_to_answer_is_authentic() {
    let identity = identity("127.0.0.1");
    let without_https: Behaviour = |asked| match asked.kind() {
        HTTPS => reply(asked).code(2).opt(0, 0).send(),
        _ => good(asked),
    };
    let address = resolver(&identity, without_https).await;
    let server = designating(binding(&["dot"], address)).await;
    let required = client(&server, &identity, REQUIRED);
    let answer = required.query("a.example.net", RecordType::Https).await;
    assert_eq!((answer.records, answer.is_authentic), (Err(DnsFailure::ServerFailure), true));
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    let unencrypted = NameServers::new([closed], options());
    assert!(!unencrypted.query("a.example.net", RecordType::Https).await.is_authentic);
}

//= rfc9462 §4.1.1
//# SHOULD NOT use what was discovered on one network on another
#[tokio::test]
async fn a_resolver_of_the_former_network_says_nothing_about_that_of_the_next() {
    let identity = identity("127.0.0.1");
    let server = designating(binding(&["dot"], resolver(&identity, silent).await)).await;
    let auto = client(&server, &identity, AUTO);
    let change = async {
        while !matches!(auto.encryption()[..], [ServerEncryption::Designated(_)]) {
            tokio::task::yield_now().await;
        }
        auto.forget();
    };
    let (answer, ()) = tokio::join!(ask(&auto, "a.example.net"), change);
    assert_eq!(answer.records, found_in_the_clear());
    assert_eq!(auto.encryption(), [ServerEncryption::Unknown]);
}

/// Returns the protocol of the only server.
fn protocol(servers: &NameServers) -> DnsProtocol {
    match &servers.encryption()[..] {
        [ServerEncryption::Designated(resolver)] => resolver.protocol,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_worked_on_a_network_is_tried_first_there() {
    let identity = identity("127.0.0.1");
    let resolver = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
    // Of this server nobody has heard yet, and it is preferred.
    let https = EncryptedResolver::start(DnsProtocol::Https, &identity, "127.0.0.1").await;
    let server = designating(binding(&["dot"], resolver.address)).await;
    let both = [(1, "h2", https.address), (2, "dot", resolver.address)];
    let both = both.map(|(priority, alpn, address)| (priority, binding(&[alpn], address)));
    let store = MemoryStore::default();
    let client = |server: &Server, network: &'static str| {
        client_on(network, &store, server, &identity, REQUIRED)
    };
    let (home, abroad) = (client(&server, "home"), client(&server, "abroad"));
    assert_eq!(ask(&home, "a.example.net").await.records, found());
    drop((home, abroad));
    let behaviour = move |asked: &Asked| match asked.kind() {
        SVCB => {
            let records = both.iter().fold(reply(asked), |reply, (priority, binding)| {
                let binding = [&[0, *priority], &binding[2..]].concat();
                reply.answer(&rr(SAME, SVCB, 1, 60, &binding))
            });
            records.opt(0, 0).send()
        }
        _ => in_the_clear(asked),
    };
    let server = Server::start(behaviour, true).await;
    for (network, expected) in [("home", DnsProtocol::Tls), ("abroad", DnsProtocol::Https)] {
        let servers = client(&server, network);
        assert_eq!(ask(&servers, "a.example.net").await.records, found());
        assert_eq!(protocol(&servers), expected, "{network}");
    }
}

#[cfg(feature = "quic")]
#[tokio::test]
async fn the_first_protocol_that_passes_is_used() {
    let identity = identity("127.0.0.1");
    let resolver = EncryptedResolver::start(DnsProtocol::Tls, &identity, "127.0.0.1").await;
    // Nobody answers over QUIC.
    let _silent = tokio::net::UdpSocket::bind(resolver.address).await.unwrap();
    let server = designating(binding(&["doq", "dot"], resolver.address)).await;
    let required = client(&server, &identity, REQUIRED);
    assert_eq!(ask(&required, "a.example.net").await.records, found());
}
