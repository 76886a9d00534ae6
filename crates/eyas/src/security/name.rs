//! Names security parameters in the memory.

use rustls_pki_types::CertificateDer;

use super::{SecurityParameters, TrustSource};
use crate::EchPolicy;
use crate::memory_store::InstallationSecret;

impl SecurityParameters {
    /// Returns a short name, which is the same for parameters that accept the same peers, and that
    /// the same peers accept: a word if that is sufficient, otherwise a word with a hash.
    pub(crate) fn name(&self, secret: &InstallationSecret) -> String {
        let word = match &self.trust {
            TrustSource::Platform => "platform",
            TrustSource::Roots(_) => "roots",
            TrustSource::Keys(_) => "keys",
            TrustSource::AnyCertificate => "anyone",
        };
        let encoded = self.encoded();
        match encoded.is_empty() {
            true => word.to_owned(),
            false => format!("{word}-{}", secret.name("trust", &encoded)),
        }
    }

    /// Returns everything except the word, unambiguously; empty if there is nothing else.
    fn encoded(&self) -> Vec<u8> {
        let mut encoded = Vec::new();
        let mut append = |kind: &str, parts: &[&[u8]]| {
            for part in parts {
                encoded.extend_from_slice(kind.as_bytes());
                encoded.extend_from_slice(&(part.len() as u64).to_be_bytes());
                encoded.extend_from_slice(part);
            }
        };
        let none = Vec::new();
        let (roots, added) = match &self.trust {
            TrustSource::Platform => (&none, &self.added_roots),
            TrustSource::Roots(roots) => (roots, &self.added_roots),
            TrustSource::Keys(_) | TrustSource::AnyCertificate => (&none, &none),
        };
        append("root", &sorted(roots.iter().chain(added)));
        if let TrustSource::Keys(keys) = &self.trust {
            let mut keys: Vec<&[u8]> = keys.iter().map(|key| &key.as_bytes()[..]).collect();
            keys.sort_unstable();
            keys.dedup();
            append("key", &keys);
        }
        if let Some(client) = &self.client {
            append("own", &client.chain.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        }
        for version in &self.versions {
            append("version", &[&u16::from(version.version).to_be_bytes()]);
        }
        for suite in &self.suites {
            append("suite", &[&u16::from(suite.suite()).to_be_bytes()]);
        }
        for group in self.groups.as_slice() {
            append("group", &[&u16::from(*group).to_be_bytes()]);
        }
        // Configurations of the record are part of the candidate.
        if self.ech.policy == EchPolicy::Off {
            append("ech", &[b"off"]);
        }
        if let Some(given) = &self.ech.given {
            append("ech", &[given.as_bytes()]);
        }
        encoded
    }
}

/// Sorts the roots, because the same roots in another order are equivalent.
fn sorted<'a>(roots: impl Iterator<Item = &'a CertificateDer<'static>>) -> Vec<&'a [u8]> {
    let mut roots: Vec<&[u8]> = roots.map(AsRef::as_ref).collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

#[cfg(test)]
mod tests {
    use rustls::NamedGroup;

    use super::*;

    fn root(byte: u8) -> CertificateDer<'static> {
        CertificateDer::from(vec![byte; 4])
    }

    fn name(parameters: &SecurityParameters) -> String {
        parameters.name(&InstallationSecret::for_process())
    }

    #[test]
    fn settings_that_the_peer_cannot_see_do_not_change_the_name() {
        let platform = SecurityParameters::platform();
        assert_eq!(name(&platform), "platform");
        assert_eq!(name(&platform.clone().without_resumption().with_key_log()), "platform");
        assert_eq!(name(&platform.clone().accept_any_certificate()), "anyone");
        let some = platform.clone().with_roots([root(1), root(2)]);
        let same = platform.with_roots([root(2), root(1), root(1)]);
        assert_eq!(name(&some), name(&same));
    }

    #[test]
    fn settings_that_the_peer_may_refuse_change_the_name() {
        let platform = SecurityParameters::platform();
        let key = rcgen::KeyPair::generate().expect("a key");
        let key = rustls_pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let names = [
            name(&platform),
            name(&platform.clone().with_added_root(root(1))),
            name(&platform.clone().with_roots([root(1)])),
            name(&platform.clone().with_roots([root(1), root(2)])),
            name(&platform.clone().with_client_certificate(vec![root(1)], key)),
            name(&platform.clone().with_tls_versions([&rustls::version::TLS12])),
            name(&platform.clone().with_ech(EchPolicy::Off)),
            name(&platform.clone().require_post_quantum()),
            name(&platform.clone().with_key_exchange_groups([NamedGroup::X25519])),
            name(&platform.accept_any_certificate()),
        ];
        for (number, name) in names.iter().enumerate() {
            assert!(!names[..number].contains(name), "{names:?}");
        }
    }

    #[test]
    fn a_name_depends_on_the_secret() {
        let roots = SecurityParameters::platform().with_roots([root(1)]);
        assert_ne!(
            roots.name(&InstallationSecret::random()),
            roots.name(&InstallationSecret::random())
        );
    }
}
