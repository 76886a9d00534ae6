//! `eyas tunnel`: all connections between two hosts over one session.
//!
//! | module or type | job |
//! | --- | --- |
//! | [`frame`] | the frames of the protocol; pure |
//! | [`session`] | channels and their windows; pure |
//! | [`keys`] | what a key may do, and the known keys of servers; pure |
//! | [`forward`] | forwardings in the syntax of ssh; pure |
//! | [`packets`] | IP packets between interfaces, one at each end |
//! | [`SessionTransport`] | the connection below a session, with its streams |
//! | [`Server`] | the end that accepts connections |
//! | [`reach`], [`Tunnel`], [`Client`] | the end that connects: a connection, a session, a series of sessions |
//! | [`Probing`] | when a transport with streams is tried again while the session has none |
//! | [`TunnelError`] | why a tunnel cannot be used |
//! | [`ServerProxy`] | a proxy through which the server is reached |
//! | `local` | TCP and Unix sockets of this host |
//! | `demand` | the programs that wait for a session |
//! | `liveness` | when a silent session is doubted, and when to reconnect; pure |
//! | `vigil`, `doubt` | the signs of life of a session in real time |
//! | [`Notice`] | what either end reports |
//! | `shares` | what each key may have of what all clients share |
//! | [`Sessions`] | the current sessions of either end, with their paths |
//!
//! A channel stays on the lane that it was opened on, so nothing needs reordering across lanes; lanes are added
//! while all are in use. The client holds one session at a time. When that runs over a transport without
//! streams, `Probing` looks for one that has them, and the old session stays until nothing is open on it; the
//! same happens to a session that does not answer.
//!
//! Access control is below the session: `ListenParameters::client_keys` and
//! `SecurityParameters::with_pinned_keys` make the TLS verifiers look at nothing but a key, so an impostor
//! loses the race, and an unknown client is rejected before a byte of it is read. The command creates the
//! device of a network interface, because the calls are unsafe and confined to `eyas-lab`.

mod client;
mod client_session;
mod demand;
mod doubt;
mod dynamic;
mod error;
pub mod forward;
pub mod frame;
pub mod keys;
mod leases;
mod link;
mod liveness;
mod local;
mod notice;
pub mod packets;
mod paths;
mod ports;
mod probing;
mod proxied;
mod reach;
mod server;
pub mod session;
mod sessions;
mod setup;
mod shares;
mod sockets;
mod transport;
mod vigil;

pub use client::{Client, Forwards};
pub use error::{ProxyFault, TunnelError};
pub use notice::Notice;
pub use paths::PathReading;
pub use probing::Probing;
pub use proxied::ServerProxy;
pub use reach::{Tunnel, reach};
pub use server::{Grants, Server};
pub use sessions::{Presence, SessionReading, Sessions};
pub use transport::SessionTransport;
