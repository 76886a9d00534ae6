//! Numbers that nobody can foresee.

use std::fs::File;
use std::io::{self, Read as _};

/// Bytes that nobody can foresee.
pub(crate) fn bytes<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A number that nobody can foresee.
pub(crate) fn number() -> io::Result<u64> {
    bytes().map(u64::from_ne_bytes)
}
