//! INITs exchanged out of band, as the SDP attribute `sctp-init` (draft-hancke-tsvwg-snap, SNAP).
//!
//! If both descriptions have the attribute, the association is established as soon as DTLS is,
//! which saves two round trips. Each side writes its INIT ([`Endpoint::init_out_of_band`]), reads
//! that of the other side, and calls [`Endpoint::connect_out_of_band`] after the DTLS handshake.
//! The draft has further rules, which are up to the code that writes the descriptions: an answer
//! has the attribute only if the offer had one that [`SnapInit::from_attribute`] accepts; later
//! descriptions repeat it unchanged; and if one side has none, both connect with a handshake.
//!
//! [`Endpoint::init_out_of_band`]: crate::endpoint::Endpoint::init_out_of_band
//! [`Endpoint::connect_out_of_band`]: crate::endpoint::Endpoint::connect_out_of_band

use alloc::string::String;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};

use crate::wire::{Chunk, EncodeChunk, InitChunk, Parameter};

/// The name of the attribute: the line is `a=sctp-init:` followed by [`SnapInit::to_attribute`].
pub const ATTRIBUTE: &str = "sctp-init";

/// The maximum length in bytes of an INIT that is read: several times what one with all extensions
/// has.
const MAX_INIT: usize = 2048;

/// An INIT chunk that was exchanged out of band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapInit {
    chunk: InitChunk,
}

impl SnapInit {
    pub(crate) fn from_chunk(chunk: &InitChunk) -> Self {
        Self { chunk: chunk.clone() }
    }

    pub(crate) fn chunk(&self) -> &InitChunk {
        &self.chunk
    }

    /// Parses an INIT chunk (RFC 9260 §3.3.2): type, flags, length and value, with or without the
    /// padding. Returns `None` if it is something else, or an unusable INIT: a tag of zero, no
    /// streams, a window of less than 1500 bytes, or a malformed parameter.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let length = usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
        let padding = bytes.get(length..)?;
        if length > MAX_INIT || padding.len() > 3 || padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let whole = Bytes::copy_from_slice(bytes.get(..length)?);
        let Some(Chunk::Init(chunk)) = Chunk::alone(&whole) else { return None };
        let is_malformed = |parameter| matches!(parameter, Parameter::Malformed { .. });
        let is_valid = chunk.initiate_tag.0 != 0
            && chunk.outbound_streams > 0
            && chunk.inbound_streams > 0
            && chunk.a_rwnd >= crate::association::init_params::MIN_WINDOW
            && !chunk.parameters.iter().any(is_malformed);
        is_valid.then_some(Self { chunk })
    }

    /// Returns the chunk without padding.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let chunk = Chunk::Init(self.chunk.clone());
        let mut buffer = BytesMut::with_capacity(chunk.encoded_len());
        chunk.encode(&mut buffer);
        buffer.freeze()
    }

    /// Parses the value of the attribute. Returns `None` if it is not Base64 or not accepted by
    /// [`Self::from_bytes`]; the draft requires the line to be ignored then.
    #[must_use]
    pub fn from_attribute(value: &str) -> Option<Self> {
        if value.len() > MAX_INIT * 2 {
            return None;
        }
        Self::from_bytes(&STANDARD.decode(value).ok()?)
    }

    /// Returns the value of the attribute.
    #[must_use]
    pub fn to_attribute(&self) -> String {
        STANDARD.encode(self.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::SnapInit;
    use crate::identifier::VerificationTag;
    use crate::serial::Tsn;
    use crate::wire::{ChunkType, Parameter};

    /// The offer and the answer of the draft's example.
    const OFFER: &str = "AQAAHols3R0AUAAA/////+B5ZR3AAAAEgAgABoLA";
    const ANSWER: &str = "AQAAHl+zdHQAUAAA/////6Gq3HTAAAAEgAgABoLA";

    //= snap syntax
    //# the INIT chunk as on the wire, in Base64
    #[test]
    fn the_draft_examples_round_trip() {
        let offer = SnapInit::from_attribute(OFFER).unwrap();
        assert_eq!(offer.chunk.initiate_tag, VerificationTag(0x896c_dd1d));
        assert_eq!(offer.chunk.a_rwnd, 0x0050_0000);
        assert_eq!((offer.chunk.outbound_streams, offer.chunk.inbound_streams), (65_535, 65_535));
        assert_eq!(offer.chunk.initial_tsn, Tsn(0xe079_651d));
        let types = [ChunkType::RE_CONFIG.0, ChunkType::FORWARD_TSN.0];
        let parameters =
            [Parameter::ForwardTsnSupported, Parameter::SupportedExtensions(types.to_vec().into())];
        assert!(offer.chunk.parameters.iter().eq(parameters));
        assert_eq!(offer.to_attribute(), OFFER);
        assert_eq!(SnapInit::from_attribute(ANSWER).unwrap().to_attribute(), ANSWER);
    }

    //= snap answerer
    //# MUST ignore what is not an INIT in Base64
    #[test]
    fn anything_but_an_init_is_ignored() {
        let valid = SnapInit::from_attribute(OFFER).unwrap().to_bytes();
        let with = |at: usize, value: &[u8]| {
            let mut bytes = valid.to_vec();
            bytes[at..at + value.len()].copy_from_slice(value);
            SnapInit::from_bytes(&bytes)
        };
        let padded = [&valid[..], &[0, 0]].concat();
        assert_eq!(SnapInit::from_bytes(&padded), SnapInit::from_bytes(&valid));
        for (what, read) in [
            ("an INIT ACK", with(0, &[2])),
            ("a tag of zero", with(4, &[0; 4])),
            ("no window", with(8, &1499u32.to_be_bytes())),
            ("no outbound stream", with(12, &[0, 0])),
            ("no inbound stream", with(14, &[0, 0])),
            ("longer than it is", with(2, &[0, 31])),
            ("shorter than its header", with(2, &[0, 19])),
            ("a parameter beyond the end", with(26, &[0, 99])),
            ("more behind it", SnapInit::from_bytes(&[&valid[..], &[0; 4]].concat())),
            ("nothing", SnapInit::from_bytes(&[])),
            ("no Base64", SnapInit::from_attribute("CookieMonster!")),
            ("a text in Base64", SnapInit::from_attribute("Q29va2llTW9uc3Rlcg==")),
        ] {
            assert_eq!(read, None, "{what}");
        }
    }
}
