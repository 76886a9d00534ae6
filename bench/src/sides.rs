//! The two sides of a link of `eyas netem run`: the far side is the server's command, the near side the client's, and both
//! are this program. The near side prints its figures, which [`Figures::take`](crate::tables::Figures::take) parses.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The file whose existence shows that the far side is ready.
const READY: &str = "far-is-ready";
/// How long that may take.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Signals to the near side that everything is ready.
pub(crate) fn signal_ready(directory: &Path) -> Result<(), String> {
    fs::write(directory.join(READY), "").map_err(|error| error.to_string())
}

/// Waits until the far side is ready.
pub(crate) fn wait_for_far(directory: &Path) -> Result<(), String> {
    let deadline = Instant::now() + READY_WITHIN;
    while !directory.join(READY).exists() {
        if Instant::now() > deadline {
            return Err("the far side is not ready".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Prints a figure, or the reason why there is none, for [`Figures::take`](crate::tables::Figures::take).
pub(crate) fn print_figure(name: &str, column: &str, figure: Result<f64, String>) {
    match figure {
        Ok(figure) => println!("{name}\t{column}\t{figure}"),
        Err(error) => println!("{name}\t{column}\t{}", error.replace(['\n', '\t'], " ")),
    }
}

/// Ends the use of a far side, so that the next near side waits for its own.
pub(crate) fn clear_ready(directory: &Path) -> Result<(), String> {
    fs::remove_file(directory.join(READY)).map_err(|error| error.to_string())
}
