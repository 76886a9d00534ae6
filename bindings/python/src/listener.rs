//! Listeners: for connections over every transport, and for SCTP associations with messages.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use eyas::{Connection, ListenParameters, Listener, ServerIdentity};
use eyas_sctp_tokio::{
    ENCAPSULATION_PORT, SctpAssociation, SctpListenParameters, SctpListener, SctpOverIp,
};
use pyo3::{exceptions::PyOSError, prelude::*};
use tokio::sync::watch;

use crate::{
    association::RawAssociation,
    awaitable::{Awaitable, awaitable},
    client::transports,
    connection::RawConnection,
    error::{duration, listen_error, value_error},
    inbox::Inbox,
    options,
    runtime::{Owned, runtime},
    sctp_options::Config,
    wait::{wait, within},
};

/// An [`eyas::ServerIdentity`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct Identity(ServerIdentity);

#[pymethods]
impl Identity {
    /// Takes a certificate chain, the server's own first, and its key, both in PEM.
    #[new]
    fn new(chain: Bytes, key: Bytes) -> PyResult<Self> {
        ServerIdentity::from_pem(&chain, &key).map(Self).map_err(value_error)
    }

    /// Creates a self-signed certificate for these names and addresses.
    #[staticmethod]
    fn self_signed(names: Vec<String>) -> PyResult<Self> {
        ServerIdentity::self_signed(names).map(Self).map_err(value_error)
    }

    /// Returns the server's own certificate, in PEM.
    fn certificate_pem(&self) -> PyResult<String> {
        self.0.certificate_pem().map_err(value_error)
    }
}

/// The arguments of a listener, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct ListenOptions {
    host: IpAddr,
    port: u16,
    transports: Vec<String>,
    alpn: Vec<String>,
    /// The UDP port for SCTP inside UDP; the registered port by default.
    sctp_udp_port: Option<u16>,
    /// Further local addresses for SCTP.
    addresses: Vec<IpAddr>,
    config: Config,
}

impl ListenOptions {
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
        let dtls = dtls.map(|identity| identity.dtls_identity()).transpose();
        parameters.dtls = dtls.map_err(|error| listen_error(&error))?;
        parameters.association = self.config.association()?;
        Ok(parameters)
    }
}

/// A listener whose waiting calls fail when it is closed.
struct AcceptQueue<L, A> {
    listener: Mutex<Option<Owned<Arc<L>>>>,
    closed: watch::Sender<bool>,
    /// Accepted for calls that were cancelled.
    inbox: Arc<Inbox<A>>,
}

impl<L: Send + Sync, A: Send + 'static> AcceptQueue<L, A> {
    fn new(listener: L) -> Self {
        let listener = Mutex::new(Some(Owned::new(Arc::new(listener))));
        Self { listener, closed: watch::Sender::new(false), inbox: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Owned<Arc<L>>>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share(&self) -> PyResult<Arc<L>> {
        match &*self.lock() {
            Some(listener) => listener.get().cloned(),
            None => Err(closed_error()),
        }
    }

    fn close(&self, py: Python<'_>) {
        let listener = self.lock().take();
        self.closed.send_replace(true);
        py.detach(|| drop(listener));
    }

    /// Waits for the next connection and puts it into the inbox.
    fn accept_future<F: Future<Output = A> + Send>(
        &self,
        next: F,
    ) -> impl Future<Output = PyResult<()>> + Send + use<L, A, F> {
        let (inbox, mut closed) = (Arc::clone(&self.inbox), self.closed.subscribe());
        async move {
            tokio::select! {
                accepted = inbox.wait(async { Ok(Some(next.await)) }) => accepted.map(drop),
                _ = closed.wait_for(|closed| *closed) => Err(closed_error()),
            }
        }
    }
}

fn closed_error() -> PyErr {
    PyOSError::new_err((rustix::io::Errno::BADF.raw_os_error(), "the listener is closed"))
}

async fn accept(listener: Arc<Listener>) -> Connection {
    listener.accept().await
}

/// An [`eyas::Listener`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawListener(AcceptQueue<Listener, Connection>);

#[pymethods]
impl RawListener {
    /// Starts to listen, with TLS if there is an identity.
    #[new]
    fn new(options: &Bound<'_, PyAny>, identity: Option<&Identity>) -> PyResult<Self> {
        let (py, options): (_, ListenOptions) = (options.py(), options::read(options)?);
        runtime()?;
        let parameters = options.parameters(identity.map(|identity| identity.0.clone()))?;
        let bound = wait(py, async {
            Listener::bind(parameters).await.map_err(|error| listen_error(&error))
        })?;
        Ok(Self(AcceptQueue::new(bound)))
    }

    /// Waits for a connection, which `accepted` then returns.
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.0.accept_future(accept(self.0.share()?))))
    }

    /// The awaitable form of `accept`.
    fn aaccept(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, self.0.accept_future(accept(self.0.share()?)))
    }

    /// Returns a connection that was accepted.
    fn accepted(&self) -> Option<RawConnection> {
        self.0.inbox.take().map(|connection| RawConnection::new(connection, None))
    }

    /// Returns the local address.
    fn address(&self) -> PyResult<String> {
        Ok(self.0.share()?.local_addr().to_string())
    }

    /// The UDP port for SCTP inside UDP, if that is served.
    fn sctp_udp_port(&self) -> PyResult<Option<u16>> {
        Ok(self.0.share()?.sctp().and_then(SctpListener::encapsulation_port))
    }

    /// Stops listening. Accepted connections stay open.
    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// An [`eyas_sctp_tokio::SctpListener`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawSctpListener {
    queue: AcceptQueue<SctpListener, SctpAssociation>,
    /// Whether only associations inside DTLS are accepted.
    dtls: bool,
}

impl RawSctpListener {
    fn accept_future(&self) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let (listener, dtls) = (self.queue.share()?, self.dtls);
        Ok(self.queue.accept_future(async move {
            match dtls {
                true => listener.accept_dtls().await,
                false => listener.accept().await,
            }
        }))
    }
}

#[pymethods]
impl RawSctpListener {
    /// Starts to listen, only inside DTLS if there is an identity.
    #[new]
    fn new(options: &Bound<'_, PyAny>, identity: Option<&Identity>) -> PyResult<Self> {
        let (py, options): (_, ListenOptions) = (options.py(), options::read(options)?);
        let runtime = runtime()?;
        let parameters = options.sctp(identity.map(|identity| identity.0.clone()))?;
        let bound = py.detach(|| {
            let _context = runtime.enter();
            SctpListener::bind(&parameters)
        })?;
        Ok(Self { queue: AcceptQueue::new(bound), dtls: identity.is_some() })
    }

    /// Waits for an association, which `accepted` then returns.
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.accept_future()?))
    }

    /// The awaitable form of `accept`.
    fn aaccept(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, self.accept_future()?)
    }

    /// Returns an association that was accepted.
    fn accepted(&self) -> Option<RawAssociation> {
        self.queue.inbox.take().map(RawAssociation::accepted)
    }

    /// Returns the SCTP port.
    fn port(&self) -> PyResult<u16> {
        Ok(self.queue.share()?.port())
    }

    /// The UDP port for SCTP inside UDP, if that is served.
    fn udp_port(&self) -> PyResult<Option<u16>> {
        Ok(self.queue.share()?.encapsulation_port())
    }

    /// Returns the number of associations, accepted or not.
    fn associations(&self) -> PyResult<usize> {
        Ok(self.queue.share()?.associations())
    }

    /// Stops listening. Accepted associations stay open.
    fn close(&self, py: Python<'_>) {
        self.queue.close(py);
    }
}
