//! What a stack is and allows.

use core::net::IpAddr;

use alloc::vec::Vec;
use eyas_sctp::config::AssociationConfig;

/// What a stack is and allows.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// The UDP port that peers are spoken to at (RFC 6951), 0 for SCTP directly over IP. Who speaks
    /// first is answered the way it came.
    pub encapsulation_port: u16,
    /// Addresses of this host, loopback included, most wanted first, until
    /// [`crate::Input::LocalAddresses`] says others.
    pub addresses: Vec<IpAddr>,
    /// What associations are like where no option says otherwise: multipath, congestion control, loss
    /// detection. What options can say begins with Linux's values, whatever is here.
    pub association: AssociationConfig,
    /// The most sockets at a time.
    pub max_sockets: usize,
    /// Bytes of user data that all associations of one SCTP port may hold together.
    pub memory: usize,
}

impl Default for StackConfig {
    fn default() -> Self {
        Self {
            encapsulation_port: 9899,
            addresses: Vec::new(),
            association: AssociationConfig::default(),
            max_sockets: 100_000,
            memory: 256 << 20,
        }
    }
}
