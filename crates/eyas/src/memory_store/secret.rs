//! The secret of the keyed hashes, which keeps names meaningless outside of this memory.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use rustls::crypto::ring::default_provider;
use sha2::Sha256;

/// The secret of an installation. Networks and trust settings are named by hashes under this key,
/// so that what leaves the machine in a trace or in JSON can neither be linked with the name that
/// another installation has for the same network nor be found by exhaustive search.
///
/// It is stored in the memory file. Memories without a file share one that is generated for the
/// process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstallationSecret([u8; Self::LEN]);

impl InstallationSecret {
    /// Its length in bytes: that of the hash, as RFC 2104 §3 recommends.
    pub(crate) const LEN: usize = 32;

    /// Generates a random secret.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; Self::LEN];
        if default_provider().secure_random.fill(&mut bytes).is_err() {
            // Without a source of randomness TLS does not work either; the keys of the standard
            // library's maps still distinguish this process from others.
            for (number, part) in bytes.chunks_mut(8).enumerate() {
                part.copy_from_slice(&RandomState::new().hash_one(number).to_ne_bytes());
            }
        }
        Self(bytes)
    }

    /// Returns the secret of this process, for memories without a file.
    pub(crate) fn for_process() -> Self {
        static SECRET: OnceLock<InstallationSecret> = OnceLock::new();
        *SECRET.get_or_init(Self::random)
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    #[cfg(feature = "sqlite")]
    pub(super) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns 64 bits of HMAC-SHA-256 (RFC 2104) in hexadecimal: enough to distinguish the few
    /// networks and trust settings of one machine. `purpose` separates names of different kinds.
    pub(crate) fn name(&self, purpose: &str, content: &[u8]) -> String {
        // A key of a whole block, padded as HMAC itself does it.
        let mut key = [0; 64];
        key[..Self::LEN].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&key.into());
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(content);
        let tag = mac.finalize().into_bytes();
        tag.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Does not show the secret.
impl fmt::Debug for InstallationSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstallationSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_under_one_secret_and_differ_under_another() {
        let (secret, other) = (InstallationSecret([1; 32]), InstallationSecret([2; 32]));
        assert_eq!(secret.name("network", b"home"), secret.name("network", b"home"));
        assert_ne!(secret.name("network", b"home"), other.name("network", b"home"));
        assert_ne!(secret.name("network", b"home"), secret.name("trust", b"home"));
        assert_eq!(InstallationSecret::for_process(), InstallationSecret::for_process());
        assert_ne!(InstallationSecret::random(), InstallationSecret::random());
    }

    /// The expected value is from Python's `hmac`.
    #[test]
    fn a_name_is_the_beginning_of_hmac_sha_256() {
        assert_eq!(InstallationSecret([7; 32]).name("network", b"home"), "ec3266b28e4224c9");
    }
}
