//! The server, seen by clients that are not ours: hyper, h3 over quinn, and raw sockets. What it holds
//! for its peers is tried in `eyas-testserver`, whose site has what they ask for.

#[cfg(feature = "client")]
mod application;
#[expect(dead_code, reason = "the tests of the site use more of it")]
mod clients;
#[cfg(feature = "client")]
mod early_data;
mod given_sockets;
mod metrics;
#[cfg(feature = "client")]
mod service;
