//! The settings of a socket or an association, with Linux's defaults.
//!
//! A socket has [`AssocSettings`] for future associations; each association starts with a copy.

use alloc::vec::Vec;
use core::time::Duration;

use eyas_sctp::config::{AssociationConfig, FamilyMarkings, Marking, SchedulerKind, SharedKeys};
use eyas_sctp::identifier::StreamId;

use crate::abi::control::SndRcvInfo;

/// Flags of `spp_flags` (RFC 6458 §8.1.12).
pub(crate) mod spp {
    pub(crate) const HB_ENABLE: u32 = 0x01;
    pub(crate) const HB_DISABLE: u32 = 0x02;
    pub(crate) const HB_DEMAND: u32 = 0x04;
    pub(crate) const PMTUD_ENABLE: u32 = 0x08;
    pub(crate) const PMTUD_DISABLE: u32 = 0x10;
    pub(crate) const SACKDELAY_ENABLE: u32 = 0x20;
    pub(crate) const SACKDELAY_DISABLE: u32 = 0x40;
    pub(crate) const HB_TIME_IS_ZERO: u32 = 0x80;
    pub(crate) const IPV6_FLOWLABEL: u32 = 0x100;
    pub(crate) const DSCP: u32 = 0x200;
}

/// Linux's default for `net.core.wmem_default` and `rmem_default`.
const DEFAULT_BUFFER: usize = 212_992;

/// The bits of a traffic class that belong to ECN (RFC 3168 §5).
pub(crate) const ECN_BITS: u8 = 3;

/// The share of a receive buffer that Linux reserves for overhead: half.
const WINDOW_PART: usize = 2;

/// `SCTP_RTOINFO`, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RtoInfo {
    pub(crate) initial: u32,
    pub(crate) max: u32,
    pub(crate) min: u32,
}

/// `SCTP_INITMSG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InitMsg {
    pub(crate) outbound: u16,
    pub(crate) max_inbound: u16,
    pub(crate) max_attempts: u16,
    pub(crate) max_timeout: u16,
}

/// `SCTP_PEER_ADDR_PARAMS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerAddrParams {
    pub(crate) hb_interval: u32,
    pub(crate) path_max_retrans: u16,
    pub(crate) path_mtu: u32,
    pub(crate) flags: u32,
    pub(crate) flow_label: u32,
    pub(crate) dscp: u8,
}

/// The settings of an association.
#[derive(Clone, Debug)]
pub(crate) struct AssocSettings {
    pub(crate) rto: RtoInfo,
    pub(crate) init: InitMsg,
    pub(crate) association_max_retrans: u16,
    /// In milliseconds.
    pub(crate) cookie_life: u32,
    pub(crate) peer_address: PeerAddrParams,
    /// In milliseconds.
    pub(crate) sack_delay: u32,
    pub(crate) sack_frequency: u32,
    pub(crate) max_burst: u32,
    pub(crate) max_segment: u32,
    /// The defaults for messages that specify nothing else.
    pub(crate) default_send: SndRcvInfo,
    /// The context reported with each received message (`SCTP_CONTEXT`).
    pub(crate) receive_context: u32,
    pub(crate) scheduler: u32,
    pub(crate) stream_values: Vec<(StreamId, u16)>,
    pub(crate) stream_reset: u32,
    /// One bit for each type of notification, by its index in `SCTP_EVENTS`.
    pub(crate) events: u16,
    /// `PSMR` and `PFMR` of `SCTP_PEER_ADDR_THLDS`.
    pub(crate) pf_threshold: u16,
    pub(crate) switchover_threshold: u16,
    pub(crate) expose_pf: u32,
    /// In milliseconds; stored without effect.
    pub(crate) probe_interval: u32,
    pub(crate) keys: SharedKeys,
}

impl Default for AssocSettings {
    fn default() -> Self {
        Self {
            rto: RtoInfo { initial: 3000, max: 60_000, min: 1000 },
            init: InitMsg {
                outbound: 10,
                max_inbound: u16::MAX,
                max_attempts: 8,
                max_timeout: 60_000,
            },
            association_max_retrans: 10,
            cookie_life: 60_000,
            peer_address: PeerAddrParams {
                hb_interval: 30_000,
                path_max_retrans: 5,
                path_mtu: 0,
                flags: spp::HB_ENABLE | spp::PMTUD_ENABLE | spp::SACKDELAY_ENABLE,
                flow_label: 0,
                dscp: 0,
            },
            sack_delay: 200,
            sack_frequency: 2,
            max_burst: 4,
            max_segment: 0,
            default_send: SndRcvInfo::default(),
            receive_context: 0,
            scheduler: 0,
            stream_values: Vec::new(),
            stream_reset: 0,
            events: 0,
            pf_threshold: 0,
            switchover_threshold: u16::MAX,
            expose_pf: 0,
            probe_interval: 0,
            keys: SharedKeys::default(),
        }
    }
}

/// The settings of a socket that apply to all its associations.
#[derive(Clone, Debug)]
pub(crate) struct SocketSettings {
    pub(crate) no_delay: bool,
    pub(crate) disable_fragments: bool,
    pub(crate) mapped: bool,
    pub(crate) v6_only: bool,
    pub(crate) fragment_interleave: u32,
    pub(crate) partial_delivery_point: u32,
    pub(crate) receive_rcvinfo: bool,
    pub(crate) receive_nxtinfo: bool,
    pub(crate) auto_asconf: bool,
    /// `SCTP_REUSE_PORT`, which has the effect of `SO_REUSEADDR`.
    pub(crate) sctp_reuse_port: bool,
    /// `SO_REUSEPORT`.
    pub(crate) reuse_port: bool,
    pub(crate) reuse_address: bool,
    /// In seconds; 0 means never.
    pub(crate) autoclose: u32,
    pub(crate) adaptation: u32,
    /// As `getsockopt` returns it: twice the requested size.
    pub(crate) send_buffer: usize,
    pub(crate) receive_buffer: usize,
    pub(crate) linger: Option<Duration>,
    /// `IP_TOS`, `IP_TTL`, `IPV6_TCLASS`, `IPV6_UNICAST_HOPS` and `SO_MARK`.
    pub(crate) markings: FamilyMarkings,
    pub(crate) extensions: ExtensionSettings,
    /// The UDP port of peers, if it was set for this socket.
    pub(crate) encapsulation_port: Option<u16>,
    pub(crate) authenticated_chunks: Vec<u8>,
    pub(crate) hmacs: Vec<u16>,
}

/// The extensions offered to peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtensionSettings {
    pub(crate) partial_reliability: bool,
    pub(crate) reconfiguration: bool,
    pub(crate) interleaving: bool,
    pub(crate) dynamic_addresses: bool,
    pub(crate) authentication: bool,
    pub(crate) ecn: bool,
}

impl Default for SocketSettings {
    fn default() -> Self {
        Self {
            no_delay: false,
            disable_fragments: false,
            mapped: true,
            v6_only: false,
            fragment_interleave: 0,
            partial_delivery_point: 0,
            receive_rcvinfo: false,
            receive_nxtinfo: false,
            auto_asconf: false,
            sctp_reuse_port: false,
            reuse_port: false,
            reuse_address: false,
            autoclose: 0,
            adaptation: 0,
            send_buffer: DEFAULT_BUFFER,
            receive_buffer: DEFAULT_BUFFER,
            linger: None,
            markings: FamilyMarkings::default(),
            extensions: ExtensionSettings {
                partial_reliability: true,
                reconfiguration: false,
                interleaving: false,
                dynamic_addresses: false,
                authentication: false,
                ecn: true,
            },
            encapsulation_port: None,
            authenticated_chunks: Vec::new(),
            hmacs: alloc::vec![3, 1],
        }
    }
}

/// Returns the configuration of an association with these settings. What no option sets is taken
/// from `base`.
pub(crate) fn association_config(
    base: &AssociationConfig,
    socket: &SocketSettings,
    association: &AssocSettings,
) -> AssociationConfig {
    let mut config = base.clone();
    let address = &association.peer_address;
    config.rto_initial = milliseconds(association.rto.initial);
    config.rto_min = milliseconds(association.rto.min);
    config.rto_max = milliseconds(association.rto.max);
    config.association_max_retrans = association.association_max_retrans.into();
    config.path_max_retrans = address.path_max_retrans.into();
    config.potentially_failed_max_retrans = association.pf_threshold.into();
    config.primary_switchover_max_retrans = (association.switchover_threshold != u16::MAX)
        .then(|| association.switchover_threshold.into());
    config.max_init_retransmits = association.init.max_attempts.into();
    config.max_init_timeout = Some(milliseconds(association.init.max_timeout.into()));
    let sends_heartbeats = address.flags & spp::HB_ENABLE != 0 && address.hb_interval > 0;
    config.hb_interval = sends_heartbeats.then(|| milliseconds(address.hb_interval));
    config.max_burst = association.max_burst;
    let delays_sacks = address.flags & spp::SACKDELAY_ENABLE != 0;
    config.sack_delay =
        if delays_sacks { milliseconds(association.sack_delay) } else { Duration::ZERO };
    config.sack_frequency = if delays_sacks { association.sack_frequency } else { 1 };
    config.outbound_streams = association.init.outbound;
    config.max_inbound_streams = association.init.max_inbound;
    // A message is accepted while any byte is free, so the queue can exceed the program's buffer by
    // one message.
    config.send_buffer = socket.send_buffer.saturating_mul(2);
    config.receive_buffer = socket.receive_buffer;
    config.partial_delivery_point = Some(match socket.partial_delivery_point {
        0 => socket.receive_buffer / WINDOW_PART,
        point => point as usize,
    });
    config.nagle = !socket.no_delay;
    config.markings = markings(socket, address);
    config.path_mtu_discovery &= address.flags & spp::PMTUD_ENABLE != 0;
    if let Ok(mtu @ 1..) = u16::try_from(address.path_mtu) {
        config.mtu = mtu;
        config.largest_mtu = mtu;
    }
    config.max_segment = u16::try_from(association.max_segment).ok().filter(|max| *max > 0);
    config.scheduler = scheduler(association.scheduler).into();
    config.stream_values.clone_from(&association.stream_values);
    let offers = &socket.extensions;
    config.extensions.partial_reliability = offers.partial_reliability;
    config.extensions.reconfiguration = offers.reconfiguration;
    config.extensions.interleaving = offers.interleaving;
    config.extensions.dynamic_addresses = offers.dynamic_addresses;
    config.extensions.authentication = offers.authentication;
    config.extensions.ecn = offers.ecn;
    config.auto_asconf = socket.auto_asconf;
    config.authenticated_chunks.clone_from(&socket.authenticated_chunks);
    config.shared_keys.clone_from(&association.keys);
    config
}

fn markings(socket: &SocketSettings, address: &PeerAddrParams) -> FamilyMarkings {
    let of = |marking: Marking| match address.dscp {
        0 => marking,
        // `SPP_DSCP` takes precedence over the socket's (RFC 6458 §8.1.12).
        dscp => Marking { dscp_bits: dscp & !ECN_BITS, ..marking },
    };
    FamilyMarkings { v4: of(socket.markings.v4), v6: of(socket.markings.v6) }
}

/// Returns the scheduler with this number in `SCTP_STREAM_SCHEDULER`.
fn scheduler(number: u32) -> SchedulerKind {
    match number {
        1 => SchedulerKind::Priority,
        2 => SchedulerKind::RoundRobin,
        3 => SchedulerKind::FairBandwidth,
        4 => SchedulerKind::WeightedFairQueueing,
        _ => SchedulerKind::Fcfs,
    }
}

/// Returns a duration in milliseconds.
pub(crate) fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}
