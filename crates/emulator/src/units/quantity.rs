//! Amounts with units, as written in plans: `"10 Mbit/s"`, `"50 ms"`, `"64 KiB"`, `"1 %"`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The kind of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountKind {
    /// Bits per second.
    Rate,
    /// Seconds.
    Time,
    /// Bytes.
    Size,
    /// Packets.
    Packets,
    /// A fraction of one.
    Part,
    /// A plain number.
    Number,
}

impl AmountKind {
    /// Returns the unit that axes, tables and expressions use, and its size in base units.
    #[must_use]
    pub const fn display_unit(self) -> (&'static str, f64) {
        match self {
            Self::Rate => ("Mbit/s", 1e6),
            Self::Time => ("ms", 1e-3),
            Self::Size => ("KiB", 1024.0),
            Self::Packets => ("packets", 1.0),
            Self::Part => ("%", 0.01),
            Self::Number => ("", 1.0),
        }
    }
}

/// Every supported unit: name, kind, and size in base units. An amount is written in the first one
/// of its kind that divides it.
const UNITS: [(&str, AmountKind, f64); 24] = [
    ("Gbit/s", AmountKind::Rate, 1e9),
    ("Mbit/s", AmountKind::Rate, 1e6),
    ("kbit/s", AmountKind::Rate, 1e3),
    ("bit/s", AmountKind::Rate, 1.0),
    // In the notation of tc.
    ("gbit", AmountKind::Rate, 1e9),
    ("mbit", AmountKind::Rate, 1e6),
    ("kbit", AmountKind::Rate, 1e3),
    ("Gbit", AmountKind::Rate, 1e9),
    ("Mbit", AmountKind::Rate, 1e6),
    ("Kbit", AmountKind::Rate, 1e3),
    ("min", AmountKind::Time, 60.0),
    ("s", AmountKind::Time, 1.0),
    ("ms", AmountKind::Time, 1e-3),
    ("us", AmountKind::Time, 1e-6),
    ("ns", AmountKind::Time, 1e-9),
    ("MiB", AmountKind::Size, 1_048_576.0),
    ("KiB", AmountKind::Size, 1024.0),
    ("MB", AmountKind::Size, 1e6),
    ("kB", AmountKind::Size, 1e3),
    ("bytes", AmountKind::Size, 1.0),
    ("byte", AmountKind::Size, 1.0),
    ("packets", AmountKind::Packets, 1.0),
    ("packet", AmountKind::Packets, 1.0),
    ("%", AmountKind::Part, 0.01),
];

/// The text is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {wanted}, such as {example:?}")]
pub struct ParseAmountError {
    text: String,
    wanted: &'static str,
    example: &'static str,
}

/// Parses an amount into base units and its kind.
///
/// # Errors
/// If there is no number, or the unit is unknown.
pub fn parse(text: &str) -> Result<(f64, AmountKind), ParseAmountError> {
    let refused = || ParseAmountError {
        text: text.to_owned(),
        wanted: "a number with a unit",
        example: "64 KiB",
    };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let number: f64 = trimmed[..split].parse().map_err(|_| refused())?;
    let unit = trimmed[split..].trim();
    if unit.is_empty() {
        return Ok((number, AmountKind::Number));
    }
    let found = UNITS.iter().find(|(name, ..)| *name == unit).ok_or_else(refused)?;
    Ok((number * found.2, found.1))
}

fn parse_as(
    text: &str,
    kind: AmountKind,
    wanted: &'static str,
    example: &'static str,
) -> Result<f64, ParseAmountError> {
    match parse(text) {
        Ok((amount, found)) if found == kind => Ok(amount),
        _ => Err(ParseAmountError { text: text.to_owned(), wanted, example }),
    }
}

/// Writes an amount in the largest unit that leaves at most three decimals.
fn write(f: &mut fmt::Formatter<'_>, amount: f64, kind: AmountKind, fallback: &str) -> fmt::Result {
    for (name, _, factor) in UNITS.iter().filter(|(_, of, _)| *of == kind) {
        let count = amount / factor;
        let thousandths = count * 1000.0;
        if count >= 1.0 && (thousandths - thousandths.round()).abs() < 1e-6 {
            return write!(f, "{} {name}", (thousandths.round()) / 1000.0);
        }
    }
    write!(f, "{amount} {fallback}")
}

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitRate(pub u64);

impl FromStr for BitRate {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        parse_as(text, AmountKind::Rate, "a rate", "10 Mbit/s")
            .map(|amount| Self(amount.round() as u64))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0 as f64, AmountKind::Rate, "bit/s")
    }
}

as_text!(BitRate);

/// A time, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(pub Duration);

impl FromStr for TimeSpan {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        let seconds = parse_as(text, AmountKind::Time, "a time", "50 ms")?;
        Ok(Self(Duration::from_nanos((seconds * 1e9).round() as u64)))
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0.as_secs_f64(), AmountKind::Time, "s")
    }
}

as_text!(TimeSpan);

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteSize(pub usize);

impl FromStr for ByteSize {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        parse_as(text, AmountKind::Size, "a size", "64 KiB")
            .map(|amount| Self(amount.round() as usize))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0 as f64, AmountKind::Size, "bytes")
    }
}

as_text!(ByteSize);

/// A fraction of one, written in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PercentValue(pub f64);

impl FromStr for PercentValue {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        match parse_as(text, AmountKind::Part, "a percentage", "1.5 %")? {
            part if part <= 1.0 => Ok(Self(part)),
            _ => Err(ParseAmountError {
                text: text.to_owned(),
                wanted: "between 0 % and 100 %",
                example: "1.5 %",
            }),
        }
    }
}

impl fmt::Display for PercentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", (self.0 * 1e8).round() / 1e6)
    }
}

as_text!(PercentValue);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_parsed_with_their_units() {
        assert_eq!("10 Mbit/s".parse(), Ok(BitRate(10_000_000)));
        assert_eq!("2.5Gbit/s".parse(), Ok(BitRate(2_500_000_000)));
        assert_eq!("10mbit".parse(), Ok(BitRate(10_000_000)));
        assert_eq!("0.9 s".parse(), Ok(TimeSpan(Duration::from_millis(900))));
        assert_eq!("64 KiB".parse(), Ok(ByteSize(65_536)));
        assert_eq!("1 %".parse(), Ok(PercentValue(0.01)));
    }

    #[test]
    fn another_unit_is_refused_with_an_example() {
        let error = |text: &str| text.parse::<BitRate>().unwrap_err().to_string();
        assert_eq!(error("10 ms"), "\"10 ms\" is not a rate, such as \"10 Mbit/s\"");
        assert_eq!(error("fast"), "\"fast\" is not a rate, such as \"10 Mbit/s\"");
        assert!("-1 s".parse::<TimeSpan>().is_err());
        assert!("101 %".parse::<PercentValue>().is_err());
    }

    #[test]
    fn written_values_can_be_parsed() {
        for text in ["1 Gbit/s", "10 Mbit/s", "1.5 Mbit/s", "7 bit/s"] {
            assert_eq!(text.parse::<BitRate>().unwrap().to_string(), text);
        }
        for text in ["5 min", "19 s", "900 ms", "1.5 us"] {
            assert_eq!(text.parse::<TimeSpan>().unwrap().to_string(), text);
        }
        assert_eq!(ByteSize(262_144).to_string(), "256 KiB");
        assert_eq!(ByteSize(1452).to_string(), "1.452 kB");
        assert_eq!(PercentValue(0.015).to_string(), "1.5 %");
        assert_eq!(TimeSpan::default().to_string(), "0 s");
        assert_eq!("0 s".parse(), Ok(TimeSpan::default()));
    }
}
