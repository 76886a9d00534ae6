//! What a user holds of an association.

use std::any::Any;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyas_sctp::endpoint::{AssociationMut, Endpoint, PathStatus, QueueInfo, Status};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, PathId, StreamId};
use eyas_sctp::message::{Message, SendInfo};

use super::hub::{Hub, State};
use super::kernel::KernelAssociation;
use super::slot::{Slot, Stage};
use super::{SctpError, SctpStream};

/// An SCTP association: messages on many streams, over one path or several. Cheap to clone; when
/// the last clone and the last stream are dropped, it ends once all data has arrived.
///
/// It speaks as it is, without security: who asked for TLS reads and writes the
/// [`Connection`](crate::Connection) instead.
#[derive(Clone, Debug)]
pub struct SctpAssociation(Carried);

/// Who speaks SCTP.
#[derive(Clone, Debug)]
enum Carried {
    /// We ourselves.
    Own(Arc<Held>),
    /// The kernel, which cannot do all that we can.
    Kernel(KernelAssociation),
}

#[derive(Debug)]
struct Held {
    hub: Arc<Hub>,
    id: AssociationId,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.hub.lock().abandon(self.hub.now(), self.id);
        self.hub.wake.notify_one();
    }
}

impl SctpAssociation {
    pub(super) fn new(hub: Arc<Hub>, id: AssociationId) -> Self {
        Self(Carried::Own(Arc::new(Held { hub, id })))
    }

    pub(super) fn of_kernel(association: KernelAssociation) -> Self {
        Self(Carried::Kernel(association))
    }

    /// Hands in a message; waits for room in the send buffer. Cancel-safe: a message is taken
    /// whole or not at all.
    ///
    /// # Errors
    /// If the association cannot send it, now or ever.
    pub async fn send(&self, info: &SendInfo, data: Bytes) -> Result<(), SctpError> {
        poll_fn(|cx| self.poll_send(cx, info, || data.clone())).await
    }

    /// The next message on any stream that is not read as bytes, or the next part of a large one;
    /// `None` once the peer is done. Cancel-safe.
    ///
    /// # Errors
    /// If the association was lost.
    pub async fn receive(&self) -> Result<Option<Message>, SctpError> {
        poll_fn(|cx| self.poll_receive(cx, None)).await
    }

    /// The streams of this number as one stream of bytes.
    ///
    /// # Errors
    /// If it is in use already, or the association has fewer streams.
    pub fn stream(&self, stream: StreamId) -> Result<SctpStream, SctpError> {
        if self.status().is_some_and(|status| stream.0 >= status.outbound_streams) {
            return Err(Misuse::NoSuchStream.into());
        }
        self.with_slot(|slot| slot.open_stream(stream))??;
        Ok(SctpStream::new(self.clone(), stream))
    }

    /// The next notification (RFC 6458 §6.1); `None` once the association is over. Only the latest
    /// are kept for who does not ask. Cancel-safe.
    pub async fn event(&self) -> Option<Event> {
        poll_fn(|cx| {
            let told = self.with_slot(|slot| match (slot.notification(), &slot.stage) {
                (None, Stage::Ended(_)) => Poll::Ready(None),
                (None, _) => {
                    slot.watchers.add(cx.waker());
                    Poll::Pending
                }
                (event, _) => Poll::Ready(event),
            });
            told.unwrap_or(Poll::Ready(None))
        })
        .await
    }

    /// The association at this moment: state, streams, windows, and its paths (`SCTP_STATUS`).
    pub fn status(&self) -> Option<Status> {
        match &self.0 {
            Carried::Own(held) => held.hub.lock().endpoint.status(held.id),
            Carried::Kernel(kernel) => kernel.status(),
        }
    }

    /// The paths at this moment, in the order of their numbers; none once the association is over.
    /// There is one to each address of the peer that is known. [`event`](Self::event) tells how
    /// they change.
    pub fn paths(&self) -> Vec<PathStatus> {
        self.status().map_or_else(Vec::new, |status| status.paths)
    }

    /// What one stream has in the send buffer; `None` once the association is over, and where the
    /// kernel speaks SCTP, which does not tell.
    pub fn queue(&self, stream: StreamId) -> Option<QueueInfo> {
        match &self.0 {
            Carried::Own(held) => held.hub.lock().endpoint.stream_queue(held.id, stream),
            Carried::Kernel(_) => None,
        }
    }

    /// Our end of the primary path, with our SCTP port; the IP address is unspecified where the
    /// routing chooses it.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        if let Carried::Kernel(kernel) = &self.0 {
            return kernel.local_address();
        }
        let status = self.status()?;
        let path = status.paths.iter().find(|path| path.id == status.primary)?;
        let any: IpAddr = match path.remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Some(SocketAddr::new(path.local.unwrap_or(any), status.local_port))
    }

    /// The peer's address on the primary path, with its SCTP port; `None` once the association is
    /// over.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.ends().map(|(remote, _)| remote)
    }

    /// Whether the primary path runs inside UDP (RFC 6951).
    pub fn is_encapsulated(&self) -> bool {
        self.ends().is_some_and(|(_, is_encapsulated)| is_encapsulated)
    }

    fn ends(&self) -> Option<(SocketAddr, bool)> {
        let status = self.status()?;
        let path = status.paths.iter().find(|path| path.id == status.primary)?;
        let remote = SocketAddr::new(path.remote.ip(), status.remote_port);
        Some((remote, path.remote.port() != 0))
    }

    /// Ends the association once all data has arrived, and waits for it. Cancel-safe.
    ///
    /// # Errors
    /// If it is lost before.
    pub async fn shutdown(&self) -> Result<(), SctpError> {
        match &self.0 {
            Carried::Kernel(kernel) => kernel.shutdown(),
            Carried::Own(_) => match self.call(Endpoint::shutdown) {
                Ok(()) | Err(Misuse::NoAssociation | Misuse::WrongState) => {}
                Err(error) => return Err(error.into()),
            },
        }
        poll_fn(|cx| {
            self.poll_stage(cx, |stage| match stage {
                Stage::Ended(None) => Poll::Ready(Ok(())),
                Stage::Ended(Some(reason)) => Poll::Ready(Err(SctpError::Lost(reason.clone()))),
                _ => Poll::Pending,
            })
        })
        .await
    }

    /// Ends the association at once; what has not arrived is lost.
    pub fn abort(&self, reason: impl Into<Bytes>) {
        let reason = reason.into();
        if let Carried::Kernel(kernel) = &self.0 {
            return kernel.abort(&reason);
        }
        // Refused only if it has ended already.
        let _ = self.call(|endpoint, now, id| endpoint.abort(now, id, reason));
    }

    /// Keeps `guard` until the association has ended, which may be long after everybody has let go of
    /// it: while data is on its way to a peer that does not take it. It is dropped at once if the
    /// association has ended already.
    pub fn keep_until_ended(&self, guard: impl Any + Send) {
        // A slot that is gone belonged to an association that has ended.
        let _ = self.with_slot(|slot| slot.keep(Box::new(guard)));
    }

    /// Makes a path the primary one, which new data takes.
    ///
    /// # Errors
    /// If there is no such path.
    pub fn set_primary(&self, path: PathId) -> Result<(), SctpError> {
        self.ask(|kernel| kernel.set_primary(path), |own| own.set_primary(path))
    }

    /// Tells the peer of another address of this host, which gives it another path (RFC 5061):
    /// [`Event::OwnAddress`] says how that went. Where
    /// [`auto_asconf`](eyas_sctp::config::AssociationConfig::auto_asconf) is on, addresses that the
    /// host gets are told without being asked.
    ///
    /// # Errors
    /// If the peer cannot do it
    /// ([`dynamic_addresses`](eyas_sctp::config::Extensions::dynamic_addresses)), or too many
    /// requests wait.
    pub fn add_address(&self, address: IpAddr) -> Result<(), SctpError> {
        self.ask(|kernel| kernel.add_address(address), |own| own.add_address(address))
    }

    /// Takes an address of this host back (RFC 5061), unless it is the last one:
    /// [`Event::OwnAddress`] says how that went.
    ///
    /// # Errors
    /// If the peer cannot do it, or too many requests wait.
    pub fn remove_address(&self, address: IpAddr) -> Result<(), SctpError> {
        self.ask(|kernel| kernel.remove_address(address), |own| own.remove_address(address))
    }

    /// Asks the peer to send to this address of ours first (RFC 5061 §4.2.4): [`Event::OwnAddress`]
    /// says how that went.
    ///
    /// # Errors
    /// If the peer cannot do it, or too many requests wait.
    pub fn set_peer_primary(&self, address: IpAddr) -> Result<(), SctpError> {
        self.ask(not_by_kernel, |own| own.set_peer_primary(address))
    }

    /// Adds or replaces a key of AUTH that the peer has, too (RFC 4895; `SCTP_AUTH_KEY`). Keys that
    /// are there from the first packet on are
    /// [`shared_keys`](eyas_sctp::config::AssociationConfig::shared_keys).
    ///
    /// # Errors
    /// If AUTH was not agreed on, or there are too many keys.
    pub fn set_shared_key(&self, key_id: u16, key: impl Into<Bytes>) -> Result<(), SctpError> {
        let key = key.into();
        self.ask(not_by_kernel, |own| own.set_shared_key(key_id, key))
    }

    /// Signs with this key from now on (`SCTP_AUTH_ACTIVE_KEY`).
    ///
    /// # Errors
    /// If AUTH was not agreed on, or there is no such key.
    pub fn activate_shared_key(&self, key_id: u16) -> Result<(), SctpError> {
        self.ask(not_by_kernel, |own| own.activate_shared_key(key_id))
    }

    /// Removes a key (`SCTP_AUTH_DELETE_KEY`): what is signed with it counts for nothing.
    ///
    /// # Errors
    /// If AUTH was not agreed on, there is no such key, or it is the one that is signed with.
    pub fn remove_shared_key(&self, key_id: u16) -> Result<(), SctpError> {
        self.ask(not_by_kernel, |own| own.remove_shared_key(key_id))
    }

    /// Resets our outgoing streams, or the peer's; all of them if `streams` is empty (RFC 6525).
    ///
    /// # Errors
    /// If the peer cannot do it, or another request is under way.
    pub fn reset_streams(&self, outgoing: bool, streams: &[StreamId]) -> Result<(), SctpError> {
        self.ask(
            |kernel| kernel.reset_streams(outgoing, streams),
            |own| own.reset_streams(outgoing, streams),
        )
    }

    /// Says that nothing more is sent on this stream, once all of it is on its way: the stream is
    /// reset, which the peer is told after the last message ([`Event::StreamsReset`]). Where the
    /// peer cannot reset streams, the association ends once all data has arrived.
    ///
    /// # Errors
    /// If the association is not up.
    pub async fn end_stream(&self, stream: StreamId) -> Result<(), SctpError> {
        Ok(poll_fn(|cx| self.poll_end_stream(cx, stream)).await?)
    }

    /// Asks for more streams (RFC 6525).
    ///
    /// # Errors
    /// If the peer cannot do it, or another request is under way.
    pub fn add_streams(&self, outbound: u16, inbound: u16) -> Result<(), SctpError> {
        self.ask(
            |kernel| kernel.add_streams(outbound, inbound),
            |own| own.add_streams(outbound, inbound),
        )
    }

    /// Waits until the peer has answered, or the association is up or over.
    pub(crate) async fn answered(&self) -> Result<(), SctpError> {
        poll_fn(|cx| {
            self.poll_stage(cx, |stage| match stage {
                Stage::Opening => Poll::Pending,
                Stage::Answered | Stage::Up => Poll::Ready(Ok(())),
                Stage::Ended(reason) => Poll::Ready(Err(lost(reason))),
            })
        })
        .await
    }

    /// Goes on with the COOKIE ECHO, and waits until the association is up.
    pub(crate) async fn established(&self) -> Result<(), SctpError> {
        self.call(Endpoint::proceed)?;
        poll_fn(|cx| {
            self.poll_stage(cx, |stage| match stage {
                Stage::Opening | Stage::Answered => Poll::Pending,
                Stage::Up => Poll::Ready(Ok(())),
                Stage::Ended(reason) => Poll::Ready(Err(lost(reason))),
            })
        })
        .await
    }

    fn poll_stage<T>(
        &self,
        cx: &mut Context<'_>,
        judge: impl FnOnce(&Stage) -> Poll<Result<T, SctpError>>,
    ) -> Poll<Result<T, SctpError>> {
        let polled = self.with_slot(|slot| {
            let verdict = judge(&slot.stage);
            if verdict.is_pending() {
                slot.watchers.add(cx.waker());
            }
            verdict
        });
        polled.unwrap_or_else(|error| Poll::Ready(Err(error)))
    }

    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        info: &SendInfo,
        data: impl FnOnce() -> Bytes,
    ) -> Poll<Result<(), SctpError>> {
        let (hub, id) = match &self.0 {
            Carried::Own(held) => (&held.hub, held.id),
            Carried::Kernel(kernel) => return kernel.poll_send(cx, info, &data()),
        };
        let mut state = hub.lock();
        let State { slots, endpoint, .. } = &mut *state;
        let Some(slot) = slots.get_mut(&id) else { return Poll::Ready(Err(SctpError::Closed)) };
        if let Stage::Ended(reason) = &slot.stage {
            return Poll::Ready(Err(lost(reason)));
        }
        if !slot.is_full {
            match endpoint.send(hub.now(), id, info, data()) {
                Err(Misuse::Full) => slot.is_full = true,
                sent => {
                    drop(state);
                    hub.wake.notify_one();
                    return Poll::Ready(sent.map_err(Into::into));
                }
            }
        }
        slot.writers.add(cx.waker());
        Poll::Pending
    }

    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        stream: Option<StreamId>,
    ) -> Poll<Result<Option<Message>, SctpError>> {
        let (hub, id) = match &self.0 {
            Carried::Own(held) => (&held.hub, held.id),
            Carried::Kernel(kernel) => return kernel.poll_receive(cx, stream),
        };
        let now = hub.now();
        let mut state = hub.lock();
        let state = &mut *state;
        let Some(slot) = state.slots.get_mut(&id) else { return Poll::Ready(Ok(None)) };
        if let Some(message) = slot.next(stream, || state.endpoint.receive(now, id)) {
            // What was taken opens the window.
            hub.wake.notify_one();
            return Poll::Ready(Ok(Some(message)));
        }
        let end = slot.end_of(stream);
        if end.is_pending() {
            slot.await_message(stream, cx.waker());
        }
        end
    }

    /// Says that nothing more is sent on this stream, once all of it is on its way: what still
    /// waited would come after the reset (RFC 6525 §5.1.2).
    pub(super) fn poll_end_stream(
        &self,
        cx: &mut Context<'_>,
        stream: StreamId,
    ) -> Poll<Result<(), Misuse>> {
        let (hub, id) = match &self.0 {
            Carried::Own(held) => (&held.hub, held.id),
            Carried::Kernel(kernel) => return kernel.poll_end_stream(cx, stream),
        };
        let mut guard = hub.lock();
        let state = &mut *guard;
        let can_reset = state.endpoint.status(id).is_some_and(|one| one.agreed.reconfiguration);
        let asked = match state.endpoint.stream_queue(id, stream) {
            _ if !can_reset => Err(Misuse::NotSupported),
            Some(queue) if queue.unsent > 0 => Err(Misuse::Busy),
            _ => state
                .endpoint
                .association_mut(hub.now(), id)
                .and_then(|mut own| own.reset_streams(true, &[stream])),
        };
        let ended = match asked {
            Err(Misuse::Busy) => {
                let Some(slot) = state.slots.get_mut(&id) else { return Poll::Ready(Ok(())) };
                slot.watchers.add(cx.waker());
                state.look_again(id);
                return Poll::Pending;
            }
            Err(Misuse::NotSupported) => state.endpoint.shutdown(hub.now(), id),
            ended => ended,
        };
        drop(guard);
        hub.wake.notify_one();
        Poll::Ready(ended)
    }

    pub(super) fn give_back_stream(&self, stream: StreamId) {
        // A slot that is gone has nothing to give back.
        let _ = self.with_slot(|slot| slot.give_back_stream(stream));
    }

    pub(super) fn release_stream(&self, stream: StreamId) {
        // A slot that is gone needs no release.
        let _ = self.with_slot(|slot| slot.close_stream(stream));
    }

    /// Calls the protocol; what this file does not ask of the kernel, the kernel cannot do.
    /// Asks for something: the kernel, or our own association.
    fn ask(
        &self,
        kernel: impl FnOnce(&KernelAssociation) -> Result<(), Misuse>,
        own: impl FnOnce(&mut AssociationMut<'_>) -> Result<(), Misuse>,
    ) -> Result<(), SctpError> {
        match &self.0 {
            Carried::Kernel(association) => kernel(association)?,
            Carried::Own(_) => {
                self.call(|endpoint, now, id| own(&mut endpoint.association_mut(now, id)?))?;
            }
        }
        Ok(())
    }

    fn call<T>(
        &self,
        action: impl FnOnce(&mut Endpoint, std::time::Duration, AssociationId) -> Result<T, Misuse>,
    ) -> Result<T, Misuse> {
        match &self.0 {
            Carried::Own(held) => held.hub.call(|endpoint, now| action(endpoint, now, held.id)),
            Carried::Kernel(_) => Err(Misuse::NotSupported),
        }
    }

    fn with_slot<T>(&self, action: impl FnOnce(&mut Slot) -> T) -> Result<T, SctpError> {
        match &self.0 {
            Carried::Own(held) => {
                let mut state = held.hub.lock();
                state.slots.get_mut(&held.id).map(action).ok_or(SctpError::Closed)
            }
            Carried::Kernel(kernel) => Ok(kernel.with_slot(action)),
        }
    }
}

/// What the kernel cannot be asked for.
fn not_by_kernel(_: &KernelAssociation) -> Result<(), Misuse> {
    Err(Misuse::NotSupported)
}

fn lost(reason: &Option<eyas_sctp::event::LossReason>) -> SctpError {
    match reason {
        Some(reason) => SctpError::Lost(reason.clone()),
        None => SctpError::Closed,
    }
}
