//! The log format of HdrHistogram (version 1.3, histograms encoded as V2): a line per second and
//! kind of time, for its tools. Values are in nanoseconds.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::prelude::{BASE64_STANDARD, Engine};
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::LoadProgress;

/// Nanoseconds per unit of the maximum value, which the format expects in milliseconds.
const NANOS_IN_MILLI: f64 = 1e6;

/// Writes the histograms of a load second by second, with the name of the time as tag.
pub struct HistogramLog<W> {
    out: W,
    serializer: V2DeflateSerializer,
    encoded: Vec<u8>,
}

impl<W: Write> HistogramLog<W> {
    /// Begins the log of a load that started at this time.
    ///
    /// # Errors
    /// The error from writing.
    pub fn new(mut out: W, began: SystemTime) -> io::Result<Self> {
        let began = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        writeln!(out, "#[Logged by eyas load; values are nanoseconds]")?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[StartTime: {began:.3} (seconds since epoch)]")?;
        writeln!(out, "#[BaseTime: {began:.3} (seconds since epoch)]")?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\""
        )?;
        Ok(Self { out, serializer: V2DeflateSerializer::new(), encoded: Vec::new() })
    }

    /// Adds what has happened since the last call; nothing is written for empty histograms.
    ///
    /// # Errors
    /// The error from writing.
    pub fn add(&mut self, progress: &LoadProgress<'_>) -> io::Result<()> {
        let from = progress.elapsed.saturating_sub(progress.interval);
        for (name, times) in progress.tally.times.named() {
            if times.is_empty() {
                continue;
            }
            self.encoded.clear();
            self.serializer
                .serialize(times, &mut self.encoded)
                .map_err(|cause| io::Error::other(cause.to_string()))?;
            self.line(name, from, progress.interval, times.max())?;
        }
        Ok(())
    }

    fn line(
        &mut self,
        name: &str,
        from: Duration,
        interval: Duration,
        longest: u64,
    ) -> io::Result<()> {
        writeln!(
            self.out,
            "Tag={name},{:.3},{:.3},{:.3},{}",
            from.as_secs_f64(),
            interval.as_secs_f64(),
            longest as f64 / NANOS_IN_MILLI,
            BASE64_STANDARD.encode(&self.encoded),
        )
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W> std::fmt::Debug for HistogramLog<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistogramLog").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::super::load_tally::{LoadExchange, LoadTally, RequestError};
    use super::*;

    fn tally(millis: u64) -> LoadTally {
        let mut tally = LoadTally::default();
        let result = Err(RequestError { kind: "connect", detail: String::new() });
        let late = Duration::from_millis(millis);
        tally.record(LoadExchange { late, total: late, is_hit: false, result });
        tally
    }

    #[test]
    fn another_implementation_parses_the_log() {
        let mut log = HistogramLog::new(Vec::new(), UNIX_EPOCH).expect("memory");
        for second in 1..=2 {
            let tally = tally(second * 10);
            log.add(&LoadProgress {
                elapsed: Duration::from_secs(second),
                interval: Duration::from_secs(1),
                tally: &tally,
                total: &tally,
                in_flight: 0,
                is_warming_up: false,
            })
            .expect("memory");
        }
        let text = log.into_inner();
        let mut deserializer = Deserializer::new();
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            let LogEntry::Interval(line) = entry.expect("a line that parses") else { continue };
            let encoded = BASE64_STANDARD.decode(line.encoded_histogram()).expect("base64");
            let times: hdrhistogram::Histogram<u64> =
                deserializer.deserialize(&mut &encoded[..]).expect("a histogram");
            assert_eq!(line.tag().map(|tag| tag.as_str().to_owned()), Some("late".to_owned()));
            found.push((line.start_timestamp().as_secs(), times.max() / 1_000_000));
        }
        assert_eq!(found, [(0, 10), (1, 20)]);
    }
}
