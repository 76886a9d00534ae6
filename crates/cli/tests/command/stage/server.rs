//! A server with a personality.

use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine};
use eyas_testserver::{ServerPersonality, TestAuthority, TestServer};
use tokio::runtime::Runtime;

use super::Eyas;

/// The name in the servers' certificates, in addition to 127.0.0.1.
pub(crate) const NAME: &str = "peer.test";

/// A server with a personality, on 127.0.0.1 until it is dropped.
pub(crate) struct Peer {
    server: Option<TestServer>,
    files: tempfile::TempDir,
    runtime: Runtime,
}

impl Peer {
    /// Starts a server.
    pub(crate) fn start(personality: ServerPersonality) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let authority = TestAuthority::new([NAME]).expect("an authority");
        let server = runtime.block_on(personality.start(&authority)).expect("it starts");
        let files = tempfile::tempdir().expect("a directory");
        let text = BASE64_STANDARD.encode(authority.root());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        std::fs::write(files.path().join("ca.pem"), pem).expect("writes");
        Self { server: Some(server), files, runtime }
    }

    /// Returns its port.
    pub(crate) fn port(&self) -> u16 {
        self.server.as_ref().expect("it runs").local_addr().port()
    }

    /// Returns a URL of the server, by name.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{NAME}:{}{path}", self.port())
    }

    /// Returns the directory of the test, which contains `ca.pem`.
    pub(crate) fn directory(&self) -> PathBuf {
        self.files.path().to_owned()
    }

    /// Returns a command line that resolves the name and trusts the server.
    pub(crate) fn eyas(&self, line: &str) -> Eyas {
        Eyas::new(line)
            .within(self.files.path())
            .arg("--resolve")
            .arg(format!("{NAME}:{}:127.0.0.1", self.port()))
            .arg("--cacert")
            .arg("ca.pem")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its sockets belong to the runtime.
        let _guard = self.runtime.enter();
        self.server.take();
    }
}
