//! What a peer did wrong, and the code with which the connection ends (RFC 9204 §6).
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-6>

use core::error::Error;
use core::fmt;

/// A fault of the peer, or a field section that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QpackFault {
    /// QPACK_DECOMPRESSION_FAILED: an encoded field section is invalid. The connection has to end.
    DecompressionFailed(QpackRule),
    /// QPACK_ENCODER_STREAM_ERROR: an instruction of the peer's encoder is invalid. The connection
    /// has to end.
    EncoderStream(QpackRule),
    /// QPACK_DECODER_STREAM_ERROR: an instruction of the peer's decoder is invalid. The connection
    /// has to end.
    DecoderStream(QpackRule),
    /// The decoded field section exceeds
    /// [`max_section_size`](super::DecoderSetup::max_section_size). Only this message fails: a server
    /// can answer it with 431 (RFC 9114 §4.2.2), and later sections are decoded as before.
    FieldSectionTooLarge,
}

impl QpackFault {
    /// Returns the code of the connection error, or nothing if only a message fails.
    #[must_use]
    pub const fn code(self) -> Option<u64> {
        match self {
            Self::DecompressionFailed(_) => Some(0x200),
            Self::EncoderStream(_) => Some(0x201),
            Self::DecoderStream(_) => Some(0x202),
            Self::FieldSectionTooLarge => None,
        }
    }

    /// Returns the rule that was broken.
    #[must_use]
    pub const fn rule(self) -> Option<QpackRule> {
        match self {
            Self::DecompressionFailed(rule)
            | Self::EncoderStream(rule)
            | Self::DecoderStream(rule) => Some(rule),
            Self::FieldSectionTooLarge => None,
        }
    }
}

impl fmt::Display for QpackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, rule) = match self {
            Self::DecompressionFailed(rule) => ("an encoded field section", rule),
            Self::EncoderStream(rule) => ("the peer's encoder stream", rule),
            Self::DecoderStream(rule) => ("the peer's decoder stream", rule),
            Self::FieldSectionTooLarge => {
                return f.write_str("the field section is larger than this end accepts");
            }
        };
        write!(f, "{place} is invalid: {rule}")
    }
}

impl Error for QpackFault {}

/// A rule that the peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QpackRule {
    /// An integer has at most 62 bits, in at most ten octets (RFC 9204 §4.1.1, RFC 7541 §5.1).
    IntegerTooLarge,
    /// A field section ends at the end of a field line (RFC 9204 §4.5).
    SectionTruncated,
    /// At most 7 bits, all of them ones, follow the last code of a string (RFC 7541 §5.2).
    HuffmanPadding,
    /// A string does not contain the code for its end (RFC 7541 §5.2).
    HuffmanEndOfString,
    /// The static table has 99 entries (RFC 9204 §3.1).
    NoStaticEntry,
    /// An entry that is referenced is in the dynamic table (RFC 9204 §2.2.3).
    NoDynamicEntry,
    /// A field section refers only to entries below its Required Insert Count (RFC 9204 §2.2.3).
    BeyondRequiredInsertCount,
    /// An encoded Required Insert Count is one that an encoder could have produced
    /// (RFC 9204 §4.5.1.1).
    RequiredInsertCount,
    /// The Base is not negative (RFC 9204 §4.5.1.2).
    NegativeBase,
    /// No more streams are blocked than the decoder allows (RFC 9204 §2.1.2).
    TooManyBlockedStreams,
    /// A blocked stream has at most
    /// [`MAX_SECTIONS_OF_BLOCKED_STREAM`](super::MAX_SECTIONS_OF_BLOCKED_STREAM) field sections;
    /// RFC 9204 §2.2.1 lets a decoder leave the others unread.
    TooManyBlockedSections,
    /// The capacity of the dynamic table does not exceed its maximum (RFC 9204 §4.3.1).
    CapacityAboveMaximum,
    /// An entry fits the dynamic table (RFC 9204 §3.2.2).
    EntryLargerThanTable,
    /// Only a field section with references to the dynamic table is acknowledged, once
    /// (RFC 9204 §4.4.1).
    NothingToAcknowledge,
    /// An Insert Count Increment is not 0 (RFC 9204 §4.4.3).
    IncrementOfZero,
    /// No more insertions are acknowledged than were sent (RFC 9204 §4.4.3).
    IncrementBeyondInsertions,
    /// A server that accepts 0-RTT keeps the maximum capacity that its client remembers
    /// (RFC 9204 §3.2.3).
    CapacityNotAsRemembered,
}

impl fmt::Display for QpackRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IntegerTooLarge => "an integer is longer than 62 bits (RFC 9204 §4.1.1)",
            Self::SectionTruncated => "it ends within a field line (RFC 9204 §4.5)",
            Self::HuffmanPadding => "the padding of a string is invalid (RFC 7541 §5.2)",
            Self::HuffmanEndOfString => "a string contains the code for its end (RFC 7541 §5.2)",
            Self::NoStaticEntry => "the static table has no such entry (RFC 9204 §3.1)",
            Self::NoDynamicEntry => "the dynamic table has no such entry (RFC 9204 §2.2.3)",
            Self::BeyondRequiredInsertCount => {
                "a reference is not below the Required Insert Count (RFC 9204 §2.2.3)"
            }
            Self::RequiredInsertCount => {
                "the Required Insert Count is impossible (RFC 9204 §4.5.1.1)"
            }
            Self::NegativeBase => "the Base is negative (RFC 9204 §4.5.1.2)",
            Self::TooManyBlockedStreams => {
                "more streams are blocked than allowed (RFC 9204 §2.1.2)"
            }
            Self::TooManyBlockedSections => {
                "a blocked stream has too many field sections (RFC 9204 §2.2.1)"
            }
            Self::CapacityAboveMaximum => {
                "the capacity of the dynamic table exceeds its maximum (RFC 9204 §4.3.1)"
            }
            Self::EntryLargerThanTable => {
                "an entry is larger than the dynamic table (RFC 9204 §3.2.2)"
            }
            Self::NothingToAcknowledge => {
                "no field section on this stream is unacknowledged (RFC 9204 §4.4.1)"
            }
            Self::IncrementOfZero => "an Insert Count Increment is 0 (RFC 9204 §4.4.3)",
            Self::IncrementBeyondInsertions => {
                "more insertions are acknowledged than were sent (RFC 9204 §4.4.3)"
            }
            Self::CapacityNotAsRemembered => {
                "the maximum capacity differs from the one remembered for 0-RTT (RFC 9204 §3.2.3)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_fault_has_the_code_of_the_rfc_and_names_its_rule() {
        let rule = QpackRule::NegativeBase;
        assert_eq!(QpackFault::DecompressionFailed(rule).code(), Some(0x200));
        assert_eq!(QpackFault::EncoderStream(rule).code(), Some(0x201));
        assert_eq!(QpackFault::DecoderStream(rule).code(), Some(0x202));
        assert_eq!(QpackFault::FieldSectionTooLarge.code(), None);
        assert_eq!(QpackFault::DecoderStream(rule).rule(), Some(rule));
        let text = QpackFault::EncoderStream(QpackRule::IncrementOfZero).to_string();
        assert!(text.starts_with("the peer's encoder stream is invalid: "), "{text}");
    }
}
