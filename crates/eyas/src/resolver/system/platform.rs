//! Where a system keeps its name servers, and whether it lets programs ask them for addresses.

#[cfg(not(windows))]
mod files;
#[cfg(windows)]
mod windows;

#[cfg(not(windows))]
pub(super) use files::{NameServers, RESOLVES_ITSELF};
#[cfg(windows)]
pub(super) use windows::{NameServers, RESOLVES_ITSELF};
