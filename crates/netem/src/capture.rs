//! Captures packets for Wireshark and tshark: pcapng (draft-ietf-opsawg-pcapng), with timestamps in
//! nanoseconds and raw IP packets.

use alloc::vec::Vec;
use core::time::Duration;

use crate::header;
use crate::packet::{Packet, PacketPayload};
use crate::time::nanos;

/// Types of blocks (§4).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// The byte-order magic (§4.1).
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Packets that begin with an IP header of either version.
const LINKTYPE_RAW: u16 = 101;
/// Options (§3.5, §4.2).
const COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
/// The timestamp resolution: 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// The default number of bytes kept of each packet. No IP packet is larger.
const WHOLE: u32 = 65_575;

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaptureInterface(u32);

/// A capture file. What has been written can be taken out as it grows, so that the whole file need
/// not be kept in memory.
#[derive(Clone, Debug)]
pub struct PacketCapture {
    contents: Vec<u8>,
    /// The maximum number of bytes buffered until they are taken out.
    limit: usize,
    interfaces: u32,
    snapshot: u32,
    /// Packets dropped for lack of space.
    missed: u64,
    identification: u16,
}

impl PacketCapture {
    /// Creates a file that buffers at most `limit` bytes; further packets are dropped and
    /// counted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let mut capture = Self {
            contents: Vec::new(),
            limit,
            interfaces: 0,
            snapshot: WHOLE,
            missed: 0,
            identification: 0,
        };
        capture.block(SECTION_HEADER, |body| {
            body.extend(BYTE_ORDER.to_le_bytes());
            // Version 1.0, and an unspecified section length.
            body.extend(1_u16.to_le_bytes());
            body.extend(0_u16.to_le_bytes());
            body.extend(u64::MAX.to_le_bytes());
        });
        capture
    }

    /// Keeps only this many bytes of each packet, including the IP header.
    #[must_use]
    pub const fn with_snapshot(mut self, bytes: u32) -> Self {
        self.snapshot = bytes;
        self
    }

    /// Adds an interface, with the name shown by Wireshark.
    pub fn interface(&mut self, name: &str) -> CaptureInterface {
        let snapshot = self.snapshot;
        self.block(INTERFACE_DESCRIPTION, |body| {
            body.extend(LINKTYPE_RAW.to_le_bytes());
            body.extend(0_u16.to_le_bytes());
            body.extend(snapshot.to_le_bytes());
            option(body, INTERFACE_NAME, name.as_bytes());
            option(body, TIME_RESOLUTION, &[NANOSECONDS]);
            option(body, 0, &[]);
        });
        self.interfaces += 1;
        CaptureInterface(self.interfaces - 1)
    }

    /// Captures a packet, with a comment if there is one.
    pub fn packet<B: PacketPayload>(
        &mut self,
        now: Duration,
        interface: CaptureInterface,
        packet: &Packet<B>,
        comment: Option<&str>,
    ) {
        let mut header = Vec::with_capacity(packet.header_len());
        header::write(packet, self.identification, &mut header);
        self.identification = self.identification.wrapping_add(1);
        self.pieces(now, interface, [&header, &packet.payload.to_bytes()], comment);
    }

    /// Captures an encoded packet that begins with the IP header.
    pub fn bytes(
        &mut self,
        now: Duration,
        interface: CaptureInterface,
        packet: &[u8],
        comment: Option<&str>,
    ) {
        self.pieces(now, interface, [packet, &[]], comment);
    }

    fn pieces(
        &mut self,
        now: Duration,
        interface: CaptureInterface,
        pieces: [&[u8]; 2],
        comment: Option<&str>,
    ) {
        let length = pieces[0].len() + pieces[1].len();
        let kept = length.min(self.snapshot as usize);
        if self.contents.len() + kept > self.limit {
            self.missed += 1;
            return;
        }
        let time = nanos(now);
        self.block(ENHANCED_PACKET, |body| {
            body.extend(interface.0.to_le_bytes());
            body.extend(((time >> 32) as u32).to_le_bytes());
            body.extend((time as u32).to_le_bytes());
            body.extend((kept as u32).to_le_bytes());
            body.extend((length as u32).to_le_bytes());
            body.extend(pieces[0].iter().chain(pieces[1]).take(kept));
            pad(body);
            if let Some(comment) = comment {
                option(body, COMMENT, comment.as_bytes());
                option(body, 0, &[]);
            }
        });
    }

    /// Removes and returns everything written since the last call: the next piece of the file.
    pub fn drain(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.contents)
    }

    /// Returns everything written that has not been taken.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Returns the number of packets dropped for lack of space.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Writes a block: its type, its length, what `write` adds, and its length again.
    fn block(&mut self, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.contents.len();
        self.contents.extend(kind.to_le_bytes());
        self.contents.extend([0; 4]);
        // Padding is counted from the beginning of the block, which is at a multiple of 4.
        write(&mut self.contents);
        let length = (self.contents.len() - begin + 4) as u32;
        self.contents.extend(length.to_le_bytes());
        self.contents[begin + 4..begin + 8].copy_from_slice(&length.to_le_bytes());
    }
}

/// Writes an option: code, length, value, padding.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = value.len().min(usize::from(u16::MAX));
    body.extend(code.to_le_bytes());
    body.extend((length as u16).to_le_bytes());
    body.extend(&value[..length]);
    pad(body);
}

/// Every block is a multiple of 4 bytes long, so the body can be padded as a whole.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn packet(payload: usize) -> Packet {
        Packet {
            source: [192, 0, 2, 1].into(),
            destination: [192, 0, 2, 2].into(),
            protocol: 17,
            ecn: 1,
            dont_fragment: true,
            payload: Bytes::from(alloc::vec![0xab; payload]),
        }
    }

    /// Types and lengths of all blocks; the length is at both ends of each.
    fn blocks(mut contents: &[u8]) -> Vec<(u32, usize)> {
        let word = |at: &[u8]| u32::from_le_bytes(at[..4].try_into().expect("four bytes"));
        let mut blocks = Vec::new();
        while !contents.is_empty() {
            let length = word(&contents[4..]) as usize;
            assert_eq!(word(&contents[length - 4..]) as usize, length);
            blocks.push((word(contents), length));
            contents = &contents[length..];
        }
        blocks
    }

    #[test]
    fn blocks_have_their_declared_length() {
        let mut capture = PacketCapture::new(1 << 16);
        let interface = capture.interface("a link");
        capture.packet(Duration::from_secs(5), interface, &packet(9), None);
        capture.packet(Duration::from_secs(6), interface, &packet(8), Some("dropped"));
        let kinds = [
            (SECTION_HEADER, 28),
            (INTERFACE_DESCRIPTION, 20 + 12 + 8 + 4),
            (ENHANCED_PACKET, 32 + 32),
            (ENHANCED_PACKET, 32 + 28 + 12 + 4),
        ];
        assert_eq!(blocks(capture.contents()), kinds);
        assert_eq!(capture.drain().len(), kinds.iter().map(|(_, length)| length).sum());
        assert_eq!(capture.contents(), []);
    }

    #[test]
    fn excess_packets_are_counted() {
        let mut capture = PacketCapture::new(200).with_snapshot(40);
        let interface = capture.interface("a");
        for _ in 0..5 {
            capture.packet(Duration::ZERO, interface, &packet(1000), None);
        }
        assert_eq!(capture.missed(), 3);
        assert_eq!(blocks(capture.contents()).len(), 4);
    }
}
