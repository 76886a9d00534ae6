//! The queue before a link.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::quantity::{AmountKind, ByteSize, ParseAmountError, parse};

/// Bytes that a link adds to each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FramingSize(pub ByteSize);

/// The limit of a queue, and its active queue management.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSpec {
    /// First in, first out, limited in packets.
    Packets(usize),
    /// First in, first out, limited in bytes.
    Bytes(usize),
    /// Random early detection (Floyd and Jacobson 1993), limited in packets.
    Red(usize),
    /// Controlled delay (RFC 8289), limited in packets.
    CoDel(usize),
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::Packets(100)
    }
}

impl FromStr for QueueSpec {
    type Err = ParseQueueError;

    fn from_str(text: &str) -> Result<Self, ParseQueueError> {
        let refused = |_: ParseAmountError| ParseQueueError(text.to_owned());
        let (amount, discipline) = match text.trim().rsplit_once(' ') {
            Some((amount, "red")) => (amount, Self::Red as fn(usize) -> Self),
            Some((amount, "codel")) => (amount, Self::CoDel as fn(usize) -> Self),
            _ => (text, Self::Packets as fn(usize) -> Self),
        };
        match parse(amount).map_err(refused)? {
            // Packets, unless it says otherwise, as in tc.
            (count, AmountKind::Packets | AmountKind::Number) if count >= 1.0 => {
                Ok(discipline(count as usize))
            }
            (count, AmountKind::Size) if count >= 1.0 && amount == text => {
                Ok(Self::Bytes(count as usize))
            }
            _ => Err(ParseQueueError(text.to_owned())),
        }
    }
}

/// The text is not a queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a queue, such as \"100 packets\", \"64 KiB\", \"100 packets red\" or \
     \"1000 packets codel\""
)]
pub struct ParseQueueError(String);

impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(1) => f.write_str("1 packet"),
            Self::Packets(count) => write!(f, "{count} packets"),
            Self::Bytes(count) => ByteSize(*count).fmt(f),
            Self::Red(count) => write!(f, "{count} packets red"),
            Self::CoDel(count) => write!(f, "{count} packets codel"),
        }
    }
}

impl Serialize for QueueSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QueueSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_parsed_and_displayed() {
        for text in ["100 packets", "64 KiB", "100 packets red", "1000 packets codel"] {
            assert_eq!(text.parse::<QueueSpec>().unwrap().to_string(), text);
        }
        assert_eq!("100".parse(), Ok(QueueSpec::Packets(100)));
        for text in ["64 KiB codel", "0 packets", "0", "1 s", "red"] {
            assert!(text.parse::<QueueSpec>().is_err(), "{text}");
        }
    }
}
