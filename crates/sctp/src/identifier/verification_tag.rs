//! What a packet must carry.

/// Verification tag: what a packet must carry to be taken for the association's (RFC 9260 §8.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerificationTag(pub u32);

impl VerificationTag {
    /// The tag of a packet that carries an INIT chunk (RFC 9260 §8.5.1).
    pub const ZERO: Self = Self(0);
}
