//! The profile of the PFLDNeT 2010 paper: RFC 4960 as implemented by its authors' simulation
//! model.

use core::time::Duration;

use super::ProfileChoice;
use crate::config::{
    AssociationConfig, BufferSplitting, BurstLimit, ChunkRescheduling, CongestionControlKind,
    CucVersion, IdleWindow, InitialThreshold, InitialWindow, LossDetection, MultipathConfig,
    NrSackPolicy, PathOrder, RttSampling, RtxPolicy, SackPath, SchedulerKind, WindowAccounting,
};

/// The paper itself.
const PAPER: &str = "Dreibholz et al., PFLDNeT 2010";
/// The authors' public simulation model.
const MODEL: &str = "simulation model (INET), variants held against the paper";
/// The standard of the time.
const RFC_4960: &str = "RFC 4960";

pub(super) const CHOICES: [ProfileChoice; 35] = [
    stated("multipath", "all active paths, plain CMT", PAPER),
    stated("addresses", "the sender knows all of the peer's: all paths carry data at once", MODEL),
    stated("flight_cap, rescheduling", "none", PAPER),
    stated("congestion_control", "NewReno on each path, in bytes of payload", RFC_4960),
    stated("initial_window", "min(4 MTU, max(2 MTU, 4380))", RFC_4960),
    stated("initial_threshold", "the peer's window", RFC_4960),
    stated("fast retransmission", "window and threshold to max(window / 2, 4 MTU), once", RFC_4960),
    stated("idle_window", "after one RTO back to the initial window", MODEL),
    stated("loss_detection", "three missing reports, T3", RFC_4960),
    stated("split_fast_retransmit", "on", "Iyengar et al. 2006"),
    stated("delayed_ack", "on: no SACK at once on a gap", "Iyengar et al. 2006"),
    stated("cuc", "version 2", "Iyengar et al. 2006"),
    stated("rtx_policy", "the same path; after T3 another one", MODEL),
    stated("sender_splitting", "on queued bytes, a share for each path", MODEL),
    stated("receiver_splitting", "on queued bytes, a share for each path", MODEL),
    stated("path_order", "the path with the oldest last transmission first", MODEL),
    stated("burst", "4 packets for each path and event", MODEL),
    stated("sack_path", "the paths that delivered since the last SACK, in turn", MODEL),
    stated("sack_delay, sack_frequency", "200 ms, every second packet", RFC_4960),
    stated("ask_for_sacks", "never (RFC 7053 came later)", MODEL),
    stated("nr_sack", "at delivery to the application; the sender frees it at once", MODEL),
    stated("rtt_sampling", "chunks sent on the path on which the SACK came back", MODEL),
    stated("rto_initial, rto_min, rto_max", "3 s, 1 s, 60 s", RFC_4960),
    stated("association_max_retrans, path_max_retrans", "10, 5", RFC_4960),
    stated("max_init_retransmits", "8", RFC_4960),
    stated("hb_interval", "30 s", RFC_4960),
    stated("potentially failed paths", "none (RFC 7829 came later)", RFC_4960),
    stated("receive window", "counts payload alone, no overhead of chunks", MODEL),
    stated("scheduler", "streams in turn, a message each", PAPER),
    stated("interleaving", "off: DATA chunks", RFC_4960),
    stated("mtu", "1500, without discovery", PAPER),
    stated("nagle", "off: all messages fill a packet", MODEL),
    stated("queue information", "unsent and unacknowledged bytes of a stream", MODEL),
    fitted("use of it", "off in Figures 4 and 5; on in Figure 6 with API; on in Figure 7"),
    fitted("mean delay over all streams", "the mean of the streams' means"),
];

const fn stated(name: &'static str, value: &'static str, source: &'static str) -> ProfileChoice {
    ProfileChoice { name, value, source, fitted: false }
}

const fn fitted(name: &'static str, value: &'static str) -> ProfileChoice {
    ProfileChoice { name, value, source: "fitted to the paper's results", fitted: true }
}

pub(super) fn apply(config: &mut AssociationConfig) {
    config.rto_initial = Duration::from_secs(3);
    config.rto_min = Duration::from_secs(1);
    config.rto_max = Duration::from_secs(60);
    config.association_max_retrans = 10;
    config.path_max_retrans = 5;
    // As many as make a path inactive: none is ever potentially failed.
    config.potentially_failed_max_retrans = 5;
    config.suspect_silent_paths = false;
    config.max_probe_interval = None;
    config.max_init_retransmits = 8;
    config.hb_interval = Some(Duration::from_secs(30));
    config.max_burst = 4;
    config.sack_delay = Duration::from_millis(200);
    config.sack_frequency = 2;
    config.ask_for_sacks = false;
    config.window_accounting = WindowAccounting::Payload;
    config.nagle = false;
    config.mtu = 1500;
    config.path_mtu_discovery = false;
    config.congestion_control = CongestionControlKind::NewReno.into();
    config.initial_window = InitialWindow::Rfc4960;
    config.initial_threshold = InitialThreshold::PeerWindow;
    config.idle_window = IdleWindow::Initial;
    config.rtt_sampling = RttSampling::SackPath;
    config.loss_detection = LossDetection::Classic;
    config.scheduler = SchedulerKind::RoundRobin.into();
    config.extensions.interleaving = false;
    config.extensions.nr_sack = true;
    let (mapping, preferences) = config
        .multipath
        .take()
        .map(|multipath| (multipath.mapping, multipath.preferences))
        .unwrap_or_default();
    config.multipath = Some(MultipathConfig {
        mapping,
        preferences,
        path_order: PathOrder::OldestTransmission,
        sender_splitting: BufferSplitting::Queued,
        receiver_splitting: BufferSplitting::Queued,
        cuc: CucVersion::V2,
        split_fast_retransmit: true,
        delayed_ack: true,
        rtx_policy: RtxPolicy::Same,
        sack_path: SackPath::InTurn,
        nr_sack: NrSackPolicy::AtDelivery,
        burst: BurstLimit::PerEvent,
        flight_cap: None,
        rescheduling: ChunkRescheduling::None,
        // RFC 4960's HB.Max.Burst applies.
        verification_burst: 1,
    });
}
