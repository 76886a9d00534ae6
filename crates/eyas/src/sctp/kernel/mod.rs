//! The kernel's own SCTP, where it speaks it: one-to-one sockets (RFC 6458 §4).
//!
//! Where there is one, it alone answers for protocol 132. To its users an association of the kernel
//! is a [`SctpAssociation`](super::SctpAssociation) like any other, with these differences: nothing
//! is told of the INIT ACK, so that a race cannot hold an attempt there; of the paths only the
//! primary one is shown; and what one stream has in the send buffer is not known.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `socket` | a socket: opening, connecting, accepting, messages and notifications | RFC 6458 §4 |
//! | `options` | what is set on it and asked of it | RFC 6458 §8 |
//! | `control` | what goes with a message | RFC 6458 §5.3 |
//! | `notification` | what the kernel tells | RFC 6458 §6.1 |
//! | `address` | addresses as the kernel wants them | |
//! | `association` | an association of the kernel | |
//! | `task` | moves messages and notifications to who waits for them | |
//! | `listener` | taking in associations | |

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

/// Opens an association; it is up when this returns. Dropping the future aborts it.
///
/// # Errors
/// How it failed, as the kernel says it.
pub(crate) async fn connect(
    address: SocketAddr,
    config: &AssociationConfig,
) -> io::Result<SctpAssociation> {
    let socket = KernelSocket::connect(address, config).await?;
    Ok(SctpAssociation::new(task::start(socket, address, false)))
}
