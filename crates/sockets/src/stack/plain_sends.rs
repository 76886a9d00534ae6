//! Messages that a driver accepts from a program before it passes them to the stack.

use super::Stack;
use super::association::{AssocPhase, SocketAssociation};
use super::send_room::update_full_of_all;
use super::socket::{SctpSocket, SocketState};
use crate::abi::number::{event, flag};
use crate::io::SocketId;

/// Flags that change the association, or need an address.
const SPECIAL: u16 = flag::SCTP_EOF | flag::SCTP_ABORT | flag::SCTP_ADDR_OVER;
/// The notifications of messages that could not be sent, and that of the end of the association,
/// which delays [`POLLRDHUP`](crate::abi::number::poll::POLLRDHUP) until the program can receive it.
const DISTURBING: u16 = 1 << (event::SCTP_SEND_FAILED & 0xff)
    | 1 << (event::SCTP_SEND_FAILED_EVENT & 0xff)
    | 1 << (event::SCTP_ASSOC_CHANGE & 0xff);

impl Stack {
    /// Returns whether a message with data, without a name and without control messages can fail
    /// for no other reason than a full send buffer, as long as no option changes and
    /// [`Self::can_send`] remains true; when it no longer is, the readiness says so at once. Then a
    /// driver can accept a message at once, up to what [`Self::reserve_room`] reserves, and pass it
    /// to the stack later. Not so if the program wants to be notified of what could not be sent.
    #[must_use]
    pub fn accepts_plain_messages(&self, socket: SocketId) -> bool {
        self.live_one_to_one(socket).is_some_and(|(socket, assoc)| allows_plain(socket, assoc))
    }

    /// Returns whether a one-to-one socket has an association that takes messages, and no pending
    /// error.
    #[must_use]
    pub fn can_send(&self, socket: SocketId) -> bool {
        self.live_one_to_one(socket).is_some()
    }

    fn live_one_to_one(&self, socket: SocketId) -> Option<(&SctpSocket, &SocketAssociation)> {
        let found = self.sockets.get(socket)?;
        let assoc = self.associations.only_of(found)?;
        let is_live = found.is_one_to_one()
            && found.state == SocketState::Established
            && !found.shut_write
            && found.error.is_none()
            && assoc.phase == AssocPhase::Up;
        is_live.then_some((found, assoc))
    }

    /// Reserves bytes of the send buffer for messages that the driver has accepted: the stack's
    /// own part is that much smaller. A driver passes a message in with
    /// [`crate::SendRequest::uses_reserve`] if it must not wait for the stack's part to have room.
    pub fn reserve_room(&mut self, socket: SocketId, bytes: usize) {
        if let Some(found) = self.sockets.get_mut(socket) {
            found.reserved = bytes;
            let Self { now, sockets, associations, ports, .. } = self;
            update_full_of_all(*now, sockets, associations, ports, socket);
        }
    }

    /// Returns the size of the send buffer.
    #[must_use]
    pub fn send_buffer(&self, socket: SocketId) -> usize {
        self.sockets.get(socket).map_or(0, |found| found.shared.send_buffer)
    }
}

/// Returns whether the options allow it.
fn allows_plain(socket: &SctpSocket, assoc: &SocketAssociation) -> bool {
    let send = &assoc.settings.default_send;
    !socket.shared.disable_fragments
        && send.stream < assoc.streams.0
        && send.flags & SPECIAL == 0
        && assoc.settings.events & DISTURBING == 0
}
