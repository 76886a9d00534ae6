//! Linux, FreeBSD and others, whose libc reads the files that this module reads; and macOS, where mDNSResponder knows
//! which servers a name belongs to (a VPN's, the local link's). There the servers of `/etc/resolv.conf`, which are those of
//! the first network, are asked for HTTPS records alone.

use std::sync::Arc;

use super::super::resolv_conf::ResolvConf;

/// Why the host's own resolver is asked for every address, if so.
pub(in super::super) const RESOLVES_ITSELF: Option<&str> = if cfg!(target_vendor = "apple") {
    Some("names of this system are resolved by its mDNSResponder")
} else {
    None
};

/// The name servers are in resolv.conf(5).
#[derive(Debug)]
pub(in super::super) struct NameServers;

impl NameServers {
    pub(in super::super) fn new() -> Self {
        Self
    }

    /// Returns the name servers, if they are not in a file.
    #[expect(clippy::unused_self, reason = "on Windows they are kept for a while")]
    pub(in super::super) fn current(&self) -> Option<Arc<ResolvConf>> {
        None
    }
}
