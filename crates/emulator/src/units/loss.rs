//! The random losses of a link.

use std::fmt;
use std::str::FromStr;

use eyas_netem::link::{GilbertElliott, LossConfig};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{ParseAmountError, PercentValue};

/// The random losses of a path: a share as text, or a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct LossSpec {
    /// The loss rate, independent for each packet. In the two-state model: the rate in the good
    /// state.
    #[serde(default)]
    pub probability: PercentValue,
    /// The loss rate in the bad state (Gilbert and Elliott).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_bad: Option<PercentValue>,
    /// The probability per packet of changing to the bad state.
    #[serde(default)]
    pub worsens: PercentValue,
    /// The probability per packet of changing back to the good state.
    #[serde(default)]
    pub recovers: PercentValue,
    /// The bit error rate.
    #[serde(default)]
    pub bit_errors: f64,
}

impl LossSpec {
    /// Returns the loss model of a link, without bit errors.
    #[must_use]
    pub fn model(&self) -> LossConfig {
        match self.while_bad {
            Some(while_bad) => LossConfig::GilbertElliott(GilbertElliott {
                to_bad: self.worsens.0,
                to_good: self.recovers.0,
                loss_good: self.probability.0,
                loss_bad: while_bad.0,
            }),
            None if self.probability.0 > 0.0 => LossConfig::Probability(self.probability.0),
            None => LossConfig::None,
        }
    }

    /// Returns the fraction of packets of this size, in bytes, that is lost on average.
    #[must_use]
    pub fn average(&self, size: usize) -> f64 {
        let (worsens, recovers) = (self.worsens.0, self.recovers.0);
        let bad = if worsens > 0.0 { worsens / (worsens + recovers) } else { 0.0 };
        let while_bad = self.while_bad.map_or(self.probability.0, |part| part.0);
        let drawn = self.probability.0 * (1.0 - bad) + while_bad * bad;
        let whole = (1.0 - self.bit_errors).powi(size as i32 * 8);
        1.0 - (1.0 - drawn) * whole
    }
}

impl FromStr for LossSpec {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        let probability = match text {
            "none" | "0" => PercentValue::default(),
            _ => text.parse()?,
        };
        Ok(Self { probability, ..Self::default() })
    }
}

impl Serialize for LossSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for LossSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LossVisitor;

        impl<'de> Visitor<'de> for LossVisitor {
            type Value = LossSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as \"1 %\", or a table")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<LossSpec, E> {
                text.parse().map_err(de::Error::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LossSpec, A::Error> {
                LossSpec::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_any(LossVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_a_share_or_a_table() {
        let loss = |text: &str| toml::from_str::<toml::Table>(text).unwrap()["loss"].clone();
        let share: LossSpec = loss("loss = '1 %'").try_into().unwrap();
        let table: LossSpec = loss("loss = { probability = '1 %' }").try_into().unwrap();
        assert_eq!(share, table);
        let error = loss("loss = { chance = '1 %' }").try_into::<LossSpec>().unwrap_err();
        assert!(error.to_string().contains("unknown field `chance`"), "{error}");
        assert!(loss("loss = 'often'").try_into::<LossSpec>().is_err());
    }
}
