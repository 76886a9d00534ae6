//! The Huffman code of strings.
//!
//! <https://www.rfc-editor.org/rfc/rfc7541#section-5.2>
//!
//! A table of the first twelve bits gives up to two octets at once; the few octets with longer codes
//! are found by the length of their code. Both follow from the lengths alone, because the code is
//! canonical (RFC 7541 Appendix B).

use alloc::vec::Vec;

use bytes::BytesMut;

use super::fault::QpackRule;

mod code;

use code::{CODES, END, FIRST_BITS, LENGTHS, LONG_CODES, MAX_LENGTH, PAIRS, SYMBOLS};

/// The fewest bits of a code.
const MIN_LENGTH: usize = 5;

/// Returns how many octets this string has in the Huffman code.
pub(super) fn encoded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|octet| usize::from(LENGTHS[usize::from(*octet)])).sum();
    bits.div_ceil(8)
}

/// Returns the fewest octets that a string of this many encoded octets can have.
pub(super) fn fewest_decoded(encoded: u64) -> u64 {
    // The last seven bits may be padding.
    encoded.saturating_mul(8).saturating_sub(7).div_ceil(MAX_LENGTH as u64)
}

/// Returns the most octets that a string of this many encoded octets can have.
pub(super) fn most_decoded(encoded: usize) -> usize {
    encoded * 8 / MIN_LENGTH
}

/// Appends a string in the Huffman code.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for octet in text {
        let octet = usize::from(*octet);
        bits = bits << LENGTHS[octet] | u64::from(CODES[octet]);
        count += u32::from(LENGTHS[octet]);
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    // The padding is the beginning of the code for the end: ones.
    while count > 0 {
        let padding = 8_u32.saturating_sub(count);
        bits = bits << padding | ((1 << padding) - 1);
        count = count + padding - 8;
        out.push((bits >> count) as u8);
    }
}

/// Why a string could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HuffmanFault {
    /// It breaks a rule.
    Invalid(QpackRule),
    /// It has more octets than the limit.
    TooLong,
}

/// Appends the string of which this is the Huffman code, of at most `limit` octets. What is appended
/// before a fault is undefined.
pub(super) fn decode(encoded: &[u8], limit: usize, out: &mut BytesMut) -> Result<(), HuffmanFault> {
    let start = out.len();
    let room = most_decoded(encoded.len()).min(limit);
    // Two octets are written at once where only one may follow.
    out.resize(start + room + 1, 0);
    let written = decode_into(encoded, &mut out[start..])?;
    if written > room {
        return Err(HuffmanFault::TooLong);
    }
    out.truncate(start + written);
    Ok(())
}

/// The next bits of a string, the first of them the highest.
struct BitReader<'a> {
    rest: &'a [u8],
    bits: u64,
    count: u32,
}

impl BitReader<'_> {
    /// Has at least 56 bits afterwards, unless the string ends before.
    fn refill(&mut self) {
        if let Some((word, _)) = self.rest.split_first_chunk::<8>() {
            // Bits of the octet after the last whole one are read again the next time.
            self.bits |= u64::from_be_bytes(*word) >> self.count;
            let octets = (63 - self.count) / 8;
            self.rest = &self.rest[octets as usize..];
            self.count += octets * 8;
        } else {
            while self.count <= 56
                && let Some((octet, rest)) = self.rest.split_first()
            {
                self.bits |= u64::from(*octet) << (56 - self.count);
                self.rest = rest;
                self.count += 8;
            }
        }
    }

    fn consume(&mut self, count: u32) {
        self.bits <<= count;
        self.count -= count;
    }

    /// Returns whether what is left is padding.
    fn is_padding(&self) -> bool {
        self.count < 8 && self.bits.leading_ones() >= self.count
    }
}

/// Returns the number of octets, which is the length of `out` if there are more than fit.
fn decode_into(encoded: &[u8], out: &mut [u8]) -> Result<usize, HuffmanFault> {
    let mut input = BitReader { rest: encoded, bits: 0, count: 0 };
    let mut written = 0;
    loop {
        input.refill();
        while input.count >= FIRST_BITS as u32
            && let pair = PAIRS[(input.bits >> (64 - FIRST_BITS)) as usize]
            && pair.bits > 0
            && let Some(place) = out.get_mut(written..).and_then(<[u8]>::first_chunk_mut)
        {
            *place = pair.octets;
            written += usize::from(pair.count);
            input.consume(u32::from(pair.bits));
        }
        if input.count < MAX_LENGTH as u32 && !input.rest.is_empty() {
            continue;
        }
        // A long code, the last octets, or no room for two.
        let invalid = |rule| Err(HuffmanFault::Invalid(rule));
        let Some((symbol, length)) = next_symbol(input.bits) else {
            return invalid(QpackRule::HuffmanPadding);
        };
        if length > input.count {
            return if input.is_padding() {
                Ok(written)
            } else {
                invalid(QpackRule::HuffmanPadding)
            };
        }
        if symbol == END {
            return invalid(QpackRule::HuffmanEndOfString);
        }
        let Some(place) = out.get_mut(written) else { return Ok(written) };
        *place = symbol as u8;
        written += 1;
        input.consume(length);
    }
}

/// Returns the first symbol of these bits, and the length of its code.
fn next_symbol(bits: u64) -> Option<(u16, u32)> {
    let code = (bits >> 32) as u32;
    let pair = PAIRS[(bits >> (64 - FIRST_BITS)) as usize];
    if pair.bits > 0 {
        return Some((u16::from(pair.octets[0]), u32::from(pair.first_bits)));
    }
    let group = LONG_CODES.iter().find(|group| code <= group.last)?;
    let index = code.checked_sub(group.first)? >> (32 - group.length);
    Some((*SYMBOLS.get(group.start + index as usize)?, group.length))
}

#[cfg(test)]
mod tests;
