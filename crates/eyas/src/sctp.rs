//! SCTP (RFC 9260) as a transport of connections: messages on streams over several paths.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `carrier/` | sockets: inside UDP, inside DTLS, raw | RFC 6951, RFC 8261, RFC 9260 |
//! | `kernel/` | the kernel's own SCTP, where it has one | RFC 6458 |
//! | `shared_endpoint` | one protocol endpoint, shared by its task and its associations | |
//! | `slot` | the state of one association that its users see | |
//! | `outbox` | outgoing packets and the choice of their sockets | |
//! | `own_addresses` | the addresses announced to peers, and their changes | RFC 5061 |
//! | `path_sessions` | the DTLS sessions of a client from each of its addresses | |
//! | `ports` | which packets of a shared socket are ours | |
//! | `tap` | observing packets that pass | |
//! | `task` | drives the endpoint with packets from the sockets and with time | |
//! | `association` | the user's handle: messages, paths, state | RFC 6458 |
//! | `stack` | the interface of an SCTP implementation below an association | |
//! | `own` | an association of our own stack | |
//! | `json` | the state of associations as JSON | |
//! | `stream` | one stream in each direction as bytes | RFC 3436 §4 |
//! | `secured` | TLS over a pair of streams | RFC 3436 |
//! | `streams` | further pairs of streams of an association | RFC 3436 |
//! | `messages/` | messages beside byte streams | RFC 7496 |
//! | `client` | opening associations | RFC 9260 §5 |
//! | `wires` | the sockets without an endpoint, for programs with their own | |
//! | `listener` | accepting associations | RFC 9260 §5 |
//!
//! The protocol itself is [`protocol`]: pure, without sockets and clock.

pub use eyas_sctp as protocol;

mod association;
pub(crate) mod carrier;
pub(crate) mod client;
pub(crate) mod dtls;
mod error;
mod json;
pub(crate) mod kernel;
mod listener;
mod messages;
mod outbox;
mod own;
mod own_addresses;
mod path_sessions;
mod ports;
pub(crate) mod secured;
mod shared_endpoint;
mod slot;
mod stack;
mod stream;
mod streams;
mod tap;
mod task;
mod wires;

#[cfg(test)]
mod dtls_paths_tests;
#[cfg(test)]
mod secured_pair;
#[cfg(test)]
mod tests;

pub use association::SctpAssociation;
pub use carrier::{ENCAPSULATION_PORT, direct_access};
pub use error::SctpError;
pub(crate) use error::attempt_failure;
pub use json::{AssociationJson, EventJson};
pub use listener::{SctpListenParameters, SctpListener, SctpOverIp};
pub use messages::SctpMessages;
pub use own_addresses::UnannouncedAddresses;
pub use stream::SctpStream;
pub use streams::SctpStreams;
// For the supervisor, which has a protocol endpoint of its own: not part of the public API.
#[doc(hidden)]
pub use tap::{Tap, Train};
#[doc(hidden)]
pub use wires::{Buffers, Changes, Wires};
