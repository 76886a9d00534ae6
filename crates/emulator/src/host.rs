//! The two hosts.

use std::fmt;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostRole {
    /// The host whose network is emulated: behind the middleboxes, where the command runs.
    Client,
    /// The far side.
    Server,
}

impl HostRole {
    /// Both hosts.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    /// Returns the other host.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for HostRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Client { "client" } else { "server" })
    }
}
