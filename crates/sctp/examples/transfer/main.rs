//! What `cargo eyas-bench sctp` measures of this crate: two endpoints in one thread.
//!
//! | Arguments | Measurement |
//! | --- | --- |
//! | `memory SIZE BYTES` | messages of that size from one side to the other |
//! | `associations COUNT` | that many established in turn, with one message on each, then idle |
//! | `link CONTROLLER` | a path of 100 Mbit/s, 100 ms round trip and 0.1 % loss, in virtual time |
//! | `channel` | a data channel over the same path |
//!
//! The answer is one line of JSON.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a driver has what the core must not have: a clock, a command line"
)]

mod associations;
mod channel;
mod link;
mod measure;
mod memory;
mod pair;
mod side;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = match words.as_slice() {
        ["memory", size, bytes] => memory::transfer(size.parse()?, bytes.parse()?)?.to_string(),
        ["associations", count] => associations::open(count.parse()?)?.to_string(),
        ["channel"] => channel::share()?,
        ["link", controller] => link::share(controller)?,
        _ => {
            return Err("memory SIZE BYTES | associations COUNT | link CONTROLLER | channel".into());
        }
    };
    println!("{answer}");
    Ok(())
}
