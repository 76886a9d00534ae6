//! One connection, as a byte stream.

use std::{
    ffi::{c_char, c_int},
    mem::MaybeUninit,
    os::fd::IntoRawFd,
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use eyas::{ConnectionInfo, RaceRecording};
use tokio::task::{AbortHandle, JoinHandle};

use crate::{
    association::Association,
    call::{ffi_call, ffi_call_with_code, release},
    code::{Code, EYAS_END, EYAS_OK, EYAS_WOULD_BLOCK},
    endpoint_runtime::{EndpointRuntime, RuntimeOwned},
    error::Failure,
    json,
    pointer::{BufferPointer, DataPointer, OutPointer, required_handle, return_handle},
    stream::{PendingWrite, SharedStream, StreamState},
    wait::{CallTurn, HandleClosed, WaitLimit, cancelled, lock, store_descriptor, wait},
};

/// A connection that won a race or was accepted. It keeps its endpoint's threads running, so it may
/// outlive the endpoint's handle.
///
/// May be used from any thread; one thread can read while another writes. A second thread that
/// reads, or writes, at the same time gets EYAS_MISUSE.
///
/// Calls that wait take a timeout in milliseconds, like poll(2): 0 does not wait and returns
/// EYAS_WOULD_BLOCK instead, and a negative one waits indefinitely. They are not interrupted by
/// signals, but by eyas_connection_abort in another thread.
pub struct Connection {
    stream: RuntimeOwned<SharedStream>,
    info: Arc<ConnectionInfo>,
    recording: Option<RuntimeOwned<RaceRecording>>,
    reading: CallTurn,
    writing: CallTurn,
    /// Has the descriptor of `writing`.
    closing: CallTurn,
    /// The task that closes the connection, until its result was returned.
    closer: Mutex<Option<JoinHandle<std::io::Result<()>>>>,
    closer_abort: OnceLock<AbortHandle>,
    wrote: AtomicBool,
    is_shut_down: AtomicBool,
    flusher: Mutex<Option<AbortHandle>>,
    over: HandleClosed,
}

impl Connection {
    pub(crate) fn new(
        connection: eyas::Connection,
        recording: Option<RaceRecording>,
        endpoint_runtime: &Arc<EndpointRuntime>,
    ) -> Self {
        let writing = CallTurn::default();
        Self {
            info: connection.shared_info(),
            stream: RuntimeOwned::new(SharedStream::new(connection), endpoint_runtime),
            recording: recording.map(|recording| RuntimeOwned::new(recording, endpoint_runtime)),
            reading: CallTurn::default(),
            closing: writing.with_same_descriptor(),
            writing,
            closer: Mutex::default(),
            closer_abort: OnceLock::new(),
            wrote: AtomicBool::new(false),
            is_shut_down: AtomicBool::new(false),
            flusher: Mutex::default(),
            over: HandleClosed::default(),
        }
    }

    fn endpoint_runtime(&self) -> &Arc<EndpointRuntime> {
        self.stream.endpoint_runtime()
    }

    fn read(
        &self,
        room: &mut [MaybeUninit<u8>],
        limit: WaitLimit,
    ) -> Result<Option<usize>, Failure> {
        let _turn = self.reading.acquire("reading")?;
        wait(self.endpoint_runtime(), &self.reading, &self.over, limit, |cx| {
            self.stream.poll_read(cx, room)
        })
    }

    fn write(
        &self,
        writing: &mut PendingWrite<'_>,
        limit: WaitLimit,
    ) -> Result<Option<()>, Failure> {
        let _turn = self.writing.acquire("writing")?;
        self.wrote.store(true, Ordering::Relaxed);
        wait(self.endpoint_runtime(), &self.writing, &self.over, limit, |cx| {
            writing.poll(cx, &self.stream, limit, &self.flusher)
        })
    }

    fn shutdown(&self, limit: WaitLimit) -> Result<Option<()>, Failure> {
        let _turn = self.writing.acquire("writing")?;
        let shut = wait(self.endpoint_runtime(), &self.writing, &self.over, limit, |cx| {
            self.stream.poll_shutdown(cx)
        })?;
        self.is_shut_down.fetch_or(shut.is_some(), Ordering::Relaxed);
        Ok(shut)
    }

    /// Ends waiting calls in all threads.
    fn end_calls(&self) {
        self.over.end();
        self.reading.readiness.raise();
        self.writing.readiness.raise();
        if let Some(flusher) = lock(&self.flusher).take() {
            flusher.abort();
        }
    }

    /// Starts to close the connection in the background, where it continues even if this handle is
    /// freed.
    fn start_closing(&self) -> Result<JoinHandle<std::io::Result<()>>, Failure> {
        let endpoint_runtime = Arc::clone(self.endpoint_runtime());
        let runtime = self.endpoint_runtime().runtime()?;
        let connection = self.stream.replace(StreamState::Closed)?;
        self.end_calls();
        let closer = runtime.spawn(async move {
            let closed = connection.close().await;
            // The threads run until then.
            drop(endpoint_runtime);
            closed
        });
        let _ = self.closer_abort.set(closer.abort_handle());
        Ok(closer)
    }

    fn close(&self, limit: WaitLimit) -> Result<Option<()>, Failure> {
        let _turn = self.closing.acquire("closing")?;
        let mut closer = lock(&self.closer);
        let task = match &mut *closer {
            Some(task) => task,
            None => closer.insert(self.start_closing()?),
        };
        let closed =
            wait(self.endpoint_runtime(), &self.closing, &HandleClosed::default(), limit, |cx| {
                Pin::new(&mut *task).poll(cx).map(Ok)
            })?;
        let Some(closed) = closed else { return Ok(None) };
        *closer = None;
        match closed {
            // Nothing is lost.
            Ok(Err(_)) if !self.wrote.load(Ordering::Relaxed) => {}
            Ok(closed) => closed?,
            Err(ended) if ended.is_cancelled() => return Err(cancelled()),
            Err(panic) => return Err(Failure::bug(panic)),
        }
        Ok(Some(()))
    }

    fn abort(&self) -> Result<(), Failure> {
        let endpoint_runtime = self.endpoint_runtime();
        endpoint_runtime.runtime()?;
        if let Some(closer) = self.closer_abort.get() {
            closer.abort();
            return Ok(());
        }
        let connection = self.stream.replace(StreamState::Closed)?;
        self.end_calls();
        if let Some(quic) = connection.quic() {
            // Dropping it would deliver what was written before a shutdown.
            quic.close(0_u32.into(), &[]);
        }
        drop(RuntimeOwned::new(connection, endpoint_runtime));
        Ok(())
    }

    /// Converts the connection, unless it is in use. One that cannot be converted is put back;
    /// `requirement` explains what can.
    fn convert<T>(
        &self,
        conversion: impl FnOnce(eyas::Connection) -> Result<T, eyas::Connection>,
        requirement: &str,
    ) -> Result<T, Failure> {
        let (_reading, _writing) =
            (self.reading.acquire("reading")?, self.writing.acquire("writing")?);
        let _inside = self.endpoint_runtime().enter()?;
        let connection = self.stream.replace(StreamState::Converted)?;
        conversion(connection).map_err(|connection| {
            self.stream.restore(connection);
            let (transport, security) = (self.info.transport, self.info.security);
            Failure::unsupported(format_args!(
                "{requirement}; this is {transport} with security {security}"
            ))
        })
    }

    fn take_socket(&self) -> Result<c_int, Failure> {
        let requirement = "only TCP and MPTCP without TLS can be converted to a descriptor; read and write the \
                      connection instead, or allow nothing else";
        let tcp = self.convert(eyas::Connection::into_tcp, requirement)?.into_std()?;
        tcp.set_nonblocking(false)?;
        Ok(tcp.into_raw_fd())
    }

    fn take_association(&self) -> Result<Association, Failure> {
        let requirement = "only SCTP without TLS carries messages; allow no other transport, and ask for \
                      security \"none\"";
        let association = self.convert(eyas::Connection::into_sctp, requirement)?;
        Ok(Association::new(association, self.endpoint_runtime()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // In a forked child the tasks do not run.
        if self.endpoint_runtime().runtime().is_err() {
            return;
        }
        if let Some(flusher) = lock(&self.flusher).take() {
            flusher.abort();
        }
        if self.is_shut_down.load(Ordering::Relaxed) {
            // Fails if it was closed already.
            let _ = self.start_closing();
        }
    }
}

/// Reads at least one and at most `size` bytes into `buffer`, and stores their number in `length`.
/// EYAS_END: the peer has ended its side, and everything has been read.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_read(
    connection: Option<&Connection>,
    buffer: BufferPointer<'_>,
    size: usize,
    length: OutPointer<'_, usize>,
    timeout_ms: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let length = length.required("length")?.write(0);
        let (connection, room) =
            (required_handle(connection, "connection")?, buffer.into_slice(size, "buffer")?);
        let read = connection.read(room, WaitLimit::from_milliseconds(timeout_ms))?;
        *length = read.unwrap_or_default();
        Ok(match read {
            None => EYAS_WOULD_BLOCK,
            Some(0) if size > 0 => EYAS_END,
            Some(_) => EYAS_OK,
        })
    })
}

/// Writes all of `data`; with a timeout of 0 only what can be written at once, which is at least
/// one byte unless it returns EYAS_WOULD_BLOCK. Stores the number of bytes written in `written`,
/// even on failure; `written` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_write(
    connection: Option<&Connection>,
    data: DataPointer<'_>,
    size: usize,
    written: OutPointer<'_, usize>,
    timeout_ms: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    let mut written_bytes = 0;
    let code = ffi_call_with_code(error, || {
        let connection = required_handle(connection, "connection")?;
        let mut writing = PendingWrite { data: data.read(size, "data")?, written: 0 };
        let result = connection.write(&mut writing, WaitLimit::from_milliseconds(timeout_ms));
        written_bytes = writing.written;
        Ok(if result?.is_some() { EYAS_OK } else { EYAS_WOULD_BLOCK })
    });
    written.store(written_bytes);
    code
}

/// Tells the peer that nothing more will be written. Reading is still possible.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_shutdown(
    connection: Option<&Connection>,
    timeout_ms: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let shut = required_handle(connection, "connection")?
            .shutdown(WaitLimit::from_milliseconds(timeout_ms))?;
        Ok(if shut.is_some() { EYAS_OK } else { EYAS_WOULD_BLOCK })
    })
}

/// Stores a descriptor in `fd` that becomes readable (POLLIN) when reading is worth a try: it is
/// readable until eyas_connection_read returns EYAS_WOULD_BLOCK, and again once data has arrived.
/// It belongs to the connection: neither read nor close it.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_read_fd(
    connection: Option<&Connection>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        store_descriptor(fd, required_handle(connection, "connection").map(|one| &one.reading))
    })
}

/// The same for eyas_connection_write, eyas_connection_shutdown and eyas_connection_close. This
/// descriptor, too, becomes readable, not writable.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_write_fd(
    connection: Option<&Connection>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        store_descriptor(fd, required_handle(connection, "connection").map(|one| &one.writing))
    })
}

/// Closes the connection gracefully: what was written arrives, and the peer is notified, whether or not
/// it has ended its own side. Ends calls of other threads. EYAS_OK: over QUIC and SCTP, the peer has
/// acknowledged everything; over TCP, the kernel takes care of the rest. EYAS_WOULD_BLOCK, with a timeout
/// of 0, or EYAS_TIMEOUT: it continues in the background, even if the handle is freed; call again to
/// learn the result. eyas_connection_write_fd has the descriptor that becomes readable when that is
/// worth a try. EYAS_CLOSED: the connection was lost, and with it perhaps some of the data; or an
/// earlier call has returned the result. The handle must still be freed. A program that exits ends the
/// background, too: eyas_endpoint_wait_for_connections.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_close(
    connection: Option<&Connection>,
    timeout_ms: i32,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let closed = required_handle(connection, "connection")?
            .close(WaitLimit::from_milliseconds(timeout_ms))?;
        Ok(if closed.is_some() { EYAS_OK } else { EYAS_WOULD_BLOCK })
    })
}

/// Closes the connection at once. Waiting calls of other threads return EYAS_CANCELLED. The handle
/// must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_abort(
    connection: Option<&Connection>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || required_handle(connection, "connection")?.abort())
}

/// Converts a TCP or MPTCP connection without TLS into its socket, and stores its descriptor in
/// `fd`. The caller must close it with close(2). The socket is blocking. Other connections return
/// EYAS_UNSUPPORTED and are unchanged. The connection's handle must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_into_fd(
    connection: Option<&Connection>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let fd = fd.required("fd")?;
        fd.write(required_handle(connection, "connection")?.take_socket()?);
        Ok(())
    })
}

/// Converts an SCTP connection without TLS into its association, all of whose streams carry
/// messages. The caller must free it with eyas_association_free. Other connections return
/// EYAS_UNSUPPORTED and are unchanged. The connection's handle must still be freed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_into_association(
    connection: Option<&Connection>,
    association: OutPointer<'_, *mut Association>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = association.required("association")?;
        return_handle(place, required_handle(connection, "connection")?.take_association()?);
        Ok(())
    })
}

/// Returns details of the connection as JSON: `transport`, `security`, `local`, `remote`, `alpn`,
/// `rtt_ms`, `timings`, and `reasons`, why it was chosen. The caller must free the text with
/// eyas_text_free. Also available after the connection was closed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_info_json(
    connection: Option<&Connection>,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = text.required("text")?;
        json::return_json(
            place,
            json::connection(&required_handle(connection, "connection")?.info),
        );
        Ok(())
    })
}

/// Returns the race that led to the connection so far as JSON (docs/reference/json.md: "A race"). The caller
/// must free the text with eyas_text_free. EYAS_UNSUPPORTED for connections that were accepted.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_race_json(
    connection: Option<&Connection>,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let (place, connection) =
            (text.required("text")?, required_handle(connection, "connection")?);
        connection.endpoint_runtime().runtime()?;
        let Some(recording) = &connection.recording else {
            return Err(Failure::unsupported("the peer has connected, so there was no race here"));
        };
        json::return_json(place, json::race(&recording.trace())?);
        Ok(())
    })
}

/// Frees a connection; NULL is allowed. No call on it may be in progress. A connection that was shut
/// down but not closed continues to close in the background (eyas_connection_close); one that was not
/// shut down is closed at once.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connection_free(connection: Option<Box<Connection>>) {
    release(connection);
}
