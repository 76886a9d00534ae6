//! The random losses of a link.

use eyas_netem::link::{GilbertElliott, LossConfig};
use serde::{Deserialize, Serialize};

use super::Part;

/// The random losses of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The loss rate, independent for each packet. In the two-state model: the rate in the good
    /// state.
    #[serde(default)]
    pub probability: Part,
    /// The loss rate in the bad state (Gilbert and Elliott).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_bad: Option<Part>,
    /// The probability per packet of changing to the bad state.
    #[serde(default)]
    pub worsens: Part,
    /// The probability per packet of changing back to the good state.
    #[serde(default)]
    pub recovers: Part,
    /// The bit error rate.
    #[serde(default)]
    pub bit_errors: f64,
}

impl Loss {
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
}
