//! A connection as a stream of bytes.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use eyas::{
    ByteStream, Connection, ConnectionInfo, Preconnection, RaceRecording, quinn,
    race::{
        candidate::Security,
        policy::{Policy, SctpSecurity},
        target::{Target, TargetService},
    },
};
use eyas_sctp_tokio::SctpAssociation;
use pyo3::{exceptions::PyBrokenPipeError, prelude::*};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use crate::{
    awaitable::{Awaitable, awaitable},
    client::transports,
    closing,
    endpoint::Endpoint,
    error::{duration, race_error, url_error, value_error},
    json, options,
    runtime::{Owned, runtime},
    wait::{wait, within},
};

/// The maximum number of bytes read by one call.
const MAX_READ: usize = 256 * 1024;

/// How long closing a connection waits until the peer has everything. Over TCP the kernel takes care of that; over
/// QUIC and SCTP the rest continues in the background, and [`closing`] has the exit of the process wait for it.
const LINGER: Duration = Duration::from_secs(2);

/// The arguments of `connect` and `associate`, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct ConnectOptions {
    host: String,
    port: u16,
    /// Most preferred first.
    transports: Vec<String>,
    tls: bool,
    /// Whether SCTP runs over DTLS, instead of TLS over its streams.
    dtls: bool,
    /// The peer's UDP port for SCTP inside UDP; the registered port by default.
    sctp_udp_port: Option<u16>,
    alpn: Vec<String>,
    /// The name that the certificate must contain, if it is not the host.
    server_hostname: Option<String>,
    /// The time limit of the race, in seconds.
    timeout: Option<f64>,
}

impl ConnectOptions {
    pub(crate) fn preconnection(self, endpoint: &Endpoint) -> PyResult<Preconnection> {
        let host = eyas::zone::parse_host(&self.host).map_err(url_error)?;
        let transports = transports(&self.transports)?;
        let mut policy = Policy { transports: transports.clone(), ..Policy::default() };
        if let Some(seconds) = self.timeout {
            policy.deadline = duration(seconds)?;
        }
        if self.dtls {
            policy.sctp_security = SctpSecurity::Dtls;
        }
        let policy = policy.validated().map_err(value_error)?;
        let security = if self.tls { Security::Tls } else { Security::None };
        let mut target = Target::plain(host, self.port, transports, security).named_as(&self.host);
        if let TargetService::Plain { alpn, .. } = &mut target.service {
            *alpn = self.alpn;
        }
        let mut preconnection = endpoint.share()?.preconnection(target).policy(policy);
        if let Some(port) = self.sctp_udp_port {
            preconnection = preconnection.sctp_encapsulation_port(port);
        }
        Ok(match self.server_hostname {
            Some(name) => {
                preconnection.certificate_for(eyas::zone::parse_host(&name).map_err(url_error)?)
            }
            None => preconnection,
        })
    }
}

async fn open(preconnection: Preconnection) -> PyResult<RawConnection> {
    let mut initiation = preconnection.initiate();
    let connection = initiation.usable().await.map_err(|error| race_error(&error))?;
    let recording = initiation.recording();
    // The attempts that continue add to the memory.
    initiation.detach();
    Ok(RawConnection::new(connection, Some(recording)))
}

/// Races to the peer, and returns the connection that wins.
#[pyfunction]
pub(crate) fn connect(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<RawConnection> {
    runtime()?;
    wait(py, open(options::read::<ConnectOptions>(options)?.preconnection(endpoint)?))
}

/// The awaitable form of `connect`.
#[pyfunction]
pub(crate) fn aconnect(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<Awaitable> {
    runtime()?;
    awaitable(py, open(options::read::<ConnectOptions>(options)?.preconnection(endpoint)?))
}

/// The halves of a connection, which can be used concurrently.
struct Halves {
    reader: Reader,
    writer: Writer,
    quic: Option<quinn::Connection>,
    association: Option<SctpAssociation>,
}

type Reader = Arc<tokio::sync::Mutex<ReadHalf<ByteStream>>>;
type Writer = Arc<tokio::sync::Mutex<WriteHalf<ByteStream>>>;

/// An [`eyas::Connection`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawConnection {
    /// `None` once it is closed.
    halves: Mutex<Option<Owned<Halves>>>,
    info: Arc<ConnectionInfo>,
    /// The race, if this side opened the connection.
    recording: Option<Owned<RaceRecording>>,
}

impl RawConnection {
    pub(crate) fn new(connection: Connection, recording: Option<RaceRecording>) -> Self {
        let info = connection.shared_info();
        let (quic, association) = (connection.quic().cloned(), connection.sctp().cloned());
        let (reader, writer) = connection.split();
        let halves = Halves {
            reader: Arc::new(tokio::sync::Mutex::new(reader)),
            writer: Arc::new(tokio::sync::Mutex::new(writer)),
            quic,
            association,
        };
        Self {
            halves: Mutex::new(Some(Owned::new(halves))),
            info,
            recording: recording.map(Owned::new),
        }
    }

    fn with_halves<T>(&self, function: impl FnOnce(&Halves) -> T) -> PyResult<T> {
        let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        match &*halves {
            Some(halves) => Ok(function(halves.get()?)),
            None => Err(PyBrokenPipeError::new_err("the connection is closed")),
        }
    }

    fn reader(&self) -> PyResult<Reader> {
        self.with_halves(|halves| Arc::clone(&halves.reader))
    }

    fn writer(&self) -> PyResult<Writer> {
        self.with_halves(|halves| Arc::clone(&halves.writer))
    }

    fn take(&self) -> Option<Owned<Halves>> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Closes the connection gracefully.
    fn close_future(&self) -> impl Future<Output = PyResult<()>> + Send + use<> {
        let halves = self.take();
        async move {
            // Nothing happens in a child that was forked: the connection is the parent's.
            if let Some(halves) = halves
                && halves.get().is_ok()
            {
                let _ = tokio::time::timeout(LINGER, closing::spawn(finish(halves))?).await;
            }
            Ok(())
        }
    }
}

async fn read(reader: Reader, max: usize) -> PyResult<Bytes> {
    let mut buffer = BytesMut::with_capacity(max.min(MAX_READ));
    let mut room = bytes::BufMut::limit(&mut buffer, max.min(MAX_READ));
    reader.lock().await.read_buf(&mut room).await?;
    Ok(buffer.freeze())
}

async fn write(writer: Writer, data: Bytes) -> PyResult<()> {
    let mut writer = writer.lock().await;
    writer.write_all(&data).await?;
    writer.flush().await?;
    Ok(())
}

/// Ends the outgoing direction, and waits until the peer has everything that was written.
async fn finish(halves: Owned<Halves>) {
    let Ok(open) = halves.get() else { return };
    let association = open.association.clone();
    {
        let mut writer = open.writer.lock().await;
        // A peer that has finished may have closed the connection by now.
        if writer.shutdown().await.is_ok() {
            // Waits for the acknowledgement, over QUIC.
            let _ = writer.flush().await;
        }
    }
    // Unread data would close the window of a peer that has not finished.
    drop(halves);
    if let Some(association) = association {
        let _ = association.shutdown().await;
    }
}

async fn shut_down(writer: Writer) -> PyResult<()> {
    writer.lock().await.shutdown().await?;
    Ok(())
}

#[pymethods]
impl RawConnection {
    /// Reads between 1 and `max` bytes; returns none at the end.
    fn read(&self, py: Python<'_>, max: usize, timeout: Option<f64>) -> PyResult<Bytes> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, read(self.reader()?, max)))
    }

    /// The awaitable form of `read`.
    fn aread(&self, py: Python<'_>, max: usize) -> PyResult<Awaitable> {
        awaitable(py, read(self.reader()?, max))
    }

    /// Writes all of the data.
    fn write(&self, py: Python<'_>, data: Bytes, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, write(self.writer()?, data)))
    }

    /// The awaitable form of `write`.
    fn awrite(&self, py: Python<'_>, data: Bytes) -> PyResult<Awaitable> {
        awaitable(py, write(self.writer()?, data))
    }

    /// Ends the outgoing direction.
    fn shut_down(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, shut_down(self.writer()?))
    }

    /// The awaitable form of `shut_down`.
    fn ashut_down(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, shut_down(self.writer()?))
    }

    /// Closes the connection gracefully, once the reads and writes in progress have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.close_future())
    }

    /// The awaitable form of `close`.
    fn aclose(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, self.close_future())
    }

    /// Closes the connection immediately.
    fn abort(&self, py: Python<'_>) {
        let halves = self.take();
        py.detach(|| {
            // Dropping it would deliver what was written before a shutdown.
            let open = halves.as_ref().and_then(|halves| halves.get().ok());
            if let Some(quic) = open.and_then(|open| open.quic.as_ref()) {
                quic.close(0_u32.into(), &[]);
            }
            drop(halves);
        });
    }

    /// Returns the description of the connection, as JSON.
    fn info(&self) -> String {
        json::connection(&self.info).to_string()
    }

    /// Returns the race, as JSON, if this side opened the connection.
    fn race(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some(recording) = &self.recording else { return Ok(None) };
        let recording = recording.get()?;
        py.detach(|| json::race(&recording.trace())).map(|race| Some(race.to_string()))
    }
}
