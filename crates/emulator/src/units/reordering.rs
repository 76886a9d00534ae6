//! Whether packets overtake each other: `"5 % by 10 ms"`, `"jitter"`, `"none"`.

use std::fmt;
use std::str::FromStr;

use eyas_netem::link::ReorderingMode;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{PercentValue, TimeSpan};

/// Whether packets overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReorderSpec(pub ReorderingMode);

/// The text says nothing about an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of \"5 % by 10 ms\", jitter, none")]
pub struct ParseReorderError(String);

impl FromStr for ReorderSpec {
    type Err = ParseReorderError;

    fn from_str(text: &str) -> Result<Self, ParseReorderError> {
        let refused = || ParseReorderError(text.to_owned());
        Ok(Self(match (text.trim(), text.split_once(" by ")) {
            ("none" | "0", _) => ReorderingMode::Never,
            ("jitter", _) => ReorderingMode::ByJitter,
            (_, Some((share, by))) => ReorderingMode::Late {
                probability: share.parse::<PercentValue>().map_err(|_| refused())?.0,
                by: by.parse::<TimeSpan>().map_err(|_| refused())?.0,
            },
            _ => return Err(refused()),
        }))
    }
}

impl fmt::Display for ReorderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ReorderingMode::Never => f.write_str("none"),
            ReorderingMode::ByJitter => f.write_str("jitter"),
            ReorderingMode::Late { probability, by } => {
                write!(f, "{} by {}", PercentValue(probability), TimeSpan(by))
            }
        }
    }
}

as_text!(ReorderSpec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_parsed_and_displayed() {
        for text in ["none", "jitter", "5 % by 10 ms"] {
            assert_eq!(text.parse::<ReorderSpec>().unwrap().to_string(), text);
        }
        for text in ["", "5 %", "by 10 ms", "5 % by ten"] {
            assert!(text.parse::<ReorderSpec>().is_err(), "{text}");
        }
    }
}
