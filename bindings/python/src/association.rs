//! An SCTP association: messages, streams, paths, notifications.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use eyas::{ConnectionInfo, Preconnection, RaceRecording};
use eyas_sctp_tokio::{
    AssociationJson, EventJson, SctpAssociation, SctpError,
    protocol::{
        event::Event,
        identifier::{PathId, StreamId},
        message::Message,
    },
};
use futures_util::FutureExt;
use pyo3::prelude::*;
use serde_json::json;

use crate::{
    awaitable::{Awaitable, awaitable},
    closing,
    connection::ConnectOptions,
    endpoint::Endpoint,
    error::{association_closed, duration, race_error, sctp_error, value_error},
    inbox::Inbox,
    json, options,
    runtime::{Owned, runtime},
    sctp_options::SendParameters,
    wait::{wait, within},
};

/// How long `close` waits for the shutdown of an association, which then continues in the background.
const LINGER: Duration = Duration::from_secs(2);

/// A message, or a part of one: data, stream, PPID, and whether it is unordered, the first part, the last part.
type MessageParts = (Bytes, u16, u32, bool, bool, bool);

fn message_parts(message: Message) -> MessageParts {
    let (stream, ppid) = (message.stream.0, message.ppid.0);
    let (unordered, begins, ends) = (message.unordered, message.begins, message.ends);
    (message.into_bytes(), stream, ppid, unordered, begins, ends)
}

/// A notification as JSON, and the message that it returns, if any.
type Notification = (String, Option<Bytes>);

fn notification(event: Event) -> Notification {
    let text = json!(EventJson::from(&event)).to_string();
    match event {
        Event::SendFailed { data, .. } => (text, Some(data)),
        _ => (text, None),
    }
}

/// An [`SctpAssociation`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawAssociation {
    /// `None` once it is closed.
    association: Mutex<Option<Owned<SctpAssociation>>>,
    messages: Arc<Inbox<Message>>,
    events: Arc<Inbox<Event>>,
    /// The winner and the race, if this side opened the association.
    opened: Option<(Arc<ConnectionInfo>, Owned<RaceRecording>)>,
}

impl RawAssociation {
    /// Wraps an association that a peer opened.
    pub(crate) fn accepted(association: SctpAssociation) -> Self {
        Self::new(association, None)
    }

    fn new(
        association: SctpAssociation,
        opened: Option<(Arc<ConnectionInfo>, Owned<RaceRecording>)>,
    ) -> Self {
        Self {
            association: Mutex::new(Some(Owned::new(association))),
            messages: Arc::default(),
            events: Arc::default(),
            opened,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Owned<SctpAssociation>>> {
        self.association.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a handle for a call; fails in a forked child.
    fn share(&self) -> PyResult<SctpAssociation> {
        match &*self.lock() {
            Some(association) => Ok(association.get()?.clone()),
            None => Err(association_closed("the association was closed by this side")),
        }
    }

    /// Calls a function that does not wait.
    fn call<T>(
        &self,
        function: impl FnOnce(&SctpAssociation) -> Result<T, SctpError>,
    ) -> PyResult<T> {
        let _context = runtime()?.enter();
        function(&self.share()?).map_err(|error| sctp_error(&error))
    }

    fn send_future(
        &self,
        data: Bytes,
        options: SendParameters,
    ) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let (association, info) = (self.share()?, options.info()?);
        Ok(async move { association.send(&info, data).await.map_err(|error| sctp_error(&error)) })
    }

    fn receive_future(&self) -> PyResult<impl Future<Output = PyResult<bool>> + Send + use<>> {
        let (association, messages) = (self.share()?, Arc::clone(&self.messages));
        Ok(async move {
            let received = messages.wait(association.receive()).await;
            received.map_err(|error| sctp_error(&error))
        })
    }

    fn event_future(&self) -> PyResult<impl Future<Output = PyResult<bool>> + Send + use<>> {
        let (association, events) = (self.share()?, Arc::clone(&self.events));
        Ok(async move { events.wait(async { Ok(association.event().await) }).await })
    }

    fn end_stream_future(
        &self,
        stream: u16,
    ) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let association = self.share()?;
        Ok(async move {
            association.end_stream(StreamId(stream)).await.map_err(|error| sctp_error(&error))
        })
    }

    fn shutdown_future(&self) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let association = self.share()?;
        Ok(async move { association.shutdown().await.map_err(|error| sctp_error(&error)) })
    }

    /// Shuts the association down, waiting for [`LINGER`] at most.
    fn close_future(&self) -> impl Future<Output = PyResult<()>> + Send + use<> {
        let association = self.lock().take();
        async move {
            // Nothing happens in a child that was forked: the association is the parent's.
            if let Some(association) = &association
                && let Ok(association) = association.get()
            {
                let association = association.clone();
                // An association that was lost is closed as well.
                let shutdown = async move { drop(association.shutdown().await) };
                let _ = tokio::time::timeout(LINGER, closing::spawn(shutdown)?).await;
            }
            Ok(())
        }
    }
}

async fn open(preconnection: Preconnection) -> PyResult<RawAssociation> {
    let mut initiation = preconnection.initiate();
    let connection = initiation.usable().await.map_err(|error| race_error(&error))?;
    let recording = initiation.recording();
    // The attempts that continue add to the memory.
    initiation.detach();
    let info = connection.shared_info();
    let association = connection.into_sctp().map_err(|_| {
        value_error("only SCTP carries messages: use the transports \"sctp\" or \"sctp-udp\"")
    })?;
    Ok(RawAssociation::new(association, Some((info, Owned::new(recording)))))
}

/// Races the SCTP transports to the peer, and returns the association.
#[pyfunction]
pub(crate) fn associate(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<RawAssociation> {
    runtime()?;
    wait(py, open(options::read::<ConnectOptions>(options)?.preconnection(endpoint)?))
}

/// The awaitable form of `associate`.
#[pyfunction]
pub(crate) fn aassociate(
    py: Python<'_>,
    endpoint: &Endpoint,
    options: &Bound<'_, PyAny>,
) -> PyResult<Awaitable> {
    runtime()?;
    awaitable(py, open(options::read::<ConnectOptions>(options)?.preconnection(endpoint)?))
}

#[pymethods]
impl RawAssociation {
    /// Sends a message once there is room for it.
    fn send(
        &self,
        py: Python<'_>,
        data: Bytes,
        options: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.send_future(data, options::read(options)?)?))
    }

    /// Sends a message if there is room for it now; returns whether there was.
    fn try_send(&self, data: Bytes, options: &Bound<'_, PyAny>) -> PyResult<bool> {
        let _context = runtime()?.enter();
        self.send_future(data, options::read(options)?)?
            .now_or_never()
            .transpose()
            .map(|sent| sent.is_some())
    }

    /// The awaitable form of `send`.
    fn asend(
        &self,
        py: Python<'_>,
        data: Bytes,
        options: &Bound<'_, PyAny>,
    ) -> PyResult<Awaitable> {
        awaitable(py, self.send_future(data, options::read(options)?)?)
    }

    /// Waits for a message, which `received` then returns; returns false at the end.
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.receive_future()?))
    }

    /// The awaitable form of `receive`.
    fn areceive(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, self.receive_future()?)
    }

    /// Returns a message that has arrived.
    fn received(&self) -> PyResult<Option<MessageParts>> {
        let _context = runtime()?.enter();
        if let Some(message) = self.messages.take() {
            return Ok(Some(message_parts(message)));
        }
        let Ok(association) = self.share() else { return Ok(None) };
        // An error is reported by the call that waits.
        let message = association.receive().now_or_never().and_then(|received| received.ok()?);
        Ok(message.map(message_parts))
    }

    /// Waits for a notification, which `notified` then returns; returns false once the association has ended.
    fn watch(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.event_future()?))
    }

    /// The awaitable form of `watch`.
    fn awatch(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, self.event_future()?)
    }

    /// Returns a notification that has arrived.
    fn notified(&self) -> Option<Notification> {
        self.events.take().map(notification)
    }

    /// Announces that nothing more is sent on this stream.
    fn end_stream(&self, py: Python<'_>, stream: u16) -> PyResult<()> {
        wait(py, self.end_stream_future(stream)?)
    }

    /// The awaitable form of `end_stream`.
    fn aend_stream(&self, py: Python<'_>, stream: u16) -> PyResult<Awaitable> {
        awaitable(py, self.end_stream_future(stream)?)
    }

    /// Shuts the association down once all data has arrived, and waits for that.
    fn shutdown(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.shutdown_future()?))
    }

    /// The awaitable form of `shutdown`.
    fn ashutdown(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, self.shutdown_future()?)
    }

    /// Shuts the association down, waiting for a limited time.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.close_future())
    }

    /// The awaitable form of `close`.
    fn aclose(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, self.close_future())
    }

    /// Aborts the association immediately.
    fn abort(&self, py: Python<'_>, reason: Bytes) -> PyResult<()> {
        let runtime = runtime()?;
        let association = self.lock().take();
        py.detach(|| {
            let _context = runtime.enter();
            if let Some(association) = association {
                association.get()?.abort(reason);
            }
            Ok(())
        })
    }

    /// Returns the state of the association and its paths, as JSON; `None` once it has ended.
    fn status(&self) -> PyResult<Option<String>> {
        let association = self.lock();
        let association = association.as_ref().map(Owned::get).transpose()?;
        let status = association.and_then(SctpAssociation::status);
        Ok(status.map(|status| json!(AssociationJson::from(&status)).to_string()))
    }

    /// Returns how many bytes of a stream are not yet sent, and how many are sent but not yet
    /// acknowledged; `None` once the association has ended.
    fn queue(&self, stream: u16) -> PyResult<Option<(usize, usize)>> {
        let association = self.lock();
        let association = association.as_ref().map(Owned::get).transpose()?;
        let queue = association.and_then(|association| association.queue(StreamId(stream)));
        Ok(queue.map(|queue| (queue.unsent, queue.unacknowledged)))
    }

    /// Returns whether the association runs inside UDP.
    fn is_encapsulated(&self) -> PyResult<bool> {
        self.call(|association| Ok(association.is_encapsulated()))
    }

    /// Makes a path the primary path.
    fn set_primary(&self, path: u16) -> PyResult<()> {
        self.call(|association| association.set_primary(PathId(path)))
    }

    /// Offers the peer another address of this host.
    fn add_address(&self, address: IpAddr) -> PyResult<()> {
        self.call(|association| association.add_address(address))
    }

    /// Withdraws an address of this host.
    fn remove_address(&self, address: IpAddr) -> PyResult<()> {
        self.call(|association| association.remove_address(address))
    }

    /// Asks the peer to use this address of ours as its primary one.
    fn set_peer_primary(&self, address: IpAddr) -> PyResult<()> {
        self.call(|association| association.set_peer_primary(address))
    }

    /// Resets our outgoing streams or the peer's; all of them if the list is empty.
    fn reset_streams(&self, outgoing: bool, streams: Vec<u16>) -> PyResult<()> {
        let streams: Vec<_> = streams.into_iter().map(StreamId).collect();
        self.call(|association| association.reset_streams(outgoing, &streams))
    }

    /// Asks for more streams.
    fn add_streams(&self, outbound: u16, inbound: u16) -> PyResult<()> {
        self.call(|association| association.add_streams(outbound, inbound))
    }

    /// Returns the connection that won, as JSON, if this side opened the association.
    fn info(&self) -> Option<String> {
        self.opened.as_ref().map(|(info, _)| json::connection(info).to_string())
    }

    /// Returns the race, as JSON, if this side opened the association.
    fn race(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some((_, recording)) = &self.opened else { return Ok(None) };
        let recording = recording.get()?;
        py.detach(|| json::race(&recording.trace())).map(|race| Some(race.to_string()))
    }
}
