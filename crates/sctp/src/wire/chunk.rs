//! Chunks: one file per type.
//!
//! | type | chunk | file | source |
//! | --- | --- | --- | --- |
//! | 0, 64 | DATA, I-DATA | `data` | RFC 9260 §3.3.1, RFC 8260 §2.1 |
//! | 1, 2 | INIT, INIT ACK | `init` | RFC 9260 §3.3.2, §3.3.3 |
//! | 3, 16 | SACK, NR-SACK | `sack` | RFC 9260 §3.3.4, draft-tuexen-tsvwg-sctp-multipath §3 |
//! | 4, 5 | HEARTBEAT, HEARTBEAT ACK | `heartbeat` | RFC 9260 §3.3.5, §3.3.6 |
//! | 6 | ABORT | `abort` | RFC 9260 §3.3.7 |
//! | 7, 8, 14 | SHUTDOWN and its answers | `shutdown` | RFC 9260 §3.3.8, §3.3.9, §3.3.13 |
//! | 9 | ERROR | `error` | RFC 9260 §3.3.10 |
//! | 10, 11 | COOKIE ECHO, COOKIE ACK | `cookie` | RFC 9260 §3.3.11, §3.3.12 |
//! | 12, 13 | ECNE, CWR | `congestion` | RFC 4960 appendix A |
//! | 15 | AUTH | `auth` | RFC 4895 §4.1 |
//! | 128, 193 | ASCONF-ACK, ASCONF | `asconf` | RFC 5061 §4.1 |
//! | 130 | RE-CONFIG | `reconfig` | RFC 6525 §3.1 |
//! | 132 | PAD | `pad` | RFC 4820 §3 |
//! | 192 | FORWARD-TSN | `forward_tsn` | RFC 3758 §3.2 |
//! | 194 | I-FORWARD-TSN | `i_forward_tsn` | RFC 8260 §2.3.1 |
//! | others | | `unknown` | RFC 9260 §3.2 |

mod abort;
mod asconf;
mod auth;
mod congestion;
mod cookie;
mod data;
mod error;
mod forward_tsn;
mod heartbeat;
mod i_forward_tsn;
mod init;
mod pad;
mod reconfig;
mod sack;
mod shutdown;
#[cfg(test)]
mod tests;
mod types;
mod unknown;

use bytes::{Bytes, BytesMut};

use super::walker::{ELEMENT_HEADER, PacketView};
use crate::serial::Tsn;

pub use abort::AbortChunk;
pub use asconf::{AsconfAckChunk, AsconfChunk};
pub use auth::AuthChunk;
pub use data::{DATA_HEADER, DataChunk, DataFlags, DataHeader, DataOrder, I_DATA_HEADER};
pub use error::ErrorChunk;
pub use forward_tsn::{ForwardTsnChunk, SkipChunk, SkippedEntry, SkippedSsn};
pub use heartbeat::HeartbeatChunk;
pub use i_forward_tsn::{IForwardTsnChunk, SkippedMid};
pub use init::InitChunk;
pub use reconfig::ReconfigChunk;
pub use sack::{GapBlock, SackBuilder, SackChunk};
pub use types::ChunkType;
pub use unknown::UnknownChunk;

/// A chunk that can be written to a packet.
pub trait EncodeChunk {
    /// Returns the length of the chunk with its header, without padding.
    fn encoded_len(&self) -> usize;

    /// Appends the chunk without padding. Its length is the lower 16 bits of
    /// [`Self::encoded_len`]; [`super::PacketWriter::append`] refuses what is longer.
    fn encode(&self, buffer: &mut BytesMut);

    /// Returns the chunk as parsed by its receiver.
    fn to_chunk(&self) -> Chunk;
}

/// One chunk of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk {
    /// DATA or I-DATA, depending on [`DataOrder`].
    Data(DataChunk),
    /// INIT.
    Init(InitChunk),
    /// INIT ACK.
    InitAck(InitChunk),
    /// SACK or NR-SACK, depending on [`SackChunk::is_nr`].
    Sack(SackChunk),
    /// HEARTBEAT.
    Heartbeat(HeartbeatChunk),
    /// HEARTBEAT ACK.
    HeartbeatAck(HeartbeatChunk),
    /// ABORT.
    Abort(AbortChunk),
    /// SHUTDOWN.
    Shutdown {
        /// The last TSN received in sequence.
        cumulative_tsn: Tsn,
    },
    /// SHUTDOWN ACK.
    ShutdownAck,
    /// ERROR.
    Error(ErrorChunk),
    /// COOKIE ECHO: the cookie.
    CookieEcho(Bytes),
    /// COOKIE ACK.
    CookieAck,
    /// ECN echo.
    Ecne {
        /// The lowest TSN of the packet that was marked.
        lowest_tsn: Tsn,
    },
    /// Congestion window reduced.
    Cwr {
        /// The TSN of the ECNE that this answers.
        lowest_tsn: Tsn,
    },
    /// SHUTDOWN COMPLETE.
    ShutdownComplete {
        /// Whether the packet carries the receiver's own tag back, because its sender has no
        /// association (the T bit, RFC 9260 §8.5.1).
        reflected: bool,
    },
    /// AUTH.
    Auth(AuthChunk),
    /// ASCONF.
    Asconf(AsconfChunk),
    /// ASCONF-ACK.
    AsconfAck(AsconfAckChunk),
    /// RE-CONFIG.
    Reconfig(ReconfigChunk),
    /// FORWARD-TSN.
    ForwardTsn(ForwardTsnChunk),
    /// I-FORWARD-TSN.
    IForwardTsn(IForwardTsnChunk),
    /// PAD.
    Pad {
        /// Bytes of padding data, without the chunk's header.
        length: u16,
    },
    /// A chunk of an unknown type.
    Unknown(UnknownChunk),
    /// A chunk that is too short for its type, or whose length does not fit the packet.
    Malformed {
        /// Its stated type.
        chunk_type: ChunkType,
    },
}

impl Chunk {
    /// Parses one chunk, without its padding; `rest` is what follows it in the packet.
    #[inline(always)]
    pub(crate) fn parse(chunk: PacketView<'_>, rest: PacketView<'_>) -> Self {
        let Some(&[number, flags, ..]) = chunk.head::<ELEMENT_HEADER>() else {
            return Self::Malformed { chunk_type: ChunkType(0) };
        };
        let chunk_type = ChunkType(number);
        // Data chunks are stored directly, without an intermediate copy.
        if let ChunkType::DATA | ChunkType::I_DATA = chunk_type {
            let data = if chunk_type == ChunkType::DATA {
                DataChunk::parse(flags, chunk)
            } else {
                DataChunk::parse_interleaved(flags, chunk)
            };
            return match data {
                Some(data) => Self::Data(data),
                None => Self::Malformed { chunk_type },
            };
        }
        let parsed = match chunk_type {
            ChunkType::SACK => SackChunk::parse(flags, chunk).map(Self::Sack),
            ChunkType::NR_SACK => SackChunk::parse_nr(flags, chunk).map(Self::Sack),
            _ => Self::parse_control(chunk_type, flags, chunk, rest),
        };
        parsed.unwrap_or(Self::Malformed { chunk_type })
    }

    /// Parses a chunk that is not in a packet: all of `bytes`, with that length.
    pub(crate) fn alone(bytes: &Bytes) -> Option<Self> {
        let view = PacketView::whole(bytes);
        let length = usize::from(view.u16_at(2)?);
        let rest = PacketView::part(bytes, bytes.len(), bytes.len());
        (length == bytes.len()).then(|| Self::parse(view, rest))
    }

    fn parse_control(
        chunk_type: ChunkType,
        flags: u8,
        chunk: PacketView<'_>,
        rest: PacketView<'_>,
    ) -> Option<Self> {
        Some(match chunk_type {
            ChunkType::INIT => Self::Init(InitChunk::parse(chunk)?),
            ChunkType::INIT_ACK => Self::InitAck(InitChunk::parse(chunk)?),
            ChunkType::HEARTBEAT => Self::Heartbeat(HeartbeatChunk::parse(chunk)?),
            ChunkType::HEARTBEAT_ACK => Self::HeartbeatAck(HeartbeatChunk::parse(chunk)?),
            ChunkType::ABORT => Self::Abort(AbortChunk::parse(flags, chunk)),
            ChunkType::SHUTDOWN => Self::Shutdown { cumulative_tsn: shutdown::parse(chunk)? },
            ChunkType::SHUTDOWN_ACK => Self::ShutdownAck,
            ChunkType::ERROR => Self::Error(ErrorChunk::parse(chunk)),
            ChunkType::COOKIE_ECHO => Self::CookieEcho(chunk.value().share()),
            ChunkType::COOKIE_ACK => Self::CookieAck,
            ChunkType::ECNE => Self::Ecne { lowest_tsn: congestion::parse(chunk)? },
            ChunkType::CWR => Self::Cwr { lowest_tsn: congestion::parse(chunk)? },
            ChunkType::SHUTDOWN_COMPLETE => {
                Self::ShutdownComplete { reflected: flags & shutdown::REFLECTED != 0 }
            }
            ChunkType::AUTH => Self::Auth(AuthChunk::parse(chunk, rest)?),
            ChunkType::ASCONF => Self::Asconf(AsconfChunk::parse(chunk)?),
            ChunkType::ASCONF_ACK => Self::AsconfAck(AsconfAckChunk::parse(chunk)?),
            ChunkType::RE_CONFIG => Self::Reconfig(ReconfigChunk::parse(chunk)),
            ChunkType::FORWARD_TSN => Self::ForwardTsn(ForwardTsnChunk::parse(chunk)?),
            ChunkType::I_FORWARD_TSN => Self::IForwardTsn(IForwardTsnChunk::parse(chunk)?),
            ChunkType::PAD => Self::Pad { length: pad::parse(chunk) },
            _ => Self::Unknown(UnknownChunk::parse(chunk_type, flags, chunk)),
        })
    }

    /// Returns the type in the chunk's header.
    #[must_use]
    pub fn chunk_type(&self) -> ChunkType {
        match self {
            Self::Data(data) => data.order.chunk_type(),
            Self::Init(_) => ChunkType::INIT,
            Self::InitAck(_) => ChunkType::INIT_ACK,
            Self::Sack(sack) => sack.chunk_type(),
            Self::Heartbeat(_) => ChunkType::HEARTBEAT,
            Self::HeartbeatAck(_) => ChunkType::HEARTBEAT_ACK,
            Self::Abort(_) => ChunkType::ABORT,
            Self::Shutdown { .. } => ChunkType::SHUTDOWN,
            Self::ShutdownAck => ChunkType::SHUTDOWN_ACK,
            Self::Error(_) => ChunkType::ERROR,
            Self::CookieEcho(_) => ChunkType::COOKIE_ECHO,
            Self::CookieAck => ChunkType::COOKIE_ACK,
            Self::Ecne { .. } => ChunkType::ECNE,
            Self::Cwr { .. } => ChunkType::CWR,
            Self::ShutdownComplete { .. } => ChunkType::SHUTDOWN_COMPLETE,
            Self::Auth(_) => ChunkType::AUTH,
            Self::Asconf(_) => ChunkType::ASCONF,
            Self::AsconfAck(_) => ChunkType::ASCONF_ACK,
            Self::Reconfig(_) => ChunkType::RE_CONFIG,
            Self::ForwardTsn(_) => ChunkType::FORWARD_TSN,
            Self::IForwardTsn(_) => ChunkType::I_FORWARD_TSN,
            Self::Pad { .. } => ChunkType::PAD,
            Self::Unknown(unknown) => unknown.chunk_type,
            Self::Malformed { chunk_type } => *chunk_type,
        }
    }
}

impl EncodeChunk for Chunk {
    fn encoded_len(&self) -> usize {
        match self {
            Self::Data(data) => data.encoded_len(),
            Self::Init(init) | Self::InitAck(init) => init.encoded_len(),
            Self::Sack(sack) => sack.encoded_len(),
            Self::Heartbeat(heartbeat) | Self::HeartbeatAck(heartbeat) => heartbeat.encoded_len(),
            Self::Abort(abort) => abort.encoded_len(),
            Self::Shutdown { .. } => shutdown::SHUTDOWN_LEN,
            Self::ShutdownAck
            | Self::CookieAck
            | Self::ShutdownComplete { .. }
            | Self::Malformed { .. } => ELEMENT_HEADER,
            Self::Error(error) => error.encoded_len(),
            Self::CookieEcho(cookie) => ELEMENT_HEADER + cookie.len(),
            Self::Ecne { .. } | Self::Cwr { .. } => congestion::LEN,
            Self::Auth(auth) => auth.encoded_len(),
            Self::Asconf(asconf) => asconf.encoded_len(),
            Self::AsconfAck(ack) => ack.encoded_len(),
            Self::Reconfig(reconfig) => reconfig.encoded_len(),
            Self::ForwardTsn(forward) => forward.encoded_len(),
            Self::IForwardTsn(forward) => forward.encoded_len(),
            Self::Pad { length } => ELEMENT_HEADER + usize::from(*length),
            Self::Unknown(unknown) => unknown.encoded_len(),
        }
    }

    fn encode(&self, buffer: &mut BytesMut) {
        match self {
            Self::Data(data) => data.encode(buffer),
            Self::Init(init) => init.encode(ChunkType::INIT, buffer),
            Self::InitAck(init) => init.encode(ChunkType::INIT_ACK, buffer),
            Self::Sack(sack) => sack.encode(buffer),
            Self::Heartbeat(heartbeat) => heartbeat.encode(ChunkType::HEARTBEAT, buffer),
            Self::HeartbeatAck(heartbeat) => heartbeat.encode(ChunkType::HEARTBEAT_ACK, buffer),
            Self::Abort(abort) => abort.encode(buffer),
            Self::Shutdown { cumulative_tsn } => shutdown::encode(*cumulative_tsn, buffer),
            Self::Error(error) => error.encode(buffer),
            Self::CookieEcho(cookie) => cookie::encode_echo(cookie, buffer),
            Self::Ecne { lowest_tsn } => congestion::encode(ChunkType::ECNE, *lowest_tsn, buffer),
            Self::Cwr { lowest_tsn } => congestion::encode(ChunkType::CWR, *lowest_tsn, buffer),
            Self::ShutdownComplete { reflected } => shutdown::encode_complete(*reflected, buffer),
            Self::ShutdownAck | Self::CookieAck | Self::Malformed { .. } => {
                put_header(self.chunk_type(), 0, ELEMENT_HEADER, buffer);
            }
            Self::Auth(auth) => auth.encode(buffer),
            Self::Asconf(asconf) => asconf.encode(buffer),
            Self::AsconfAck(ack) => ack.encode(buffer),
            Self::Reconfig(reconfig) => reconfig.encode(buffer),
            Self::ForwardTsn(forward) => forward.encode(buffer),
            Self::IForwardTsn(forward) => forward.encode(buffer),
            Self::Pad { length } => pad::encode(*length, buffer),
            Self::Unknown(unknown) => unknown.encode(buffer),
        }
    }

    fn to_chunk(&self) -> Chunk {
        match self {
            Self::Data(data) => data.to_chunk(),
            other => other.clone(),
        }
    }
}

/// Appends the header of a chunk with a total of `length` bytes.
fn put_header(chunk_type: ChunkType, flags: u8, length: usize, buffer: &mut BytesMut) {
    let [.., high, low] = length.to_be_bytes();
    buffer.extend_from_slice(&[chunk_type.0, flags, high, low]);
}
