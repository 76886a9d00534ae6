//! `getsockopt` for settings that each association has.

use alloc::vec::Vec;

use super::super::call::{EVENTS, OptionCall, ints};
use super::super::target::target;
use super::OptionQuery;
use crate::abi::Errno;
use crate::abi::layout::{i32_at, put_u16, put_u32, u16_at, write_field};
use crate::abi::number::option::*;
use crate::settings::{AssocSettings, PeerAddrParams};

impl OptionQuery<'_> {
    /// Options that each association has.
    pub(super) fn setting(&self) -> Result<Vec<u8>, Errno> {
        let OptionCall { name, value, .. } = self.call;
        let of = |offset: usize| {
            let id = if value.len() >= offset + 4 { i32_at(value, offset) } else { 0 };
            Ok::<(i32, &AssocSettings), Errno>((id, self.settings(id)?))
        };
        let bytes = match name {
            SCTP_RTOINFO => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.rto.initial, own.rto.max, own.rto.min])
            }
            SCTP_ASSOCINFO => self.association_info(of(0)?)?,
            SCTP_INITMSG => {
                let init = self.socket.settings.init;
                let fields = [init.outbound, init.max_inbound, init.max_attempts, init.max_timeout];
                fields.iter().flat_map(|field| field.to_ne_bytes()).collect()
            }
            SCTP_DEFAULT_SEND_PARAM => {
                let (id, own) = of(28)?;
                let mut info = own.default_send;
                info.association = id;
                info.encode().to_vec()
            }
            SCTP_DEFAULT_SNDINFO => {
                let (id, own) = of(12)?;
                let info = own.default_send;
                let mut bytes = ints(&[0, info.ppid, info.context, id as u32]);
                put_u16(&mut bytes, 0, info.stream);
                put_u16(&mut bytes, 2, info.flags);
                bytes
            }
            SCTP_DEFAULT_PRINFO => {
                let (id, own) = of(0)?;
                let policy = u32::from(own.default_send.flags & 0x30);
                ints(&[id as u32, own.default_send.time_to_live, policy])
            }
            SCTP_DELAYED_SACK if value.len() == 8 => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.sack_delay])
            }
            SCTP_DELAYED_SACK => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.sack_delay, own.sack_frequency])
            }
            SCTP_MAXSEG if value.len() == 4 => ints(&[self.settings(0)?.max_segment]),
            SCTP_MAX_BURST if value.len() == 4 => ints(&[self.settings(0)?.max_burst]),
            SCTP_MAXSEG => id_and_value(of(0)?, |own| own.max_segment),
            SCTP_MAX_BURST => id_and_value(of(0)?, |own| own.max_burst),
            SCTP_CONTEXT => id_and_value(of(0)?, |own| own.receive_context),
            SCTP_STREAM_SCHEDULER => id_and_value(of(0)?, |own| own.scheduler),
            SCTP_ENABLE_STREAM_RESET => id_and_value(of(0)?, |own| own.stream_reset),
            SCTP_EXPOSE_POTENTIALLY_FAILED_STATE => id_and_value(of(0)?, |own| own.expose_pf),
            SCTP_EVENT => {
                let (id, own) = of(0)?;
                event_subscription(id, own, value)
            }
            SCTP_HMAC_IDENT => {
                let hmacs = &self.socket.shared.hmacs;
                let mut bytes = ints(&[hmacs.len() as u32]);
                bytes.extend(hmacs.iter().flat_map(|hmac| hmac.to_ne_bytes()));
                bytes
            }
            SCTP_AUTH_ACTIVE_KEY => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.keys.active().into()])
            }
            _ => return self.rare(),
        };
        self.call.exact(bytes)
    }

    fn association_info(&self, (id, own): (i32, &AssocSettings)) -> Result<Vec<u8>, Errno> {
        let target = target(self.socket, self.associations, id)?;
        let status = target.and_then(|id| self.associations.status(self.ports, id));
        let mut bytes = ints(&[id as u32, 0, 0, 0, own.cookie_life]);
        put_u16(&mut bytes, 4, own.association_max_retrans);
        if let Some(status) = status {
            put_u16(&mut bytes, 6, status.paths.len() as u16);
            put_u32(&mut bytes, 8, status.peer_window);
            put_u32(&mut bytes, 12, status.window);
        }
        Ok(bytes)
    }

    /// Returns `min(optlen, 14)` bytes, one for each type of notification.
    pub(super) fn events(&self) -> Result<Vec<u8>, Errno> {
        let value = self.call.value;
        if value.is_empty() {
            return Err(Errno::EINVAL);
        }
        let events = self.socket.settings.events;
        Ok((0..value.len().min(EVENTS)).map(|bit| u8::from(events & 1 << bit != 0)).collect())
    }

    pub(super) fn peer_address_params(&self) -> Result<Vec<u8>, Errno> {
        let value = self.call.value;
        let id = self.call.id_of_at_least(152)?;
        let own = self.settings(id)?;
        let PeerAddrParams { hb_interval, path_max_retrans, path_mtu, flags, flow_label, dscp } =
            own.peer_address;
        let mut bytes = value.get(..value.len().min(156)).unwrap_or_default().to_vec();
        put_u32(&mut bytes, 132, hb_interval);
        put_u16(&mut bytes, 136, path_max_retrans);
        put_u32(&mut bytes, 138, path_mtu);
        put_u32(&mut bytes, 142, own.sack_delay);
        put_u32(&mut bytes, 146, flags);
        put_u32(&mut bytes, 150, flow_label);
        write_field(&mut bytes, 154, &[dscp]);
        Ok(bytes)
    }
}

/// Returns whether the program has subscribed to a type of notification, as an `sctp_event`.
fn event_subscription(id: i32, own: &AssocSettings, value: &[u8]) -> Vec<u8> {
    let kind = u16_at(value, 4);
    let on = own.events & 1 << (kind & 0xf) != 0;
    let mut bytes = ints(&[id as u32, 0]);
    put_u16(&mut bytes, 4, kind);
    write_field(&mut bytes, 6, &[on.into()]);
    bytes
}

fn id_and_value(
    (id, own): (i32, &AssocSettings),
    field: impl Fn(&AssocSettings) -> u32,
) -> Vec<u8> {
    ints(&[id as u32, field(own)])
}
