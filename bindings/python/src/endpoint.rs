//! What all connections of a program share: trust, names, memory.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use bytes::Bytes;
use eyas::{
    MemoryStore, Resolver, SecurityParameters, certificates_from_pem, private_key_from_pem,
    race::{memory::Config, target::Host},
};
use pyo3::prelude::*;

use crate::{
    failure::{of_url, of_value},
    runtime::{Owned, runtime},
    sctp_options::Opening,
};

/// Whom to trust and who to be, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Trust {
    /// Whether certificates are checked at all.
    verify: bool,
    /// The roots to trust in place of the platform's, PEM.
    roots: Option<Bytes>,
    /// The own certificate chain and its key, PEM.
    identity: Option<(Bytes, Bytes)>,
}

impl Trust {
    fn parameters(&self) -> PyResult<SecurityParameters> {
        let mut security = SecurityParameters::platform();
        if let Some(roots) = &self.roots {
            security = security.with_roots(certificates_from_pem(roots).map_err(of_value)?);
        }
        if let Some((chain, key)) = &self.identity {
            let chain = certificates_from_pem(chain).map_err(of_value)?;
            let key = private_key_from_pem(key).map_err(of_value)?;
            security = security.with_client_certificate(chain, key);
        }
        Ok(if self.verify { security } else { security.accept_any_certificate() })
    }
}

/// Whom to ask for names, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Names {
    /// The address and port of a DNS server, in place of the system's.
    server: Option<String>,
    /// Hosts with a port, and their addresses.
    known: Vec<(String, u16, Vec<IpAddr>)>,
}

impl Names {
    fn resolver(self) -> PyResult<Resolver> {
        let mut resolver = match self.server {
            None => Resolver::system(),
            Some(server) => {
                let address: SocketAddr = server.parse().map_err(|_| {
                    of_value(format_args!("{server:?} is no address and port of a DNS server"))
                })?;
                Resolver::server(address)
            }
        };
        for (host, port, addresses) in self.known {
            resolver = resolver.overriding(&host, port, addresses);
        }
        Ok(resolver)
    }
}

/// An [`eyas::Endpoint`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct Endpoint(Owned<eyas::Endpoint>);

impl Endpoint {
    /// Another handle on it.
    pub(crate) fn share(&self) -> eyas::Endpoint {
        (*self.0).clone()
    }
}

#[pymethods]
impl Endpoint {
    /// `memory` is a file; without one what is learnt stays in this process, or nowhere.
    #[new]
    fn new(
        py: Python<'_>,
        trust: Trust,
        names: Names,
        memory: Option<PathBuf>,
        remember: bool,
        mptcp: bool,
        sctp: Opening,
    ) -> PyResult<Self> {
        let runtime = runtime()?;
        let (security, resolver) = (trust.parameters()?, names.resolver()?);
        let made = py.detach(|| {
            let _inside = runtime.enter();
            let memory = match memory {
                Some(path) => MemoryStore::open(path),
                None if remember => MemoryStore::in_memory(Config::default()),
                None => MemoryStore::none(),
            };
            let builder = eyas::Endpoint::builder()
                .security(security)
                .resolver(resolver)
                .memory(memory)
                .mptcp(mptcp);
            let endpoint = sctp.apply(builder)?.build().map_err(of_value)?;
            endpoint.watch_network();
            Ok(endpoint)
        });
        made.map(|endpoint| Self(Owned::new(endpoint)))
    }

    /// Forgets what was learnt of a host, and says how many rows that were.
    fn forget(&self, py: Python<'_>, host: &str) -> PyResult<usize> {
        runtime()?;
        let host = Host::parse(host).map_err(of_url)?;
        Ok(py.detach(|| self.0.memory().forget(&host)))
    }

    /// What was wrong with the memory since this was last asked.
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        runtime()?;
        Ok(py.detach(|| self.0.memory().warnings()))
    }
}
