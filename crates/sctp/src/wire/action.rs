//! Handling of chunks and parameters of unknown types.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.2>,
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.2.1>
//!
//! The two highest bits of the type state what a receiver should do that does not know it.

use super::{ChunkType, ParameterType};

/// What the highest two bits of an unknown type request. For a parameter, stopping skips the rest
/// of its chunk, not of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownAction {
    /// 00: skip the rest.
    Stop,
    /// 01: skip the rest and report it.
    StopAndReport,
    /// 10: continue with what follows.
    Skip,
    /// 11: continue with what follows and report it.
    SkipAndReport,
}

impl UnknownAction {
    /// Returns the action for an unknown chunk of this type.
    #[must_use]
    pub const fn of_chunk(chunk_type: ChunkType) -> Self {
        Self::from_bits(chunk_type.0 >> 6)
    }

    /// Returns the action for an unknown parameter of this type.
    #[must_use]
    pub const fn of_parameter(parameter_type: ParameterType) -> Self {
        Self::from_bits((parameter_type.0 >> 14) as u8)
    }

    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Stop,
            1 => Self::StopAndReport,
            2 => Self::Skip,
            _ => Self::SkipAndReport,
        }
    }

    /// Returns whether the rest has to be skipped.
    #[must_use]
    pub const fn stops(self) -> bool {
        matches!(self, Self::Stop | Self::StopAndReport)
    }

    /// Returns whether it has to be reported to the sender: a chunk by an ERROR with the cause
    /// "unrecognized chunk type", a parameter by an "unrecognized parameter" in the INIT ACK or an
    /// ERROR.
    #[must_use]
    pub const fn reports(self) -> bool {
        matches!(self, Self::StopAndReport | Self::SkipAndReport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bits_decide() {
        let of_chunk = |number| UnknownAction::of_chunk(ChunkType(number));
        assert_eq!(of_chunk(0x3f), UnknownAction::Stop);
        assert_eq!(of_chunk(0x7f), UnknownAction::StopAndReport);
        assert_eq!(of_chunk(0x80), UnknownAction::Skip);
        assert_eq!(of_chunk(0xc9), UnknownAction::SkipAndReport);
        let of_parameter = |number| UnknownAction::of_parameter(ParameterType(number));
        assert_eq!(of_parameter(0x3fff), UnknownAction::Stop);
        assert_eq!(of_parameter(0x4000), UnknownAction::StopAndReport);
        assert_eq!(of_parameter(0x8008), UnknownAction::Skip);
        assert_eq!(of_parameter(0xc000), UnknownAction::SkipAndReport);
    }

    //= rfc9260 §3.2.1
    //# unknown parameters by the highest two bits; at most eight of 64 bytes each are reported
    #[test]
    fn actions_stop_and_report() {
        assert!(UnknownAction::Stop.stops() && !UnknownAction::Stop.reports());
        assert!(UnknownAction::StopAndReport.stops() && UnknownAction::StopAndReport.reports());
        assert!(!UnknownAction::Skip.stops() && !UnknownAction::Skip.reports());
        assert!(!UnknownAction::SkipAndReport.stops() && UnknownAction::SkipAndReport.reports());
    }
}
