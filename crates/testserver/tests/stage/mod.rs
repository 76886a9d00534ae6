//! Runs a server with a personality, and clients that reach and trust it.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters, race::memory::MemoryConfig};
use eyas_http::{Client, ClientBuilder, Proxy, Versions};
use eyas_testserver::{ServerPersonality, TestAuthority, TestServer};

/// A generous bound for anything that must happen at all.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The name of the server; no DNS knows it.
pub(crate) const NAME: &str = "peer.test";

pub(crate) struct Stage {
    authority: TestAuthority,
    pub(crate) server: TestServer,
}

impl Stage {
    pub(crate) async fn new(personality: ServerPersonality) -> Self {
        let authority = TestAuthority::new([NAME]).expect("an authority");
        let server = personality.start(&authority).await.expect("a server");
        Self { authority, server }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{NAME}:{}{path}", self.server.local_addr().port())
    }

    /// Returns a client with its own memory.
    pub(crate) fn client(&self) -> Client {
        self.client_for(Versions::ALL)
    }

    /// Returns a client for only these versions, with its own memory.
    pub(crate) fn client_for(&self, versions: Versions) -> Client {
        let memory = MemoryStore::in_memory(MemoryConfig::default());
        self.builder_with(&memory).versions(versions).build().expect("a client")
    }

    /// Returns the builder of a client with this memory.
    pub(crate) fn builder_with(&self, memory: &MemoryStore) -> ClientBuilder {
        let port = self.server.local_addr().port();
        let loopback = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
        let endpoint = Endpoint::builder()
            .security(SecurityParameters::platform().with_roots([self.authority.root().clone()]))
            .resolver(resolver.overriding(NAME, port, loopback))
            .memory(memory.clone())
            .build()
            .expect("an endpoint");
        Client::builder().endpoint(endpoint).proxy(Proxy::none())
    }
}
