//! One association over two paths, in virtual time.

use std::error::Error;
use std::time::Instant;

use eyas_lab::simulation;
use eyas_lab::situation::SimulationSetup;

use crate::cpu;

/// The situation, without its duration and its streams.
const SETUP: &str = r#"
[path.A]
rate = "10 Mbit/s"
delay = "10 ms"

[path.B]
rate = "10 Mbit/s"
delay = "10 ms"

[association]
profile = "pfldnet2010"
buffer = "256 KiB"
mapping = "round-robin"
"#;

/// Runs the situation for `seconds` of simulated time with `streams` streams; returns the output.
pub(crate) fn run(seconds: u32, streams: u16) -> Result<String, Box<dyn Error>> {
    // The warm-up includes the setup of the association.
    let duration = seconds.checked_sub(2).filter(|rest| *rest > 0).ok_or("at least 3 seconds")?;
    let setup = format!(
        "time = {{ warm_up = \"2 s\", duration = \"{duration} s\" }}\n\
         application = {{ message = 1452, streams = {streams} }}\n{SETUP}",
    );
    let setup: SimulationSetup = toml::from_str(&setup)?;
    setup.check()?;
    let (start, cpu_start) = (Instant::now(), cpu());
    let result = simulation::run(&setup, 1);
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu() - cpu_start);
    let bytes: u64 = result.streams.iter().map(|stream| stream.bytes).sum();
    Ok(format!(
        "{{\"simulated\": {seconds}, \"wall\": {wall}, \"cpu\": {cpu}, \"events\": {}, \
         \"bytes\": {bytes}}}",
        result.events
    ))
}
