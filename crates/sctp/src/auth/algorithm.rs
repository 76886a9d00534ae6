//! HMAC with SHA-1 and SHA-256.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-3.3>

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// The longest HMAC, in bytes.
pub(super) const MAX_HMAC: usize = 32;

/// An HMAC algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HmacAlgorithm {
    /// SHA-1, which every implementation supports.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl HmacAlgorithm {
    /// The supported algorithms, most preferred first.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha1];

    /// Returns the algorithm with this identifier, if it is supported.
    #[must_use]
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            1 => Some(Self::Sha1),
            3 => Some(Self::Sha256),
            _ => None,
        }
    }

    /// Returns the identifier on the wire.
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    /// Returns the length of an HMAC in bytes.
    #[must_use]
    pub const fn hmac_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// Writes the HMAC of the concatenated `parts` to `hmac`, truncated to its length.
    pub(super) fn compute(self, key: &HmacKey, parts: &[&[u8]], hmac: &mut [u8]) {
        match self {
            Self::Sha1 => copy(&updated(&key.sha1, parts).finalize().into_bytes(), hmac),
            Self::Sha256 => copy(&updated(&key.sha256, parts).finalize().into_bytes(), hmac),
        }
    }

    /// Returns whether `hmac` is the HMAC of `parts`, in constant time.
    pub(super) fn verify(self, key: &HmacKey, parts: &[&[u8]], hmac: &[u8]) -> bool {
        match self {
            Self::Sha1 => updated(&key.sha1, parts).verify_slice(hmac).is_ok(),
            Self::Sha256 => updated(&key.sha256, parts).verify_slice(hmac).is_ok(),
        }
    }
}

/// A key with precomputed HMAC state, so that no work is repeated per packet.
#[derive(Clone)]
pub(super) struct HmacKey {
    sha1: Hmac<Sha1>,
    sha256: Hmac<Sha256>,
}

impl HmacKey {
    /// Returns `None` only for keys of invalid length, which do not exist for HMAC (RFC 2104 §3).
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        let sha1 = Hmac::new_from_slice(key).ok()?;
        Some(Self { sha1, sha256: Hmac::new_from_slice(key).ok()? })
    }
}

/// Returns an HMAC over `parts`.
fn updated<M: Mac + Clone>(keyed: &M, parts: &[&[u8]]) -> M {
    let mut mac = keyed.clone();
    for part in parts {
        mac.update(part);
    }
    mac
}

fn copy(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"Jefe";
    const PARTS: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];

    /// RFC 2202 §3 and RFC 4231 §4.3, test case 2.
    #[test]
    fn known_answers() {
        let sha1 = [
            0xef, 0xfc, 0xdf, 0x6a, 0xe5, 0xeb, 0x2f, 0xa2, 0xd2, 0x74, 0x16, 0xd5, 0xf1, 0x84,
            0xdf, 0x9c, 0x25, 0x9a, 0x7c, 0x79,
        ];
        let sha256 = [
            0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95,
            0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9,
            0x64, 0xec, 0x38, 0x43,
        ];
        for (algorithm, expected) in
            [(HmacAlgorithm::Sha1, &sha1[..]), (HmacAlgorithm::Sha256, &sha256)]
        {
            let (key, other) = (HmacKey::new(KEY).unwrap(), HmacKey::new(b"jefe").unwrap());
            let mut hmac = [0; MAX_HMAC];
            algorithm.compute(&key, &PARTS, &mut hmac);
            assert_eq!(hmac[..algorithm.hmac_len()], *expected);
            assert_eq!(expected.len(), algorithm.hmac_len());
            assert!(algorithm.verify(&key, &PARTS, expected));
            assert!(!algorithm.verify(&other, &PARTS, expected));
            assert!(!algorithm.verify(&key, &PARTS, &expected[1..]));
            assert!(!algorithm.verify(&key, &PARTS, &[]));
        }
    }

    #[test]
    fn identifiers() {
        for algorithm in HmacAlgorithm::ALL {
            assert_eq!(HmacAlgorithm::from_id(algorithm.id()), Some(algorithm));
            assert!(algorithm.hmac_len() <= MAX_HMAC);
        }
        assert_eq!(HmacAlgorithm::from_id(0), None);
        assert_eq!(HmacAlgorithm::from_id(2), None);
    }
}
