//! The jitter of a link, in the order of `tc`: `"10 ms 25 % normal"`.

use std::fmt;
use std::str::FromStr;

use eyas_netem::link::JitterDistribution;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{PercentValue, TimeSpan};

/// The names of the distributions, as those of `tc`. Without a name, jitter is only added.
const NAMES: [(&str, JitterDistribution); 4] = [
    ("uniform", JitterDistribution::Uniform),
    ("normal", JitterDistribution::Normal),
    ("pareto", JitterDistribution::Pareto),
    ("paretonormal", JitterDistribution::ParetoNormal),
];

/// The random part of the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JitterSpec {
    /// Its amount.
    pub amount: TimeSpan,
    /// The correlation of consecutive packets.
    pub correlation: PercentValue,
    /// How it is distributed.
    pub distribution: JitterDistribution,
}

/// The text is not a jitter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a jitter, such as \"10 ms\", \"10 ms normal\" or \"10 ms 25 % normal\"; \
     the distributions are uniform, normal, pareto and paretonormal"
)]
pub struct ParseJitterError(String);

impl FromStr for JitterSpec {
    type Err = ParseJitterError;

    fn from_str(text: &str) -> Result<Self, ParseJitterError> {
        let refused = || ParseJitterError(text.to_owned());
        if matches!(text.trim(), "none" | "0") {
            return Ok(Self::default());
        }
        let (mut rest, mut distribution) = (text.trim(), JitterDistribution::Above);
        if let Some((before, name)) = rest.rsplit_once(' ')
            && let Some((_, known)) = NAMES.iter().find(|(known, _)| *known == name)
        {
            (rest, distribution) = (before.trim_end(), *known);
        }
        let mut correlation = PercentValue::default();
        if let Some(number) = rest.strip_suffix('%') {
            let (before, number) = number.trim_end().rsplit_once(' ').ok_or_else(refused)?;
            correlation = format!("{number} %").parse().map_err(|_| refused())?;
            rest = before;
        }
        let amount = rest.parse().map_err(|_| refused())?;
        Ok(Self { amount, correlation, distribution })
    }
}

impl fmt::Display for JitterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.amount)?;
        if self.correlation.0 > 0.0 {
            write!(f, " {}", self.correlation)?;
        }
        match NAMES.iter().find(|(_, known)| *known == self.distribution) {
            Some((name, _)) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}

as_text!(JitterSpec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitters_are_parsed_and_displayed() {
        for text in ["0 s", "10 ms", "10 ms 25 %", "10 ms normal", "1.5 ms 0.5 % paretonormal"] {
            assert_eq!(text.parse::<JitterSpec>().unwrap().to_string(), text);
        }
        let compact: JitterSpec = "3ms 25% pareto".parse().unwrap();
        assert_eq!(compact.to_string(), "3 ms 25 % pareto");
        assert_eq!("none".parse(), Ok(JitterSpec::default()));
    }

    #[test]
    fn a_mistake_is_shown_with_what_is_possible() {
        for text in ["", "10", "10 ms gamma", "25 %", "10 ms 125 %", "normal", "10 ms -1 %"] {
            let error = text.parse::<JitterSpec>().unwrap_err().to_string();
            assert!(error.contains("uniform, normal, pareto and paretonormal"), "{error}");
        }
    }
}
