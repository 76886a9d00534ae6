//! `eyas tunnel`: all connections between two hosts over one session.
//!
//! | module or type | job |
//! | --- | --- |
//! | [`frame`] | what the ends say to each other, as bytes; pure |
//! | [`session`] | channels, their windows, their ends; pure |
//! | [`keys`] | what a key may do, and which key a server has; pure |
//! | [`forward`] | what is forwarded, in ssh's words; pure |
//! | [`Carrier`] | the connection below a session, with its streams |
//! | [`Server`] | the end that is connected to |
//! | [`reach`], [`Tunnel`], [`Client`] | the end that connects: once, one session, one after the other |
//! | [`Notice`] | what either tells of itself |
//! | [`Sessions`] | what either has at the moment, with the paths below |

mod carry;
mod client;
mod dynamic;
mod ends;
pub mod forward;
pub mod frame;
pub mod keys;
mod link;
mod listening;
mod notice;
mod paths;
mod server;
pub mod session;
mod sessions;

pub use carry::Carrier;
pub use client::{Client, Forwards, Tunnel, TunnelError, reach};
pub use notice::Notice;
pub use paths::PathReading;
pub use server::{Grants, Server};
pub use sessions::{Presence, SessionReading, Sessions};
