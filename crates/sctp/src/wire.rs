//! The wire format: parsing and encoding of packets, chunks, parameters and error causes.
//!
//! Parsing copies nothing and, for the chunks of a running transfer, allocates nothing: payloads
//! share memory with their packet, lists are parsed on iteration. A single walker (`walker`)
//! handles everything with a type and a length, so no two parsers can disagree on where something
//! ends.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `packet` | the common header, the chunks of a packet | RFC 9260 §3, §3.1 |
//! | `writer` | assembly of packets in place | RFC 9260 §6.10 |
//! | `unread_packet` | a received packet, in either form | |
//! | `struct_packet` | a packet as values, for simulations | |
//! | `checksum` | CRC32c | RFC 9260 §6.8, appendix A |
//! | `walker` | types, lengths, padding | RFC 9260 §3.2, §3.2.1 |
//! | `records` | lists of entries of one size | |
//! | `list` | lists of parameters and of causes | |
//! | `action` | handling of unknown types | RFC 9260 §3.2, §3.2.1 |
//! | `cause` | error causes | RFC 9260 §3.3.10 |
//! | `chunk` | one file per type of chunk | see there |
//! | `parameter` | parameters, one file per document | see there |

pub mod action;
pub mod cause;
pub mod checksum;
pub mod chunk;
mod list;
mod packet;
pub mod parameter;
pub mod records;
mod struct_packet;
#[cfg(test)]
mod tests;
mod unread_packet;
mod walker;
mod writer;

pub use action::UnknownAction;
pub use cause::{CauseCode, Causes, ErrorCause};
pub use checksum::{ChecksumKind, HeaderShare};
pub use chunk::{
    AbortChunk, AsconfAckChunk, AsconfChunk, AuthChunk, Chunk, ChunkType, DataChunk, DataFlags,
    DataHeader, DataOrder, EncodeChunk, ErrorChunk, ForwardTsnChunk, GapBlock, HeartbeatChunk,
    IForwardTsnChunk, InitChunk, ReconfigChunk, SackBuilder, SackChunk, SkippedMid, SkippedSsn,
    UnknownChunk,
};
pub use packet::{CommonHeader, MalformedPacket, PACKET_HEADER, PacketChunks, PacketParser};
pub use parameter::{Parameter, ParameterType, Parameters};
pub use records::WireRecords;
pub use struct_packet::{StructPacket, StructPackets};
pub use unread_packet::UnreadPacket;
pub use writer::{PacketSink, PacketWriter};

/// Returns `length` with padding: everything on the wire starts at a multiple of four bytes (RFC
/// 9260 §3.2).
#[must_use]
pub const fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}
