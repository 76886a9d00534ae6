//! The command line, and the output: one line of JSON.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::end::End;
use crate::{link, memory, udp};

pub type Failure = Box<dyn std::error::Error>;

/// What was transferred, and at which cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measurement {
    pub messages: u64,
    pub bytes: u64,
    /// The CPU time of this process, in user and kernel mode.
    pub cpu: Duration,
    pub wall: Duration,
    /// Resident memory per association, both ends, in bytes.
    pub memory: f64,
}

impl Measurement {
    fn print(&self) {
        println!(
            "{{\"messages\": {}, \"bytes\": {}, \"cpu\": {:.6}, \"wall\": {:.6}, \"memory\": {:.0}}}",
            self.messages,
            self.bytes,
            self.cpu.as_secs_f64(),
            self.wall.as_secs_f64(),
            self.memory,
        );
    }
}

/// The start of a measurement, on both clocks.
pub struct Start(Instant, Duration);

impl Start {
    pub fn now() -> Self {
        Self(Instant::now(), cpu())
    }

    pub fn finish(&self, messages: u64, bytes: u64) -> Measurement {
        Measurement { messages, bytes, cpu: cpu() - self.1, wall: self.0.elapsed(), memory: 0.0 }
    }
}

/// Returns the CPU time of this process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the resident memory of this process, in bytes.
pub fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4096.0
}

/// Runs the command line.
pub fn main<E: End>(
    associations: fn(usize) -> Result<Measurement, Failure>,
) -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let measurement = match arguments.as_slice() {
        ["memory", size, bytes] => memory::transfer::<E>(size.parse()?, bytes.parse()?)?,
        ["associations", count] => associations(count.parse()?)?,
        ["receive", address, size, bytes] => {
            let address: SocketAddr = address.parse()?;
            udp::receive::<E>(address, size.parse()?, bytes.parse()?)?
        }
        ["send", address, size, bytes] => {
            let address: SocketAddr = address.parse()?;
            udp::send::<E>(address, size.parse()?, bytes.parse()?)?
        }
        ["link"] => {
            println!("{}", link::share::<E>()?);
            return Ok(());
        }
        _ => return Err(
            "memory SIZE BYTES | associations COUNT | link | receive or send ADDRESS SIZE BYTES"
                .into(),
        ),
    };
    measurement.print();
    Ok(())
}
