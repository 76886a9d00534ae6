//! Amounts with units, as written in plans: `"10 Mbit/s"`, `"50 ms"`, `"64 KiB"`, `"1 %"`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The kind of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
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
const UNITS: [(&str, Kind, f64); 24] = [
    ("Gbit/s", Kind::Rate, 1e9),
    ("Mbit/s", Kind::Rate, 1e6),
    ("kbit/s", Kind::Rate, 1e3),
    ("bit/s", Kind::Rate, 1.0),
    // In the notation of tc.
    ("gbit", Kind::Rate, 1e9),
    ("mbit", Kind::Rate, 1e6),
    ("kbit", Kind::Rate, 1e3),
    ("Gbit", Kind::Rate, 1e9),
    ("Mbit", Kind::Rate, 1e6),
    ("Kbit", Kind::Rate, 1e3),
    ("min", Kind::Time, 60.0),
    ("s", Kind::Time, 1.0),
    ("ms", Kind::Time, 1e-3),
    ("us", Kind::Time, 1e-6),
    ("ns", Kind::Time, 1e-9),
    ("MiB", Kind::Size, 1_048_576.0),
    ("KiB", Kind::Size, 1024.0),
    ("MB", Kind::Size, 1e6),
    ("kB", Kind::Size, 1e3),
    ("bytes", Kind::Size, 1.0),
    ("byte", Kind::Size, 1.0),
    ("packets", Kind::Packets, 1.0),
    ("packet", Kind::Packets, 1.0),
    ("%", Kind::Part, 0.01),
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
pub fn parse(text: &str) -> Result<(f64, Kind), ParseAmountError> {
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
        return Ok((number, Kind::Number));
    }
    let found = UNITS.iter().find(|(name, ..)| *name == unit).ok_or_else(refused)?;
    Ok((number * found.2, found.1))
}

fn parse_as(
    text: &str,
    kind: Kind,
    wanted: &'static str,
    example: &'static str,
) -> Result<f64, ParseAmountError> {
    match parse(text) {
        Ok((amount, found)) if found == kind => Ok(amount),
        _ => Err(ParseAmountError { text: text.to_owned(), wanted, example }),
    }
}

/// Writes an amount in the largest unit that leaves at most three decimals.
fn write(f: &mut fmt::Formatter<'_>, amount: f64, kind: Kind, fallback: &str) -> fmt::Result {
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
pub struct Rate(pub u64);

impl FromStr for Rate {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        parse_as(text, Kind::Rate, "a rate", "10 Mbit/s").map(|amount| Self(amount.round() as u64))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0 as f64, Kind::Rate, "bit/s")
    }
}

as_text!(Rate);

/// A time, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        let seconds = parse_as(text, Kind::Time, "a time", "50 ms")?;
        Ok(Self(Duration::from_nanos((seconds * 1e9).round() as u64)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0.as_secs_f64(), Kind::Time, "s")
    }
}

as_text!(Time);

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        parse_as(text, Kind::Size, "a size", "64 KiB").map(|amount| Self(amount.round() as usize))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0 as f64, Kind::Size, "bytes")
    }
}

as_text!(Size);

/// A fraction of one, written in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part(pub f64);

impl FromStr for Part {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        match parse_as(text, Kind::Part, "a percentage", "1.5 %")? {
            part if part <= 1.0 => Ok(Self(part)),
            _ => Err(ParseAmountError {
                text: text.to_owned(),
                wanted: "between 0 % and 100 %",
                example: "1.5 %",
            }),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", (self.0 * 1e8).round() / 1e6)
    }
}

as_text!(Part);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_parsed_with_their_units() {
        assert_eq!("10 Mbit/s".parse(), Ok(Rate(10_000_000)));
        assert_eq!("2.5Gbit/s".parse(), Ok(Rate(2_500_000_000)));
        assert_eq!("10mbit".parse(), Ok(Rate(10_000_000)));
        assert_eq!("0.9 s".parse(), Ok(Time(Duration::from_millis(900))));
        assert_eq!("64 KiB".parse(), Ok(Size(65_536)));
        assert_eq!("1 %".parse(), Ok(Part(0.01)));
    }

    #[test]
    fn another_unit_is_refused_with_an_example() {
        let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(error("10 ms"), "\"10 ms\" is not a rate, such as \"10 Mbit/s\"");
        assert_eq!(error("fast"), "\"fast\" is not a rate, such as \"10 Mbit/s\"");
        assert!("-1 s".parse::<Time>().is_err());
        assert!("101 %".parse::<Part>().is_err());
    }

    #[test]
    fn written_values_can_be_parsed() {
        for text in ["1 Gbit/s", "10 Mbit/s", "1.5 Mbit/s", "7 bit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["5 min", "19 s", "900 ms", "1.5 us"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!(Size(262_144).to_string(), "256 KiB");
        assert_eq!(Size(1452).to_string(), "1.452 kB");
        assert_eq!(Part(0.015).to_string(), "1.5 %");
        assert_eq!(Time::default().to_string(), "0 s");
        assert_eq!("0 s".parse(), Ok(Time::default()));
    }
}
