//! QPACK: field compression for HTTP/3 (RFC 9204).

use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

/// A decoded field line (RFC 9204).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs)]
pub struct FieldLine {
    pub name: Bytes,
    pub value: Bytes,
    pub sensitive: bool,
}

/// Whether a field is a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs)]
pub enum Sensitivity {
    #[default]
    Ordinary,
    Sensitive,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs)]
pub enum QpackFault {
    DecompressionFailed(QpackRule),
    EncoderStream(QpackRule),
    DecoderStream(QpackRule),
    FieldSectionTooLarge,
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs)]
pub enum QpackRule {
    SectionTruncated,
}

impl fmt::Display for QpackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Setup.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs)]
pub struct EncoderSetup {
    pub max_capacity: u64,
}

/// Encoder.
#[derive(Debug)]
pub struct Encoder;

#[expect(missing_docs)]
impl Encoder {
    pub fn new(_: EncoderSetup) -> Self {
        Self
    }
    pub fn set_peer_limits(&mut self, _: u64, _: u64) {}
    pub fn encode<'a>(
        &mut self,
        _stream: u64,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8], Sensitivity)>,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&[0, 0]);
        for (name, value, _) in fields {
            for (text, mark, bits) in [(name, 0x20_u8, 3), (value, 0, 7)] {
                let max = (1_usize << bits) - 1;
                if text.len() < max {
                    out.push(mark | text.len() as u8);
                } else {
                    out.push(mark | max as u8);
                    let mut left = text.len() - max;
                    while left >= 128 {
                        out.push(left as u8 | 128);
                        left >>= 7;
                    }
                    out.push(left as u8);
                }
                out.extend_from_slice(text);
            }
        }
    }
    pub fn take_instructions(&mut self) -> Bytes {
        Bytes::new()
    }
    pub fn handle_decoder_stream(&mut self, _: &[u8]) -> Result<(), QpackFault> {
        Ok(())
    }
}

/// Setup.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs)]
pub struct DecoderSetup {
    pub max_capacity: u64,
    pub max_blocked_streams: u64,
    pub max_section_size: u64,
}

/// Decoded.
#[derive(Debug)]
#[expect(missing_docs)]
pub enum Decoded {
    Ready(Vec<FieldLine>),
    Blocked,
}

/// Decoder.
#[derive(Debug)]
pub struct Decoder(u64);

#[expect(missing_docs)]
impl Decoder {
    pub fn new(setup: DecoderSetup) -> Self {
        Self(setup.max_section_size)
    }
    pub fn handle_encoder_stream(&mut self, _: &[u8]) -> Result<(), QpackFault> {
        Ok(())
    }
    pub fn decode(&mut self, _: u64, section: Bytes) -> Result<Decoded, QpackFault> {
        let failed = QpackFault::DecompressionFailed(QpackRule::SectionTruncated);
        let mut rest = section.get(2..).ok_or(failed)?;
        let mut fields = Vec::new();
        let mut size = 0;
        while !rest.is_empty() {
            let mut texts = [Bytes::new(), Bytes::new()];
            for (at, bits) in [(0, 3), (1, 7)] {
                let (&first, after) = rest.split_first().ok_or(failed)?;
                rest = after;
                let max = (1_usize << bits) - 1;
                let mut length = usize::from(first) & max;
                if length == max {
                    let mut shift = 0;
                    loop {
                        let (&next, after) = rest.split_first().ok_or(failed)?;
                        rest = after;
                        length += usize::from(next & 127) << shift;
                        shift += 7;
                        if next & 128 == 0 {
                            break;
                        }
                        if shift > 28 {
                            return Err(failed);
                        }
                    }
                }
                let (text, after) = rest.split_at_checked(length).ok_or(failed)?;
                texts[at] = section.slice_ref(text);
                rest = after;
            }
            let [name, value] = texts;
            size += (name.len() + value.len() + 32) as u64;
            fields.push(FieldLine { name, value, sensitive: false });
        }
        if size > self.0 {
            return Err(QpackFault::FieldSectionTooLarge);
        }
        Ok(Decoded::Ready(fields))
    }
    pub fn unblocked(&mut self) -> Option<(u64, Result<Vec<FieldLine>, QpackFault>)> {
        None
    }
    pub fn cancel(&mut self, _: u64) {}
    pub fn take_instructions(&mut self) -> Bytes {
        Bytes::new()
    }
}
