//! The configuration of a stack.

use core::net::IpAddr;

use alloc::vec::Vec;
use eyas_sctp::config::AssociationConfig;

/// The configuration of a stack.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The UDP port of peers (RFC 6951), 0 for SCTP directly over IP. A peer that opens an
    /// association is answered the way its packets came.
    pub encapsulation_port: u16,
    /// The local addresses, including loopback, most preferred first, until
    /// [`crate::StackInput::LocalAddresses`] replaces them.
    pub addresses: Vec<IpAddr>,
    /// The configuration of associations where no option applies: multipath, congestion control,
    /// loss detection. Values that options can set always begin with Linux's defaults.
    pub association: AssociationConfig,
    /// The maximum number of sockets.
    pub max_sockets: usize,
    /// The maximum memory in bytes for user data of all associations of one SCTP port.
    pub memory: usize,
    /// The largest send buffer that a program can request (`net.core.wmem_max`); twice that is
    /// granted.
    pub max_send_buffer: usize,
    /// The same for the receive buffer (`net.core.rmem_max`).
    pub max_receive_buffer: usize,
    /// The largest size that `SO_SNDBUFFORCE` and `SO_RCVBUFFORCE` can request.
    pub max_forced_buffer: usize,
}

impl Default for StackConfig {
    fn default() -> Self {
        Self {
            encapsulation_port: 9899,
            addresses: Vec::new(),
            association: AssociationConfig::default(),
            max_sockets: 100_000,
            memory: 256 << 20,
            max_send_buffer: 212_992,
            max_receive_buffer: 212_992,
            max_forced_buffer: 4 << 20,
        }
    }
}
