//! Chooses a certificate by the name that a client asks for (SNI, RFC 6066 §3).

use std::sync::Arc;

use rustls::{
    crypto::CryptoProvider,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{ServeError, ServerIdentity};

/// Certificates with their names. The first one is for clients that ask for no name, or for an
/// unknown one: its rejection tells them more than a handshake that fails.
#[derive(Debug)]
pub(super) struct ByName(Vec<Named>);

#[derive(Debug)]
struct Named {
    /// In lower case.
    names: Vec<String>,
    certified: Arc<CertifiedKey>,
}

impl ByName {
    pub(super) fn new(
        identities: &[ServerIdentity],
        provider: &CryptoProvider,
    ) -> Result<Self, ServeError> {
        let named = |identity: &ServerIdentity| {
            let chain = identity.chain().to_vec();
            let certified = CertifiedKey::from_der(chain, identity.private_key(), provider)
                .map_err(ServeError::identity)?;
            let names = identity.dns_names().into_iter().map(|name| name.to_ascii_lowercase());
            Ok(Named { names: names.collect(), certified: Arc::new(certified) })
        };
        identities.iter().map(named).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the places of the certificates for a name: those that contain it, and otherwise those
    /// with a wildcard for its first label (RFC 6125 §6.4.3).
    fn matching(&self, name: &str) -> Vec<usize> {
        let name = name.to_ascii_lowercase();
        let with = |wanted: &str| -> Vec<usize> {
            let has = |(_, one): &(usize, &Named)| one.names.iter().any(|name| name == wanted);
            self.0.iter().enumerate().filter(has).map(|(place, _)| place).collect()
        };
        let exact = with(&name);
        match name.split_once('.') {
            Some((_, domain)) if exact.is_empty() => with(&format!("*.{domain}")),
            _ => exact,
        }
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let matching = hello.server_name().map(|name| self.matching(name)).unwrap_or_default();
        // There may be certificates with different kinds of keys for one name.
        let suits = |place: &&usize| {
            let key = &self.0[**place].certified.key;
            key.choose_scheme(hello.signature_schemes()).is_some()
        };
        let chosen = matching.iter().find(suits).or(matching.first()).copied().unwrap_or(0);
        self.0.get(chosen).map(|named| Arc::clone(&named.certified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_its_own_comes_before_a_wildcard() {
        let of = |names: &[&str]| ServerIdentity::self_signed(names.to_vec()).expect("an identity");
        let identities =
            [of(&["default.example"]), of(&["*.a.example"]), of(&["one.a.example", "a.example"])];
        let provider = rustls::crypto::ring::default_provider();
        let by_name = ByName::new(&identities, &provider).expect("usable");
        for (name, places) in [
            ("default.example", &[0][..]),
            ("one.a.example", &[2]),
            ("ONE.a.Example", &[2]),
            ("two.a.example", &[1]),
            ("a.example", &[2]),
            ("deep.two.a.example", &[]),
            ("other.example", &[]),
            ("localhost", &[]),
        ] {
            assert_eq!(by_name.matching(name), places, "{name}");
        }
    }
}
