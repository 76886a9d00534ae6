//! What a caller wants of ECH.

use std::str::FromStr;

use thiserror::Error;

use super::{EchConfigError, EchConfigList, EchPolicy};

/// How Encrypted ClientHello is used: by a policy, or with the configurations of the caller. Parsed from `auto`, `off`,
/// `require` or `ecl:BASE64`, and from curl's `true`, `false` and `hard`.
///
/// ```
/// use eyas::{EchPolicy, EchChoice};
///
/// assert_eq!("require".parse(), Ok(EchChoice::Policy(EchPolicy::Required)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EchChoice {
    /// A policy.
    Policy(EchPolicy),
    /// Configurations for every server, whatever DNS says.
    Configs(EchConfigList),
}

/// Why a text is no [`EchChoice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EchChoiceError {
    /// It is none of the words.
    #[error("expected auto, off, require or ecl:BASE64")]
    Form,
    /// What follows `ecl:` is no list of configurations.
    #[error(transparent)]
    Configs(#[from] EchConfigError),
}

impl From<EchPolicy> for EchChoice {
    fn from(policy: EchPolicy) -> Self {
        Self::Policy(policy)
    }
}

impl From<EchConfigList> for EchChoice {
    fn from(configs: EchConfigList) -> Self {
        Self::Configs(configs)
    }
}

impl FromStr for EchChoice {
    type Err = EchChoiceError;

    fn from_str(text: &str) -> Result<Self, EchChoiceError> {
        Ok(match text {
            "auto" | "true" => EchPolicy::Auto.into(),
            "off" | "false" => EchPolicy::Off.into(),
            "require" | "hard" => EchPolicy::Required.into(),
            text => {
                let configs = text.strip_prefix("ecl:").ok_or(EchChoiceError::Form)?;
                configs.parse::<EchConfigList>()?.into()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_parsed_as_here_and_as_in_curl() {
        for (text, policy) in [
            ("auto", EchPolicy::Auto),
            ("true", EchPolicy::Auto),
            ("off", EchPolicy::Off),
            ("false", EchPolicy::Off),
            ("require", EchPolicy::Required),
            ("hard", EchPolicy::Required),
        ] {
            assert_eq!(text.parse(), Ok(EchChoice::Policy(policy)), "{text}");
        }
        let given = "ecl:AAb+CgACAQI=".parse();
        assert!(matches!(given, Ok(EchChoice::Configs(_))), "{given:?}");
        for (text, why) in [
            ("", EchChoiceError::Form),
            ("on", EchChoiceError::Form),
            ("ecl:", EchConfigError::Malformed.into()),
            ("ecl:AAb+CgAC", EchConfigError::Malformed.into()),
            ("ecl:!", EchConfigError::Base64.into()),
        ] {
            assert_eq!(text.parse::<EchChoice>(), Err(why), "{text}");
        }
    }
}
