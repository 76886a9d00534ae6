//! What a program reports about messages that it has transferred over SCTP.

use serde_json::Value;

/// The report of a program about its run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TransferReport {
    /// The number of messages transferred, or of associations set up.
    pub(crate) messages: u64,
    /// The bytes of messages transferred.
    pub(crate) bytes: u64,
    /// CPU time of both ends, in seconds.
    pub(crate) cpu: f64,
    /// Seconds from the first to the last message at the receiver.
    pub(crate) wall: f64,
    /// Resident memory for each idle association, both ends, in bytes.
    pub(crate) memory: f64,
}

impl TransferReport {
    /// Returns the CPU seconds per gigabyte of messages.
    pub(crate) fn cost(&self) -> f64 {
        self.cpu * 1e9 / self.bytes as f64
    }

    /// Returns the rate of messages in Mbit/s.
    pub(crate) fn speed(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.wall / 1e6
    }

    /// Returns the messages, or associations, per second of CPU time.
    pub(crate) fn rate(&self) -> f64 {
        self.messages as f64 / self.cpu
    }

    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        let number = |name: &str| {
            let number = value[name].as_f64().filter(|number| number.is_finite());
            number.ok_or_else(|| format!("no {name} in {line}"))
        };
        Ok(Self {
            messages: number("messages")? as u64,
            bytes: number("bytes")? as u64,
            cpu: number("cpu")?,
            wall: number("wall")?,
            memory: number("memory")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_parsed() {
        let line = r#"{"messages": 10, "bytes": 1000000, "cpu": 0.5, "wall": 2, "memory": 0}"#;
        let report = TransferReport::parse(line).unwrap();
        assert_eq!((report.messages, report.cost(), report.speed()), (10, 500.0, 4.0));
        assert_eq!(report.rate(), 20.0);
        assert!(TransferReport::parse("").is_err());
        assert!(TransferReport::parse(r#"{"messages": 10}"#).unwrap_err().contains("bytes"));
    }
}
