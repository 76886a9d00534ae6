//! The names of the chunks in a packet, for the ladder.

/// As in RFC 9260 §3.2 and the extensions.
fn name(chunk_type: u8) -> &'static str {
    match chunk_type {
        0 => "DATA",
        1 => "INIT",
        2 => "INIT-ACK",
        3 => "SACK",
        4 => "HEARTBEAT",
        5 => "HEARTBEAT-ACK",
        6 => "ABORT",
        7 => "SHUTDOWN",
        8 => "SHUTDOWN-ACK",
        9 => "ERROR",
        10 => "COOKIE-ECHO",
        11 => "COOKIE-ACK",
        12 => "ECNE",
        13 => "CWR",
        14 => "SHUTDOWN-COMPLETE",
        15 => "AUTH",
        16 => "NR-SACK",
        64 => "I-DATA",
        128 => "ASCONF-ACK",
        130 => "RE-CONFIG",
        132 => "PAD",
        192 => "FORWARD-TSN",
        193 => "ASCONF",
        194 => "I-FORWARD-TSN",
        _ => "?",
    }
}

/// The chunks of a packet; consecutive equal ones are named once.
pub(crate) fn names(packet: &[u8]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut rest = packet.get(12..).unwrap_or_default();
    while let [chunk_type, _, high, low, ..] = *rest {
        let length = usize::from(u16::from_be_bytes([high, low])).max(4).next_multiple_of(4);
        if names.last() != Some(&name(chunk_type)) {
            names.push(name(chunk_type));
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    names.join(" ")
}
