//! The parts of the crate sctp-proto that str0m uses, implemented with eyas-sctp, so that str0m runs on
//! it unchanged through Cargo's `[patch]`. Each association has its own endpoint of eyas, because each
//! has its own DTLS session.
//!
//! | file | purpose |
//! | --- | --- |
//! | `config` | settings, INITs for SNAP |
//! | `endpoint` | the first packet of a peer, or an outgoing connection |
//! | `association` | packets, time and events of one association |
//! | `stream` | messages, and resets of streams |
//! | `names` | identifiers, events and errors |

mod association;
mod config;
mod endpoint;
mod names;
mod stream;

pub use association::{Association, AssociationEvent, EndpointEvent};
pub use config::{
    ClientConfig, EndpointConfig, ServerConfig, TransportConfig, generate_snap_token,
};
pub use endpoint::{AssociationHandle, DatagramEvent, Endpoint};
pub use names::{
    AssociationError, EcnCodepoint, Error, Event, Payload, PayloadProtocolIdentifier,
    ReliabilityType, StreamEvent, Transmit,
};
pub use stream::{Chunks, Stream};
