//! The unidirectional streams of this endpoint: what they begin with, the reserved types that it mixes
//! in, and what waits to be sent on them (RFC 9114 §6.2, §6.2.3, §7.2.4.1, §7.2.8).

use alloc::vec::Vec;

use super::io::{Output, UniStream};
use crate::fault::ConnectionFault;
use crate::frame;
use crate::frame_type::FrameType;
use crate::settings::Settings;
use crate::stream::{CriticalStream, StreamType};
use crate::varint;

/// How much may wait for a stream of this endpoint that the peer does not read, in bytes. The peer can
/// make the QPACK decoder speak (RFC 9204 §7.3), and this endpoint's users the control stream.
pub const MAX_UNSENT: usize = 64 * 1024;

/// The streams in the order in which they are opened. The reserved one is last, so that it takes no
/// credit from those that are needed.
const ORDER: [UniStream; 4] = [
    UniStream::Critical(CriticalStream::Control),
    UniStream::Critical(CriticalStream::QpackEncoder),
    UniStream::Critical(CriticalStream::QpackDecoder),
    UniStream::Reserved,
];

/// The streams.
#[derive(Debug)]
pub(super) struct OutgoingStreams([OutgoingStream; ORDER.len()]);

#[derive(Debug)]
struct OutgoingStream {
    stage: Stage,
    unsent: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has not been asked for.
    New,
    /// It has been asked for and is not open.
    Asked,
    /// It can be written to.
    Ready,
    /// It is being written to.
    Writing,
    /// It has ended, or is not used.
    Over,
}

impl OutgoingStreams {
    /// Prepares the streams. "Each side MUST initiate a single control stream at the beginning of the
    /// connection and send its SETTINGS frame as the first frame on this stream" (RFC 9114 §6.2.1).
    /// Reserved numbers are drawn from the seed, if there is one.
    pub(super) fn new(settings: &Settings, seed: Option<u64>) -> Self {
        let mut reserved = seed.map(Reserved);
        let mut payload = Vec::new();
        let setting = reserved.as_mut().map(|numbers| (numbers.number(), numbers.draw() >> 32));
        settings.write(setting, &mut payload);
        Self(ORDER.map(|stream| {
            let mut unsent = Vec::new();
            match (stream, &mut reserved) {
                (UniStream::Critical(critical), reserved) => {
                    varint::write(StreamType::Critical(critical).value(), &mut unsent);
                    if critical == CriticalStream::Control {
                        frame::write(FrameType::Settings, &payload, &mut unsent);
                        if let Some(numbers) = reserved {
                            let ignored = FrameType::Reserved(numbers.number());
                            frame::write(ignored, b"grease", &mut unsent);
                        }
                    }
                }
                (UniStream::Reserved, Some(numbers)) => {
                    varint::write(numbers.number(), &mut unsent);
                    unsent.extend_from_slice(b"grease");
                }
                (UniStream::Reserved, None) => {
                    return OutgoingStream { stage: Stage::Over, unsent };
                }
            }
            OutgoingStream { stage: Stage::New, unsent }
        }))
    }

    /// Returns the next stream to open, or bytes to write.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        for (stream, state) in ORDER.into_iter().zip(&mut self.0) {
            match state.stage {
                Stage::New => {
                    state.stage = Stage::Asked;
                    return Some(Output::OpenUni(stream));
                }
                Stage::Ready if !state.unsent.is_empty() => {
                    let data = core::mem::take(&mut state.unsent).into();
                    let fin = stream == UniStream::Reserved;
                    state.stage = if fin { Stage::Over } else { Stage::Writing };
                    return Some(Output::Write { stream, data, fin });
                }
                Stage::Asked | Stage::Ready | Stage::Writing | Stage::Over => {}
            }
        }
        None
    }

    /// Takes note that a stream is open, or that it can be written to again.
    pub(super) fn set_ready(&mut self, stream: UniStream) {
        let state = self.state(stream);
        if matches!(state.stage, Stage::Asked | Stage::Writing) {
            state.stage = Stage::Ready;
        }
    }

    /// Adds bytes that a stream continues with.
    pub(super) fn push(
        &mut self,
        stream: CriticalStream,
        data: &[u8],
    ) -> Result<(), ConnectionFault> {
        let state = self.state(UniStream::Critical(stream));
        if state.unsent.len() + data.len() > MAX_UNSENT {
            return Err(ConnectionFault::StreamNotRead(stream));
        }
        state.unsent.extend_from_slice(data);
        Ok(())
    }

    /// Adds a frame to the control stream.
    pub(super) fn push_frame(
        &mut self,
        frame: FrameType,
        payload: &[u8],
    ) -> Result<(), ConnectionFault> {
        let mut data = Vec::new();
        frame::write(frame, payload, &mut data);
        self.push(CriticalStream::Control, &data)
    }

    const fn state(&mut self, stream: UniStream) -> &mut OutgoingStream {
        &mut self.0[match stream {
            UniStream::Critical(critical) => critical as usize,
            UniStream::Reserved => ORDER.len() - 1,
        }]
    }
}

/// Reserved numbers, drawn from a seed: "0x1f * N + 0x21 for non-negative integer values of N" (RFC 9114
/// §6.2.3).
#[derive(Clone, Copy, Debug)]
struct Reserved(u64);

impl Reserved {
    /// Returns the next number of splitmix64 (Steele et al. 2014).
    const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a reserved number of at most four bytes.
    const fn number(&mut self) -> u64 {
        0x1f * (self.draw() % 0x100_0000) + 0x21
    }
}
