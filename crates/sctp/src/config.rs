//! What can be set, under the names of RFC 9260 §16 and of the socket options of RFC 6458.

use alloc::vec::Vec;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

pub use crate::auth::SharedKeys;
use crate::congestion::CongestionControlFactory;
pub use crate::congestion::kind::CongestionControlKind;
use crate::identifier::StreamId;
use crate::scheduler::SchedulerFactory;
pub use crate::scheduler::kind::SchedulerKind;

mod multipath;
mod profile;
mod selection;
mod windows;

pub use multipath::{
    BufferSplitting, BurstLimit, ChunkRescheduling, Cuc, FlightCap, Multipath, NrSackPolicy,
    PathOrder, RtxPolicy, SackPath, StreamMapping, StreamPreference,
};
pub use profile::{Choice, Profile};
pub use selection::Selection;
pub use windows::{IdleWindow, InitialThreshold, InitialWindow, RttSampling, WindowAccounting};

/// What an endpoint is and allows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// The SCTP port that is listened on; `None` takes nobody in.
    pub listen_port: Option<u16>,
    /// Addresses of this host that a peer may be told of, most wanted first, until
    /// [`crate::io::Input::LocalAddresses`] says others. A peer is told of those that mean the same
    /// to it: no loopback or link-local ones beyond the host or link, no private ones (RFC 1918,
    /// RFC 4193) if its own is global. Empty: only the one that packets leave from, which is not
    /// listed in chunks.
    pub addresses: Vec<IpAddr>,
    /// How long a cookie is good for (RFC 9260 §16, `Valid.Cookie.Life`).
    pub valid_cookie_life: Duration,
    /// How often the key that signs cookies changes; the one before stays good for one more turn.
    pub cookie_key_life: Duration,
    /// The most associations at a time. Those that are opened here have a port each towards one
    /// address and port of a peer, of which there are 64,512.
    pub max_associations: usize,
    /// Answers to packets that belong to nobody, a second (RFC 9260 §8.4).
    pub max_out_of_the_blue_answers: u32,
    /// Bytes of user data that all associations may hold together, whichever way it goes, with what
    /// keeping it costs. Of what is free of it, each may take an eighth, so that its buffers shrink
    /// where many hold much; 64 KiB it may have each way in any case.
    pub memory: usize,
    /// INIT ACKs a second to one source (an IPv4 address, or an IPv6 network of 64 bits) that nobody
    /// has brought back as a cookie: who forges the source of an INIT has them sent to somebody else.
    pub max_init_acks_per_source: u32,
    /// Heartbeats a second to addresses that the peers at one source listed, but that have never
    /// answered: these may be somebody else's.
    pub max_probes_per_source: u32,
    /// How the associations that peers open behave.
    pub association: AssociationConfig,
    /// What packets leave as.
    pub packets: PacketForm,
}

/// What packets leave an endpoint as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PacketForm {
    /// Encoded, as [`crate::io::Output::Transmit`].
    #[default]
    Wire,
    /// As values of the same lengths, [`crate::io::Output::TransmitStructs`], for a peer in the same
    /// process, which takes them as [`crate::io::Input::Struct`]. A simulation in which nothing is
    /// encoded or parsed shows whether encoding and parsing change anything.
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

/// What a new association of ours is to be.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Our SCTP port; if it is 0, one above 49151 is drawn, and one above 1023 once all those are in
    /// use towards this peer.
    pub local_port: u16,
    /// The peer's SCTP port.
    pub remote_port: u16,
    /// The peer's addresses known so far, with the port of the UDP encapsulation or 0; the first
    /// one becomes the primary path. At least one.
    pub remotes: Vec<SocketAddr>,
    /// The address to send from; the routing's choice if none is given.
    pub local: Option<IpAddr>,
    /// Whether to stop when the INIT ACK came, until `proceed` is called: a race decides then, and
    /// the peer holds no state yet. [`crate::event::Event::Answered`] tells.
    pub hold_at_init_ack: bool,
    /// How it behaves.
    pub association: AssociationConfig,
}

impl ConnectOptions {
    /// To one address of a peer.
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

/// How an association behaves. Times and counts without another source are RFC 9260 §16's.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AssociationConfig {
    /// `RTO.Initial`.
    pub rto_initial: Duration,
    /// `RTO.Min`.
    pub rto_min: Duration,
    /// `RTO.Max`.
    pub rto_max: Duration,
    /// `Association.Max.Retrans`.
    pub association_max_retrans: u32,
    /// `Path.Max.Retrans`.
    pub path_max_retrans: u32,
    /// Errors in a row after which a path counts as potentially failed (RFC 7829 §3.2, `PFMR`).
    pub potentially_failed_max_retrans: u32,
    /// Errors in a row after which another path becomes the primary one for good (RFC 7829 §5, `PSMR`),
    /// at least those after which it counts as potentially failed; `None`: the primary path is used
    /// again as soon as it works again.
    pub primary_switchover_max_retrans: Option<u32>,
    /// `Max.Init.Retransmits`.
    pub max_init_retransmits: u32,
    /// How long a peer may take nothing of the data that an association still has for it when it is to
    /// end; then it is aborted. `None` waits for as long as the peer answers. Where the peer takes some,
    /// it must take one part in 32 of all within each such time.
    pub shutdown_stall: Option<Duration>,
    /// `HB.interval`; `None` sends no heartbeats but those that verify an address.
    pub hb_interval: Option<Duration>,
    /// `HB.Max.Burst`: unconfirmed addresses that are tried within one timeout (RFC 9260 §5.4).
    pub hb_max_burst: u32,
    /// `Max.Burst`, in packets.
    pub max_burst: u32,
    /// How long a SACK may wait (RFC 9260 §6.2; `SCTP_DELAYED_SACK`).
    pub sack_delay: Duration,
    /// Every which packet is acknowledged at once.
    pub sack_frequency: u32,
    /// Streams to send on that are asked for (`sinit_num_ostreams`).
    pub outbound_streams: u16,
    /// Streams to receive on that are allowed (`sinit_max_instreams`).
    pub max_inbound_streams: u16,
    /// The most bytes of user data that wait to be sent or acknowledged (`SO_SNDBUF`).
    pub send_buffer: usize,
    /// The most bytes of user data that wait to be received (`SO_RCVBUF`): the window.
    pub receive_buffer: usize,
    /// A message of which this much came is delivered in parts; `None`: a quarter of the receive
    /// buffer (`SCTP_PARTIAL_DELIVERY_POINT`).
    pub partial_delivery_point: Option<usize>,
    /// Whether small messages may wait for more to fill a packet (the opposite of `SCTP_NODELAY`).
    pub nagle: bool,
    /// The largest packet to begin with, in bytes of IP packet; paths learn theirs.
    pub mtu: u16,
    /// The largest packet that is looked for, in bytes of IP packet.
    pub largest_mtu: u16,
    /// Whether paths look for larger packets that pass (RFC 8899).
    pub path_mtu_discovery: bool,
    /// Bytes that a layer below adds to each packet, beside the headers of IP and UDP: those of a DTLS
    /// record (RFC 8261).
    pub packet_overhead: u8,
    /// The most bytes of a chunk's data, if messages are to be cut smaller than packets
    /// (`SCTP_MAXSEG`).
    pub max_segment: Option<u16>,
    /// What decides how much may be under way on a path.
    pub congestion_control: Selection<CongestionControlKind, dyn CongestionControlFactory>,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// Which stream may send next.
    pub scheduler: Selection<SchedulerKind, dyn SchedulerFactory>,
    /// Which of several messages that wait is handed to the application first.
    pub receive_order: ReceiveOrder,
    /// What is offered to the peer.
    pub extensions: Extensions,
    /// Whether the peer is told by itself of addresses of this host that come and go
    /// (`SCTP_AUTO_ASCONF`), if [`Extensions::dynamic_addresses`] is agreed on and the driver says
    /// which there are ([`crate::io::Input::LocalAddresses`]).
    pub auto_asconf: bool,
    /// Types of chunks that the peer must authenticate (`SCTP_AUTH_CHUNK`), if
    /// [`Extensions::authentication`] is agreed on, besides those that change addresses.
    pub authenticated_chunks: Vec<u8>,
    /// Keys that the peer has too (`SCTP_AUTH_KEY`, `SCTP_AUTH_ACTIVE_KEY`).
    pub shared_keys: SharedKeys,
    /// The most addresses of a peer that are looked at. An association has 255 paths at most, whatever
    /// this says.
    pub max_peer_addresses: usize,
    /// Priority (lower goes first) or weight of single streams, as the scheduler understands it;
    /// others have priority 0 and weight 1 (`SCTP_STREAM_SCHEDULER_VALUE`).
    pub stream_values: Vec<(StreamId, u16)>,
    /// Whether and how all paths carry new data at once (CMT-SCTP); `None`: one path at a time, as
    /// RFC 9260 §6.4 has it.
    pub multipath: Option<Multipath>,
    /// The congestion window of a new path, where the controller goes by windows.
    pub initial_window: InitialWindow,
    /// The slow-start threshold of a new path.
    pub initial_threshold: InitialThreshold,
    /// What becomes of the window of a path on which nothing was sent for long.
    pub idle_window: IdleWindow,
    /// Which SACKs measure round trips.
    pub rtt_sampling: RttSampling,
    /// What closes the window that the peer is told.
    pub window_accounting: WindowAccounting,
    /// Whether data leaves a path that has fallen silent before T3 runs out, if there is another
    /// one (beyond RFC 7829 §3.2).
    pub suspect_silent_paths: bool,
    /// Whether the peer is asked not to delay its SACK when nothing more can be sent before it
    /// comes (RFC 7053 §4).
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
            shutdown_stall: Some(Duration::from_secs(60)),
            hb_interval: Some(Duration::from_secs(30)),
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
            mtu: 1500,
            largest_mtu: 9000,
            path_mtu_discovery: true,
            packet_overhead: 0,
            max_segment: None,
            congestion_control: Selection::default(),
            loss_detection: LossDetection::default(),
            scheduler: Selection::default(),
            receive_order: ReceiveOrder::default(),
            extensions: Extensions::default(),
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

/// How losses are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum LossDetection {
    /// By three missing reports and T3 (RFC 9260 §7.2.4, §6.3.3).
    Classic,
    /// By time, with tail-loss probes, as RFC 8985 does for TCP; T3 stays the last resort.
    #[default]
    Rack,
}

/// Which of several messages that wait for the application goes first; each stream keeps its order.
/// It matters to an application that takes more slowly than messages come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReceiveOrder {
    /// The one that came free first.
    #[default]
    Arrival,
    /// Streams in turn, a message each.
    RoundRobin,
    /// The one of the stream with the lowest value, in the order of arrival among equals; streams
    /// that are not named have 0.
    Priority(Vec<(StreamId, u16)>),
}

/// What is offered to the peer; used if it offers the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extensions {
    /// I-DATA and I-FORWARD-TSN (RFC 8260). Not used with a peer that offers FORWARD-TSN and I-DATA
    /// but not I-FORWARD-TSN: that is Linux, where it is switched on (`net.sctp.intl_enable`). It
    /// numbers the second fragment of a message 0 where RFC 8260 §2.1 gives that number to the
    /// first, both ways. Nothing tells before the second fragment that a peer counts so; if that
    /// one came late, the third would be taken for it, and the message would be delivered without
    /// the second. To Linux with `net.sctp.prsctp_enable` switched off, which looks like any peer
    /// without FORWARD-TSN, do not offer it.
    pub interleaving: bool,
    /// FORWARD-TSN (RFC 3758).
    pub partial_reliability: bool,
    /// RE-CONFIG (RFC 6525).
    pub reconfiguration: bool,
    /// ASCONF with AUTH (RFC 5061, RFC 4895).
    pub dynamic_addresses: bool,
    /// AUTH alone (RFC 4895); implied by [`Self::dynamic_addresses`].
    pub authentication: bool,
    /// NR-SACK (draft-tuexen-tsvwg-sctp-multipath §3).
    pub nr_sack: bool,
    /// ECN (RFC 4960 appendix A; RFC 9260 has dropped it). A path on which no data that can be marked
    /// ever arrives goes on without it. Networks that clear the marks go unnoticed.
    pub ecn: bool,
    /// Packets without checksum, where something below checks already: only over DTLS
    /// (RFC 9653, error detection method 1).
    pub zero_checksum: bool,
}

impl Default for Extensions {
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
