//! What a caller wants of encrypted DNS.

use std::str::FromStr;

use thiserror::Error;

use super::way::EncryptionMode;

/// Whether queries to the name servers of the network are encrypted (RFC 9463 §2), which these servers or the system offer by
/// themselves. Servers that the caller names with an encrypted transport have it in any case.
///
/// Parsed from `system`, `auto`, `require` and `off`:
///
/// ```
/// use eyas::EncryptedDnsPolicy;
///
/// assert_eq!("require".parse(), Ok(EncryptedDnsPolicy::Required));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncryptedDnsPolicy {
    /// As the system does: where systemd-resolved manages the name servers, by its `DNSOverTLS=`, and unencrypted
    /// elsewhere. A resolver on this host does for itself what it is configured to do.
    #[default]
    System,
    /// Where the server designates an encrypted resolver that proves to be its own (DDR, RFC 9462), or the system has
    /// the name of one (DNR, RFC 9463). Otherwise queries are unencrypted, and so are those about names that belong to
    /// the network: its search domains and names that are not in the public DNS.
    Auto,
    /// Always, and by a resolver that proves who it is: where there is none, queries fail.
    Required,
    /// Never.
    Off,
}

/// A text is no [`EncryptedDnsPolicy`] (RFC 9463 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected system, auto, require or off")]
pub struct EncryptedDnsPolicyError;

impl EncryptedDnsPolicy {
    /// Returns the name used in flags and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Auto => "auto",
            Self::Required => "require",
            Self::Off => "off",
        }
    }

    /// Returns the mode, unless the system has it.
    pub(super) const fn mode(self) -> Option<EncryptionMode> {
        match self {
            Self::System => None,
            Self::Auto => Some(EncryptionMode::Auto),
            Self::Required => Some(EncryptionMode::Required),
            Self::Off => Some(EncryptionMode::Off),
        }
    }
}

impl FromStr for EncryptedDnsPolicy {
    type Err = EncryptedDnsPolicyError;

    fn from_str(text: &str) -> Result<Self, EncryptedDnsPolicyError> {
        let all = [Self::System, Self::Auto, Self::Required, Self::Off];
        all.into_iter().find(|policy| policy.name() == text).ok_or(EncryptedDnsPolicyError)
    }
}
