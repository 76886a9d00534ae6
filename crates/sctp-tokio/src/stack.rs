//! The SCTP implementation below an association.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use bytes::Bytes;
use eyas_sctp::endpoint::{QueueInfo, Status};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::identifier::{PathId, StreamId};
use eyas_sctp::message::{Message, SendInfo};
use rustls_pki_types::CertificateDer;

use super::SctpError;
use super::slot::Slot;

/// One association of an SCTP implementation: ours, or the kernel's. When it is dropped, the
/// association ends once all data has arrived.
///
/// Operations that not every implementation supports have a default body, which reports that.
pub(super) trait Stack: fmt::Debug + Send + Sync {
    /// Accesses the state kept for the association's users, if it still exists.
    fn with_slot(&self, action: &mut dyn FnMut(&mut Slot));

    /// Returns the current state of the association, unless it is over.
    fn status(&self) -> Option<Status>;

    /// Returns our end of the primary path.
    fn local_address(&self) -> Option<SocketAddr>;

    /// Returns the certificate of the peer, if a layer below SCTP has verified it.
    fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        None
    }

    /// Sends a message, which `data` creates once there may be space for it. It is told how many
    /// bytes of the send buffer the association may use.
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        info: &SendInfo,
        data: &mut dyn FnMut(usize) -> Bytes,
    ) -> Poll<Result<(), SctpError>>;

    /// Returns the next message of a byte stream, or of all other streams.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        stream: Option<StreamId>,
    ) -> Poll<Result<Option<Message>, SctpError>>;

    /// Ends our side of this stream, once everything written to it has been sent.
    fn poll_end_stream(&self, cx: &mut Context<'_>, stream: StreamId) -> Poll<Result<(), Misuse>>;

    /// Begins to end the association once all data has arrived.
    fn shutdown(&self) -> Result<(), Misuse>;

    /// Aborts the association at once.
    fn abort(&self, reason: Bytes);

    /// Makes a path the primary one, which new data is sent on.
    fn set_primary(&self, path: PathId) -> Result<(), Misuse>;

    /// Announces another address of this host to the peer.
    fn add_address(&self, address: IpAddr) -> Result<(), Misuse>;

    /// Withdraws an address of this host.
    fn remove_address(&self, address: IpAddr) -> Result<(), Misuse>;

    /// Resets our outgoing streams, or the peer's.
    fn reset_streams(&self, outgoing: bool, streams: &[StreamId]) -> Result<(), Misuse>;

    /// Requests more streams.
    fn add_streams(&self, outbound: u16, inbound: u16) -> Result<(), Misuse>;

    /// Continues with the COOKIE ECHO. Nothing to do if associations are established from the
    /// start.
    fn proceed(&self) -> Result<(), Misuse> {
        Ok(())
    }

    /// Returns what one stream has in the send buffer, if this is known.
    fn queue(&self, _stream: StreamId) -> Option<QueueInfo> {
        None
    }

    /// Waits until at most this number of bytes of the stream wait to be sent, if this is known.
    fn poll_unsent_below(&self, _: &mut Context<'_>, _: StreamId, _most: usize) -> Poll<()> {
        Poll::Ready(())
    }

    /// Asks the peer to use this address of ours as its primary destination.
    fn set_peer_primary(&self, _address: IpAddr) -> Result<(), Misuse> {
        Err(Misuse::NotSupported)
    }

    /// Adds or replaces an AUTH key.
    fn set_shared_key(&self, _key_id: u16, _key: Bytes) -> Result<(), Misuse> {
        Err(Misuse::NotSupported)
    }

    /// Signs with this key from now on.
    fn activate_shared_key(&self, _key_id: u16) -> Result<(), Misuse> {
        Err(Misuse::NotSupported)
    }

    /// Removes a key.
    fn remove_shared_key(&self, _key_id: u16) -> Result<(), Misuse> {
        Err(Misuse::NotSupported)
    }
}
