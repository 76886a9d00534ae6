//! Options that few programs use: thresholds, the encapsulation port, counters of abandoned
//! messages, lists of authenticated chunks.

use alloc::vec::Vec;

use super::Stack;
use super::set_options::check_length;
use crate::abi::layout::{array, i32_at, put_u16, put_u32, u16_at, u32_at, write_field};
use crate::abi::number::flag::{SCTP_PR_SCTP_ALL, SCTP_PR_SCTP_MASK};
use crate::abi::number::option::*;
use crate::abi::{Errno, STORAGE};
use crate::io::SocketId;

/// The size of structs that contain an address: a number, padding, the address, and 8 more bytes.
const WITH_ADDRESS: usize = 16 + STORAGE;
/// The offset of what follows the address.
const AFTER_ADDRESS: usize = 8 + STORAGE;
/// The minimum of `SCTP_PLPMTUD_PROBE_INTERVAL`, in milliseconds; 0 disables probing.
const MIN_PROBE_INTERVAL: u32 = 5000;

impl Stack {
    /// `getsockopt` for these options.
    pub(super) fn get_rare(
        &self,
        socket: SocketId,
        name: i32,
        value: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        let length_min = match name {
            SCTP_PEER_ADDR_THLDS
            | SCTP_PEER_ADDR_THLDS_V2
            | SCTP_REMOTE_UDP_ENCAPS_PORT
            | SCTP_PLPMTUD_PROBE_INTERVAL => WITH_ADDRESS,
            SCTP_PR_ASSOC_STATUS | SCTP_PR_STREAM_STATUS => 24,
            SCTP_LOCAL_AUTH_CHUNKS | SCTP_PEER_AUTH_CHUNKS => 8,
            _ => return Err(Errno::ENOPROTOOPT),
        };
        let shared = &self.sockets.find(socket)?.shared;
        let is_list = length_min == 8;
        if is_list && !shared.extensions.authentication {
            return Err(Errno::EACCES);
        }
        let prefix = value.get(..length_min).ok_or(Errno::EINVAL)?;
        let own = self.settings(socket, i32_at(prefix, 0))?;
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
                let id = self.target_association(socket, i32_at(prefix, 0))?;
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
        if bytes.len() > value.len() { Err(Errno::EINVAL) } else { Ok(bytes) }
    }

    /// `setsockopt` for these options.
    pub(super) fn set_rare(
        &mut self,
        socket: SocketId,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        let id = i32_at(value, 0);
        match name {
            SCTP_PEER_ADDR_THLDS | SCTP_PEER_ADDR_THLDS_V2 => {
                check_length(value, &[WITH_ADDRESS])?;
                let retrans = u16_at(value, AFTER_ADDRESS);
                let failing = u16_at(value, AFTER_ADDRESS + 2);
                let switching = u16_at(value, AFTER_ADDRESS + 4);
                let has_switching = name == SCTP_PEER_ADDR_THLDS_V2;
                if has_switching && failing > switching {
                    return Err(Errno::EINVAL);
                }
                self.change(socket, id, |own| {
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
                check_length(value, &[WITH_ADDRESS])?;
                // Existing associations keep their port.
                self.target(socket, id)?;
                let port = u16::from_be_bytes(array(value, AFTER_ADDRESS));
                self.sockets.find_mut(socket)?.shared.encapsulation_port = Some(port);
                Ok(())
            }
            SCTP_PLPMTUD_PROBE_INTERVAL => {
                check_length(value, &[WITH_ADDRESS])?;
                let interval = u32_at(value, AFTER_ADDRESS);
                if interval > 0 && interval < MIN_PROBE_INTERVAL {
                    return Err(Errno::EINVAL);
                }
                self.change(socket, id, |own| own.probe_interval = interval)
            }
            SCTP_HMAC_IDENT => {
                let count = u32_at(value, 0) as usize;
                let list = value.get(4..4 + 2 * count.min(8)).ok_or(Errno::EINVAL)?;
                let shared = &mut self.sockets.find_mut(socket)?.shared;
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
