//! What to change on Windows.

pub(super) const MORE_PORTS: &str = "widen the range of `netsh int ipv4 show dynamicport tcp`";
/// The limit of sockets is that of memory.
pub(super) const MORE_DESCRIPTORS: &str = "close some";
pub(super) const MORE_HOST_DESCRIPTORS: &str = "close some";
