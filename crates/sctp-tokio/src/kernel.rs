//! The kernel's own SCTP, where it has one: one-to-one sockets (RFC 6458 §4).
//!
//! Where the kernel has SCTP, it alone handles protocol 132. For its users an association of the
//! kernel is a [`SctpAssociation`](super::SctpAssociation) like any other, with these differences:
//! the INIT ACK is not reported, so a race cannot hold an attempt there; only the primary path is
//! shown; and how much a stream has in the send buffer is unknown.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `socket` | a socket: opening, connecting, accepting, messages and notifications | RFC 6458 §4 |
//! | `options` | socket options | RFC 6458 §8 |
//! | `control` | the ancillary data of a message | RFC 6458 §5.3 |
//! | `notification` | the kernel's notifications | RFC 6458 §6.1 |
//! | `address` | addresses in the kernel's layout | |
//! | `association` | an association of the kernel | |
//! | `task` | passes messages and notifications to those waiting for them | |
//! | `listener` | accepting associations | |

mod address;
mod association;
mod control;
mod listener;
mod notification;
mod options;
mod socket;
mod task;

use std::io;
use std::net::SocketAddr;

use eyas_sctp::config::AssociationConfig;

pub(super) use listener::KernelListener;
use socket::KernelSocket;

use super::SctpAssociation;

/// Opens an association; it is established when this returns. Dropping the future aborts it.
///
/// # Errors
/// The kernel's error if it fails.
pub(crate) async fn connect(
    address: SocketAddr,
    config: &AssociationConfig,
) -> io::Result<SctpAssociation> {
    let socket = KernelSocket::connect(address, config).await?;
    Ok(SctpAssociation::new(task::start(socket, address, false)))
}
