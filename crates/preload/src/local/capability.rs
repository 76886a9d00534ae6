//! How a descriptor identifies its socket.
//!
//! The program's end of each pair has an unpredictable number in `SO_MAX_PACING_RATE`, which has no
//! effect on a local socket. Whoever has the descriptor can read it, in whatever process that is,
//! and nobody else: a name of the other end would be listed in `/proc/net/unix`.

use libc::c_int;

/// The byte that marks these numbers. As a rate it is beyond any link, and below the default, which
/// is the highest number.
const MARK: u64 = 0xe5 << 56;
const RANDOM: u64 = (1 << 56) - 1;
/// Set while messages may be written to the descriptor: every process that has it sees this.
const WRITABLE: u64 = 1 << 57;

/// The right to use a socket of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capability(u64);

impl Capability {
    /// The option of level `SOL_SOCKET` whose value a capability is.
    pub const OPTION: c_int = libc::SO_MAX_PACING_RATE;

    /// Creates one from an unpredictable number, of which 56 bits are used.
    #[must_use]
    pub const fn new(random: u64) -> Self {
        Self(MARK | random & RANDOM)
    }

    /// Returns the value of the option.
    #[must_use]
    pub const fn rate(self) -> u64 {
        self.0
    }

    /// Parses the value of the option; `None` if it is that of another socket.
    #[must_use]
    pub const fn from_rate(rate: u64) -> Option<Self> {
        if rate & !(RANDOM | WRITABLE) == MARK { Some(Self(rate)) } else { None }
    }

    /// Returns the number that identifies the socket, which never changes.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 & !WRITABLE
    }

    /// Returns whether messages may be written to the descriptor.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// Returns the same with or without the right to write messages to the descriptor.
    #[must_use]
    pub const fn with_writable(self, is_writable: bool) -> Self {
        Self(if is_writable { self.0 | WRITABLE } else { self.number() })
    }
}

/// Parses the key after the address of a supervisor: hexadecimal digits, at most 16 of them.
#[must_use]
pub fn key_of(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value: u64, digit| {
        let digit = (*digit as char).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}
