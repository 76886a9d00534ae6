//! An association of our own SCTP stack.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyas_sctp::endpoint::{AssociationMut, QueueInfo, Status};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::identifier::{AssociationId, PathId, StreamId};
use eyas_sctp::message::{Message, SendInfo};
use rustls_pki_types::CertificateDer;

use super::SctpError;
use super::error::lost;
use super::shared_endpoint::{SharedEndpoint, State};
use super::slot::{Slot, Stage};
use super::stack::Stack;

/// An association of a shared endpoint.
#[derive(Debug)]
pub(super) struct OwnAssociation {
    pub(super) shared: Arc<SharedEndpoint>,
    pub(super) id: AssociationId,
}

impl Drop for OwnAssociation {
    fn drop(&mut self) {
        self.shared.lock().release(self.shared.now(), self.id);
        self.shared.wake.notify_one();
    }
}

impl OwnAssociation {
    fn change(
        &self,
        action: impl FnOnce(&mut AssociationMut<'_>) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        self.shared.call(|endpoint, now| action(&mut endpoint.association_mut(now, self.id)?))
    }
}

impl Stack for OwnAssociation {
    fn with_slot(&self, action: &mut dyn FnMut(&mut Slot)) {
        if let Some(slot) = self.shared.lock().slots.get_mut(&self.id) {
            action(slot);
        }
    }

    fn status(&self) -> Option<Status> {
        self.shared.lock().endpoint.status(self.id)
    }

    /// The IP address is unspecified if routing chooses it.
    fn local_address(&self) -> Option<SocketAddr> {
        let status = self.status()?;
        let path = status.paths.iter().find(|path| path.id == status.primary)?;
        let any: IpAddr = match path.remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Some(SocketAddr::new(path.local.unwrap_or(any), status.local_port))
    }

    fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        let peer = self.status()?.peer?;
        self.shared.wires.iter().find_map(|wire| wire.certificate_of(peer))
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        info: &SendInfo,
        data: &mut dyn FnMut(usize) -> Bytes,
    ) -> Poll<Result<(), SctpError>> {
        let mut state = self.shared.lock();
        let State { slots, endpoint, .. } = &mut *state;
        let Some(slot) = slots.get_mut(&self.id) else {
            return Poll::Ready(Err(SctpError::Closed));
        };
        if let Stage::Ended(reason) = &slot.stage {
            return Poll::Ready(Err(lost(reason)));
        }
        if !slot.is_full {
            let data = data(endpoint.usable_send_buffer(self.id));
            match endpoint.send(self.shared.now(), self.id, info, data) {
                Err(Misuse::Full) => slot.is_full = true,
                sent => {
                    drop(state);
                    self.shared.wake.notify_one();
                    return Poll::Ready(sent.map_err(Into::into));
                }
            }
        }
        slot.writers.add(cx.waker());
        Poll::Pending
    }

    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        stream: Option<StreamId>,
    ) -> Poll<Result<Option<Message>, SctpError>> {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let state = &mut *state;
        let Some(slot) = state.slots.get_mut(&self.id) else { return Poll::Ready(Ok(None)) };
        if let Some(message) = slot.next(stream, || state.endpoint.receive(now, self.id)) {
            // The freed space opens the window.
            self.shared.wake.notify_one();
            return Poll::Ready(Ok(Some(message)));
        }
        let end = slot.end_of(stream);
        if end.is_pending() {
            slot.await_message(stream, cx.waker());
        }
        end
    }

    /// Waits until everything has been sent, because what is still queued would be sent after the
    /// reset (RFC 6525 §5.1.2).
    fn poll_end_stream(&self, cx: &mut Context<'_>, stream: StreamId) -> Poll<Result<(), Misuse>> {
        let (shared, id) = (&self.shared, self.id);
        let mut guard = shared.lock();
        let state = &mut *guard;
        let can_reset =
            state.endpoint.status(id).is_some_and(|status| status.agreed.reconfiguration);
        let result = match state.endpoint.stream_queue(id, stream) {
            _ if !can_reset => Err(Misuse::NotSupported),
            Some(queue) if queue.unsent > 0 => Err(Misuse::Busy),
            _ => state
                .endpoint
                .association_mut(shared.now(), id)
                .and_then(|mut association| association.reset_streams(true, &[stream])),
        };
        let ended = match result {
            Err(Misuse::Busy) => {
                let Some(slot) = state.slots.get_mut(&id) else { return Poll::Ready(Ok(())) };
                slot.watchers.add(cx.waker());
                state.recheck(id);
                return Poll::Pending;
            }
            Err(Misuse::NotSupported) => state.endpoint.shutdown(shared.now(), id),
            ended => ended,
        };
        drop(guard);
        shared.wake.notify_one();
        Poll::Ready(ended)
    }

    fn poll_unsent_below(&self, cx: &mut Context<'_>, stream: StreamId, most: usize) -> Poll<()> {
        let mut state = self.shared.lock();
        let State { slots, endpoint, .. } = &mut *state;
        let unsent = endpoint.stream_queue(self.id, stream).map_or(0, |queue| queue.unsent);
        let Some(slot) = slots.get_mut(&self.id) else { return Poll::Ready(()) };
        if unsent <= most || matches!(slot.stage, Stage::Ended(_)) {
            return Poll::Ready(());
        }
        slot.watchers.add(cx.waker());
        state.recheck(self.id);
        Poll::Pending
    }

    fn shutdown(&self) -> Result<(), Misuse> {
        self.shared.call(|endpoint, now| endpoint.shutdown(now, self.id))
    }

    fn abort(&self, reason: Bytes) {
        // Refused only if it has ended already.
        let _ = self.shared.call(|endpoint, now| endpoint.abort(now, self.id, reason));
    }

    fn set_primary(&self, path: PathId) -> Result<(), Misuse> {
        self.change(|association| association.set_primary(path))
    }

    fn add_address(&self, address: IpAddr) -> Result<(), Misuse> {
        self.change(|association| association.add_address(address))
    }

    fn remove_address(&self, address: IpAddr) -> Result<(), Misuse> {
        self.change(|association| association.remove_address(address))
    }

    fn reset_streams(&self, outgoing: bool, streams: &[StreamId]) -> Result<(), Misuse> {
        self.change(|association| association.reset_streams(outgoing, streams))
    }

    fn add_streams(&self, outbound: u16, inbound: u16) -> Result<(), Misuse> {
        self.change(|association| association.add_streams(outbound, inbound))
    }

    fn proceed(&self) -> Result<(), Misuse> {
        self.shared.call(|endpoint, now| endpoint.proceed(now, self.id))
    }

    fn queue(&self, stream: StreamId) -> Option<QueueInfo> {
        self.shared.lock().endpoint.stream_queue(self.id, stream)
    }

    fn set_peer_primary(&self, address: IpAddr) -> Result<(), Misuse> {
        self.change(|association| association.set_peer_primary(address))
    }

    fn set_shared_key(&self, key_id: u16, key: Bytes) -> Result<(), Misuse> {
        self.change(|association| association.set_shared_key(key_id, key))
    }

    fn activate_shared_key(&self, key_id: u16) -> Result<(), Misuse> {
        self.change(|association| association.activate_shared_key(key_id))
    }

    fn remove_shared_key(&self, key_id: u16) -> Result<(), Misuse> {
        self.change(|association| association.remove_shared_key(key_id))
    }
}
