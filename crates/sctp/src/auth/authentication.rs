//! AUTH chunks signed and checked.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-6.2>,
//! <https://www.rfc-editor.org/rfc/rfc4895#section-6.3>
//!
//! To sign, the association puts [`Authentication::chunk`] before the first chunk that needs it and
//! marks the place with [`crate::wire::PacketWriter::authenticate_from_here`]; when the packet is
//! full, it hands [`Authentication::sign`] to [`crate::wire::PacketWriter::authenticate`], and only
//! then finishes the packet.

use alloc::collections::BTreeMap;
use core::fmt;

use super::algorithm::{HmacKey, MAX_HMAC};
use super::keys::KeyVectors;
use super::{AuthOffer, ChunkSet, HmacAlgorithm, SharedKeys};
use crate::error::Error;
use crate::wire::{AuthChunk, ChunkType};
use bytes::Bytes;

/// What an AUTH chunk that came is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verification {
    /// All that follows it is from who has the key.
    Authentic,
    /// It uses an algorithm that this side did not name: to be discarded with all that follows and
    /// answered by an ERROR with the cause "unsupported HMAC identifier".
    UnsupportedHmac,
    /// It uses a key that is not known here: to be discarded silently with all that follows.
    UnknownKey,
    /// Its HMAC is wrong: to be discarded silently with all that follows.
    Forged,
}

/// The authentication of one association.
#[derive(Clone)]
pub struct Authentication {
    vectors: KeyVectors,
    keys: SharedKeys,
    /// What comes of each shared key, by its identifier.
    made: BTreeMap<u16, HmacKey>,
    ours: AuthOffer,
    expected: ChunkSet,
    wanted: ChunkSet,
    algorithm: HmacAlgorithm,
}

impl fmt::Debug for Authentication {
    /// Does not tell keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication")
            .field("keys", &self.keys)
            .field("expected", &self.expected)
            .field("wanted", &self.wanted)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl Authentication {
    /// Of what both sides said; `None` if the peer names no algorithm known here.
    #[must_use]
    pub fn new(ours: AuthOffer, theirs: &AuthOffer, keys: SharedKeys) -> Option<Self> {
        let vectors = KeyVectors::new(&ours, theirs);
        let make = |(id, shared): (u16, &Bytes)| Some((id, vectors.association_key(shared)?));
        Some(Self {
            made: keys.iter().filter_map(make).collect(),
            vectors,
            keys,
            expected: ours.required(),
            wanted: theirs.required(),
            algorithm: theirs.algorithm()?,
            ours,
        })
    }

    /// Whether a chunk of this type that did not follow an AUTH chunk is to be discarded silently.
    #[must_use]
    pub const fn expects(&self, chunk_type: ChunkType) -> bool {
        is_always_authenticated(chunk_type) || self.expected.contains(chunk_type)
    }

    /// Whether a chunk of this type must be sent behind an AUTH chunk.
    #[must_use]
    pub const fn wants(&self, chunk_type: ChunkType) -> bool {
        is_always_authenticated(chunk_type) || self.wanted.contains(chunk_type)
    }

    /// Bytes that an AUTH chunk takes in a packet.
    #[must_use]
    pub const fn chunk_len(&self) -> usize {
        AuthChunk::HMAC_AT + self.algorithm.hmac_len()
    }

    /// The AUTH chunk to send, still without its HMAC.
    #[must_use]
    pub fn chunk(&self) -> AuthChunk {
        let hmac_len = self.algorithm.hmac_len();
        AuthChunk::unsigned(self.keys.active(), self.algorithm.id(), hmac_len)
    }

    /// Fills in the HMAC of the AUTH chunk at the beginning of `covered`, which goes to the end of
    /// the packet. The chunk must be the latest one from [`Self::chunk`].
    pub fn sign(&self, covered: &mut [u8]) {
        let Some(key) = self.made.get(&self.keys.active()) else { return };
        let mut hmac = [0; MAX_HMAC];
        self.algorithm.compute(key, &[covered], &mut hmac);
        let place = AuthChunk::HMAC_AT..self.chunk_len();
        if let (Some(place), Some(hmac)) =
            (covered.get_mut(place), hmac.get(..self.algorithm.hmac_len()))
        {
            place.copy_from_slice(hmac);
        }
    }

    /// Whether an AUTH chunk that came vouches for what follows it.
    #[must_use]
    pub fn verify(&self, chunk: &AuthChunk) -> Verification {
        let algorithm = match HmacAlgorithm::from_id(chunk.hmac_id) {
            Some(algorithm) if self.ours.allows(algorithm) => algorithm,
            _ => return Verification::UnsupportedHmac,
        };
        let Some(key) = self.made.get(&chunk.shared_key_id) else {
            return Verification::UnknownKey;
        };
        let place = AuthChunk::HMAC_AT + algorithm.hmac_len();
        let before = chunk.covered.get(..AuthChunk::HMAC_AT);
        let (Some(before), Some(after)) = (before, chunk.covered.get(place..)) else {
            return Verification::Forged;
        };
        let zeros = [0; MAX_HMAC];
        let zeros = zeros.get(..algorithm.hmac_len()).unwrap_or_default();
        if algorithm.verify(key, &[before, zeros, after], &chunk.hmac) {
            Verification::Authentic
        } else {
            Verification::Forged
        }
    }

    /// The shared keys, to be used again after a restart.
    #[must_use]
    pub const fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    /// Adds or replaces a shared key (`SCTP_AUTH_KEY`).
    ///
    /// # Errors
    /// If there are too many keys.
    pub fn set_key(&mut self, id: u16, key: Bytes) -> Result<(), Error> {
        let made = self.vectors.association_key(&key);
        self.keys.set(id, key)?;
        self.made.extend(made.map(|made| (id, made)));
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
    /// If there is no such key, or it is the one that is signed with.
    pub fn remove_key(&mut self, id: u16) -> Result<(), Error> {
        self.keys.remove(id)?;
        self.made.remove(&id);
        Ok(())
    }
}

/// Chunks that change addresses, whether they are listed or not (RFC 5061 §4.1.1, §4.1.2).
const fn is_always_authenticated(chunk_type: ChunkType) -> bool {
    matches!(chunk_type, ChunkType::ASCONF | ChunkType::ASCONF_ACK)
}
