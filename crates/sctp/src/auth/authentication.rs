//! Signing and verification of AUTH chunks.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-6.2>,
//! <https://www.rfc-editor.org/rfc/rfc4895#section-6.3>
//!
//! To sign, the association writes [`AssociationAuthentication::chunk`] before the first chunk that requires
//! it and marks the position with [`crate::wire::PacketWriter::authenticate_from_here`]; when the
//! packet is full, it passes [`AssociationAuthentication::sign`] to
//! [`crate::wire::PacketWriter::authenticate`], and only then finishes the packet.

use alloc::collections::BTreeMap;
use core::fmt;

use super::algorithm::{HmacKey, MAX_HMAC};
use super::keys::KeyVectors;
use super::{AuthOffer, ChunkSet, HmacAlgorithm, SharedKeys};
use crate::error::Error;
use crate::wire::{AuthChunk, ChunkType};
use bytes::Bytes;

/// The result of verifying an AUTH chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthVerification {
    /// It is valid: the rest of the packet is authentic.
    Authentic,
    /// It uses an algorithm that this side did not offer: it is discarded with the rest of the
    /// packet and answered by an ERROR with the cause "unsupported HMAC identifier".
    UnsupportedHmac,
    /// It uses an unknown key: it is silently discarded with the rest of the packet.
    UnknownKey,
    /// Its HMAC is wrong: it is silently discarded with the rest of the packet.
    Forged,
}

/// The authentication of one association.
#[derive(Clone)]
pub struct AssociationAuthentication {
    vectors: KeyVectors,
    keys: SharedKeys,
    /// The association key of each shared key, by identifier.
    derived: BTreeMap<u16, HmacKey>,
    ours: AuthOffer,
    expected: ChunkSet,
    wanted: ChunkSet,
    algorithm: HmacAlgorithm,
}

impl fmt::Debug for AssociationAuthentication {
    /// Does not reveal keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssociationAuthentication")
            .field("keys", &self.keys)
            .field("expected", &self.expected)
            .field("wanted", &self.wanted)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl AssociationAuthentication {
    /// Creates it from both offers; `None` if the peer offers no supported algorithm.
    #[must_use]
    pub fn new(ours: AuthOffer, theirs: &AuthOffer, keys: SharedKeys) -> Option<Self> {
        let vectors = KeyVectors::new(&ours, theirs);
        let derive = |(id, shared): (u16, &Bytes)| Some((id, vectors.association_key(shared)?));
        Some(Self {
            derived: keys.iter().filter_map(derive).collect(),
            vectors,
            keys,
            expected: ours.required(),
            wanted: theirs.required(),
            algorithm: theirs.algorithm()?,
            ours,
        })
    }

    /// Returns whether a chunk of this type must be silently discarded unless it follows an AUTH
    /// chunk.
    #[must_use]
    pub const fn expects(&self, chunk_type: ChunkType) -> bool {
        is_always_authenticated(chunk_type) || self.expected.contains(chunk_type)
    }

    /// Returns whether a chunk of this type must be sent after an AUTH chunk.
    #[must_use]
    pub const fn wants(&self, chunk_type: ChunkType) -> bool {
        is_always_authenticated(chunk_type) || self.wanted.contains(chunk_type)
    }

    /// Returns the length of an AUTH chunk in a packet.
    #[must_use]
    pub const fn chunk_len(&self) -> usize {
        AuthChunk::HMAC_AT + self.algorithm.hmac_len()
    }

    /// Returns the AUTH chunk to send, without its HMAC.
    #[must_use]
    pub fn chunk(&self) -> AuthChunk {
        let hmac_len = self.algorithm.hmac_len();
        AuthChunk::unsigned(self.keys.active(), self.algorithm.id(), hmac_len)
    }

    /// Writes the HMAC of the AUTH chunk at the start of `covered`, which extends to the end of the
    /// packet. The chunk must be the last one from [`Self::chunk`].
    pub fn sign(&self, covered: &mut [u8]) {
        let Some(key) = self.derived.get(&self.keys.active()) else { return };
        let mut hmac = [0; MAX_HMAC];
        self.algorithm.compute(key, &[covered], &mut hmac);
        let place = AuthChunk::HMAC_AT..self.chunk_len();
        if let (Some(place), Some(hmac)) =
            (covered.get_mut(place), hmac.get(..self.algorithm.hmac_len()))
        {
            place.copy_from_slice(hmac);
        }
    }

    /// Verifies a received AUTH chunk.
    #[must_use]
    pub fn verify(&self, chunk: &AuthChunk) -> AuthVerification {
        let algorithm = match HmacAlgorithm::from_id(chunk.hmac_id) {
            Some(algorithm) if self.ours.allows(algorithm) => algorithm,
            _ => return AuthVerification::UnsupportedHmac,
        };
        let Some(key) = self.derived.get(&chunk.shared_key_id) else {
            return AuthVerification::UnknownKey;
        };
        let place = AuthChunk::HMAC_AT + algorithm.hmac_len();
        let before = chunk.covered.get(..AuthChunk::HMAC_AT);
        let (Some(before), Some(after)) = (before, chunk.covered.get(place..)) else {
            return AuthVerification::Forged;
        };
        let zeros = [0; MAX_HMAC];
        let zeros = zeros.get(..algorithm.hmac_len()).unwrap_or_default();
        if algorithm.verify(key, &[before, zeros, after], &chunk.hmac) {
            AuthVerification::Authentic
        } else {
            AuthVerification::Forged
        }
    }

    /// Returns the shared keys, to be reused after a restart.
    #[must_use]
    pub const fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    /// Adds or replaces a shared key (`SCTP_AUTH_KEY`).
    ///
    /// # Errors
    /// If there are too many keys.
    pub fn set_key(&mut self, id: u16, key: Bytes) -> Result<(), Error> {
        let derived = self.vectors.association_key(&key);
        self.keys.set(id, key)?;
        self.derived.extend(derived.map(|derived| (id, derived)));
        Ok(())
    }

    /// Chooses the shared key to sign with (`SCTP_AUTH_ACTIVE_KEY`).
    ///
    /// # Errors
    /// If there is no such key.
    pub fn activate_key(&mut self, id: u16) -> Result<(), Error> {
        self.keys.activate(id)
    }

    /// Removes a shared key (`SCTP_AUTH_DELETE_KEY`).
    ///
    /// # Errors
    /// If there is no such key, or it is the active key.
    pub fn remove_key(&mut self, id: u16) -> Result<(), Error> {
        self.keys.remove(id)?;
        self.derived.remove(&id);
        Ok(())
    }
}

/// Returns whether chunks of this type always require authentication because they change addresses
/// (RFC 5061 §4.1.1, §4.1.2).
const fn is_always_authenticated(chunk_type: ChunkType) -> bool {
    matches!(chunk_type, ChunkType::ASCONF | ChunkType::ASCONF_ACK)
}
