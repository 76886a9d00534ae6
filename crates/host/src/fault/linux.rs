//! What to change on Linux.

pub(super) const MORE_PORTS: &str = "widen net.ipv4.ip_local_port_range";
pub(super) const MORE_DESCRIPTORS: &str = "close some or raise the limit (ulimit -n)";
pub(super) const MORE_HOST_DESCRIPTORS: &str = "close some or raise fs.file-max";
