//! What to change on FreeBSD, macOS and their relatives.

pub(super) const MORE_PORTS: &str = "widen net.inet.ip.portrange.first to last";
pub(super) const MORE_DESCRIPTORS: &str = "close some or raise the limit (ulimit -n)";
pub(super) const MORE_HOST_DESCRIPTORS: &str = "close some or raise kern.maxfiles";
