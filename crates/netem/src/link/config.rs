//! What a link is like.

use alloc::vec::Vec;
use core::time::Duration;

/// One direction of a link.
///
/// The default is a wire without delay, limit or fault.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Bits in a second; `None` is a link that takes no time to send. With `Some(0)` nothing leaves
    /// and the queue fills, as under a radio that is out of reach.
    pub rate: Option<u64>,
    /// From the end of a packet's transmission to its arrival at the far end.
    pub delay: Duration,
    /// Each packet takes longer than [`Self::delay`] by up to this much, uniformly.
    pub jitter: Duration,
    /// Bytes that the link adds to each packet (7 for PPP, 38 for Ethernet with preamble and gap).
    pub framing: usize,
    /// The largest IP packet, in bytes with its header. A larger one is dropped, without an answer,
    /// if it may not be cut; else it travels as fragments, which take more room and share one fate.
    pub mtu: Option<usize>,
    /// Packets that wait until the link is free.
    pub queue: QueueConfig,
    /// Packets that are lost after they have used the link's time.
    pub loss: LossConfig,
    /// Errors in single bits.
    pub bit_error: Option<BitErrorConfig>,
    /// The probability that a packet arrives twice.
    pub duplication: f64,
    /// Whether packets may overtake each other.
    pub reordering: Reordering,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            framing: 0,
            mtu: None,
            queue: QueueConfig::default(),
            loss: LossConfig::None,
            bit_error: None,
            duplication: 0.0,
            reordering: Reordering::Never,
        }
    }
}

impl LinkConfig {
    /// A link of `rate` bit/s and `delay`, with a queue of 100 packets.
    #[must_use]
    pub fn new(rate: u64, delay: Duration) -> Self {
        Self { rate: Some(rate), delay, ..Self::default() }
    }
}

/// Which packets may wait, and for how long. The packet that is being sent does not wait.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out, so many packets; later ones are dropped.
    Packets(usize),
    /// First in, first out, so many bytes of IP packets.
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
    /// The most packets that wait.
    pub limit: usize,
    /// Below this average length nothing is dropped, in packets.
    pub minimum: f64,
    /// At this average length the probability is [`Self::probability`], in packets. Above, it grows
    /// to 1 at twice this length.
    pub maximum: f64,
    /// The probability of a drop at [`Self::maximum`].
    pub probability: f64,
    /// The share of the present length in the average.
    pub weight: f64,
    /// Mark packets that take part in ECN instead of dropping them, up to [`Self::maximum`]
    /// (RFC 3168 §7).
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
    /// The most packets that wait.
    pub limit: usize,
    /// The delay that is put up with (RFC 8289 §3.2).
    pub target: Duration,
    /// For how long more is put up with: about a worst round trip (RFC 8289 §3.2).
    pub interval: Duration,
    /// Mark packets that take part in ECN instead of dropping them.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// The values of RFC 8289 §4.3, and a queue of 1,000 packets.
    fn default() -> Self {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        Self { limit: 1000, target, interval, ecn: true }
    }
}

/// Which packets are lost on the wire. They have used the link's time.
#[derive(Clone, Debug, PartialEq)]
pub enum LossConfig {
    /// None.
    None,
    /// Each with this probability, whatever happened to the one before.
    Probability(f64),
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// These, counted from 0 in the order in which they are put on the wire. Sorted or not.
    List(Vec<u64>),
}

/// Losses in bursts: a link that is in one of two states (Gilbert 1960, Elliott 1963). It changes
/// its state, or not, before each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The probability of turning bad before a packet, when good.
    pub to_bad: f64,
    /// The probability of turning good before a packet, when bad. Its inverse is the mean length
    /// of a burst, in packets.
    pub to_good: f64,
    /// The probability of losing a packet when good.
    pub loss_good: f64,
    /// The probability of losing a packet when bad.
    pub loss_bad: f64,
}

/// Errors in single bits, each on its own, in the IP packet and what frames it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitErrorConfig {
    /// The probability that a bit is wrong.
    pub probability: f64,
    /// What becomes of a packet with a wrong bit.
    pub effect: BitErrorEffect,
}

/// What becomes of a packet with wrong bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitErrorEffect {
    /// The link sees it and drops the packet, as Ethernet does by its checksum.
    #[default]
    Drop,
    /// Wrong bits behind the IP header arrive as they are: what the transport's own checksum is
    /// for. Packets with wrong bits in the header or in the framing are dropped.
    Corrupt,
}

/// Whether packets may overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reordering {
    /// Packets arrive in the order of sending, however their delays come out.
    #[default]
    Never,
    /// A packet with less jitter may overtake one with more.
    ByJitter,
    /// Some are held back while others pass. Jitter alone changes no order.
    Late {
        /// The probability that a packet is held back.
        probability: f64,
        /// For how long.
        by: Duration,
    },
}

/// A change of a link in use.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// Works again.
    Up,
    /// Is cut: what waits and what is under way is lost, and so is what comes.
    Down,
    /// Another rate. A packet whose transmission has begun ends it at the old one.
    Rate(Option<u64>),
    /// Another delay, for packets whose transmission has not begun.
    Delay(Duration),
    /// Another jitter, likewise.
    Jitter(Duration),
    /// Other losses; the state of a burst model and the count for a list begin anew.
    Loss(LossConfig),
}
