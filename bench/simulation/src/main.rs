//! The simulations of eyas that `cargo eyas-bench sim` measures.
//!
//! | arguments | simulation | output |
//! | --- | --- | --- |
//! | `association SECONDS STREAMS` | two paths of 10 Mbit/s in virtual time | `simulated`, `wall`, `cpu`, `events`, `bytes` |
//! | `world LINKS EVENTS` | links with hosts that send at a fixed rate | `links`, `events`, `cpu` |
//!
//! The output is one line of JSON; `wall` and `cpu` are in seconds.

mod association;
mod world;

use std::error::Error;

use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = match arguments.as_slice() {
        ["association", seconds, streams] => association::run(seconds.parse()?, streams.parse()?)?,
        ["world", links, events] => world::run(links.parse::<u32>()?.max(1), events.parse()?),
        _ => return Err("association SECONDS STREAMS | world LINKS EVENTS".into()),
    };
    println!("{output}");
    Ok(())
}
