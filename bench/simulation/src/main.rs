//! What `cargo xtask bench sim` measures of eyas.
//!
//! | words | what is run | answer |
//! | --- | --- | --- |
//! | `association SECONDS STREAMS` | two paths of 10 Mbit/s in virtual time | `simulated`, `wall`, `cpu`, `events`, `bytes` |
//! | `world LINKS EVENTS` | links with hosts that talk in time | `links`, `events`, `cpu` |
//!
//! The answer is one line of JSON; `wall` and `cpu` are seconds.

mod association;
mod world;

use std::error::Error;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = match words.as_slice() {
        ["association", seconds, streams] => association::run(seconds.parse()?, streams.parse()?)?,
        ["world", links, events] => world::run(links.parse::<u32>()?.max(1), events.parse()?),
        _ => return Err("association SECONDS STREAMS | world LINKS EVENTS".into()),
    };
    println!("{answer}");
    Ok(())
}
