//! A peer on plain sockets, for the interop runs: an endpoint, a thread, and no runtime.
//!
//! ```text
//! peer connect|listen [OPTION]... STEP...
//! ```
//!
//! The options and steps are those of `interop/peers/rfc6458/peer.c`, without `--untuned`, `--buffer`, `--arrivals` and
//! `pour`. Only here are `--asconf` (dynamic addresses, RFC 5061), `--zero-checksum` (RFC 9653; also in pion's peer), and
//! the step `restart`, which forgets the association and connects again from the same port.
//!
//! Without `--udp` it uses raw sockets, which requires root. The contents of the messages and the line of JSON at the
//! end are those of `interop/peers`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a driver has what the core must not have: a clock, sockets, a command line"
)]

mod carrier;
mod content;
mod options;
mod peer;
mod steps;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (options, steps) = options::parse(&words)?;
    let stay = options.stay;
    let mut peer = peer::Peer::new(options)?;
    steps::run(&mut peer, &steps)?;
    println!("{}", peer.summary());
    steps::pause(&mut peer, stay)
}
