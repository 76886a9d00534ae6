//! How a descriptor identifies its socket.
//!
//! The supervisor's end of each pair is bound to an abstract name, so `getpeername` on the
//! program's end returns it, in whatever process the descriptor is.

/// The maximum length of a name, including the leading zero byte.
pub const MAX_NAME: usize = PREFIX.len() + 16 + 1 + 16;

const PREFIX: &[u8] = b"\0eyas-sctp-socket/";
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A socket of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The random identifier of the supervisor.
    pub instance: u64,
    /// The number of the socket there.
    pub socket: u64,
}

impl Descriptor {
    /// Returns the name, including the leading zero byte.
    #[must_use]
    pub fn name(self) -> [u8; MAX_NAME] {
        let mut name = [b'/'; MAX_NAME];
        name[..PREFIX.len()].copy_from_slice(PREFIX);
        put_hex(&mut name[PREFIX.len()..][..16], self.instance);
        put_hex(&mut name[PREFIX.len() + 17..], self.socket);
        name
    }

    /// Parses a name, including the leading zero byte.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?;
        if rest.len() != 33 || rest[16] != b'/' {
            return None;
        }
        Some(Self { instance: hex(&rest[..16])?, socket: hex(&rest[17..])? })
    }
}

fn put_hex(digits: &mut [u8], value: u64) {
    for (index, digit) in digits.iter_mut().rev().enumerate() {
        *digit = DIGITS[(value >> (4 * index)) as usize & 15];
    }
}

/// Parses hexadecimal digits, at most 16 of them.
fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value: u64, digit| {
        let digit = DIGITS.iter().position(|one| one == digit)?;
        Some(value << 4 | digit as u64)
    })
}

/// Parses the key after the address of a supervisor.
#[must_use]
pub fn key_of(digits: &[u8]) -> Option<u64> {
    hex(digits)
}
