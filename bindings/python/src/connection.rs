//! One raced connection as a stream of bytes.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use eyas::{
    ByteStream, Connection, ConnectionInfo, Preconnection, Recording, quinn,
    race::{
        candidate::{Security, Transport},
        policy::{Policy, SctpSecurity},
        target::{Host, Service, Target},
    },
};
use pyo3::{exceptions::PyBrokenPipeError, prelude::*};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use crate::{
    client::transports,
    endpoint::Endpoint,
    failure::{duration, of_race, of_url, of_value},
    json,
    runtime::{Owned, runtime},
    wait::{awaitable, wait, within},
};

/// The most that one call reads, in bytes.
const MAX_READ: usize = 256 * 1024;

/// How long a connection over QUIC that was closed waits for its peer to be done: what is still under way
/// is lost with it, and the kernel does not see to it as with TCP.
const LINGER: Duration = Duration::from_secs(2);

/// Whom to connect to, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    host: String,
    port: u16,
    /// Most wanted first.
    transports: Vec<String>,
    tls: bool,
    /// Whether SCTP has DTLS below it in place of TLS on its streams.
    dtls: bool,
    /// The UDP port at which the peer awaits SCTP inside UDP; its usual one, if none is named.
    sctp_udp_port: Option<u16>,
    alpn: Vec<String>,
    /// Whom the certificate has to name, if that is not the host.
    server_hostname: Option<String>,
    /// Seconds that the race may take.
    timeout: Option<f64>,
}

impl Wanted {
    pub(crate) fn preconnection(self, endpoint: &Endpoint) -> PyResult<Preconnection> {
        let host = Host::parse(&self.host).map_err(of_url)?;
        let transports = transports(&self.transports)?;
        let mut policy = Policy { transports: transports.clone(), ..Policy::default() };
        if let Some(seconds) = self.timeout {
            policy.deadline = duration(seconds)?;
        }
        if self.dtls {
            policy.sctp_security = SctpSecurity::Dtls;
        }
        let policy = policy.validated().map_err(of_value)?;
        let security = if self.tls { Security::Tls } else { Security::None };
        let mut target = Target::plain(host, self.port, transports, security);
        if let Service::Plain { alpn, .. } = &mut target.service {
            *alpn = self.alpn;
        }
        let mut preconnection = endpoint.share().preconnection(target).policy(policy);
        if let Some(port) = self.sctp_udp_port {
            preconnection = preconnection.sctp_encapsulation_port(port);
        }
        Ok(match self.server_hostname {
            Some(name) => preconnection.certificate_for(Host::parse(&name).map_err(of_url)?),
            None => preconnection,
        })
    }
}

async fn open(preconnection: Preconnection) -> PyResult<RawConnection> {
    let mut initiation = preconnection.initiate();
    let connection = initiation.usable().await.map_err(|error| of_race(&error))?;
    let recording = initiation.recording();
    // What it goes on to try teaches the memory.
    initiation.detach();
    Ok(RawConnection::new(connection, Some(recording)))
}

/// Races to the peer.
#[pyfunction]
pub(crate) fn connect(
    py: Python<'_>,
    endpoint: &Endpoint,
    wanted: Wanted,
) -> PyResult<RawConnection> {
    runtime()?;
    wait(py, open(wanted.preconnection(endpoint)?))
}

/// The same, to be awaited.
#[pyfunction]
pub(crate) fn aconnect<'py>(
    py: Python<'py>,
    endpoint: &Endpoint,
    wanted: Wanted,
) -> PyResult<Bound<'py, PyAny>> {
    runtime()?;
    awaitable(py, open(wanted.preconnection(endpoint)?))
}

/// The halves of a connection, which are used at once.
struct Halves {
    reader: Reader,
    writer: Writer,
    /// Of one over QUIC that was accepted.
    accepted: Option<quinn::Connection>,
}

type Reader = Arc<tokio::sync::Mutex<ReadHalf<ByteStream>>>;
type Writer = Arc<tokio::sync::Mutex<WriteHalf<ByteStream>>>;

/// An [`eyas::Connection`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawConnection {
    wrote: AtomicBool,
    /// Nothing once it is closed.
    halves: Mutex<Option<Owned<Halves>>>,
    info: Arc<ConnectionInfo>,
    /// Of one that was opened here.
    recording: Option<Owned<Recording>>,
}

impl RawConnection {
    pub(crate) fn new(connection: Connection, recording: Option<Recording>) -> Self {
        let info = connection.shared_info();
        let accepted = connection.quic().filter(|_| recording.is_none()).cloned();
        let (reader, writer) = connection.split();
        let halves = Halves {
            reader: Arc::new(tokio::sync::Mutex::new(reader)),
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            accepted,
        };
        Self {
            wrote: AtomicBool::new(false),
            halves: Mutex::new(Some(Owned::new(halves))),
            info,
            recording: recording.map(Owned::new),
        }
    }

    fn half<T>(&self, of: impl FnOnce(&Halves) -> T) -> PyResult<T> {
        runtime()?;
        let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        match &*halves {
            Some(halves) => Ok(of(halves)),
            None => Err(PyBrokenPipeError::new_err("the connection is closed")),
        }
    }

    fn reader(&self) -> PyResult<Reader> {
        self.half(|halves| Arc::clone(&halves.reader))
    }

    fn writer(&self) -> PyResult<Writer> {
        self.wrote.store(true, Ordering::Relaxed);
        self.half(|halves| Arc::clone(&halves.writer))
    }

    fn take(&self) -> Option<Owned<Halves>> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Closes it in order.
    fn end(&self) -> impl Future<Output = PyResult<()>> + Send + use<> {
        let halves = self.take();
        let is_quic = self.info.transport == Transport::Quic;
        let waits = is_quic && self.wrote.load(Ordering::Relaxed);
        async move {
            if let Some(halves) = halves {
                let _ = tokio::time::timeout(LINGER, finish(&halves, waits)).await;
            }
            Ok(())
        }
    }
}

async fn read(reader: Reader, most: usize) -> PyResult<Bytes> {
    let mut buffer = BytesMut::with_capacity(most.min(MAX_READ));
    let mut room = bytes::BufMut::limit(&mut buffer, most.min(MAX_READ));
    reader.lock().await.read_buf(&mut room).await?;
    Ok(buffer.freeze())
}

async fn write(writer: Writer, data: Bytes) -> PyResult<()> {
    let mut writer = writer.lock().await;
    writer.write_all(&data).await?;
    writer.flush().await?;
    Ok(())
}

/// Says that nothing more comes, and waits until the peer says so too where that is needed. A client may
/// have said so before it was answered, so one that was accepted waits until the client has closed it.
async fn finish(halves: &Halves, waits: bool) {
    // A peer that is done may have closed everything by now.
    let _ = halves.writer.lock().await.shutdown().await;
    if !waits {
        return;
    }
    if let Some(connection) = &halves.accepted {
        connection.closed().await;
    } else {
        let mut reader = halves.reader.lock().await;
        let mut unread = [0; 4096];
        while reader.read(&mut unread).await.is_ok_and(|length| length > 0) {}
    }
}

async fn shut_down(writer: Writer) -> PyResult<()> {
    writer.lock().await.shutdown().await?;
    Ok(())
}

#[pymethods]
impl RawConnection {
    /// At least a byte and at most so many; none at the end.
    fn read(&self, py: Python<'_>, most: usize, timeout: Option<f64>) -> PyResult<Bytes> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, read(self.reader()?, most)))
    }

    /// The same, to be awaited.
    fn aread<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, read(self.reader()?, most))
    }

    /// Writes all of it.
    fn write(&self, py: Python<'_>, data: Bytes, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, write(self.writer()?, data)))
    }

    /// The same, to be awaited.
    fn awrite<'py>(&self, py: Python<'py>, data: Bytes) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, write(self.writer()?, data))
    }

    /// Tells the peer that nothing more comes.
    fn shut_down(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, shut_down(self.writer()?))
    }

    /// The same, to be awaited.
    fn ashut_down<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, shut_down(self.writer()?))
    }

    /// Closes it in order. What is read or written just now comes to its end first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.end())
    }

    /// The same, to be awaited.
    fn aclose<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.end())
    }

    /// Closes it at once.
    fn abort(&self, py: Python<'_>) {
        let halves = self.take();
        py.detach(|| drop(halves));
    }

    /// What the connection is, as JSON.
    fn info(&self) -> String {
        json::connection(&self.info).to_string()
    }

    /// The race that led to it, if it was opened here, as JSON.
    fn race(&self, py: Python<'_>) -> PyResult<Option<String>> {
        runtime()?;
        let Some(recording) = &self.recording else { return Ok(None) };
        py.detach(|| json::race(&recording.trace())).map(|race| Some(race.to_string()))
    }
}
