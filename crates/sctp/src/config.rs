//! Configuration, with the names of RFC 9260 §16 and of the socket options of RFC 6458.

use alloc::vec::Vec;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

pub use crate::auth::SharedKeys;
use crate::congestion::CongestionControlFactory;
pub use crate::congestion::kind::CongestionControlKind;
use crate::identifier::StreamId;
pub use crate::io::Marking;
use crate::scheduler::SchedulerFactory;
pub use crate::scheduler::kind::SchedulerKind;

mod multipath;
mod options;
mod profile;
mod selection;
mod windows;

pub use multipath::{
    BufferSplitting, BurstLimit, ChunkRescheduling, CucVersion, FlightCap, MultipathConfig,
    NrSackPolicy, PathOrder, RtxPolicy, SackPath, StreamMapping, StreamPreference,
};
pub use options::{AssociationOptions, ProfileName};
pub use profile::{MultipathProfile, ProfileChoice};
pub use selection::AlgorithmSelection;
pub use windows::{IdleWindow, InitialThreshold, InitialWindow, RttSampling, WindowAccounting};

/// The configuration of an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// The SCTP port to listen on; `None` accepts no associations.
    pub listen_port: Option<u16>,
    /// The local addresses that may be announced to peers, most preferred first, until
    /// [`crate::io::Input::LocalAddresses`] replaces them. Only addresses that are valid from the
    /// peer's point of view are announced: no loopback or link-local ones beyond the host or link,
    /// no private ones (RFC 1918, RFC 4193) if the peer's address is global. If empty, only the
    /// address that packets are sent from is used, which is not listed in chunks.
    pub addresses: Vec<IpAddr>,
    /// The lifetime of a cookie (RFC 9260 §16, `Valid.Cookie.Life`).
    pub valid_cookie_life: Duration,
    /// How often the key that signs cookies is changed; the previous key remains valid for one more
    /// period.
    pub cookie_key_life: Duration,
    /// The maximum number of associations. Associations opened by this endpoint each need a port of
    /// their own for each address and port of a peer, of which there are 64,512.
    pub max_associations: usize,
    /// The maximum number of answers per second to out-of-the-blue packets (RFC 9260 §8.4).
    pub max_out_of_the_blue_answers: u32,
    /// The maximum memory for user data of all associations, in bytes, in both directions and
    /// including overhead. Each association may use an eighth of what is free, so that buffers
    /// shrink when many associations use much memory; those of one source (an IPv4 address, or an
    /// IPv6 /64) an eighth of what is free of a quarter of it. But each may always use 64 KiB in
    /// each direction, or if that is too much for all of them, their share, at least 4 KiB. A
    /// larger message is sent once nothing else of its association is queued and the memory, or the
    /// quarter, is not used up. A source may have so many associations, at 4 KiB each, as fit into
    /// half of the memory, and at least 64.
    pub memory: usize,
    /// The maximum number of INIT ACKs per second to one source (an IPv4 address, or an IPv6 /64)
    /// that have not been answered with a cookie: with forged sources these would be sent to
    /// uninvolved hosts.
    pub max_init_acks_per_source: u32,
    /// The maximum number of heartbeats per second to addresses that peers at one source have
    /// listed but that have never answered: they may belong to other hosts.
    pub max_probes_per_source: u32,
    /// The configuration of associations opened by peers.
    pub association: AssociationConfig,
    /// The form of outgoing packets.
    pub packets: PacketForm,
}

/// The form of an endpoint's outgoing packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PacketForm {
    /// Encoded, as [`crate::io::Output::Transmit`].
    #[default]
    Wire,
    /// As values with the same lengths, [`crate::io::Output::TransmitStructs`], for a peer in the
    /// same process, which accepts them as [`crate::io::Input::Struct`]. A simulation without
    /// encoding and parsing shows whether they make a difference.
    Struct,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            listen_port: None,
            addresses: Vec::new(),
            valid_cookie_life: Duration::from_secs(60),
            cookie_key_life: Duration::from_secs(600),
            max_associations: 100_000,
            max_out_of_the_blue_answers: 100,
            memory: 256 << 20,
            max_init_acks_per_source: 1000,
            max_probes_per_source: 16,
            association: AssociationConfig::default(),
            packets: PacketForm::default(),
        }
    }
}

/// The parameters of a new association.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The local SCTP port; if 0, a random port above 49151 is chosen, or above 1023 once those are
    /// all in use towards this peer.
    pub local_port: u16,
    /// The peer's SCTP port.
    pub remote_port: u16,
    /// The known addresses of the peer, at least one, with the port of the UDP encapsulation or 0.
    /// The first becomes the primary path.
    pub remotes: Vec<SocketAddr>,
    /// The local address to send from; if `None`, it is left to the routing table.
    pub local: Option<IpAddr>,
    /// Whether to stop after the INIT ACK until `proceed` is called, so that a race can decide
    /// while the peer keeps no state yet. [`crate::event::Event::Answered`] reports it.
    pub hold_at_init_ack: bool,
    /// The configuration of the association.
    pub association: AssociationConfig,
}

impl ConnectOptions {
    /// Connects to one address of a peer.
    #[must_use]
    pub fn new(remote: SocketAddr, remote_port: u16) -> Self {
        Self {
            local_port: 0,
            remote_port,
            remotes: alloc::vec![remote],
            local: None,
            hold_at_init_ack: false,
            association: AssociationConfig::default(),
        }
    }
}

/// The marking of packets in each address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FamilyMarkings {
    /// Over IPv4.
    pub v4: Marking,
    /// Over IPv6.
    pub v6: Marking,
}

impl FamilyMarkings {
    /// Returns the marking of packets to this address.
    #[must_use]
    pub fn towards(&self, remote: SocketAddr) -> Marking {
        if remote.ip().to_canonical().is_ipv4() { self.v4 } else { self.v6 }
    }
}

/// The configuration of an association. Unless another source is given, times and counts are those
/// of RFC 9260 §16.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AssociationConfig {
    /// `RTO.Initial`.
    pub rto_initial: Duration,
    /// `RTO.Min`.
    pub rto_min: Duration,
    /// `RTO.Max`.
    pub rto_max: Duration,
    /// `Association.Max.Retrans`. With [`Self::multipath`], errors that several paths have at the
    /// same time count once: an outage of all paths ends the association as late as an outage of a
    /// single one. The same holds with [`Self::max_probe_interval`].
    pub association_max_retrans: u32,
    /// `Path.Max.Retrans`.
    pub path_max_retrans: u32,
    /// The number of consecutive errors after which a path is potentially failed (RFC 7829 §3.2,
    /// `PFMR`).
    pub potentially_failed_max_retrans: u32,
    /// The number of consecutive errors after which another path permanently becomes the primary
    /// one (RFC 7829 §5, `PSMR`), at least `PFMR`. With `None`, the primary path is used again as
    /// soon as it recovers.
    pub primary_switchover_max_retrans: Option<u32>,
    /// `Max.Init.Retransmits`.
    pub max_init_retransmits: u32,
    /// The limit of the timeout of INIT and COOKIE ECHO as it doubles (RFC 6458 §8.1.3,
    /// `sinit_max_init_timeo`). The first timeout is always `rto_initial`. With `None`, the limit
    /// is `rto_max`.
    pub max_init_timeout: Option<Duration>,
    /// How long the peer may accept none of the remaining data of an association that is shutting
    /// down, before it is aborted. `None` waits as long as the peer answers. If the peer accepts
    /// data, it must accept at least 1/32 of the total within each such period.
    pub shutdown_stall: Option<Duration>,
    /// `HB.interval`; `None` sends heartbeats only to verify addresses.
    pub hb_interval: Option<Duration>,
    /// The maximum time between two heartbeats on a path that is potentially failed or inactive,
    /// and whether all such paths are also probed at once when the last active path fails. Without
    /// it, the time doubles with each heartbeat that is lost, up to [`Self::rto_max`], and is then
    /// [`Self::hb_interval`] (RFC 9260 §8.3, RFC 7829 §3.2). The additional heartbeats count no
    /// errors. There is one in 100 ms at most, or in the time that an answer usually takes. And
    /// [`Self::association_max_retrans`] is the number of errors for each path, so that an outage of
    /// all paths ends the association no sooner than one of a single path.
    pub max_probe_interval: Option<Duration>,
    /// `HB.Max.Burst`: the number of unconfirmed addresses probed within one timeout (RFC 9260
    /// §5.4). With [`Self::multipath`] at least [`MultipathConfig::verification_burst`].
    pub hb_max_burst: u32,
    /// `Max.Burst`, in packets.
    pub max_burst: u32,
    /// The maximum delay of a SACK (RFC 9260 §6.2; `SCTP_DELAYED_SACK`).
    pub sack_delay: Duration,
    /// The number of packets after which a SACK is sent at once.
    pub sack_frequency: u32,
    /// The number of outbound streams to request (`sinit_num_ostreams`).
    pub outbound_streams: u16,
    /// The maximum number of inbound streams (`sinit_max_instreams`).
    pub max_inbound_streams: u16,
    /// The maximum number of bytes of user data that are waiting to be sent or acknowledged
    /// (`SO_SNDBUF`).
    pub send_buffer: usize,
    /// The maximum number of bytes of user data that are waiting to be received (`SO_RCVBUF`): the
    /// receiver window.
    pub receive_buffer: usize,
    /// The number of received bytes from which on a message is delivered in parts
    /// (`SCTP_PARTIAL_DELIVERY_POINT`); `None` means a quarter of the receive buffer.
    pub partial_delivery_point: Option<usize>,
    /// Whether small messages may wait for more to fill a packet (the opposite of `SCTP_NODELAY`).
    pub nagle: bool,
    /// DSCP, hop limit and mark of packets (`IP_TOS`, `IP_TTL`, `SO_MARK`).
    pub markings: FamilyMarkings,
    /// The initial maximum packet size, in bytes of IP packet; each path discovers its own.
    pub mtu: u16,
    /// The largest packet size to probe for, in bytes of IP packet.
    pub largest_mtu: u16,
    /// Whether paths probe for larger packet sizes (RFC 8899).
    pub path_mtu_discovery: bool,
    /// The number of bytes that a lower layer adds to each packet besides the IP and UDP headers,
    /// such as a DTLS record (RFC 8261).
    pub packet_overhead: u8,
    /// The maximum number of data bytes per chunk, if messages are to be fragmented below the
    /// packet size (`SCTP_MAXSEG`).
    pub max_segment: Option<u16>,
    /// The congestion control of each path.
    pub congestion_control: AlgorithmSelection<CongestionControlKind, dyn CongestionControlFactory>,
    /// The loss detection.
    pub loss_detection: LossDetection,
    /// The stream scheduler.
    pub scheduler: AlgorithmSelection<SchedulerKind, dyn SchedulerFactory>,
    /// The order in which waiting messages are passed to the application.
    pub receive_order: ReceiveOrder,
    /// The extensions offered to the peer.
    pub extensions: OfferedExtensions,
    /// Whether local addresses that are added or removed are announced to the peer automatically
    /// (`SCTP_AUTO_ASCONF`), if [`OfferedExtensions::dynamic_addresses`] was negotiated and the driver
    /// reports them ([`crate::io::Input::LocalAddresses`]).
    pub auto_asconf: bool,
    /// The chunk types that the peer must authenticate (`SCTP_AUTH_CHUNK`), if
    /// [`OfferedExtensions::authentication`] was negotiated, in addition to those that change addresses.
    pub authenticated_chunks: Vec<u8>,
    /// Keys shared with the peer (`SCTP_AUTH_KEY`, `SCTP_AUTH_ACTIVE_KEY`).
    pub shared_keys: SharedKeys,
    /// The maximum number of a peer's addresses that are considered. An association has at most 255
    /// paths in any case.
    pub max_peer_addresses: usize,
    /// The priority (lower values first) or weight of individual streams, depending on the
    /// scheduler; other streams have priority 0 and weight 1 (`SCTP_STREAM_SCHEDULER_VALUE`).
    pub stream_values: Vec<(StreamId, u16)>,
    /// Whether and how all paths carry new data concurrently (CMT-SCTP); with `None`, one path at a
    /// time is used, as in RFC 9260 §6.4.
    pub multipath: Option<MultipathConfig>,
    /// The initial congestion window of a path, for window-based controllers.
    pub initial_window: InitialWindow,
    /// The initial slow-start threshold of a path.
    pub initial_threshold: InitialThreshold,
    /// How the congestion window of an idle path is reduced.
    pub idle_window: IdleWindow,
    /// Which SACKs provide round-trip time samples.
    pub rtt_sampling: RttSampling,
    /// What reduces the advertised receiver window.
    pub window_accounting: WindowAccounting,
    /// Whether data is moved away from a path that has fallen silent before T3 expires, if there is
    /// another path (beyond RFC 7829 §3.2).
    pub suspect_silent_paths: bool,
    /// Whether the peer is asked not to delay its SACK when nothing more can be sent before it
    /// arrives (RFC 7053 §4).
    pub ask_for_sacks: bool,
}

impl Default for AssociationConfig {
    fn default() -> Self {
        Self {
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(60),
            association_max_retrans: 10,
            path_max_retrans: 5,
            potentially_failed_max_retrans: 0,
            primary_switchover_max_retrans: None,
            max_init_retransmits: 8,
            max_init_timeout: None,
            shutdown_stall: Some(Duration::from_secs(60)),
            hb_interval: Some(Duration::from_secs(30)),
            max_probe_interval: None,
            hb_max_burst: 1,
            max_burst: 4,
            sack_delay: Duration::from_millis(200),
            sack_frequency: 2,
            outbound_streams: 1024,
            max_inbound_streams: 65_535,
            send_buffer: 1 << 20,
            receive_buffer: 1 << 20,
            partial_delivery_point: None,
            nagle: false,
            markings: FamilyMarkings::default(),
            mtu: 1500,
            largest_mtu: 9000,
            path_mtu_discovery: true,
            packet_overhead: 0,
            max_segment: None,
            congestion_control: AlgorithmSelection::default(),
            loss_detection: LossDetection::default(),
            scheduler: AlgorithmSelection::default(),
            receive_order: ReceiveOrder::default(),
            extensions: OfferedExtensions::default(),
            auto_asconf: false,
            authenticated_chunks: Vec::new(),
            shared_keys: SharedKeys::default(),
            max_peer_addresses: 32,
            stream_values: Vec::new(),
            multipath: None,
            initial_window: InitialWindow::default(),
            initial_threshold: InitialThreshold::default(),
            idle_window: IdleWindow::default(),
            rtt_sampling: RttSampling::default(),
            window_accounting: WindowAccounting::default(),
            suspect_silent_paths: true,
            ask_for_sacks: true,
        }
    }
}

/// How losses are detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum LossDetection {
    /// By three missing reports and T3 (RFC 9260 §7.2.4, §6.3.3).
    Classic,
    /// By time, with tail-loss probes, as in RFC 8985 for TCP; T3 remains the last resort.
    #[default]
    Rack,
}

/// The order in which waiting messages are passed to the application; each stream keeps its order.
/// It matters to applications that read more slowly than messages arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReceiveOrder {
    /// In the order in which they became deliverable.
    #[default]
    Arrival,
    /// One message from each stream in turn.
    RoundRobin,
    /// The message of the stream with the lowest value first, in the order of arrival among equals;
    /// streams that are not listed have 0.
    Priority(Vec<(StreamId, u16)>),
}

/// The extensions offered to the peer, each used if the peer offers it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedExtensions {
    /// I-DATA and I-FORWARD-TSN (RFC 8260). Not used with a peer that offers FORWARD-TSN and I-DATA
    /// but not I-FORWARD-TSN: that is Linux, if enabled there (`net.sctp.intl_enable`). Linux
    /// numbers the second fragment of a message 0, in both directions, where RFC 8260 §2.1 gives
    /// that number to the first. This cannot be detected before the second fragment; if that one
    /// arrived late, the third would be taken for it, and the message would be delivered without
    /// the second. Linux with `net.sctp.prsctp_enable` disabled looks like any peer without
    /// FORWARD-TSN: do not offer interleaving to it.
    pub interleaving: bool,
    /// FORWARD-TSN (RFC 3758).
    pub partial_reliability: bool,
    /// RE-CONFIG (RFC 6525).
    pub reconfiguration: bool,
    /// ASCONF with AUTH (RFC 5061, RFC 4895).
    pub dynamic_addresses: bool,
    /// AUTH only (RFC 4895); implied by [`Self::dynamic_addresses`].
    pub authentication: bool,
    /// NR-SACK (draft-tuexen-tsvwg-sctp-multipath §3).
    pub nr_sack: bool,
    /// ECN (RFC 4960 appendix A; removed by RFC 9260). It is disabled on a path on which no
    /// ECN-capable data arrives. Networks that clear the marks are not detected.
    pub ecn: bool,
    /// Packets without checksum, if a lower layer already protects them: only over DTLS (RFC 9653,
    /// error detection method 1).
    pub zero_checksum: bool,
}

impl Default for OfferedExtensions {
    fn default() -> Self {
        Self {
            interleaving: true,
            partial_reliability: true,
            reconfiguration: true,
            dynamic_addresses: false,
            authentication: false,
            nr_sack: false,
            ecn: false,
            zero_checksum: false,
        }
    }
}
