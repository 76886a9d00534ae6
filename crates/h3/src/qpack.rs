//! QPACK: field compression for HTTP/3.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204>
//!
//! An [`Encoder`] turns field lines into encoded field sections, and a [`Decoder`] turns them back.
//! Both have a stream of instructions to the other:
//!
//! ```text
//!              encoded field sections, on the streams of their messages
//!             ────────────────────────────────────────────────────────▶
//!   Encoder    encoder stream: insertions into the dynamic table          Decoder
//!             ────────────────────────────────────────────────────────▶
//!              decoder stream: acknowledgments
//!             ◀────────────────────────────────────────────────────────
//! ```
//!
//! The streams are independent, so a section can arrive before the insertions that it refers to. It
//! is then [blocked](Decoded::Blocked). By default the encoder never lets that happen: it refers only
//! to entries that the decoder is known to have, and inserts others beside a section, for later ones.
//!
//! ```
//! use bytes::Bytes;
//! use eyas_h3::qpack::{
//!     Decoded, Decoder, DecoderSetup, Encoder, EncoderSetup, QpackFault, Sensitivity,
//! };
//!
//! # fn main() -> Result<(), QpackFault> {
//! let setup = DecoderSetup::default();
//! let mut decoder = Decoder::new(setup);
//! let mut encoder = Encoder::new(EncoderSetup::default());
//! encoder.set_peer_limits(setup.max_capacity, setup.max_blocked_streams)?;
//!
//! let fields = [(&b":authority"[..], &b"example.com"[..], Sensitivity::Ordinary)];
//! let mut lengths = Vec::new();
//! for stream in [0, 4] {
//!     let mut section = Vec::new();
//!     encoder.encode(stream, fields, &mut section);
//!     decoder.handle_encoder_stream(&encoder.take_instructions())?;
//!     lengths.push(section.len());
//!     let Decoded::Ready(lines) = decoder.decode(stream, Bytes::from(section))? else { panic!() };
//!     assert_eq!(lines[0].value, "example.com");
//!     encoder.handle_decoder_stream(&decoder.take_instructions())?;
//! }
//! assert_eq!(lengths, [12, 3]);
//! # Ok(())
//! # }
//! ```

mod decoder;
mod encoder;
mod fault;
mod field;
mod huffman;
mod instruction;
mod primitive;
mod representation;
mod static_table;
mod table;

pub use decoder::{Decoded, Decoder, DecoderSetup, MAX_SECTIONS_OF_BLOCKED_STREAM};
pub use encoder::{Encoder, EncoderSetup};
pub use fault::{QpackFault, QpackRule};
pub use field::{FieldLine, Sensitivity};

#[cfg(test)]
mod tests;
