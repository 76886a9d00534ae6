//! The configuration of a link.

use alloc::vec::Vec;
use core::time::Duration;

use super::trace::DeliveryTrace;

/// The configuration of one direction of a link.
///
/// The default is a wire without delay, limit or fault.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// The rate in bits per second; `None` is a link whose transmission takes no time. With
    /// `Some(0)` nothing is sent and the queue fills, as for a radio link that is out of range.
    pub rate: Option<u64>,
    /// A recorded rate, which takes the place of [`Self::rate`].
    pub trace: Option<DeliveryTrace>,
    /// From the end of a packet's transmission to its arrival at the far end.
    pub delay: Duration,
    /// How much the delay of a packet differs from [`Self::delay`]; the distribution says in which
    /// sense. No packet arrives before its transmission has ended.
    pub jitter: Duration,
    /// The distribution of the jitter.
    pub jitter_distribution: JitterDistribution,
    /// The correlation of the jitter of consecutive packets, from 0 to 1. It does not change the
    /// distribution.
    pub jitter_correlation: f64,
    /// The number of bytes that the link adds to each packet (7 for PPP, 38 for Ethernet with
    /// preamble and gap).
    pub framing: usize,
    /// The largest IP packet, in bytes including its header. A larger one is dropped silently if it
    /// must not be fragmented; otherwise it travels as fragments, which take more space and are
    /// lost or delivered together.
    pub mtu: Option<usize>,
    /// The queue for packets that wait until the link is free.
    pub queue: QueueConfig,
    /// Random losses, after transmission.
    pub loss: LossConfig,
    /// Bit errors.
    pub bit_error: Option<BitErrorConfig>,
    /// The probability that a packet arrives twice.
    pub duplication: f64,
    /// Whether packets may overtake each other.
    pub reordering: ReorderingMode,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            trace: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_distribution: JitterDistribution::Above,
            jitter_correlation: 0.0,
            framing: 0,
            mtu: None,
            queue: QueueConfig::default(),
            loss: LossConfig::None,
            bit_error: None,
            duplication: 0.0,
            reordering: ReorderingMode::Never,
        }
    }
}

impl LinkConfig {
    /// Creates a link with `rate` in bit/s, `delay`, and a queue of 100 packets.
    #[must_use]
    pub fn new(rate: u64, delay: Duration) -> Self {
        Self { rate: Some(rate), delay, ..Self::default() }
    }
}

/// The distribution of the jitter, by the names of `tc qdisc … netem`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform from nothing to the jitter: it is only added. `tc` has no such distribution.
    #[default]
    Above,
    /// Uniform, from the jitter less to the jitter more.
    Uniform,
    /// Normal, with the jitter as its standard deviation, up to four times it.
    Normal,
    /// Pareto with the shape 3, in the scale of `tc`: most packets are a little early, and some are
    /// up to four times the jitter late.
    Pareto,
    /// A quarter of the deviation of the normal and three quarters of that of the Pareto
    /// distribution.
    ParetoNormal,
}

/// The queue: which packets may wait, and for how long. The packet being transmitted is not part of
/// it.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out, limited to this number of packets; further ones are dropped.
    Packets(usize),
    /// First in, first out, limited to this number of bytes of IP packets.
    Bytes(usize),
    /// Random early detection.
    Red(RedConfig),
    /// Controlled delay.
    CoDel(CoDelConfig),
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::Packets(100)
    }
}

/// Random early detection (Floyd and Jacobson 1993; the gentle variant of Floyd 2000).
#[derive(Clone, Debug, PartialEq)]
pub struct RedConfig {
    /// The maximum number of queued packets.
    pub limit: usize,
    /// The average length, in packets, below which nothing is dropped.
    pub minimum: f64,
    /// The average length, in packets, at which the drop probability is [`Self::probability`].
    /// Above, it grows to 1 at twice this length.
    pub maximum: f64,
    /// The probability of a drop at [`Self::maximum`].
    pub probability: f64,
    /// The weight of the current length in the average.
    pub weight: f64,
    /// Mark ECN-capable packets instead of dropping them, up to [`Self::maximum`] (RFC 3168 §7).
    pub ecn: bool,
}

impl Default for RedConfig {
    /// The values that Floyd recommended in 1997, for a queue of 100 packets.
    fn default() -> Self {
        let (minimum, maximum) = (5.0, 15.0);
        Self { limit: 100, minimum, maximum, probability: 0.1, weight: 0.002, ecn: true }
    }
}

/// Controlled delay (RFC 8289).
#[derive(Clone, Debug, PartialEq)]
pub struct CoDelConfig {
    /// The maximum number of queued packets.
    pub limit: usize,
    /// The acceptable delay (RFC 8289 §3.2).
    pub target: Duration,
    /// How long a longer delay is acceptable: about the worst round-trip time (RFC 8289 §3.2).
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// The values of RFC 8289 §4.3, and a queue of 1,000 packets.
    fn default() -> Self {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        Self { limit: 1000, target, interval, ecn: true }
    }
}

/// Which packets are lost on the wire, after transmission.
#[derive(Clone, Debug, PartialEq)]
pub enum LossConfig {
    /// None.
    None,
    /// Each packet independently, with this probability.
    Probability(f64),
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// The packets with these numbers, counted from 0 in the order of transmission. Need not be
    /// sorted.
    List(Vec<u64>),
}

/// Bursty losses: a link with two states (Gilbert 1960, Elliott 1963), which may change before each
/// packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The probability of changing from good to bad before a packet.
    pub to_bad: f64,
    /// The probability of changing from bad to good before a packet. Its inverse is the mean length
    /// of a burst, in packets.
    pub to_good: f64,
    /// The loss probability in the good state.
    pub loss_good: f64,
    /// The loss probability in the bad state.
    pub loss_bad: f64,
}

/// Independent bit errors in the IP packet and its framing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitErrorConfig {
    /// The probability that a bit is wrong.
    pub probability: f64,
    /// The effect on a packet with bit errors.
    pub effect: BitErrorEffect,
}

/// The effect of bit errors on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitErrorEffect {
    /// The link detects them and drops the packet, as Ethernet does by its checksum.
    #[default]
    Drop,
    /// Errors after the IP header are delivered, to test the transport's own checksum. Packets with
    /// errors in the header or the framing are dropped.
    Corrupt,
}

/// Whether packets may overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ReorderingMode {
    /// Packets arrive in the order in which they were sent, whatever their delays.
    #[default]
    Never,
    /// A packet with less jitter may overtake one with more.
    ByJitter,
    /// Some packets are delayed while others pass. Jitter alone does not reorder packets.
    Late {
        /// The probability that a packet is delayed.
        probability: f64,
        /// The additional delay.
        by: Duration,
    },
}

/// A change of a link in use.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// The link works again.
    Up,
    /// The link is cut: packets in it are lost, and so are further ones.
    Down,
    /// Sets the rate, instead of a recorded one too. A packet that is being transmitted is completed
    /// at the old one.
    Rate(Option<u64>),
    /// Sets the delay, for packets whose transmission has not begun.
    Delay(Duration),
    /// Sets the amount of the jitter.
    Jitter(Duration),
    /// Sets the losses; the state of a burst model and the count of a list are reset.
    Loss(LossConfig),
}
