//! What a side offers in the handshake.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-3>

use alloc::vec::Vec;
use bytes::Bytes;

use super::{ChunkSet, HmacAlgorithm};
use crate::wire::records::{WireRecords, encode_records};
use crate::wire::{ChunkType, Parameter, Parameters};

/// The number of random bytes that this side sends (RFC 4895 §3.1 recommends 32).
pub const RANDOM_LEN: usize = 32;

/// The RANDOM, CHUNKS and HMAC-ALGO parameters of an INIT or INIT ACK.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthOffer {
    random: Bytes,
    /// `None` if there was no such parameter: an empty one is part of the key, a missing one is
    /// not.
    chunks: Option<Bytes>,
    hmacs: Bytes,
}

impl AuthOffer {
    /// Creates our offer: chunks of these types must be authenticated, by any supported algorithm.
    #[must_use]
    pub fn new(random: [u8; RANDOM_LEN], chunks: &[ChunkType]) -> Self {
        let chunks: Vec<u8> = chunks.iter().map(|chunk_type| chunk_type.0).collect();
        Self {
            random: Bytes::copy_from_slice(&random),
            chunks: (!chunks.is_empty()).then(|| chunks.into()),
            hmacs: encode_records(&HmacAlgorithm::ALL.map(HmacAlgorithm::id)),
        }
    }

    /// Parses the peer's offer. Returns `None` if it does not support AUTH: RANDOM or HMAC-ALGO is
    /// missing, or lists no supported algorithm.
    #[must_use]
    pub fn from_parameters(parameters: &Parameters) -> Option<Self> {
        let (mut random, mut chunks, mut hmacs) = (None, None, None);
        for parameter in parameters.iter() {
            match parameter {
                Parameter::Random(value) => random = random.or(Some(value)),
                Parameter::ChunkList(value) => chunks = chunks.or(Some(value)),
                Parameter::RequestedHmacs(value) => hmacs = hmacs.or(Some(value)),
                _ => {}
            }
        }
        let offer = Self { random: random?, chunks, hmacs: hmacs? };
        offer.algorithm().is_some().then_some(offer)
    }

    /// Returns the parameters for an INIT or INIT ACK.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> + use<> {
        let chunks = self.chunks.clone().map(Parameter::ChunkList);
        let hmacs = Parameter::RequestedHmacs(self.hmacs.clone());
        [Some(Parameter::Random(self.random.clone())), chunks, Some(hmacs)].into_iter().flatten()
    }

    /// Returns a copy that does not keep the packet alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        let copy = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        Self {
            random: copy(&self.random),
            chunks: self.chunks.as_ref().map(copy),
            hmacs: copy(&self.hmacs),
        }
    }

    /// Returns the length of the values that are part of the key.
    #[must_use]
    pub fn len(&self) -> usize {
        self.random.len() + self.chunks.as_ref().map_or(0, Bytes::len) + self.hmacs.len()
    }

    /// Returns whether it is empty.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the chunks that the offering side accepts only if authenticated.
    #[must_use]
    pub fn required(&self) -> ChunkSet {
        ChunkSet::from_list(self.chunks.as_deref().unwrap_or_default())
    }

    /// Returns the algorithm for signing chunks to the offering side: the first one listed that is
    /// supported here (RFC 4895 §3.3).
    #[must_use]
    pub fn algorithm(&self) -> Option<HmacAlgorithm> {
        WireRecords::new(&self.hmacs).find_map(HmacAlgorithm::from_id)
    }

    /// Returns whether the offer lists this algorithm.
    pub(super) fn allows(&self, algorithm: HmacAlgorithm) -> bool {
        WireRecords::new(&self.hmacs).any(|id: u16| id == algorithm.id())
    }

    /// Returns the concatenated parameters, with type and length but without padding (RFC 4895
    /// §6.1).
    pub(super) fn key_vector(&self) -> Vec<u8> {
        self.parameters().flat_map(|parameter| parameter.to_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> AuthOffer {
        AuthOffer::new([7; RANDOM_LEN], &[ChunkType::ASCONF, ChunkType::ASCONF_ACK])
    }

    #[test]
    fn an_offer_round_trips() {
        let parameters: Parameters = offer().parameters().collect();
        assert_eq!(AuthOffer::from_parameters(&parameters), Some(offer()));
        assert_eq!(offer().algorithm(), Some(HmacAlgorithm::Sha256));
        assert!(offer().required().contains(ChunkType::ASCONF));
    }

    #[test]
    fn an_offer_may_ask_for_nothing() {
        let offer = AuthOffer::new([7; RANDOM_LEN], &[]);
        assert_eq!(offer.parameters().count(), 2);
        assert_eq!(offer.len(), RANDOM_LEN + 4);
        assert_eq!(offer.detached(), offer);
    }

    #[test]
    fn the_key_vector_has_no_padding() {
        let offer = AuthOffer {
            random: Bytes::from_static(&[9]),
            chunks: Some(Bytes::from_static(&[193])),
            hmacs: Bytes::from_static(&[0, 1]),
        };
        let expected = [0x80, 2, 0, 5, 9, 0x80, 3, 0, 5, 193, 0x80, 4, 0, 6, 0, 1];
        assert_eq!(offer.key_vector(), expected);
        let without = AuthOffer { chunks: None, ..offer };
        assert_eq!(without.key_vector(), [0x80, 2, 0, 5, 9, 0x80, 4, 0, 6, 0, 1]);
    }

    #[test]
    fn an_incomplete_offer_is_rejected() {
        let whole: Vec<Parameter> = offer().parameters().collect();
        for (missing, is_offer) in [(0, false), (1, true), (2, false)] {
            let mut parameters = whole.clone();
            parameters.remove(missing);
            let parameters = parameters.into_iter().collect();
            assert_eq!(AuthOffer::from_parameters(&parameters).is_some(), is_offer);
        }
        let unknown = [
            Parameter::Random(Bytes::from_static(&[1])),
            Parameter::RequestedHmacs(Bytes::from_static(&[0, 2, 0, 9])),
        ];
        assert_eq!(AuthOffer::from_parameters(&unknown.into_iter().collect()), None);
    }

    #[test]
    fn duplicates_count_once() {
        let duplicated: Parameters =
            offer().parameters().chain([Parameter::Random(Bytes::from_static(&[1]))]).collect();
        assert_eq!(AuthOffer::from_parameters(&duplicated), Some(offer()));
    }
}
