//! Determines what an option applies to: the socket, one association, or all of them (RFC 6458
//! §7.1).

use alloc::vec::Vec;

use eyas_sctp::endpoint::PathStatus;

use super::super::association::SocketAssociation;
use super::super::association_table::AssociationTable;
use super::super::names::read_name;
use super::super::ports::PortTable;
use super::super::socket::SctpSocket;
use crate::abi::Errno;
use crate::abi::number::association::{SCTP_ALL_ASSOC, SCTP_CURRENT_ASSOC, SCTP_FUTURE_ASSOC};
use crate::io::AssocId;
use crate::settings::AssocSettings;

/// Returns the association that an option applies to, or `None` for the socket itself. For
/// one-to-one sockets the identifier is ignored.
pub(super) fn target(
    socket: &SctpSocket,
    associations: &AssociationTable,
    id: i32,
) -> Result<Option<AssocId>, Errno> {
    if socket.is_single() {
        let is_up = associations.only_of(socket).is_some_and(SocketAssociation::is_up);
        return Ok(socket.only().filter(|_| is_up));
    }
    if (SCTP_FUTURE_ASSOC..=SCTP_ALL_ASSOC).contains(&id) {
        return Ok(None);
    }
    let id = AssocId(id);
    if socket.associations.contains(&id) { Ok(Some(id)) } else { Err(Errno::EINVAL) }
}

/// Returns the settings that an option applies to.
pub(super) fn target_settings<'a>(
    socket: &'a SctpSocket,
    associations: &'a AssociationTable,
    id: i32,
) -> Result<&'a AssocSettings, Errno> {
    match target(socket, associations, id)? {
        Some(id) => associations.get(id).map(|it| &it.settings).ok_or(Errno::EINVAL),
        None => Ok(&socket.settings),
    }
}

/// Changes the settings that an option applies to, and returns the associations among them.
pub(super) fn change_target(
    socket: &mut SctpSocket,
    associations: &mut AssociationTable,
    id: i32,
    change: impl Fn(&mut AssocSettings),
) -> Result<Vec<AssocId>, Errno> {
    let changed: Vec<AssocId> = match target(socket, associations, id)? {
        Some(one) => alloc::vec![one],
        None => {
            let single = socket.is_single();
            if single || id != SCTP_CURRENT_ASSOC {
                change(&mut socket.settings);
            }
            let all = !single && id != SCTP_FUTURE_ASSOC;
            socket.associations.iter().copied().filter(|_| all).collect()
        }
    };
    for id in &changed {
        if let Some(assoc) = associations.get_mut(*id) {
            change(&mut assoc.settings);
        }
    }
    Ok(changed)
}

/// Returns the peer's address that an option names, of its association.
pub(super) fn target_path(
    socket: &SctpSocket,
    associations: &AssociationTable,
    ports: &PortTable,
    id: i32,
    name: &[u8],
) -> Result<TargetPath, Errno> {
    let (address, _) = read_name(socket, name).map_err(|_| Errno::EINVAL)?;
    let target = target(socket, associations, id)?;
    let id = target.or_else(|| associations.find_peer(socket, address)).ok_or(Errno::EINVAL)?;
    let status = associations.status(ports, id).ok_or(Errno::EINVAL)?;
    let port = status.remote_port;
    let is_named = |path: &PathStatus| path.remote.ip() == address.ip() && port == address.port();
    let path = status.paths.into_iter().find(is_named).ok_or(Errno::EINVAL)?;
    Ok(TargetPath { id, path, port })
}

/// A path of an association that an option applies to.
#[derive(Debug)]
pub(super) struct TargetPath {
    pub(super) id: AssocId,
    pub(super) path: PathStatus,
    /// The peer's SCTP port.
    pub(super) port: u16,
}
