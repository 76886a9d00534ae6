//! Reads packets from a capture written by the emulator: pcapng (draft-ietf-opsawg-pcapng),
//! little-endian, with times in nanoseconds.

use std::time::Duration;

/// Block types (§4).
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// The offset of the options of an interface, and the option that contains its name (§4.2).
const INTERFACE_OPTIONS: usize = 8;
const INTERFACE_NAME: u16 = 2;
/// The offset of the bytes of a packet (§4.3).
const PACKET: usize = 20;

/// A packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CapturedPacket {
    /// The time since the UNIX epoch.
    pub(super) at: Duration,
    /// The name of the interface.
    pub(super) interface: String,
    /// The IP packet.
    pub(super) ip: Vec<u8>,
}

/// Returns all packets of a file, up to the first error.
pub(super) fn packets(mut file: &[u8]) -> Vec<CapturedPacket> {
    let mut interfaces: Vec<String> = Vec::new();
    let mut packets = Vec::new();
    while let Some((kind, body, rest)) = block(file) {
        file = rest;
        match kind {
            INTERFACE_DESCRIPTION => interfaces.push(interface_name(body).unwrap_or_default()),
            ENHANCED_PACKET => packets.extend(packet(body, &interfaces)),
            _ => {}
        }
    }
    packets
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the type of the first block, its content, and the rest of the file.
fn block(file: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let length = usize::try_from(word(file, 4)?).ok()?;
    let body = file.get(8..length.checked_sub(4)?)?;
    Some((word(file, 0)?, body, file.get(length..)?))
}

fn interface_name(body: &[u8]) -> Option<String> {
    let mut options = body.get(INTERFACE_OPTIONS..)?;
    loop {
        let code = u16::from_le_bytes([*options.first()?, *options.get(1)?]);
        let length = usize::from(u16::from_le_bytes([*options.get(2)?, *options.get(3)?]));
        if code == INTERFACE_NAME {
            return Some(String::from_utf8_lossy(options.get(4..4 + length)?).into_owned());
        }
        options = options.get(4 + length.next_multiple_of(4)..)?;
    }
}

fn packet(body: &[u8], interfaces: &[String]) -> Option<CapturedPacket> {
    let interface = interfaces.get(word(body, 0)? as usize)?.clone();
    let nanos = u64::from(word(body, 4)?) << 32 | u64::from(word(body, 8)?);
    let length = usize::try_from(word(body, 12)?).ok()?;
    let ip = body.get(PACKET..PACKET.checked_add(length)?)?.to_vec();
    Some(CapturedPacket { at: Duration::from_nanos(nanos), interface, ip })
}

#[cfg(test)]
mod tests {
    use eyas_netem::capture::PacketCapture;

    use super::*;

    #[test]
    fn a_written_capture_is_read_back() {
        let mut capture = PacketCapture::new(1 << 20);
        let ends = ["six at the client", "six at the server"].map(|name| capture.interface(name));
        let at = Duration::new(1_700_000_000, 123_456_789);
        capture.bytes(at, ends[0], &[0x60, 1, 2], None);
        capture.bytes(at + Duration::from_nanos(1), ends[1], &[0x60, 1, 2, 3, 4], Some("late"));
        let file = capture.drain();
        let read = packets(&file);
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].at, read[0].interface.as_str()), (at, "six at the client"));
        assert_eq!(read[1].ip, [0x60, 1, 2, 3, 4]);
        for end in 0..file.len() {
            assert!(packets(&file[..end]).len() < 2, "{end}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_it_panic(bytes: Vec<u8>) {
            let _ = packets(&bytes);
        }
    }
}
