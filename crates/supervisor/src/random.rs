//! Unpredictable numbers.

use std::fs::File;
use std::io::{self, Read as _};

/// Returns unpredictable bytes.
pub(crate) fn bytes<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns an unpredictable number.
pub(crate) fn number() -> io::Result<u64> {
    bytes().map(u64::from_ne_bytes)
}
