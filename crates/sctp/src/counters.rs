//! Counters of hostile, broken or late input, none of which is reported as an error.

/// One counter for each way in which input can be wrong, and some for traffic. They only increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointCounters {
    /// Packets received.
    pub packets_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Packets that are too short or malformed.
    pub malformed_packets: u64,
    /// Packets with a wrong checksum (RFC 9260 §6.8).
    pub bad_checksums: u64,
    /// Packets with a wrong verification tag (RFC 9260 §8.5).
    pub bad_tags: u64,
    /// Packets without a matching association (RFC 9260 §8.4).
    pub out_of_the_blue: u64,
    /// Cookies with an invalid signature.
    pub forged_cookies: u64,
    /// Cookies past their lifetime (RFC 9260 §5.1.5).
    pub stale_cookies: u64,
    /// Malformed chunks.
    pub malformed_chunks: u64,
    /// Chunks of unknown types (RFC 9260 §3.2).
    pub unknown_chunks: u64,
    /// Chunks that are not allowed in the current state, or were not negotiated.
    pub unexpected_chunks: u64,
    /// AUTH chunks that fail verification: a wrong HMAC, or an unknown key or algorithm (RFC 4895
    /// §6.3).
    pub forged_authentications: u64,
    /// Chunks that require authentication but arrived without (RFC 4895 §6.3).
    pub unauthenticated_chunks: u64,
    /// DATA duplicate chunks.
    pub duplicate_data: u64,
    /// DATA chunks dropped because they exceeded the window.
    pub data_over_window: u64,
    /// DATA chunks that contradict earlier ones: overlap, missing begin, wrong stream.
    pub inconsistent_data: u64,
    /// SACK chunks that acknowledge data that was never sent, or whose blocks are out of order.
    pub bad_sacks: u64,
    /// ERROR chunks received (RFC 9260 §3.3.10).
    pub errors_in: u64,
    /// RE-CONFIG chunks received, requests and responses (RFC 6525 §3.1).
    pub reconfigurations_in: u64,
    /// ICMP reports that do not quote a packet of the association concerned (RFC 9260 §10).
    pub unverified_reports: u64,
    /// Answers suppressed by a rate limit (RFC 9260 §8.4, §10).
    pub answers_withheld: u64,
    /// A peer's addresses that were ignored: not unicast, too many, or of a family that is not used
    /// here.
    pub addresses_ignored: u64,
    /// Chunks retransmitted.
    pub retransmissions: u64,
}
