//! Which calls concern the supervisor, and what the values of some options point to.

use super::i32_at;

use libc::c_int;

/// The protocol number, and the level of its options.
pub const SCTP: c_int = 132;
/// `SCTP_SOCKOPT_PEELOFF`, which creates a descriptor.
pub const PEELOFF: c_int = 102;
/// `SCTP_SOCKOPT_PEELOFF_FLAGS`: the same, with flags of the descriptor.
pub const PEELOFF_FLAGS: c_int = 122;
/// `SCTP_SOCKOPT_CONNECTX_OLD`, which opens an association.
pub const CONNECTX_OLD: c_int = 107;
/// `SCTP_SOCKOPT_CONNECTX`: the same, and returns the identifier of the association.
pub const CONNECTX: c_int = 110;
/// `SCTP_SOCKOPT_CONNECTX3`: the same, as an option that is read.
pub const CONNECTX3: c_int = 111;
/// The maximum number of bytes of an option, whatever is requested.
pub const MAX_OPTION: usize = 256 * 1024;
/// Flags that a socket type can be combined with.
pub const KIND_FLAGS: c_int = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// The maximum number of bytes of addresses that an option may point to.
const MAX_ADDRESSES: c_int = 64 * 1024;

/// Returns whether a socket with these arguments is an SCTP socket.
#[must_use]
pub const fn is_sctp(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    let is_ip = domain == libc::AF_INET || domain == libc::AF_INET6;
    let kind = kind & !KIND_FLAGS;
    let is_ours = match protocol {
        // A raw socket for protocol 132 implements SCTP itself.
        SCTP => kind != libc::SOCK_RAW,
        // No other IP protocol has this type.
        0 => kind == libc::SOCK_SEQPACKET,
        _ => false,
    };
    is_ip && is_ours
}

/// Returns whether this option is kept by the descriptor itself.
#[must_use]
pub fn is_kept_by_descriptor(level: c_int, option: c_int) -> bool {
    // On 32-bit machines with 64-bit times, these options have different numbers.
    const TIMES: [c_int; 4] = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO, 66, 67];
    const OTHERS: [c_int; 2] = [libc::SO_KEEPALIVE, libc::SO_COOKIE];
    level == libc::SOL_SOCKET && (TIMES.contains(&option) || OTHERS.contains(&option))
}

/// Returns whether reading this option opens an association.
#[must_use]
pub const fn opens_when_read(level: c_int, option: c_int) -> bool {
    level == SCTP && option == CONNECTX3
}

/// Returns whether setting this option opens an association.
#[must_use]
pub const fn opens_when_set(level: c_int, option: c_int) -> bool {
    level == SCTP && matches!(option, CONNECTX | CONNECTX_OLD)
}

/// Returns whether reading this option creates a descriptor.
#[must_use]
pub const fn peels_off(level: c_int, option: c_int) -> bool {
    level == SCTP && matches!(option, PEELOFF | PEELOFF_FLAGS)
}

/// Returns the flags of the descriptor that reading this option creates.
#[must_use]
pub fn peeloff_flags(level: c_int, option: c_int, value: &[u8]) -> c_int {
    match (level, option) {
        (SCTP, PEELOFF_FLAGS) => i32_at(value, 8).unwrap_or(0),
        _ => 0,
    }
}

/// Returns the position and the number of bytes of the addresses that [`CONNECTX3`] points to.
#[must_use]
pub fn addresses(value: &[u8]) -> Option<(usize, usize)> {
    let length = i32_at(value, 4).filter(|length| (1..=MAX_ADDRESSES).contains(length))?;
    let address = usize::from_ne_bytes(*value.get(8..)?.first_chunk()?);
    (address != 0).then_some((address, length as usize))
}
