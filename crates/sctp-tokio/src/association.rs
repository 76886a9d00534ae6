//! The user's handle to an association.

use std::any::Any;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyas_sctp::endpoint::{PathStatus, QueueInfo, Status};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{PathId, StreamId};
use eyas_sctp::message::{Message, SendInfo};
use rustls_pki_types::CertificateDer;

use super::error::lost;
use super::slot::{Slot, Stage};
use super::stack::Stack;
use super::{SctpError, SctpMessages, SctpStream};

/// An SCTP association: messages on many streams, over one path or several. Cheap to clone; once
/// the last clone and the last stream have been dropped, it shuts down after all data has arrived.
///
/// Its messages are encrypted only inside DTLS. TLS over one of its [byte streams](Self::stream) (RFC
/// 3436) protects that pair of streams and nothing else.
#[derive(Clone, Debug)]
pub struct SctpAssociation(Arc<dyn Stack>);

impl SctpAssociation {
    pub(super) fn new(stack: impl Stack + 'static) -> Self {
        Self(Arc::new(stack))
    }

    /// Returns the SCTP stack that implements it.
    pub(super) fn stack(&self) -> &dyn Stack {
        &*self.0
    }

    /// Sends a message, and waits for space in the send buffer. Cancel-safe: a message is accepted
    /// whole or not at all.
    ///
    /// # Errors
    /// If the association cannot send the message, now or ever.
    pub async fn send(&self, info: &SendInfo, data: Bytes) -> Result<(), SctpError> {
        poll_fn(|cx| self.0.poll_send(cx, info, &mut |_| data.clone())).await
    }

    /// Waits for the next message, or the next part of a large one, on any stream that is not read
    /// as bytes. Returns `None` once the peer has finished. Cancel-safe.
    ///
    /// # Errors
    /// If the association was lost.
    pub async fn receive(&self) -> Result<Option<Message>, SctpError> {
        poll_fn(|cx| self.0.poll_receive(cx, None)).await
    }

    /// Returns the pair of streams with this number as one byte stream.
    ///
    /// # Errors
    /// If the stream is already in use, or the association has fewer streams.
    pub fn stream(&self, stream: StreamId) -> Result<SctpStream, SctpError> {
        if self.status().is_some_and(|status| stream.0 >= status.outbound_streams) {
            return Err(Misuse::NoSuchStream.into());
        }
        self.open_stream(stream)?;
        Ok(SctpStream::new(self.clone(), stream))
    }

    /// Uses this pair of streams for messages that are unordered, each with a lifetime (RFC 7496). The
    /// peer must use the pair with the same number, before anything is sent on it.
    ///
    /// # Errors
    /// If the peer does not support partial reliability (RFC 3758), there is no such pair of streams, or
    /// it is in use.
    pub fn messages(&self, stream: StreamId) -> Result<SctpMessages, SctpError> {
        let status = self.status().ok_or(SctpError::Closed)?;
        if !status.agreed.partial_reliability {
            return Err(SctpError::NoPartialReliability);
        }
        if stream.0 >= status.outbound_streams.min(status.inbound_streams) {
            return Err(Misuse::NoSuchStream.into());
        }
        self.open_stream(stream)?;
        Ok(SctpMessages::new(self.clone(), stream))
    }

    /// Keeps what arrives on this stream for its own reader.
    fn open_stream(&self, stream: StreamId) -> Result<(), SctpError> {
        self.with_slot(|slot| slot.open_stream(stream))?
    }

    /// Waits for the next message on a stream that was opened. Cancel-safe.
    pub(super) async fn receive_on(&self, stream: StreamId) -> Result<Option<Message>, SctpError> {
        poll_fn(|cx| self.0.poll_receive(cx, Some(stream))).await
    }

    /// Waits until at most this number of bytes of the stream wait to be sent.
    pub(super) async fn unsent_below(&self, stream: StreamId, most: usize) {
        poll_fn(|cx| self.0.poll_unsent_below(cx, stream, most)).await;
    }

    /// Waits for the next notification (RFC 6458 §6.1). Returns `None` once the association is
    /// over. If notifications are not read, only the latest are kept. Cancel-safe.
    pub async fn event(&self) -> Option<Event> {
        poll_fn(|cx| {
            let polled = self.with_slot(|slot| match (slot.notification(), &slot.stage) {
                (None, Stage::Ended(_)) => Poll::Ready(None),
                (None, _) => {
                    slot.watchers.add(cx.waker());
                    Poll::Pending
                }
                (event, _) => Poll::Ready(event),
            });
            polled.unwrap_or(Poll::Ready(None))
        })
        .await
    }

    /// Returns the current state of the association: streams, windows, and paths (`SCTP_STATUS`).
    pub fn status(&self) -> Option<Status> {
        self.0.status()
    }

    /// Returns the current paths, ordered by number; there is one for each known address of the
    /// peer, and none once the association is over. [`event`](Self::event) reports changes.
    pub fn paths(&self) -> Vec<PathStatus> {
        self.status().map_or_else(Vec::new, |status| status.paths)
    }

    /// Returns how much one stream has in the send buffer. `None` once the association is over, and
    /// for the kernel's SCTP, which does not report this.
    pub fn queue(&self, stream: StreamId) -> Option<QueueInfo> {
        self.0.queue(stream)
    }

    /// Returns our end of the primary path, with our SCTP port; the IP address is unspecified if
    /// the routing selects it. `None` once the association is over.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_address()
    }

    /// Returns the certificate of the peer, if DTLS below this association has verified it.
    pub fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        self.0.peer_certificate()
    }

    /// Returns the peer's address on the primary path, with its SCTP port; `None` once the
    /// association is over.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.ends().map(|(remote, _)| remote)
    }

    /// Returns whether the primary path uses UDP encapsulation (RFC 6951).
    pub fn is_encapsulated(&self) -> bool {
        self.ends().is_some_and(|(_, is_encapsulated)| is_encapsulated)
    }

    fn ends(&self) -> Option<(SocketAddr, bool)> {
        let status = self.status()?;
        let path = status.paths.iter().find(|path| path.id == status.primary)?;
        let remote = SocketAddr::new(path.remote.ip(), status.remote_port);
        Some((remote, path.remote.port() != 0))
    }

    /// Shuts the association down once all data has arrived, and waits for the end. Cancel-safe.
    ///
    /// # Errors
    /// If the association is lost before that.
    pub async fn shutdown(&self) -> Result<(), SctpError> {
        match self.0.shutdown() {
            Ok(()) | Err(Misuse::NoAssociation | Misuse::WrongState) => {}
            Err(error) => return Err(error.into()),
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

    /// Aborts the association at once; data that has not arrived is lost.
    pub fn abort(&self, reason: impl Into<Bytes>) {
        self.0.abort(reason.into());
    }

    /// Keeps `guard` until the association has ended. That may be long after the last handle was
    /// dropped, while data is on its way to a peer that does not read. If the association has
    /// already ended, the guard is dropped at once.
    pub fn keep_until_ended(&self, guard: impl Any + Send) {
        // A missing slot belonged to an association that has ended.
        let _ = self.with_slot(|slot| slot.keep(Box::new(guard)));
    }

    /// Makes a path the primary one, which new data is sent on.
    ///
    /// # Errors
    /// If there is no such path.
    pub fn set_primary(&self, path: PathId) -> Result<(), SctpError> {
        Ok(self.0.set_primary(path)?)
    }

    /// Announces another local address to the peer, which gives it another path (RFC 5061).
    /// [`Event::OwnAddress`] reports the outcome. If
    /// [`auto_asconf`](eyas_sctp::config::AssociationConfig::auto_asconf) is enabled, new addresses
    /// of the host are announced automatically.
    ///
    /// # Errors
    /// If the peer does not support it
    /// ([`dynamic_addresses`](eyas_sctp::config::OfferedExtensions::dynamic_addresses)), or too many
    /// requests are pending.
    pub fn add_address(&self, address: IpAddr) -> Result<(), SctpError> {
        Ok(self.0.add_address(address)?)
    }

    /// Withdraws a local address (RFC 5061), unless it is the last one. [`Event::OwnAddress`]
    /// reports the outcome.
    ///
    /// # Errors
    /// If the peer does not support it, or too many requests are pending.
    pub fn remove_address(&self, address: IpAddr) -> Result<(), SctpError> {
        Ok(self.0.remove_address(address)?)
    }

    /// Asks the peer to use this local address as its primary destination (RFC 5061 §4.2.4).
    /// [`Event::OwnAddress`] reports the outcome.
    ///
    /// # Errors
    /// If the peer does not support it, or too many requests are pending.
    pub fn set_peer_primary(&self, address: IpAddr) -> Result<(), SctpError> {
        Ok(self.0.set_peer_primary(address)?)
    }

    /// Adds or replaces an AUTH key that is shared with the peer (RFC 4895; `SCTP_AUTH_KEY`). For
    /// keys that are needed from the first packet on, see
    /// [`shared_keys`](eyas_sctp::config::AssociationConfig::shared_keys).
    ///
    /// # Errors
    /// If AUTH was not negotiated, or there are too many keys.
    pub fn set_shared_key(&self, key_id: u16, key: impl Into<Bytes>) -> Result<(), SctpError> {
        Ok(self.0.set_shared_key(key_id, key.into())?)
    }

    /// Signs with this key from now on (`SCTP_AUTH_ACTIVE_KEY`).
    ///
    /// # Errors
    /// If AUTH was not negotiated, or there is no such key.
    pub fn activate_shared_key(&self, key_id: u16) -> Result<(), SctpError> {
        Ok(self.0.activate_shared_key(key_id)?)
    }

    /// Removes a key (`SCTP_AUTH_DELETE_KEY`): chunks signed with it are no longer accepted.
    ///
    /// # Errors
    /// If AUTH was not negotiated, there is no such key, or it is the active key.
    pub fn remove_shared_key(&self, key_id: u16) -> Result<(), SctpError> {
        Ok(self.0.remove_shared_key(key_id)?)
    }

    /// Resets our outgoing streams, or the peer's; all of them if `streams` is empty (RFC 6525).
    ///
    /// # Errors
    /// If the peer does not support it, or another request is pending.
    pub fn reset_streams(&self, outgoing: bool, streams: &[StreamId]) -> Result<(), SctpError> {
        Ok(self.0.reset_streams(outgoing, streams)?)
    }

    /// Ends our side of this stream once everything written to it has been sent: the stream is
    /// reset, which the peer learns after the last message ([`Event::StreamsReset`]). If the peer
    /// does not support stream resets, the association is shut down once all data has arrived.
    ///
    /// # Errors
    /// If the association is not established.
    pub async fn end_stream(&self, stream: StreamId) -> Result<(), SctpError> {
        Ok(poll_fn(|cx| self.0.poll_end_stream(cx, stream)).await?)
    }

    /// Requests more streams (RFC 6525).
    ///
    /// # Errors
    /// If the peer does not support it, or another request is pending.
    pub fn add_streams(&self, outbound: u16, inbound: u16) -> Result<(), SctpError> {
        Ok(self.0.add_streams(outbound, inbound)?)
    }

    /// Waits until the peer has responded, or the association is established or has ended.
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

    /// Returns whether messages can be sent and received.
    pub(crate) fn is_established(&self) -> bool {
        self.with_slot(|slot| slot.stage == Stage::Up).unwrap_or_default()
    }

    /// Continues with the COOKIE ECHO, and waits until the association is established.
    pub(crate) async fn established(&self) -> Result<(), SctpError> {
        self.0.proceed()?;
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
        check: impl FnOnce(&Stage) -> Poll<Result<T, SctpError>>,
    ) -> Poll<Result<T, SctpError>> {
        let polled = self.with_slot(|slot| {
            let result = check(&slot.stage);
            if result.is_pending() {
                slot.watchers.add(cx.waker());
            }
            result
        });
        polled.unwrap_or_else(|error| Poll::Ready(Err(error)))
    }

    pub(super) fn return_stream(&self, stream: StreamId) {
        // A missing slot has nothing to return.
        let _ = self.with_slot(|slot| slot.return_stream(stream));
    }

    pub(super) fn discard_stream(&self, stream: StreamId) {
        // A missing slot receives nothing.
        let _ = self.with_slot(|slot| slot.discard_stream(stream));
    }

    pub(super) fn release_stream(&self, stream: StreamId) {
        // A missing slot needs no release.
        let _ = self.with_slot(|slot| slot.close_stream(stream));
    }

    fn with_slot<T>(&self, action: impl FnOnce(&mut Slot) -> T) -> Result<T, SctpError> {
        let (mut action, mut result) = (Some(action), None);
        self.0.with_slot(&mut |slot| result = action.take().map(|action| action(slot)));
        result.ok_or(SctpError::Closed)
    }
}
