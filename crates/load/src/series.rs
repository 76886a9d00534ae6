//! The results second by second, as CSV.

use std::io::{self, Write};

use super::{LoadProgress, TimePercentiles};

/// The columns, in order; times are milliseconds since the intended start.
const COLUMNS: &str = "elapsed_s,interval_s,intended,answered,refused,failed,dropped,in_flight,\
                       connections,body_bytes,mean_ms,p50_ms,p90_ms,p99_ms,max_ms";

/// Writes a line for each second of a load.
#[derive(Debug)]
pub struct SeriesWriter<W>(W);

impl<W: Write> SeriesWriter<W> {
    /// Starts with the header line.
    ///
    /// # Errors
    /// The error from writing.
    pub fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "{COLUMNS}")?;
        Ok(Self(out))
    }

    /// Adds what has happened since the last call.
    ///
    /// # Errors
    /// The error from writing.
    pub fn add(&mut self, progress: &LoadProgress<'_>) -> io::Result<()> {
        let tally = progress.tally;
        write!(
            self.0,
            "{:.3},{:.3},{},{},{},{},{},{},{},{},",
            progress.elapsed.as_secs_f64(),
            progress.interval.as_secs_f64(),
            tally.intended,
            tally.answered,
            tally.refused(),
            tally.failed(),
            tally.dropped,
            progress.in_flight,
            tally.opened,
            tally.bytes,
        )?;
        match TimePercentiles::from_histogram(&tally.times.total) {
            Some(TimePercentiles { mean, p50, p90, p99, max, .. }) => {
                writeln!(self.0, "{mean},{p50},{p90},{p99},{max}")
            }
            None => writeln!(self.0, ",,,,"),
        }
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::load_tally::{LoadExchange, LoadTally, RequestError};
    use super::*;

    #[test]
    fn every_line_has_as_many_columns_as_the_first() {
        let mut tally = LoadTally::default();
        let result = Err(RequestError { kind: "connect", detail: String::new() });
        let zero = Duration::ZERO;
        tally.record(LoadExchange { late: zero, total: zero, is_hit: false, result });
        let progress = LoadProgress {
            elapsed: Duration::from_secs(1),
            interval: Duration::from_secs(1),
            tally: &tally,
            total: &tally,
            in_flight: 2,
            is_warming_up: false,
        };
        let mut series = SeriesWriter::new(Vec::new()).expect("memory");
        series.add(&progress).expect("memory");
        let text = String::from_utf8(series.into_inner()).expect("text");
        let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(widths, [15, 15]);
        assert!(text.ends_with("1.000,1.000,1,0,0,1,0,2,0,0,,,,,\n"), "{text}");
    }
}
