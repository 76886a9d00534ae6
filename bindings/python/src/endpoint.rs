//! The shared part of connections: trust, DNS configuration, memory.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use eyas::{
    EchChoice, EchChoiceError, EncryptedDnsPolicy, EncryptedDnsPolicyError, MemoryStore, Resolver,
    SecurityParameters, certificates_from_pem, private_key_from_encrypted_pem,
    private_key_from_pem, race::memory::MemoryConfig,
};
use pyo3::prelude::*;

use crate::{
    error::{url_error, value_error},
    options,
    runtime::{Owned, is_forked, runtime},
    sctp_options::SctpOptions,
};

/// Trusted roots and client certificate, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct Trust {
    /// Whether certificates are verified at all.
    verify: bool,
    /// The trusted roots, instead of the platform's, in PEM.
    roots: Option<Bytes>,
    /// The client's certificate chain and its key, in PEM, and the key's passphrase.
    identity: Option<(Bytes, Bytes, Option<Bytes>)>,
    /// How the ClientHello is encrypted.
    ech: String,
}

impl Trust {
    fn parameters(&self) -> PyResult<SecurityParameters> {
        let mut security = SecurityParameters::platform();
        if let Some(roots) = &self.roots {
            security = security.with_roots(certificates_from_pem(roots).map_err(value_error)?);
        }
        if let Some((chain, key, passphrase)) = &self.identity {
            let chain = certificates_from_pem(chain).map_err(value_error)?;
            let key = match passphrase {
                Some(passphrase) => private_key_from_encrypted_pem(key, passphrase),
                None => private_key_from_pem(key),
            };
            let key = key.map_err(value_error)?;
            security = security.with_client_certificate(chain, key);
        }
        let ech: EchChoice = self.ech.parse().map_err(|cause: EchChoiceError| {
            value_error(format_args!("{:?} is no setting of ECH: {cause}", self.ech))
        })?;
        let security = security.with_ech(ech);
        Ok(if self.verify { security } else { security.accept_any_certificate() })
    }
}

/// The DNS configuration, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct DnsOptions {
    /// The address and port of a DNS server, instead of the system's.
    server: Option<String>,
    /// Whether queries to name servers are encrypted.
    encrypted: String,
    /// Whether expired addresses are used until the new ones arrive.
    optimistic: bool,
    /// Hosts and ports that are not looked up, with their addresses.
    overrides: Vec<(String, u16, Vec<IpAddr>)>,
}

impl DnsOptions {
    fn resolver(self) -> PyResult<Resolver> {
        let mut resolver = match self.server {
            None => Resolver::system(),
            Some(server) => {
                let address: SocketAddr = server.parse().map_err(|_| {
                    value_error(format_args!(
                        "{server:?} is not the address and port of a DNS server"
                    ))
                })?;
                Resolver::server(address)
            }
        };
        let policy: EncryptedDnsPolicy =
            self.encrypted.parse().map_err(|cause: EncryptedDnsPolicyError| {
                value_error(format_args!(
                    "{:?} is no setting of encrypted DNS: {cause}",
                    self.encrypted
                ))
            })?;
        resolver = resolver.with_encrypted_dns(policy).with_optimistic_dns(self.optimistic);
        for (host, port, addresses) in self.overrides {
            resolver = resolver.overriding(&host, port, addresses);
        }
        Ok(resolver)
    }
}

/// Locks a memory file for this process, which was forked from one that may have it open. SQLite believes that it has
/// this lock since then ("do not open an SQLite database connection, then fork", sqlite.org/howtocorrupt.html), but the
/// kernel gives locks to a process only. It keeps the parent from deleting the write-ahead log in use here.
#[cfg(unix)]
fn hold(path: &Path) {
    if let Ok(file) = std::fs::File::open(path) {
        // Another process may be deleting the log at this moment. SQLite opens a new one then.
        let _ = rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockShared);
        // Closing any descriptor of the file would release all locks of the process.
        std::mem::forget(file);
    }
}

/// Windows forks no processes.
#[cfg(not(unix))]
fn hold(_: &Path) {}

/// An [`eyas::Endpoint`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct Endpoint(Owned<eyas::Endpoint>);

impl Endpoint {
    /// Returns another handle of the endpoint.
    pub(crate) fn share(&self) -> PyResult<eyas::Endpoint> {
        self.0.get().cloned()
    }
}

#[pymethods]
impl Endpoint {
    /// `memory` is a file. Without one, `remember` keeps the memory in this process.
    #[new]
    fn new(
        py: Python<'_>,
        trust: &Bound<'_, PyAny>,
        dns: &Bound<'_, PyAny>,
        memory: Option<PathBuf>,
        remember: bool,
        mptcp: bool,
        sctp: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let runtime = runtime()?;
        let (trust, dns): (Trust, DnsOptions) = (options::read(trust)?, options::read(dns)?);
        let sctp: SctpOptions = options::read(sctp)?;
        let (security, resolver) = (trust.parameters()?, dns.resolver()?);
        let endpoint = py.detach(|| {
            let _context = runtime.enter();
            let memory = match memory {
                Some(path) => {
                    let memory = MemoryStore::open(&path);
                    if is_forked() {
                        hold(&path);
                    }
                    memory
                }
                None if remember => MemoryStore::in_memory(MemoryConfig::default()),
                None => MemoryStore::none(),
            };
            let builder = eyas::Endpoint::builder()
                .security(security)
                .resolver(resolver)
                .memory(memory)
                .mptcp(mptcp);
            let endpoint = sctp.apply(builder)?.build().map_err(value_error)?;
            endpoint.watch_network();
            Ok(endpoint)
        });
        endpoint.map(|endpoint| Self(Owned::new(endpoint)))
    }

    /// Forgets everything about a host; returns the number of rows removed.
    fn forget(&self, py: Python<'_>, host: &str) -> PyResult<usize> {
        let (endpoint, host) = (self.0.get()?, eyas::zone::parse_host(host).map_err(url_error)?);
        Ok(py.detach(|| endpoint.memory().forget(&host)))
    }

    /// Returns the problems with the memory since the last call.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let endpoint = self.0.get()?;
        Ok(py.detach(|| endpoint.memory().warnings()))
    }
}
