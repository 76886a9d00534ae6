//! Servers over HTTPS that announce HTTP/3 (RFC 7838).

use super::super::super::alternative::DohServer;
use super::super::super::server::QueryTransport;
use super::*;

const HOME: &str = "home";

/// A server over HTTP/2 that announces this, with the number of connections to it.
struct Announcing {
    address: SocketAddr,
    field: Arc<Mutex<String>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Announcing {
    async fn start(identity: &ServerIdentity) -> Self {
        let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap());
        let parameters = parameters.security(identity.clone()).with_alpn(["h2"]);
        let listener = Listener::bind(parameters).await.unwrap();
        let address = listener.local_addr();
        let (field, asked) = (Arc::<Mutex<String>>::default(), Arc::<Mutex<Vec<Asked>>>::default());
        let (says, shared) = (Arc::clone(&field), Arc::clone(&asked));
        tokio::spawn(async move {
            loop {
                let connection = listener.accept().await;
                let (says, shared) = (says.lock().unwrap().clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let note = |query: &[u8]| record(&shared, query, true, 0);
                    let field = (!says.is_empty()).then_some(says.as_str());
                    serve_https_announcing(connection, good, note, field).await;
                });
            }
        });
        Self { address, field, asked }
    }

    fn announce(&self, field: &str) {
        *self.field.lock().unwrap() = field.to_owned();
    }

    /// Returns how many queries it was asked since the last time.
    fn count(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().unwrap()).len()
    }
}

/// Returns the server as a client on this network asks it.
async fn doh_client(
    network: &'static str,
    store: &MemoryStore,
    server: &Announcing,
    identity: &ServerIdentity,
) -> NameServers {
    let trust = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let config = trust.client_config(trust.server_verifier().unwrap()).unwrap();
    let memory = Arc::<std::sync::OnceLock<_>>::default();
    let id = move || (!network.is_empty()).then(|| NetworkId(network.into()));
    memory.set(ResolverMemory::new(store.clone(), "trust".to_owned(), id)).unwrap();
    let server = DohServer::new(server.address, NAME, "/dns-query", config, memory).await.unwrap();
    NameServers::from_transports([QueryTransport::from(server)], options())
}

//= rfc7838 §2.2
//# used next time, while it is fresh; on the network on which it was announced
#[tokio::test]
async fn http3_is_used_once_it_is_announced() {
    let identity = identity(NAME);
    let server = Announcing::start(&identity).await;
    let http3 = EncryptedResolver::start(DnsProtocol::Http3, &identity, "127.0.0.1").await;
    let store = MemoryStore::default();
    server.announce(&format!("h3=\":{}\"; ma=60", http3.address.port()));
    for (network, over_http2, over_http3) in
        [(HOME, true, false), (HOME, false, true), (HOME, false, true), ("abroad", true, false)]
    {
        let client = doh_client(network, &store, &server, &identity).await;
        let asked = http3.count();
        assert_eq!(ask(&client, "a.test").await.records, found());
        assert_eq!((server.count() > 0, http3.count() > asked), (over_http2, over_http3));
        if over_http2 {
            // Whether a further connection of this process uses it at once.
            client.servers[0].itself.forget();
            assert_eq!(ask(&client, "b.test").await.records, found());
            assert_eq!((server.count() > 0, http3.count() > asked), (false, true));
        }
    }
}

#[tokio::test]
async fn where_http3_does_not_pass_http2_is_used() {
    let identity = identity(NAME);
    let server = Announcing::start(&identity).await;
    // Nobody answers there.
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    server.announce(&format!("h3=\":{}\"", silent.local_addr().unwrap().port()));
    let store = MemoryStore::default();
    let first = doh_client(HOME, &store, &server, &identity).await;
    assert_eq!(ask(&first, "a.test").await.records, found());
    for is_tried in [true, false] {
        let next = doh_client(HOME, &store, &server, &identity).await;
        assert_eq!(ask(&next, "a.test").await.records, found());
        let mut octets = [0; 2048];
        let mut packets = 0;
        while silent.try_recv(&mut octets).is_ok() {
            packets += 1;
        }
        assert_eq!(packets > 0, is_tried, "{packets}");
    }
}
