//! What names an association, a path, a stream.

use core::fmt;

mod verification_tag;

#[cfg(feature = "internals")]
pub use verification_tag::VerificationTag;
#[cfg(not(feature = "internals"))]
pub(crate) use verification_tag::VerificationTag;

/// One association of one endpoint. Never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(pub u64);

/// One path of one association: one transport address of the peer (RFC 9260 §1.3). Numbers rise in
/// the order of learning the addresses and are never used again within the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}

/// One stream, in one direction (RFC 9260 §1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);

/// Payload protocol identifier: the application's own, carried as it is (RFC 9260 §3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppid(pub u32);
