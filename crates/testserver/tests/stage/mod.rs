//! A server with a personality, and clients that find and trust it.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters, race::memory::Config};
use eyas_http::{Client, ClientBuilder, Proxy, Versions};
use eyas_testserver::{Authority, Personality, TestServer};

/// A generous bound for anything that must happen at all.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The name of the server; no DNS knows it.
pub(crate) const NAME: &str = "peer.test";

pub(crate) struct Stage {
    authority: Authority,
    pub(crate) server: TestServer,
}

impl Stage {
    pub(crate) async fn new(personality: Personality) -> Self {
        let authority = Authority::new([NAME]).expect("an authority");
        let server = personality.start(&authority).await.expect("a server");
        Self { authority, server }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{NAME}:{}{path}", self.server.local_addr().port())
    }

    /// A client with a memory of its own.
    pub(crate) fn client(&self) -> Client {
        self.speaking(Versions::ALL)
    }

    /// A client that speaks these versions alone, with a memory of its own.
    pub(crate) fn speaking(&self, versions: Versions) -> Client {
        let memory = MemoryStore::in_memory(Config::default());
        self.remembering(&memory).versions(versions).build().expect("a client")
    }

    /// A client with this memory.
    pub(crate) fn remembering(&self, memory: &MemoryStore) -> ClientBuilder {
        let port = self.server.local_addr().port();
        let here = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let resolver = Resolver::server((Ipv4Addr::LOCALHOST, 9).into());
        let endpoint = Endpoint::builder()
            .security(SecurityParameters::platform().with_roots([self.authority.root().clone()]))
            .resolver(resolver.overriding(NAME, port, here))
            .memory(memory.clone())
            .build()
            .expect("an endpoint");
        Client::builder().endpoint(endpoint).proxy(Proxy::none())
    }
}
