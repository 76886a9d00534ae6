//! Unix, on which every option that matters is there or is left out by quinn-udp.

pub use quinn_udp::UdpSocketState as UdpOffload;
