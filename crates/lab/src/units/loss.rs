//! What a link loses at random.

use eyas_netem::link::{GilbertElliott, LossConfig};
use serde::{Deserialize, Serialize};

use super::Part;

/// What a path loses at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Of the packets, each for itself. In the two-state model: while things are good.
    #[serde(default)]
    pub probability: Part,
    /// Of the packets while things are bad (Gilbert and Elliott).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_bad: Option<Part>,
    /// That things get bad, at each packet.
    #[serde(default)]
    pub worsens: Part,
    /// That things get good again, at each packet.
    #[serde(default)]
    pub recovers: Part,
    /// Bit errors: of all bits, this part is wrong.
    #[serde(default)]
    pub bit_errors: f64,
}

impl Loss {
    /// Which packets a link loses, its bit errors left out.
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
}
