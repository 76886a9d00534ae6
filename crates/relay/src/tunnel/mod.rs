//! `eyas tunnel`: all connections between two hosts over one session.
//!
//! | module or type | job |
//! | --- | --- |
//! | [`frame`] | the frames of the protocol; pure |
//! | [`session`] | channels and their windows; pure |
//! | [`keys`] | what a key may do, and which key a server has; pure |
//! | [`forward`] | what is forwarded, written as for ssh; pure |
//! | [`packets`] | packets of IP between interfaces, one at each end |
//! | [`Carrier`] | the connection below a session, with its streams |
//! | [`Server`] | the end that is connected to |
//! | [`reach`], [`Tunnel`], [`Client`] | the end that connects: one connection, one session, sessions one after another |
//! | [`Probing`] | when a transport with streams is tried again while the session has none |
//! | [`Notice`] | what either end reports |
//! | [`Sessions`] | the present sessions of either end, with their paths |

mod carry;
mod client;
mod dynamic;
mod ends;
pub mod forward;
pub mod frame;
mod held;
pub mod keys;
mod leases;
mod link;
mod listening;
mod notice;
pub mod packets;
mod paths;
mod probing;
mod reach;
mod server;
pub mod session;
mod sessions;
mod setup;

pub use carry::Carrier;
pub use client::{Client, Forwards};
pub use notice::Notice;
pub use paths::PathReading;
pub use probing::Probing;
pub use reach::{Tunnel, TunnelError, reach};
pub use server::{Grants, Server};
pub use sessions::{Presence, SessionReading, Sessions};
