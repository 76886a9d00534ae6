//! `setsockopt` for settings that each association has.

use eyas_sctp::identifier::StreamId;

use super::super::call::OptionCall;
use super::OptionChange;
use crate::abi::Errno;
use crate::abi::control::{SndInfo, SndRcvInfo};
use crate::abi::layout::{i32_at, u16_at, u32_at};
use crate::abi::number::option::*;
use crate::settings::{AssocSettings, RtoInfo, spp};

/// The longest delay of an acknowledgement, in milliseconds.
const MAX_SACK_DELAY: u32 = 500;

impl OptionChange<'_> {
    pub(super) fn set_peer_address_params(&mut self) -> Result<(), Errno> {
        let value = self.call.value;
        let flags = u32_at(value, 146);
        let contradicts = |on: u32, off: u32| flags & on != 0 && flags & off != 0;
        let path_mtu = u32_at(value, 138);
        let sack_delay = u32_at(value, 142);
        if contradicts(spp::HB_ENABLE, spp::HB_DISABLE)
            || contradicts(spp::PMTUD_ENABLE, spp::PMTUD_DISABLE)
            || contradicts(spp::SACKDELAY_ENABLE, spp::SACKDELAY_DISABLE)
            || sack_delay > MAX_SACK_DELAY
            || (path_mtu > 0 && path_mtu < 512)
        {
            return Err(Errno::EINVAL);
        }
        if flags & spp::HB_DEMAND != 0 {
            self.demand_heartbeat()?;
        }
        let interval = u32_at(value, 132);
        let max_retrans = u16_at(value, 136);
        let flow_label = u32_at(value, 150);
        let dscp = value.get(154).copied().unwrap_or_default();
        self.change(i32_at(value, 0), |own| {
            let address = &mut own.peer_address;
            for (on, off) in [
                (spp::HB_ENABLE, spp::HB_DISABLE),
                (spp::PMTUD_ENABLE, spp::PMTUD_DISABLE),
                (spp::SACKDELAY_ENABLE, spp::SACKDELAY_DISABLE),
            ] {
                if flags & (on | off) != 0 {
                    address.flags = address.flags & !(on | off) | flags & (on | off);
                }
            }
            if flags & spp::HB_TIME_IS_ZERO != 0 || (flags & spp::HB_ENABLE != 0 && interval > 0) {
                address.hb_interval = interval;
            }
            if max_retrans > 0 {
                address.path_max_retrans = max_retrans;
            }
            if flags & spp::PMTUD_DISABLE != 0 && path_mtu > 0 {
                address.path_mtu = path_mtu;
            }
            if sack_delay > 0 {
                own.sack_delay = sack_delay;
            }
            if flags & spp::IPV6_FLOWLABEL != 0 {
                address.flow_label = flow_label;
            }
            if flags & spp::DSCP != 0 {
                address.dscp = dscp;
            }
        })
    }

    pub(super) fn set_setting(&mut self) -> Result<(), Errno> {
        let OptionCall { name, value, .. } = self.call;
        let id = i32_at(value, 0);
        let second = u32_at(value, 4);
        match name {
            SCTP_RTOINFO => {
                self.call.check_length(&[16])?;
                let current = self.settings(id)?.rto;
                let or = |new: u32, old: u32| if new == 0 { old } else { new };
                let rto = RtoInfo {
                    initial: or(second, current.initial),
                    max: or(u32_at(value, 8), current.max),
                    min: or(u32_at(value, 12), current.min),
                };
                if rto.min > rto.max {
                    return Err(Errno::EINVAL);
                }
                self.change(id, |own| own.rto = rto)
            }
            SCTP_ASSOCINFO => {
                self.call.check_length(&[20])?;
                let (retrans, life) = (u16_at(value, 4), u32_at(value, 16));
                self.change(id, |own| {
                    if retrans > 0 {
                        own.association_max_retrans = retrans;
                    }
                    if life > 0 {
                        own.cookie_life = life;
                    }
                })
            }
            SCTP_INITMSG => self.set_init(),
            SCTP_DEFAULT_SEND_PARAM => {
                self.call.check_length(&[SndRcvInfo::LENGTH])?;
                let info = SndRcvInfo::read(value);
                self.change(info.association, |own| own.default_send = info)
            }
            SCTP_DEFAULT_SNDINFO => {
                self.call.check_length(&[SndInfo::LENGTH])?;
                let info = SndInfo::read(value);
                self.change(info.association, |own| {
                    let send = &mut own.default_send;
                    (send.stream, send.flags) = (info.stream, info.flags);
                    (send.ppid, send.context) = (info.ppid, info.context);
                })
            }
            SCTP_DEFAULT_PRINFO => {
                self.call.check_length(&[12])?;
                let policy = u16_at(value, 8);
                if policy & !0x30 != 0 {
                    return Err(Errno::EINVAL);
                }
                self.change(id, |own| {
                    own.default_send.flags = own.default_send.flags & !0x30 | policy;
                    own.default_send.time_to_live = second;
                })
            }
            SCTP_DELAYED_SACK => self.set_delayed_sack(),
            _ => self.set_number(),
        }
    }

    fn set_init(&mut self) -> Result<(), Errno> {
        let value = self.call.value;
        self.call.check_length(&[8])?;
        let field = |offset, old| match u16_at(value, offset) {
            0 => old,
            new => new,
        };
        let init = &mut self.socket_mut()?.settings.init;
        init.outbound = field(0, init.outbound);
        init.max_inbound = field(2, init.max_inbound);
        init.max_attempts = field(4, init.max_attempts);
        init.max_timeout = field(6, init.max_timeout);
        self.update_listening();
        Ok(())
    }

    fn set_delayed_sack(&mut self) -> Result<(), Errno> {
        let value = self.call.value;
        self.call.check_length(&[8, 12])?;
        let (delay, frequency) = (u32_at(value, 4), u32_at(value, 8));
        if delay > MAX_SACK_DELAY {
            return Err(Errno::EINVAL);
        }
        self.change(i32_at(value, 0), |own| {
            if delay > 0 {
                own.sack_delay = delay;
            }
            let off = frequency == 1 || (value.len() == 8 && delay == 0);
            let delays = spp::SACKDELAY_ENABLE;
            let flags = &mut own.peer_address.flags;
            if off {
                *flags = *flags & !delays | spp::SACKDELAY_DISABLE;
            } else {
                *flags = *flags & !spp::SACKDELAY_DISABLE | delays;
            }
            if frequency > 0 {
                own.sack_frequency = frequency;
            }
        })
    }

    /// Sets an option with a single number.
    fn set_number(&mut self) -> Result<(), Errno> {
        let OptionCall { name, value, .. } = self.call;
        let change: fn(&mut AssocSettings, u32) = match name {
            SCTP_MAXSEG => |own, number| own.max_segment = number,
            SCTP_MAX_BURST => |own, number| own.max_burst = number,
            SCTP_CONTEXT => |own, number| own.receive_context = number,
            SCTP_STREAM_SCHEDULER => |own, number| own.scheduler = number,
            SCTP_ENABLE_STREAM_RESET => |own, number| own.stream_reset = number,
            SCTP_EXPOSE_POTENTIALLY_FAILED_STATE => |own, number| own.expose_pf = number,
            SCTP_STREAM_SCHEDULER_VALUE => |_, _| {},
            SCTP_EVENT => |_, _| {},
            _ => return self.set_rare(),
        };
        let may_be_int = matches!(name, SCTP_MAXSEG | SCTP_MAX_BURST);
        self.call.check_length(if may_be_int { &[4, 8] } else { &[8] })?;
        let (id, number) = match value.len() {
            4 => (0, u32_at(value, 0)),
            _ => (i32_at(value, 0), u32_at(value, 4)),
        };
        let is_invalid = match name {
            SCTP_MAXSEG => number != 0 && !(8..=65_515).contains(&number),
            SCTP_STREAM_SCHEDULER => number > 4,
            SCTP_ENABLE_STREAM_RESET => number > 7,
            SCTP_EXPOSE_POTENTIALLY_FAILED_STATE => number > 2,
            SCTP_EVENT => !(0x8000..0x800e).contains(&u32::from(u16_at(value, 4))),
            _ => false,
        };
        if is_invalid {
            return Err(Errno::EINVAL);
        }
        let (kind, on) = (u16_at(value, 4), value.get(6).is_some_and(|on| *on != 0));
        let (stream, weight) = (StreamId(kind), u16_at(value, 6));
        self.change(id, |own| match name {
            SCTP_EVENT => {
                let bit = 1 << (kind & 0xf);
                own.events = if on { own.events | bit } else { own.events & !bit };
            }
            SCTP_STREAM_SCHEDULER_VALUE => {
                own.stream_values.retain(|(other, _)| *other != stream);
                own.stream_values.push((stream, weight));
            }
            _ => change(own, number),
        })
    }
}
