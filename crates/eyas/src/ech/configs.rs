//! The ECH configurations of a server (RFC 9849 §4).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::Error;
use rustls::client::EchConfig;
use rustls::internal::msgs::codec::{Codec as _, Reader};
use rustls::internal::msgs::handshake::EchConfigPayload;
use rustls_pki_types::EchConfigListBytes;
use thiserror::Error;

use super::hpke::HPKE_SUITES;

/// The largest list, in bytes: as long as a record can be.
const MAX_LENGTH: usize = u16::MAX as usize;

/// An `ECHConfigList` (RFC 9849 §4): the keys with which a server decrypts ClientHellos. Parsed from and displayed in
/// base64, as in zone files.
///
/// ```
/// use eyas::EchConfigList;
///
/// let text = "AEX+DQBBpAAgACB3mSuJHXHCBGGU5dj0uBuwSMXQFxHsAR6FULgmmEv8CgAEAAEAAQASY2xvdWRmbGFyZS1lY2guY29tAAA=";
/// let list: EchConfigList = text.parse()?;
/// assert_eq!(list.public_names(), ["cloudflare-ech.com"]);
/// assert_eq!(list.to_string(), text);
/// # Ok::<(), eyas::EchConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EchConfigList(Vec<u8>);

/// Why bytes are no [`EchConfigList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EchConfigError {
    /// The text is not base64.
    #[error("an ECH configuration is given in base64, as in an HTTPS record")]
    Base64,
    /// The bytes are no list of configurations.
    #[error("this is no list of ECH configurations (RFC 9849 §4)")]
    Malformed,
}

impl EchConfigList {
    /// Returns the list in these bytes.
    ///
    /// # Errors
    /// They are no list of configurations. One whose configurations are all of unknown versions is no error.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, EchConfigError> {
        let bytes = bytes.into();
        match parsed(&bytes) {
            Some(configs) if !configs.is_empty() => Ok(Self(bytes)),
            _ => Err(EchConfigError::Malformed),
        }
    }

    /// Returns the list as it is in a record.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the names that are sent in the clear instead of the server's, one for each configuration of a known
    /// version.
    pub fn public_names(&self) -> Vec<String> {
        let configs = parsed(&self.0).unwrap_or_default();
        let names = configs.iter().filter_map(|config| match config {
            EchConfigPayload::V18(contents) => Some(contents.public_name.as_ref().to_owned()),
            EchConfigPayload::Unknown { .. } => None,
        });
        names.collect()
    }

    /// Returns the list that a server sent for another attempt; `None` if that is empty.
    pub(super) fn from_payloads(configs: &[EchConfigPayload]) -> Option<Self> {
        let mut payload = Vec::new();
        configs.iter().for_each(|config| config.encode(&mut payload));
        let length = u16::try_from(payload.len()).ok().filter(|length| *length > 0)?;
        Some(Self([&length.to_be_bytes()[..], &payload].concat()))
    }

    /// Returns the first configuration that can be used here (RFC 9849 §6.1), if there is one.
    pub(super) fn usable(&self) -> Option<EchConfig> {
        EchConfig::new(EchConfigListBytes::from(&self.0[..]), &HPKE_SUITES).ok()
    }
}

fn parsed(bytes: &[u8]) -> Option<Vec<EchConfigPayload>> {
    let mut reader = Reader::init(bytes);
    let configs = Vec::<EchConfigPayload>::read(&mut reader).ok();
    configs.filter(|_| bytes.len() <= MAX_LENGTH && !reader.any_left())
}

impl FromStr for EchConfigList {
    type Err = EchConfigError;

    fn from_str(text: &str) -> Result<Self, EchConfigError> {
        let bytes = STANDARD.decode(text).map_err(|_| EchConfigError::Base64)?;
        Self::from_bytes(bytes)
    }
}

impl fmt::Display for EchConfigList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

impl fmt::Debug for EchConfigList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EchConfigList").field(&self.to_string()).finish()
    }
}

/// Returns the configurations that a server offers for another attempt, if this is the error of its rejection.
pub(super) fn rejection(error: &Error) -> Option<Option<EchConfigList>> {
    match error {
        Error::PeerIncompatible(rustls::PeerIncompatible::ServerRejectedEncryptedClientHello(
            configs,
        )) => Some(configs.as_deref().and_then(EchConfigList::from_payloads)),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A list as records have them.
    pub(crate) const PUBLISHED: &str = "AEX+DQBBpAAgACB3mSuJHXHCBGGU5dj0uBuwSMXQFxHsAR6FULgmmEv8CgAEAAEAAQASY2xvdWRmbGFyZS1lY2guY29tAAA=";

    /// A list with one configuration, of an early draft.
    pub(crate) const UNKNOWN_VERSION: [u8; 8] = [0, 6, 0xfe, 0x0a, 0, 2, 1, 2];

    #[test]
    fn a_published_list_is_usable() {
        let list: EchConfigList = PUBLISHED.parse().expect("a list");
        assert!(list.usable().is_some());
        let payloads = parsed(list.as_bytes()).expect("configurations");
        assert_eq!(EchConfigList::from_payloads(&payloads), Some(list));
        assert_eq!(EchConfigList::from_payloads(&[]), None);
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        let published = STANDARD.decode(PUBLISHED).expect("base64");
        for length in 0..published.len() {
            let cut = EchConfigList::from_bytes(&published[..length]);
            assert_eq!(cut, Err(EchConfigError::Malformed), "{length}");
        }
        let longer = [&published[..], &[0]].concat();
        assert_eq!(EchConfigList::from_bytes(longer), Err(EchConfigError::Malformed));
        assert_eq!(EchConfigList::from_bytes([0, 0]), Err(EchConfigError::Malformed));
        assert_eq!("no base64!".parse::<EchConfigList>(), Err(EchConfigError::Base64));
    }

    #[test]
    fn unknown_versions_and_suites_are_not_usable() {
        let old = EchConfigList::from_bytes(UNKNOWN_VERSION).expect("a list");
        assert!(old.usable().is_none() && old.public_names().is_empty());
        // A key of P-256.
        let mut other = STANDARD.decode(PUBLISHED).expect("base64");
        other[8] = 0x10;
        assert!(EchConfigList::from_bytes(other).expect("a list").usable().is_none());
    }
}
