//! Identifiers of associations, paths and streams.

use core::fmt;

mod verification_tag;

#[cfg(feature = "internals")]
pub use verification_tag::VerificationTag;
#[cfg(not(feature = "internals"))]
pub(crate) use verification_tag::VerificationTag;

/// Identifies one association of an endpoint. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(pub u64);

/// Identifies one path of an association: one transport address of the peer (RFC 9260 §1.3).
/// Numbers are ascending in the order in which the addresses became known, and are never reused
/// within the association.
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

/// Payload protocol identifier: chosen by the application and carried unchanged (RFC 9260 §3.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppid(pub u32);
