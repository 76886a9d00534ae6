//! A peer on plain sockets, for the interop runs: an endpoint, a thread, and no runtime.
//!
//! ```text
//! peer connect|listen [--local A,B] [--remote A,B] [--port P] [--local-port P]
//!      [--udp LOCAL,REMOTE] [--streams N] [--echo] [--interleave] [--asconf] [--zero-checksum]
//!      [--multipath] [--stay SECONDS] STEP...
//! ```
//!
//! Without `--udp` it uses raw sockets, which requires root. The steps, the contents of the
//! messages and the line of JSON at the end are those of `interop/peers`.
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
