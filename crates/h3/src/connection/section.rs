//! Field sections of requests and responses, encoded and decoded (RFC 9114 §4.2, RFC 9204).

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use super::io::Event;
use super::{Connection, ConnectionConfig};
use crate::fault::{ConnectionFault, Fault, StreamFault};
use crate::misuse::Misuse;
use crate::qpack::{
    Decoded, Decoder, DecoderSetup, Encoder, EncoderSetup, FieldLine, QpackFault, Sensitivity,
};
use crate::settings::Settings;
use crate::stream::{CriticalStream, StreamId};

/// What RFC 9114 §4.2.2 counts for each field beside its name and value, in bytes.
const FIELD_OVERHEAD: u64 = 32;

/// How long sections usually are at most, encoded, in bytes.
const USUAL_SECTION: usize = 64;

/// A field section that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// It is decoded.
    Ready(Vec<FieldLine>),
    /// It needs entries of the table that have not arrived. It follows as
    /// [`Event::Section`](super::Event::Section).
    Blocked,
}

/// Both directions of field compression.
#[derive(Debug)]
pub(super) struct Compression {
    encoder: Encoder,
    decoder: Decoder,
    max_section_size: u64,
}

impl Compression {
    pub(super) fn new(config: &ConnectionConfig) -> Self {
        Self {
            encoder: Encoder::new(EncoderSetup {
                max_capacity: config.qpack_encoder_capacity,
                max_blocked_streams: config.qpack_encoder_blocked_streams,
            }),
            decoder: Decoder::new(DecoderSetup {
                max_capacity: config.qpack_max_table_capacity,
                max_blocked_streams: config.qpack_blocked_streams,
                max_section_size: config.max_field_section_size,
            }),
            max_section_size: config.max_field_section_size,
        }
    }

    pub(super) fn set_peer_settings(&mut self, settings: &Settings) -> Result<(), ConnectionFault> {
        let (capacity, blocked) =
            (settings.qpack_max_table_capacity, settings.qpack_blocked_streams);
        self.encoder.set_peer_limits(capacity, blocked).map_err(ConnectionFault::Qpack)
    }

    pub(super) fn handle_encoder_stream(&mut self, data: &[u8]) -> Result<(), ConnectionFault> {
        self.decoder.handle_encoder_stream(data).map_err(ConnectionFault::Qpack)
    }

    pub(super) fn handle_decoder_stream(&mut self, data: &[u8]) -> Result<(), ConnectionFault> {
        self.encoder.handle_decoder_stream(data).map_err(ConnectionFault::Qpack)
    }

    /// Returns the next section whose entries have arrived.
    pub(super) fn next_unblocked(&mut self) -> Result<Option<Event>, ConnectionFault> {
        let Some((stream, fields)) = self.decoder.unblocked() else { return Ok(None) };
        let stream = StreamId(stream);
        match fields.map_err(|fault| self.fault(fault)) {
            Ok(fields) => Ok(Some(Event::Section { stream, fields: Ok(fields) })),
            Err(Fault::Stream(fault)) => Ok(Some(Event::Section { stream, fields: Err(fault) })),
            Err(Fault::Connection(fault)) => Err(fault),
        }
    }

    /// Returns what the encoder's and the decoder's streams continue with.
    pub(super) fn take_instructions(&mut self) -> [(CriticalStream, Bytes); 2] {
        [
            (CriticalStream::QpackEncoder, self.encoder.take_instructions()),
            (CriticalStream::QpackDecoder, self.decoder.take_instructions()),
        ]
    }

    const fn fault(&self, fault: QpackFault) -> Fault {
        match fault {
            QpackFault::FieldSectionTooLarge => {
                Fault::Stream(StreamFault::FieldSectionTooLarge { limit: self.max_section_size })
            }
            fault => Fault::Connection(ConnectionFault::Qpack(fault)),
        }
    }
}

impl Connection {
    /// Encodes the fields of a head or of trailers, pseudo-header fields first, for the stream that they
    /// are sent on.
    ///
    /// # Errors
    /// [`Misuse::FieldSectionTooLarge`] if they are larger than the peer accepts.
    pub fn encode_section<'a>(
        &mut self,
        stream: StreamId,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8], Sensitivity)> + Clone,
    ) -> Result<Bytes, Misuse> {
        let size = |name: &[u8], value: &[u8]| name.len() as u64 + value.len() as u64;
        let sizes = fields.clone().map(|(name, value, _)| size(name, value) + FIELD_OVERHEAD);
        let total = sizes.fold(0, u64::saturating_add);
        let limit = self.peer_settings().and_then(|peer| peer.max_field_section_size);
        if let Some(limit) = limit.filter(|&limit| total > limit) {
            return Err(Misuse::FieldSectionTooLarge { size: total, limit });
        }
        let mut out = Vec::with_capacity(USUAL_SECTION);
        self.compression.encoder.encode(stream.0, fields, &mut out);
        Ok(out.into())
    }

    /// Decodes a field section that was received on a stream. `now` is part of the contract; nothing here
    /// waits for it.
    ///
    /// # Errors
    /// [`Fault::Stream`] if it is larger than this endpoint accepts. After [`Fault::Connection`] the
    /// connection is closed, as the next outputs say.
    pub fn decode_section(
        &mut self,
        _now: Duration,
        stream: StreamId,
        section: Bytes,
    ) -> Result<Section, Fault> {
        match self.compression.decoder.decode(stream.0, section) {
            Ok(Decoded::Ready(fields)) => Ok(Section::Ready(fields)),
            Ok(Decoded::Blocked) => Ok(Section::Blocked),
            Err(fault) => {
                let fault = self.compression.fault(fault);
                if let Fault::Connection(fault) = fault {
                    self.close(fault);
                }
                Err(fault)
            }
        }
    }

    /// Gives up field sections of a stream that is reset or no longer read before its end, also those
    /// that were never passed to [`decode_section`](Self::decode_section) (RFC 9204 §4.4.2). This costs a
    /// few bytes to the peer; after the end of a message there is no need.
    pub fn cancel(&mut self, stream: StreamId) {
        self.compression.decoder.cancel(stream.0);
    }
}
