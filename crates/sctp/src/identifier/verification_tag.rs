//! Verification tags.

/// Verification tag: what a packet must carry to be accepted by an association (RFC 9260 §8.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerificationTag(pub u32);

impl VerificationTag {
    /// The tag of a packet with an INIT chunk (RFC 9260 §8.5.1).
    pub const ZERO: Self = Self(0);
}
