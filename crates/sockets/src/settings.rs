//! What can be set of a socket or an association, with Linux's values to begin with.
//!
//! A socket has [`Settings`] for the associations to come; each association begins with a copy.

use alloc::vec::Vec;
use core::time::Duration;

use eyas_sctp::config::{AssociationConfig, SchedulerKind, SharedKeys};
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

/// What Linux sets `net.core.wmem_default` and `rmem_default` to.
const DEFAULT_BUFFER: usize = 212_992;

/// Bytes that Linux keeps of a receive buffer for itself: half.
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

/// What every association has for itself.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
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
    /// What goes with a message that says nothing else.
    pub(crate) default_send: SndRcvInfo,
    /// What is told with each message that comes in (`SCTP_CONTEXT`).
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
    /// In milliseconds; kept without an effect.
    pub(crate) probe_interval: u32,
    pub(crate) keys: SharedKeys,
}

impl Default for Settings {
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

/// What a socket has for itself and all its associations.
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
    pub(crate) reuse_port: bool,
    pub(crate) reuse_address: bool,
    /// In seconds; 0 for never.
    pub(crate) autoclose: u32,
    pub(crate) adaptation: u32,
    /// As `getsockopt` gives it: twice what was asked for.
    pub(crate) send_buffer: usize,
    pub(crate) receive_buffer: usize,
    pub(crate) linger: Option<Duration>,
    pub(crate) extensions: Extensions,
    /// The UDP port of peers, if the socket has one of its own.
    pub(crate) encapsulation_port: Option<u16>,
    pub(crate) authenticated_chunks: Vec<u8>,
    pub(crate) hmacs: Vec<u16>,
}

/// What is offered to peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extensions {
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
            reuse_port: false,
            reuse_address: false,
            autoclose: 0,
            adaptation: 0,
            send_buffer: DEFAULT_BUFFER,
            receive_buffer: DEFAULT_BUFFER,
            linger: None,
            extensions: Extensions {
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

/// How an association with these settings behaves. What no option says is as in `base`.
pub(crate) fn association_config(
    base: &AssociationConfig,
    socket: &SocketSettings,
    own: &Settings,
) -> AssociationConfig {
    let mut config = base.clone();
    let address = &own.peer_address;
    config.rto_initial = milliseconds(own.rto.initial);
    config.rto_min = milliseconds(own.rto.min);
    config.rto_max = milliseconds(own.rto.max);
    config.association_max_retrans = own.association_max_retrans.into();
    config.path_max_retrans = address.path_max_retrans.into();
    config.potentially_failed_max_retrans = own.pf_threshold.into();
    config.primary_switchover_max_retrans =
        (own.switchover_threshold != u16::MAX).then(|| own.switchover_threshold.into());
    config.max_init_retransmits = own.init.max_attempts.into();
    config.max_init_timeout = Some(milliseconds(own.init.max_timeout.into()));
    let beats = address.flags & spp::HB_ENABLE != 0 && address.hb_interval > 0;
    config.hb_interval = beats.then(|| milliseconds(address.hb_interval));
    config.max_burst = own.max_burst;
    let delays = address.flags & spp::SACKDELAY_ENABLE != 0;
    config.sack_delay = if delays { milliseconds(own.sack_delay) } else { Duration::ZERO };
    config.sack_frequency = if delays { own.sack_frequency } else { 1 };
    config.outbound_streams = own.init.outbound;
    config.max_inbound_streams = own.init.max_inbound;
    // A message is taken while any byte is free: so a message more than the program's buffer.
    config.send_buffer = socket.send_buffer.saturating_mul(2);
    config.receive_buffer = socket.receive_buffer;
    config.partial_delivery_point = Some(match socket.partial_delivery_point {
        0 => socket.receive_buffer / WINDOW_PART,
        point => point as usize,
    });
    config.nagle = !socket.no_delay;
    config.path_mtu_discovery &= address.flags & spp::PMTUD_ENABLE != 0;
    if let Ok(mtu @ 1..) = u16::try_from(address.path_mtu) {
        config.mtu = mtu;
        config.largest_mtu = mtu;
    }
    config.max_segment = u16::try_from(own.max_segment).ok().filter(|most| *most > 0);
    config.scheduler = scheduler(own.scheduler).into();
    config.stream_values.clone_from(&own.stream_values);
    let offers = &socket.extensions;
    config.extensions.partial_reliability = offers.partial_reliability;
    config.extensions.reconfiguration = offers.reconfiguration;
    config.extensions.interleaving = offers.interleaving;
    config.extensions.dynamic_addresses = offers.dynamic_addresses;
    config.extensions.authentication = offers.authentication;
    config.extensions.ecn = offers.ecn;
    config.auto_asconf = socket.auto_asconf;
    config.authenticated_chunks.clone_from(&socket.authenticated_chunks);
    config.shared_keys.clone_from(&own.keys);
    config
}

/// `SCTP_STREAM_SCHEDULER`, by Linux's numbers.
fn scheduler(number: u32) -> SchedulerKind {
    match number {
        1 => SchedulerKind::Priority,
        2 => SchedulerKind::RoundRobin,
        3 => SchedulerKind::FairBandwidth,
        4 => SchedulerKind::WeightedFairQueueing,
        _ => SchedulerKind::Fcfs,
    }
}

/// So many milliseconds.
pub(crate) fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}
