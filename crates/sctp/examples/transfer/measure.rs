//! Throughput and cost.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Both clocks at the start of the measurement.
pub(crate) struct Start {
    instant: Instant,
    cpu: Duration,
}

impl Start {
    pub(crate) fn now() -> Self {
        Self { instant: Instant::now(), cpu: cpu() }
    }

    /// The result; `memory` is resident memory per association, both sides, in bytes.
    pub(crate) fn answer(&self, messages: u64, bytes: u64) -> Answer {
        let (cpu, wall) = (cpu().saturating_sub(self.cpu), self.instant.elapsed());
        Answer { messages, bytes, cpu, wall, memory: 0.0 }
    }
}

/// One measurement.
pub(crate) struct Answer {
    messages: u64,
    bytes: u64,
    cpu: Duration,
    wall: Duration,
    /// Resident memory per association, both sides, in bytes.
    pub(crate) memory: f64,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { messages, bytes, cpu, wall, memory } = self;
        let (cpu, wall) = (cpu.as_secs_f64(), wall.as_secs_f64());
        write!(
            f,
            "{{\"messages\": {messages}, \"bytes\": {bytes}, \"cpu\": {cpu:.6}, \
             \"wall\": {wall:.6}, \"memory\": {memory:.0}}}"
        )
    }
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4096.0
}
