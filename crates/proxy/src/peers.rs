//! The peers of a client's datagrams: their names, their addresses, and the sockets towards them.

mod address_selection;
mod resolve;
mod sockets;

pub(crate) use address_selection::{AddressSelection, DatagramTarget};
pub(crate) use resolve::resolve;
pub(crate) use sockets::{PeerSockets, bind, receive};
