//! An SCTP association: messages, streams, paths, notifications.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use eyas::{
    ConnectionInfo, Preconnection, Recording,
    sctp::{
        AssociationJson, EventJson, SctpAssociation, SctpError,
        protocol::{
            event::Event,
            identifier::{PathId, StreamId},
            message::Message,
        },
    },
};
use futures_util::FutureExt;
use pyo3::prelude::*;
use serde_json::json;

use crate::{
    arrived::Arrived,
    connection::Wanted,
    endpoint::Endpoint,
    failure::{duration, of_closed, of_race, of_sctp, of_value},
    json,
    runtime::{Owned, runtime},
    sctp_options::Sending,
    wait::{awaitable, wait, within},
};

/// How long an association that is closed is waited for: what is under way goes on without us then.
const LINGER: Duration = Duration::from_secs(2);

/// A message, or a part of one: data, stream, PPID, and whether it is unordered, begins and ends.
type Parts = (Bytes, u16, u32, bool, bool, bool);

fn parts(message: Message) -> Parts {
    let (stream, ppid) = (message.stream.0, message.ppid.0);
    let (unordered, begins, ends) = (message.unordered, message.begins, message.ends);
    (message.into_bytes(), stream, ppid, unordered, begins, ends)
}

/// A notification as JSON, and the message that it brings back.
type Notification = (String, Option<Bytes>);

fn notification(event: Event) -> Notification {
    let facts = json!(EventJson::from(&event)).to_string();
    match event {
        Event::SendFailed { data, .. } => (facts, Some(data)),
        _ => (facts, None),
    }
}

/// An [`SctpAssociation`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawAssociation {
    /// Nothing once it is closed.
    association: Mutex<Option<Owned<SctpAssociation>>>,
    messages: Arc<Arrived<Message>>,
    events: Arc<Arrived<Event>>,
    /// Of one that was opened here: what won, and how.
    opened: Option<(Arc<ConnectionInfo>, Owned<Recording>)>,
}

impl RawAssociation {
    /// One that a peer has opened.
    pub(crate) fn accepted(association: SctpAssociation) -> Self {
        Self::new(association, None)
    }

    fn new(
        association: SctpAssociation,
        opened: Option<(Arc<ConnectionInfo>, Owned<Recording>)>,
    ) -> Self {
        Self {
            association: Mutex::new(Some(Owned::new(association))),
            messages: Arc::default(),
            events: Arc::default(),
            opened,
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Owned<SctpAssociation>>> {
        self.association.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle for a call; a forked child has none.
    fn share(&self) -> PyResult<SctpAssociation> {
        runtime()?;
        match &*self.held() {
            Some(association) => Ok((**association).clone()),
            None => Err(of_closed("the association was closed here")),
        }
    }

    /// A call that does not wait.
    fn now<T>(&self, call: impl FnOnce(&SctpAssociation) -> Result<T, SctpError>) -> PyResult<T> {
        let _inside = runtime()?.enter();
        call(&self.share()?).map_err(|error| of_sctp(&error))
    }

    fn sending(
        &self,
        data: Bytes,
        options: Sending,
    ) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let (association, info) = (self.share()?, options.info()?);
        Ok(async move { association.send(&info, data).await.map_err(|error| of_sctp(&error)) })
    }

    fn receiving(&self) -> PyResult<impl Future<Output = PyResult<bool>> + Send + use<>> {
        let (association, messages) = (self.share()?, Arc::clone(&self.messages));
        Ok(async move {
            let received = messages.wait(association.receive()).await;
            received.map_err(|error| of_sctp(&error))
        })
    }

    fn watching(&self) -> PyResult<impl Future<Output = PyResult<bool>> + Send + use<>> {
        let (association, events) = (self.share()?, Arc::clone(&self.events));
        Ok(async move { events.wait(async { Ok(association.event().await) }).await })
    }

    fn ending_stream(
        &self,
        stream: u16,
    ) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let association = self.share()?;
        Ok(async move {
            association.end_stream(StreamId(stream)).await.map_err(|error| of_sctp(&error))
        })
    }

    fn shutting_down(&self) -> PyResult<impl Future<Output = PyResult<()>> + Send + use<>> {
        let association = self.share()?;
        Ok(async move { association.shutdown().await.map_err(|error| of_sctp(&error)) })
    }

    /// Ends it in order.
    fn closing(&self) -> impl Future<Output = PyResult<()>> + Send + use<> {
        let held = self.held().take();
        async move {
            if let Some(association) = held {
                // One that was lost has ended, too.
                let _ = tokio::time::timeout(LINGER, association.shutdown()).await;
            }
            Ok(())
        }
    }
}

async fn open(preconnection: Preconnection) -> PyResult<RawAssociation> {
    let mut initiation = preconnection.initiate();
    let connection = initiation.usable().await.map_err(|error| of_race(&error))?;
    let recording = initiation.recording();
    // What it goes on to try teaches the memory.
    initiation.detach();
    let info = connection.shared_info();
    let association = connection.into_sctp().map_err(|_| {
        of_value("only SCTP carries messages: transports are \"sctp\" and \"sctp-udp\"")
    })?;
    Ok(RawAssociation::new(association, Some((info, Owned::new(recording)))))
}

/// Races to the peer over the ways that SCTP has.
#[pyfunction]
pub(crate) fn associate(
    py: Python<'_>,
    endpoint: &Endpoint,
    wanted: Wanted,
) -> PyResult<RawAssociation> {
    runtime()?;
    wait(py, open(wanted.preconnection(endpoint)?))
}

/// The same, to be awaited.
#[pyfunction]
pub(crate) fn aassociate<'py>(
    py: Python<'py>,
    endpoint: &Endpoint,
    wanted: Wanted,
) -> PyResult<Bound<'py, PyAny>> {
    runtime()?;
    awaitable(py, open(wanted.preconnection(endpoint)?))
}

#[pymethods]
impl RawAssociation {
    /// Hands in a message, once there is room for it.
    fn send(
        &self,
        py: Python<'_>,
        data: Bytes,
        options: Sending,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.sending(data, options)?))
    }

    /// Hands in a message if there is room for it now, and says whether.
    fn try_send(&self, data: Bytes, options: Sending) -> PyResult<bool> {
        let _inside = runtime()?.enter();
        self.sending(data, options)?.now_or_never().transpose().map(|sent| sent.is_some())
    }

    /// The same as `send`, to be awaited.
    fn asend<'py>(
        &self,
        py: Python<'py>,
        data: Bytes,
        options: Sending,
    ) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.sending(data, options)?)
    }

    /// Waits for a message, which `received` then gives; false at the end.
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.receiving()?))
    }

    /// The same, to be awaited.
    fn areceive<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.receiving()?)
    }

    /// A message that has come.
    fn received(&self) -> PyResult<Option<Parts>> {
        let _inside = runtime()?.enter();
        if let Some(message) = self.messages.take() {
            return Ok(Some(parts(message)));
        }
        let Ok(association) = self.share() else { return Ok(None) };
        // How it ended says who waits.
        let message = association.receive().now_or_never().and_then(|received| received.ok()?);
        Ok(message.map(parts))
    }

    /// Waits for a notification, which `notified` then gives; false once the association is over.
    fn watch(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.watching()?))
    }

    /// The same, to be awaited.
    fn awatch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.watching()?)
    }

    /// A notification that has come.
    fn notified(&self) -> Option<Notification> {
        self.events.take().map(notification)
    }

    /// Says that nothing more is sent on this stream.
    fn end_stream(&self, py: Python<'_>, stream: u16) -> PyResult<()> {
        wait(py, self.ending_stream(stream)?)
    }

    /// The same, to be awaited.
    fn aend_stream<'py>(&self, py: Python<'py>, stream: u16) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.ending_stream(stream)?)
    }

    /// Ends it once all data has arrived, and waits for that.
    fn shutdown(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = timeout.map(duration).transpose()?;
        wait(py, within(limit, self.shutting_down()?))
    }

    /// The same, to be awaited.
    fn ashutdown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.shutting_down()?)
    }

    /// Ends it in order, and waits for that a while.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.closing())
    }

    /// The same, to be awaited.
    fn aclose<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.closing())
    }

    /// Ends it at once.
    fn abort(&self, py: Python<'_>, reason: Bytes) -> PyResult<()> {
        let runtime = runtime()?;
        let held = self.held().take();
        py.detach(|| {
            let _inside = runtime.enter();
            if let Some(association) = held {
                association.abort(reason);
            }
        });
        Ok(())
    }

    /// Where it stands, with its paths, as JSON; none once it is over.
    fn status(&self) -> PyResult<Option<String>> {
        runtime()?;
        let held = self.held();
        let status = held.as_ref().and_then(|association| association.status());
        Ok(status.map(|status| json!(AssociationJson::from(&status)).to_string()))
    }

    /// Whether it runs inside UDP.
    fn is_encapsulated(&self) -> PyResult<bool> {
        self.now(|association| Ok(association.is_encapsulated()))
    }

    /// Makes a path the primary one.
    fn set_primary(&self, path: u16) -> PyResult<()> {
        self.now(|association| association.set_primary(PathId(path)))
    }

    /// Tells the peer of another address of this host.
    fn add_address(&self, address: IpAddr) -> PyResult<()> {
        self.now(|association| association.add_address(address))
    }

    /// Takes one back.
    fn remove_address(&self, address: IpAddr) -> PyResult<()> {
        self.now(|association| association.remove_address(address))
    }

    /// Asks the peer to send to this address of ours first.
    fn set_peer_primary(&self, address: IpAddr) -> PyResult<()> {
        self.now(|association| association.set_peer_primary(address))
    }

    /// Resets our outgoing streams, or the peer's; all of them if none is named.
    fn reset_streams(&self, outgoing: bool, streams: Vec<u16>) -> PyResult<()> {
        let streams: Vec<_> = streams.into_iter().map(StreamId).collect();
        self.now(|association| association.reset_streams(outgoing, &streams))
    }

    /// Asks for more streams.
    fn add_streams(&self, outbound: u16, inbound: u16) -> PyResult<()> {
        self.now(|association| association.add_streams(outbound, inbound))
    }

    /// What won when it was opened here, as JSON.
    fn info(&self) -> Option<String> {
        self.opened.as_ref().map(|(info, _)| json::connection(info).to_string())
    }

    /// The race that led to it, if it was opened here, as JSON.
    fn race(&self, py: Python<'_>) -> PyResult<Option<String>> {
        runtime()?;
        let Some((_, recording)) = &self.opened else { return Ok(None) };
        py.detach(|| json::race(&recording.trace())).map(|race| Some(race.to_string()))
    }
}
