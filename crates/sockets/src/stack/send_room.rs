//! Whether the send buffers of a socket's associations are full.

use core::time::Duration;

use super::association_table::AssociationTable;
use super::ports::PortTable;
use super::socket::SctpSocket;
use super::socket_table::SocketTable;
use crate::io::{AssocId, SocketId};

/// Handles a changed size of the send buffer, after which full associations may have room, or the
/// reverse.
pub(super) fn update_full_of_all(
    now: Duration,
    sockets: &mut SocketTable,
    associations: &mut AssociationTable,
    ports: &mut PortTable,
    socket: SocketId,
) {
    let all = sockets.get(socket).map(|found| found.associations.clone());
    all.into_iter().flatten().for_each(|id| update_full(now, sockets, associations, ports, id));
}

/// Updates whether the send buffer of an association is full, because room reported by the endpoint
/// may not be enough if the buffer was made smaller.
pub(super) fn update_full(
    now: Duration,
    sockets: &mut SocketTable,
    associations: &mut AssociationTable,
    ports: &mut PortTable,
    id: AssocId,
) {
    let Some(assoc) = associations.get(id).filter(|assoc| assoc.is_alive()) else { return };
    let key = assoc.key;
    let holder = assoc.socket.and_then(|socket| sockets.get(socket));
    let is_full = holder.and_then(|found| {
        let (room, wanted) = (found.room(), wanted_room(found));
        ports.with_endpoint(key.port, |endpoint| {
            let is_full = endpoint.queued(key.inner) >= room;
            if is_full {
                endpoint.wait_for_room(now, key.inner, wanted);
            }
            is_full
        })
    });
    set_full(sockets, associations, id, is_full.unwrap_or_default());
}

/// Records whether the send buffer of an association is full.
pub(super) fn set_full(
    sockets: &mut SocketTable,
    associations: &mut AssociationTable,
    id: AssocId,
    is_full: bool,
) {
    let Some(assoc) = associations.get_mut(id) else { return };
    let was_full = core::mem::replace(&mut assoc.is_full, is_full);
    let Some(socket) = assoc.socket else { return };
    if was_full != is_full
        && let Some(found) = sockets.get_mut(socket)
    {
        found.full = if is_full { found.full + 1 } else { found.full.saturating_sub(1) };
        sockets.touch(socket);
    }
}

/// Returns the free bytes of an endpoint's send buffer, which has twice the size of the socket's, at
/// which a message is accepted again.
pub(super) fn wanted_room(socket: &SctpSocket) -> usize {
    socket.shared.send_buffer.saturating_mul(2).saturating_sub(socket.room()) + 1
}
