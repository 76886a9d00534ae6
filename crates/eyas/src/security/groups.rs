//! Which key exchanges are offered or accepted.

use rustls::crypto::CryptoProvider;
use rustls::{NamedGroup, SupportedProtocolVersion};

use super::crypto_provider;
use crate::Error;

/// The groups that a client offers, or a server accepts, most preferred first; all if empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyExchangeGroups(Vec<NamedGroup>);

impl KeyExchangeGroups {
    pub(crate) const fn new(groups: Vec<NamedGroup>) -> Self {
        Self(groups)
    }

    /// Returns the one that holds against quantum computers, alone.
    pub(crate) fn post_quantum() -> Self {
        Self(vec![NamedGroup::X25519MLKEM768])
    }

    pub(crate) fn as_slice(&self) -> &[NamedGroup] {
        &self.0
    }

    /// Returns the same without X25519MLKEM768, for a ClientHello of one packet; `None` if it has none anyway, or if
    /// nothing remains.
    pub(crate) fn without_hybrid(&self) -> Option<Self> {
        let mut groups = match &self.0[..] {
            [] => crypto_provider().kx_groups.iter().map(|group| group.name()).collect(),
            groups => groups.to_vec(),
        };
        let before = groups.len();
        groups.retain(|group| *group != NamedGroup::X25519MLKEM768);
        (!groups.is_empty() && groups.len() < before).then_some(Self(groups))
    }

    /// Returns the versions of TLS that have such groups.
    pub(crate) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        static TLS13_ALONE: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
        let has_classical = self.0.iter().any(|group| *group != NamedGroup::X25519MLKEM768);
        if self.0.is_empty() || has_classical { rustls::DEFAULT_VERSIONS } else { &TLS13_ALONE }
    }

    /// Returns the cryptography of [`crypto_provider`], with these groups alone.
    ///
    /// # Errors
    /// If a group is none of those.
    pub(crate) fn provider(&self) -> Result<CryptoProvider, Error> {
        let mut provider = crypto_provider();
        if self.0.is_empty() {
            return Ok(provider);
        }
        let known = |wanted: &NamedGroup| {
            provider.kx_groups.iter().copied().find(|group| group.name() == *wanted).ok_or_else(
                || {
                    let names: Vec<_> = provider
                        .kx_groups
                        .iter()
                        .map(|group| format!("{:?}", group.name()))
                        .collect();
                    let names = names.join(", ");
                    Error::Security(format!(
                        "there is no key exchange {wanted:?} here, but {names}"
                    ))
                },
            )
        };
        provider.kx_groups = self.0.iter().map(known).collect::<Result<_, _>>()?;
        Ok(provider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_that_were_chosen() {
        use NamedGroup::{X25519, X25519MLKEM768, secp256r1, secp521r1};
        let offered = |groups: &[NamedGroup]| {
            let provider = KeyExchangeGroups::new(groups.to_vec()).provider();
            provider.map(|it| it.kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>())
        };
        assert_eq!(offered(&[]).unwrap()[..2], [X25519MLKEM768, X25519]);
        assert_eq!(offered(&[secp256r1, X25519]).unwrap(), [secp256r1, X25519]);
        let error = offered(&[X25519, secp521r1]).unwrap_err().to_string();
        assert!(
            error.contains("no key exchange secp521r1 here, but X25519MLKEM768, X25519"),
            "{error}"
        );
    }

    #[test]
    fn a_short_hello_has_what_remains_without_the_hybrid() {
        use NamedGroup::{X25519, X25519MLKEM768, secp256r1};
        let short = |groups: &[NamedGroup]| {
            let short = KeyExchangeGroups::new(groups.to_vec()).without_hybrid();
            short.map(|groups| groups.as_slice().to_vec())
        };
        assert_eq!(short(&[]).unwrap()[0], X25519);
        assert_eq!(short(&[X25519MLKEM768, secp256r1]), Some(vec![secp256r1]));
        assert_eq!(short(&[X25519MLKEM768]), None);
        assert_eq!(short(&[X25519]), None);
    }
}
