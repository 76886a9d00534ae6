//! `setsockopt` for options that few programs use: thresholds, the encapsulation port, the HMACs.

use alloc::vec::Vec;

use super::super::call::{AFTER_ADDRESS, OptionCall, WITH_ADDRESS};
use super::OptionChange;
use crate::abi::Errno;
use crate::abi::layout::{array, i32_at, u16_at, u32_at};
use crate::abi::number::option::*;

/// The minimum of `SCTP_PLPMTUD_PROBE_INTERVAL`, in milliseconds; 0 disables probing.
const MIN_PROBE_INTERVAL: u32 = 5000;

impl OptionChange<'_> {
    pub(super) fn set_rare(&mut self) -> Result<(), Errno> {
        let OptionCall { name, value, .. } = self.call;
        let id = i32_at(value, 0);
        match name {
            SCTP_PEER_ADDR_THLDS | SCTP_PEER_ADDR_THLDS_V2 => {
                self.call.check_length(&[WITH_ADDRESS])?;
                let retrans = u16_at(value, AFTER_ADDRESS);
                let failing = u16_at(value, AFTER_ADDRESS + 2);
                let switching = u16_at(value, AFTER_ADDRESS + 4);
                let has_switching = name == SCTP_PEER_ADDR_THLDS_V2;
                if has_switching && failing > switching {
                    return Err(Errno::EINVAL);
                }
                self.change(id, |own| {
                    if retrans > 0 {
                        own.peer_address.path_max_retrans = retrans;
                    }
                    own.pf_threshold = failing;
                    if has_switching {
                        own.switchover_threshold = switching;
                    }
                })
            }
            SCTP_REMOTE_UDP_ENCAPS_PORT => {
                self.call.check_length(&[WITH_ADDRESS])?;
                // Existing associations keep their port.
                self.target(id)?;
                let port = u16::from_be_bytes(array(value, AFTER_ADDRESS));
                self.socket_mut()?.shared.encapsulation_port = Some(port);
                Ok(())
            }
            SCTP_PLPMTUD_PROBE_INTERVAL => {
                self.call.check_length(&[WITH_ADDRESS])?;
                let interval = u32_at(value, AFTER_ADDRESS);
                if interval > 0 && interval < MIN_PROBE_INTERVAL {
                    return Err(Errno::EINVAL);
                }
                self.change(id, |own| own.probe_interval = interval)
            }
            SCTP_HMAC_IDENT => {
                let count = u32_at(value, 0) as usize;
                let list = value.get(4..4 + 2 * count.min(8)).ok_or(Errno::EINVAL)?;
                let shared = &mut self.socket_mut()?.shared;
                if !shared.extensions.authentication {
                    return Err(Errno::EACCES);
                }
                let hmacs: Vec<u16> = list.chunks_exact(2).map(|one| u16_at(one, 0)).collect();
                // SHA-1 is mandatory (RFC 4895 §6.1); SHA-256 is the only other one.
                if !hmacs.contains(&1) || hmacs.iter().any(|hmac| !matches!(hmac, 1 | 3)) {
                    return Err(Errno::EOPNOTSUPP);
                }
                shared.hmacs = hmacs;
                Ok(())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }
}
