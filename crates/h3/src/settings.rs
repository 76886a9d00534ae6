//! SETTINGS (RFC 9114 §7.2.4, RFC 9204 §5, RFC 9220 §5, RFC 9297 §2.1.1).

use alloc::vec::Vec;

use crate::fault::ConnectionFault;
use crate::frame_type::FrameType;
use crate::varint;

/// The number of settings that a SETTINGS frame may have.
pub const MAX_SETTINGS: usize = 64;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
const H3_DATAGRAM: u64 = 0x33;

/// The settings of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// SETTINGS_MAX_FIELD_SECTION_SIZE, in bytes as RFC 9114 §4.2.2 counts them; `None` is no limit.
    pub max_field_section_size: Option<u64>,
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY, in bytes.
    pub qpack_max_table_capacity: u64,
    /// SETTINGS_QPACK_BLOCKED_STREAMS, the number of streams.
    pub qpack_blocked_streams: u64,
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL: extended CONNECT (RFC 9220).
    pub extended_connect: bool,
    /// SETTINGS_H3_DATAGRAM: HTTP Datagrams in QUIC DATAGRAM frames (RFC 9297 §2.1.1).
    pub datagrams: bool,
}

impl Settings {
    /// Parses the payload of a SETTINGS frame.
    pub(crate) fn parse(mut payload: &[u8]) -> Result<Self, ConnectionFault> {
        let mut settings = Self::default();
        let mut seen = Vec::new();
        while !payload.is_empty() {
            let malformed = || ConnectionFault::FrameMalformed(FrameType::Settings);
            let (setting, rest) = varint::parse(payload).ok_or_else(malformed)?;
            let (value, rest) = varint::parse(rest).ok_or_else(malformed)?;
            payload = rest;
            // "The same setting identifier MUST NOT occur more than once in the SETTINGS frame" (RFC
            // 9114 §7.2.4).
            if seen.contains(&setting) {
                return Err(ConnectionFault::SettingRepeated(setting));
            }
            if seen.len() == MAX_SETTINGS {
                return Err(ConnectionFault::TooManySettings { limit: MAX_SETTINGS });
            }
            seen.push(setting);
            settings.set(setting, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, setting: u64, value: u64) -> Result<(), ConnectionFault> {
        let boolean = || match value {
            0 | 1 => Ok(value == 1),
            _ => Err(ConnectionFault::SettingInvalid { setting, value }),
        };
        match setting {
            QPACK_MAX_TABLE_CAPACITY => self.qpack_max_table_capacity = value,
            MAX_FIELD_SECTION_SIZE => self.max_field_section_size = Some(value),
            QPACK_BLOCKED_STREAMS => self.qpack_blocked_streams = value,
            ENABLE_CONNECT_PROTOCOL => self.extended_connect = boolean()?,
            H3_DATAGRAM => self.datagrams = boolean()?,
            // "Setting identifiers that were defined in [HTTP/2] where there is no corresponding HTTP/3
            // setting have also been reserved. These reserved settings MUST NOT be sent" (RFC 9114
            // §7.2.4.1); §11.2.2 lists them.
            0x00 | 0x02..=0x05 => return Err(ConnectionFault::Http2Setting(setting)),
            // "An implementation MUST ignore any parameter with an identifier it does not understand".
            _ => {}
        }
        Ok(())
    }

    /// Appends the payload of a SETTINGS frame, with a reserved setting if one is given.
    pub(crate) fn write(&self, reserved: Option<(u64, u64)>, out: &mut Vec<u8>) {
        let known = [
            (
                QPACK_MAX_TABLE_CAPACITY,
                Some(self.qpack_max_table_capacity).filter(|&size| size > 0),
            ),
            (MAX_FIELD_SECTION_SIZE, self.max_field_section_size),
            (QPACK_BLOCKED_STREAMS, Some(self.qpack_blocked_streams).filter(|&count| count > 0)),
            (ENABLE_CONNECT_PROTOCOL, self.extended_connect.then_some(1)),
            (H3_DATAGRAM, self.datagrams.then_some(1)),
        ];
        let known = known.into_iter().filter_map(|(setting, value)| Some((setting, value?)));
        for (setting, value) in known.chain(reserved) {
            varint::write(setting, out);
            varint::write(value, out);
        }
    }

    /// Checks the settings that a server sends after it has accepted 0-RTT against those that the
    /// client remembered: "it MUST NOT reduce any limits or alter any values that might be violated by
    /// the client with its 0-RTT data" (RFC 9114 §7.2.4.2). The encoder checks the capacity of its table
    /// (RFC 9204 §3.2.3).
    pub(crate) fn check_against(&self, remembered: &Self) -> Result<(), ConnectionFault> {
        // "a SETTINGS frame that omits a setting value that the client understands [...] that was previously
        // specified to have a non-default value": the default of the others is the least.
        let sizes = match (remembered.max_field_section_size, self.max_field_section_size) {
            (None, None) => (0, 0),
            (None, Some(received)) => (u64::MAX, received),
            (Some(remembered), Some(received)) => (remembered, received),
            (Some(remembered), None) => {
                let setting = MAX_FIELD_SECTION_SIZE;
                return Err(ConnectionFault::SettingOmitted { setting, remembered });
            }
        };
        let pairs = [
            (MAX_FIELD_SECTION_SIZE, sizes.0, sizes.1),
            (QPACK_BLOCKED_STREAMS, remembered.qpack_blocked_streams, self.qpack_blocked_streams),
            (
                ENABLE_CONNECT_PROTOCOL,
                remembered.extended_connect.into(),
                self.extended_connect.into(),
            ),
            (H3_DATAGRAM, remembered.datagrams.into(), self.datagrams.into()),
        ];
        for (setting, remembered, received) in pairs {
            if received < remembered {
                return Err(ConnectionFault::SettingReduced { setting, remembered, received });
            }
        }
        Ok(())
    }
}
