//! `getsockopt` for options that few programs use: thresholds, the encapsulation port, counters of
//! abandoned messages, lists of authenticated chunks.

use alloc::vec::Vec;

use super::super::call::{AFTER_ADDRESS, OptionCall, WITH_ADDRESS};
use super::OptionQuery;
use crate::abi::Errno;
use crate::abi::layout::{i32_at, put_u16, put_u32, u16_at, write_field};
use crate::abi::number::flag::{SCTP_PR_SCTP_ALL, SCTP_PR_SCTP_MASK};
use crate::abi::number::option::*;

impl OptionQuery<'_> {
    pub(super) fn rare(&self) -> Result<Vec<u8>, Errno> {
        let OptionCall { name, value, .. } = self.call;
        let length_min = match name {
            SCTP_PEER_ADDR_THLDS
            | SCTP_PEER_ADDR_THLDS_V2
            | SCTP_REMOTE_UDP_ENCAPS_PORT
            | SCTP_PLPMTUD_PROBE_INTERVAL => WITH_ADDRESS,
            SCTP_PR_ASSOC_STATUS | SCTP_PR_STREAM_STATUS => 24,
            SCTP_LOCAL_AUTH_CHUNKS | SCTP_PEER_AUTH_CHUNKS => 8,
            _ => return Err(Errno::ENOPROTOOPT),
        };
        let shared = &self.socket.shared;
        let is_list = length_min == 8;
        if is_list && !shared.extensions.authentication {
            return Err(Errno::EACCES);
        }
        let prefix = value.get(..length_min).ok_or(Errno::EINVAL)?;
        let own = self.settings(i32_at(prefix, 0))?;
        let mut bytes = prefix.to_vec();
        match name {
            SCTP_PEER_ADDR_THLDS | SCTP_PEER_ADDR_THLDS_V2 => {
                put_u16(&mut bytes, AFTER_ADDRESS, own.peer_address.path_max_retrans);
                put_u16(&mut bytes, AFTER_ADDRESS + 2, own.pf_threshold);
                if name == SCTP_PEER_ADDR_THLDS_V2 {
                    put_u16(&mut bytes, AFTER_ADDRESS + 4, own.switchover_threshold);
                }
            }
            SCTP_REMOTE_UDP_ENCAPS_PORT => {
                let port = shared.encapsulation_port.unwrap_or(self.config.encapsulation_port);
                write_field(&mut bytes, AFTER_ADDRESS, &port.to_be_bytes());
            }
            SCTP_PLPMTUD_PROBE_INTERVAL => put_u32(&mut bytes, AFTER_ADDRESS, own.probe_interval),
            SCTP_PR_ASSOC_STATUS | SCTP_PR_STREAM_STATUS => {
                let policy = u16_at(prefix, 6);
                let is_known = policy & !(SCTP_PR_SCTP_MASK | SCTP_PR_SCTP_ALL) == 0;
                let id = self.association(length_min)?;
                if policy == 0 || !is_known {
                    return Err(Errno::EINVAL);
                }
                let abandoned = self.associations.get(id).map_or((0, 0), |it| it.abandoned);
                write_field(&mut bytes, 8, &abandoned.0.to_ne_bytes());
                write_field(&mut bytes, 16, &abandoned.1.to_ne_bytes());
            }
            _ => {
                let chunks = &shared.authenticated_chunks;
                put_u32(&mut bytes, 4, chunks.len() as u32);
                bytes.extend_from_slice(chunks);
            }
        }
        self.call.exact(bytes)
    }
}
