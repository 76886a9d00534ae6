//! What str0m uses of the crate sctp-proto, over eyas-sctp, so that str0m runs on it unchanged: by
//! Cargo's `[patch]`. One endpoint of eyas belongs to each association, as DTLS gives each one a
//! session of its own.
//!
//! | file | job |
//! | --- | --- |
//! | `config` | what can be set, INITs for SNAP |
//! | `endpoint` | the first packet of a peer, or a connection of ours |
//! | `association` | packets, time and events of one association |
//! | `stream` | messages, and streams reset |
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
