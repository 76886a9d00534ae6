//! Accepting: connections over every transport, and associations of SCTP with their messages.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use eyas::{
    Connection, ListenParameters, Listener, ServerIdentity,
    sctp::{ENCAPSULATION_PORT, SctpAssociation, SctpListenParameters, SctpListener, SctpOverIp},
};
use pyo3::{exceptions::PyOSError, prelude::*};
use tokio::sync::watch;

use crate::{
    arrived::Arrived,
    association::RawAssociation,
    client::transports,
    connection::RawConnection,
    failure::{duration, of_listen, of_value},
    runtime::{Owned, runtime},
    sctp_options::Config,
    wait::{awaitable, wait, within},
};

/// What a server is known by: an [`eyas::ServerIdentity`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct Identity(ServerIdentity);

#[pymethods]
impl Identity {
    /// A certificate chain, the own one first, and its key, both PEM.
    #[new]
    fn new(chain: Bytes, key: Bytes) -> PyResult<Self> {
        ServerIdentity::from_pem(&chain, &key).map(Self).map_err(of_value)
    }

    /// One that is made on the spot, for these names and addresses.
    #[staticmethod]
    fn self_signed(names: Vec<String>) -> PyResult<Self> {
        ServerIdentity::self_signed(names).map(Self).map_err(of_value)
    }

    /// The own certificate, PEM.
    fn certificate_pem(&self) -> PyResult<String> {
        self.0.certificate_pem().map_err(of_value)
    }
}

/// What to listen on, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Place {
    host: IpAddr,
    port: u16,
    transports: Vec<String>,
    alpn: Vec<String>,
    /// The UDP port for SCTP inside UDP; its usual one, if none is named.
    sctp_udp_port: Option<u16>,
    /// Further addresses of this host that SCTP is served at.
    addresses: Vec<IpAddr>,
    config: Config,
}

impl Place {
    fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }

    fn parameters(self, identity: Option<ServerIdentity>) -> PyResult<ListenParameters> {
        let parameters = ListenParameters::new(self.address())
            .transports(transports(&self.transports)?)
            .with_alpn(self.alpn)
            .sctp_addresses(self.addresses)
            .sctp_encapsulation_port(self.sctp_udp_port.unwrap_or(ENCAPSULATION_PORT))
            .sctp_association(self.config.association()?);
        Ok(match identity {
            Some(identity) => parameters.security(identity),
            None => parameters,
        })
    }

    fn sctp(&self, dtls: Option<ServerIdentity>) -> PyResult<SctpListenParameters> {
        let serves = |name| self.transports.iter().any(|one| one == name);
        let mut parameters = SctpListenParameters::new(self.address());
        let further = self.addresses.iter().map(|ip| SocketAddr::new(*ip, self.port));
        parameters.addresses.extend(further);
        parameters.encapsulation_port =
            serves("sctp-udp").then(|| self.sctp_udp_port.unwrap_or(ENCAPSULATION_PORT));
        parameters.over_ip = if serves("sctp") { SctpOverIp::Must } else { SctpOverIp::No };
        parameters.dtls = dtls;
        parameters.association = self.config.association()?;
        Ok(parameters)
    }
}

/// A listener that ends the calls that wait when it is closed.
struct Listening<L, A> {
    listener: Mutex<Option<Owned<Arc<L>>>>,
    over: watch::Sender<bool>,
    /// Who came for a caller that was cancelled at that moment.
    arrived: Arc<Arrived<A>>,
}

impl<L: Send + Sync, A: Send + 'static> Listening<L, A> {
    fn new(listener: L) -> Self {
        let listener = Mutex::new(Some(Owned::new(Arc::new(listener))));
        Self { listener, over: watch::Sender::new(false), arrived: Arc::default() }
    }

    fn held(&self) -> MutexGuard<'_, Option<Owned<Arc<L>>>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share(&self) -> PyResult<Arc<L>> {
        runtime()?;
        self.held().as_ref().map(|listener| Arc::clone(listener)).ok_or_else(closed)
    }

    fn close(&self, py: Python<'_>) {
        let held = self.held().take();
        self.over.send_replace(true);
        py.detach(|| drop(held));
    }

    /// Waits for the next one, and keeps it.
    fn accepting<F: Future<Output = A> + Send>(
        &self,
        next: F,
    ) -> impl Future<Output = PyResult<()>> + Send + use<L, A, F> {
        let (arrived, mut over) = (Arc::clone(&self.arrived), self.over.subscribe());
        async move {
            tokio::select! {
                accepted = arrived.wait(async { Ok(Some(next.await)) }) => accepted.map(drop),
                _ = over.wait_for(|over| *over) => Err(closed()),
            }
        }
    }
}

fn closed() -> PyErr {
    PyOSError::new_err((rustix::io::Errno::BADF.raw_os_error(), "the listener is closed"))
}

async fn accept(listener: Arc<Listener>) -> Connection {
    listener.accept().await
}

/// An [`eyas::Listener`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawListener(Listening<Listener, Connection>);

#[pymethods]
impl RawListener {
    /// Listens; under TLS if there is an identity.
    #[new]
    fn new(py: Python<'_>, place: Place, identity: Option<&Identity>) -> PyResult<Self> {
        runtime()?;
        let parameters = place.parameters(identity.map(|identity| identity.0.clone()))?;
        let bound = wait(py, async {
            Listener::bind(parameters).await.map_err(|error| of_listen(&error))
        })?;
        Ok(Self(Listening::new(bound)))
    }

    /// Waits for a connection, which `accepted` then gives.
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.0.accepting(accept(self.0.share()?))))
    }

    /// The same, to be awaited.
    fn aaccept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.0.accepting(accept(self.0.share()?)))
    }

    /// A connection that has come.
    fn accepted(&self) -> Option<RawConnection> {
        self.0.arrived.take().map(|connection| RawConnection::new(connection, None))
    }

    /// Where it listens.
    fn address(&self) -> PyResult<String> {
        Ok(self.0.share()?.local_addr().to_string())
    }

    /// The UDP port for SCTP inside UDP, if that is served.
    fn sctp_udp_port(&self) -> PyResult<Option<u16>> {
        Ok(self.0.share()?.sctp().and_then(SctpListener::encapsulation_port))
    }

    /// Stops listening; connections that were accepted live on.
    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// An [`eyas::sctp::SctpListener`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawSctpListener {
    listening: Listening<SctpListener, SctpAssociation>,
    /// Whether it takes in only what comes inside DTLS.
    dtls: bool,
}

impl RawSctpListener {
    fn accepting(&self) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let (listener, dtls) = (self.listening.share()?, self.dtls);
        Ok(self.listening.accepting(async move {
            match dtls {
                true => listener.accept_dtls().await,
                false => listener.accept().await,
            }
        }))
    }
}

#[pymethods]
impl RawSctpListener {
    /// Listens; inside DTLS alone if there is an identity.
    #[new]
    fn new(py: Python<'_>, place: Place, identity: Option<&Identity>) -> PyResult<Self> {
        let runtime = runtime()?;
        let parameters = place.sctp(identity.map(|identity| identity.0.clone()))?;
        let bound = py.detach(|| {
            let _inside = runtime.enter();
            SctpListener::bind(&parameters)
        })?;
        Ok(Self { listening: Listening::new(bound), dtls: identity.is_some() })
    }

    /// Waits for an association, which `accepted` then gives.
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.accepting()?))
    }

    /// The same, to be awaited.
    fn aaccept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.accepting()?)
    }

    /// An association that has come.
    fn accepted(&self) -> Option<RawAssociation> {
        self.listening.arrived.take().map(RawAssociation::accepted)
    }

    /// The SCTP port.
    fn port(&self) -> PyResult<u16> {
        Ok(self.listening.share()?.port())
    }

    /// The UDP port for SCTP inside UDP, if that is served.
    fn udp_port(&self) -> PyResult<Option<u16>> {
        Ok(self.listening.share()?.encapsulation_port())
    }

    /// How many associations there are, accepted or not.
    fn associations(&self) -> PyResult<usize> {
        Ok(self.listening.share()?.associations())
    }

    /// Takes in no more; associations that were accepted live on.
    fn close(&self, py: Python<'_>) {
        self.listening.close(py);
    }
}
