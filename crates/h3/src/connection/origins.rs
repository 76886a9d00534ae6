//! The Origin Set of a connection (RFC 9412 §2, RFC 8336 §2.3), at a client.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use bytes::Bytes;

/// The number of origins that are kept of what a server says; further ones are dropped.
pub const MAX_ORIGINS: usize = 256;

/// The longest origin that is kept, in bytes: a name has at most 255 (RFC 1035 §2.3.4).
const MAX_ORIGIN: usize = 300;

/// The origins that the server has named.
#[derive(Debug, Default)]
pub(super) struct OriginSet(BTreeSet<Bytes>);

impl OriginSet {
    /// Adds the entries of an ORIGIN frame, and returns those that are new.
    pub(super) fn add(&mut self, entries: Vec<Bytes>) -> Vec<Bytes> {
        let mut added = Vec::new();
        for entry in entries {
            // An entry that is not the ASCII serialisation of an origin is ignored (RFC 8336 §2.1).
            let is_origin = entry.is_ascii() && (1..=MAX_ORIGIN).contains(&entry.len());
            if is_origin && self.0.len() < MAX_ORIGINS && !self.0.contains(&entry) {
                // A slice would keep the whole frame.
                let origin = Bytes::copy_from_slice(&entry);
                self.0.insert(origin.clone());
                added.push(origin);
            }
        }
        added
    }
}
