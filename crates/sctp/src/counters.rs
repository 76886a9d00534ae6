//! What was counted because it was no error for anybody here: hostile, broken or late input.

/// One counter for each way in which input can be wrong. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Packets taken in.
    pub packets_in: u64,
    /// Packets given out.
    pub packets_out: u64,
    /// Packets too short or malformed to look at.
    pub malformed_packets: u64,
    /// Packets with a wrong checksum (RFC 9260 §6.8).
    pub bad_checksums: u64,
    /// Packets whose verification tag is not ours (RFC 9260 §8.5).
    pub bad_tags: u64,
    /// Packets for no association here (RFC 9260 §8.4).
    pub out_of_the_blue: u64,
    /// Cookies with a wrong signature.
    pub forged_cookies: u64,
    /// Cookies past their lifetime (RFC 9260 §5.1.5).
    pub stale_cookies: u64,
    /// Chunks that do not fit their type.
    pub malformed_chunks: u64,
    /// Chunks of unknown types (RFC 9260 §3.2).
    pub unknown_chunks: u64,
    /// Chunks that their state, or what was agreed, does not allow.
    pub unexpected_chunks: u64,
    /// AUTH chunks that vouch for nothing: a wrong HMAC, or a key or algorithm that is not known
    /// (RFC 4895 §6.3).
    pub forged_authentications: u64,
    /// Chunks that must come authenticated and did not (RFC 4895 §6.3).
    pub unauthenticated_chunks: u64,
    /// DATA chunks received again.
    pub duplicate_data: u64,
    /// DATA chunks dropped for want of window.
    pub data_over_window: u64,
    /// DATA chunks that contradict what came earlier: overlap, no begin, wrong stream.
    pub inconsistent_data: u64,
    /// SACK chunks that acknowledge what was never sent, or whose blocks are out of order.
    pub bad_sacks: u64,
    /// ERROR chunks of peers, whatever they say (RFC 9260 §3.3.10).
    pub errors_in: u64,
    /// RE-CONFIG chunks of peers, requests and answers (RFC 6525 §3.1).
    pub reconfigurations_in: u64,
    /// Reports of the network that do not quote a packet of the association that they are about
    /// (RFC 9260 §10).
    pub unverified_reports: u64,
    /// Answers that were not given because of a rate limit (RFC 9260 §8.4, §10).
    pub answers_withheld: u64,
    /// Addresses of a peer that were left out: not unicast, too many, or of a family that is not
    /// used here.
    pub addresses_ignored: u64,
    /// Chunks retransmitted.
    pub retransmissions: u64,
}
