//! The limit of descriptors of this process, and what servers may do within it.

use eyas::host::limits;

/// Descriptors that do not depend on clients: the standard streams, the runtime's, listeners and UDP sockets at some
/// addresses, metrics, logs, the memory.
const OWN: usize = 48;

/// The share of the others for attempts to connect, and for queries that look up names: one in this many each, and no
/// more than this.
const ATTEMPTS_SHARE: usize = 8;
const MAX_ATTEMPTS: usize = 1024;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub(super) use platform::{raise_limit, with_limit};

/// The descriptors that a server divides among its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DescriptorShares {
    /// For clients and what is done for them.
    pub(super) of_clients: usize,
    /// For attempts to connect, until they have won or lost. There are as many for looking up names.
    pub(super) of_attempts: usize,
}

impl DescriptorShares {
    /// Raises the limit, and divides what it allows.
    pub(super) fn raised() -> Self {
        raise_limit();
        Self::now()
    }

    /// Divides what the current limit allows.
    pub(super) fn now() -> Self {
        let limit = limits::descriptors().unwrap_or(u64::MAX);
        Self::from_limit(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    fn from_limit(limit: usize) -> Self {
        // With a very low limit something must be left for clients.
        let rest = limit - OWN.min(limit / 2);
        let of_attempts = (rest / ATTEMPTS_SHARE).clamp(1, MAX_ATTEMPTS);
        Self { of_clients: rest.saturating_sub(2 * of_attempts), of_attempts }
    }

    /// Returns all of them, for a server that looks up no names and connects to nobody.
    pub(super) fn all(self) -> usize {
        self.of_clients.saturating_add(2 * self.of_attempts)
    }

    /// Returns what a server tells its operator if it has lowered its limit on clients, which are called this.
    pub(super) fn lowered(wanted: usize, possible: usize, what: &str) -> Option<String> {
        (possible < wanted).then(|| {
            format!(
                "the limit of descriptors allows {possible} {what} at a time instead of {wanted}: \
                 raise it (ulimit -n, LimitNOFILE=)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_divided() {
        assert_eq!(
            DescriptorShares::from_limit(256),
            DescriptorShares { of_clients: 156, of_attempts: 26 }
        );
        assert_eq!(
            DescriptorShares::from_limit(32),
            DescriptorShares { of_clients: 12, of_attempts: 2 }
        );
        assert_eq!(
            DescriptorShares::from_limit(0),
            DescriptorShares { of_clients: 0, of_attempts: 1 }
        );
        assert_eq!(
            DescriptorShares::from_limit(16_384),
            DescriptorShares { of_clients: 14_288, of_attempts: 1024 }
        );
        assert_eq!(DescriptorShares::from_limit(usize::MAX).of_attempts, 1024);
    }

    #[test]
    fn a_lowered_limit_is_reported() {
        assert_eq!(DescriptorShares::lowered(100, 100, "clients"), None);
        let text = DescriptorShares::lowered(4096, 91, "clients").expect("a text");
        assert!(text.contains("allows 91 clients at a time instead of 4096"), "{text}");
    }
}
