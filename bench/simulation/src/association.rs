//! One association over two paths, in virtual time.

use std::error::Error;
use std::time::Instant;

use eyas_lab::situation::Setup;
use eyas_lab::simulation;

use crate::cpu;

/// The situation but for its length and its streams.
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

/// Runs it for so many simulated seconds with so many streams, and gives the answer.
pub(crate) fn run(seconds: u32, streams: u16) -> Result<String, Box<dyn Error>> {
    // The association opens in the second second.
    let measured = seconds.checked_sub(2).filter(|rest| *rest > 0).ok_or("at least 3 seconds")?;
    let setup = format!(
        "time = {{ warm_up = \"2 s\", duration = \"{measured} s\" }}\n\
         application = {{ message = 1452, streams = {streams} }}\n{SETUP}",
    );
    let setup: Setup = toml::from_str(&setup)?;
    setup.check()?;
    let (begin, used) = (Instant::now(), cpu());
    let result = simulation::run(&setup, 1);
    let (wall, cpu) = (begin.elapsed().as_secs_f64(), cpu() - used);
    let bytes: u64 = result.streams.iter().map(|stream| stream.bytes).sum();
    Ok(format!(
        "{{\"simulated\": {seconds}, \"wall\": {wall}, \"cpu\": {cpu}, \"events\": {}, \
         \"bytes\": {bytes}}}",
        result.events
    ))
}
