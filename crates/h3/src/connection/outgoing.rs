//! What this endpoint says first on its own streams, and the reserved types that it mixes in (RFC 9114
//! §6.2, §6.2.3, §7.2.4.1, §7.2.8).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use super::io::{Output, UniStream};
use crate::frame;
use crate::frame_type::FrameType;
use crate::settings::Settings;
use crate::stream::{CriticalStream, StreamType};
use crate::varint;

/// Reserved numbers, drawn from a seed (RFC 9114 §6.2.3: "0x1f * N + 0x21 for non-negative integer
/// values of N").
#[derive(Clone, Copy, Debug)]
struct Reserved(u64);

impl Reserved {
    /// Returns the next number of splitmix64 (Steele et al. 2014).
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a reserved number of at most four bytes.
    fn number(&mut self) -> u64 {
        0x1f * (self.draw() % 0x100_0000) + 0x21
    }
}

/// Opens the streams that this endpoint needs. "Each side MUST initiate a single control stream at the
/// beginning of the connection and send its SETTINGS frame as the first frame on this stream" (RFC 9114
/// §6.2.1). The reserved stream is last, so that it takes no credit from the others.
pub(super) fn open(settings: &Settings, seed: Option<u64>, outputs: &mut VecDeque<Output>) {
    let mut reserved = seed.map(Reserved);
    let mut payload = Vec::new();
    let setting = reserved.as_mut().map(|numbers| (numbers.number(), numbers.draw() >> 32));
    settings.write(setting, &mut payload);
    for critical in CriticalStream::ALL {
        let mut data = Vec::new();
        varint::write(StreamType::Critical(critical).value(), &mut data);
        if critical == CriticalStream::Control {
            frame::write(FrameType::Settings, &payload, &mut data);
            if let Some(numbers) = &mut reserved {
                let ignored = FrameType::Reserved(numbers.number());
                frame::write(ignored, b"grease", &mut data);
            }
        }
        let stream = UniStream::Critical(critical);
        outputs.push_back(Output::OpenUni(stream));
        outputs.push_back(Output::Write { stream, data: data.into(), fin: false });
    }
    if let Some(numbers) = &mut reserved {
        let mut data = Vec::new();
        varint::write(numbers.number(), &mut data);
        data.extend_from_slice(b"grease");
        let stream = UniStream::Reserved;
        outputs.push_back(Output::OpenUni(stream));
        outputs.push_back(Output::Write { stream, data: data.into(), fin: true });
    }
}

/// Returns a frame of the control stream.
pub(super) fn control(frame: FrameType, payload: &[u8]) -> Output {
    let mut data = Vec::new();
    frame::write(frame, payload, &mut data);
    write(CriticalStream::Control, data.into())
}

/// Returns bytes of a stream that stays open.
pub(super) fn write(stream: CriticalStream, data: Bytes) -> Output {
    Output::Write { stream: UniStream::Critical(stream), data, fin: false }
}
