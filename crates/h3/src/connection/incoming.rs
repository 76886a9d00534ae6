//! Unidirectional streams that the peer opened (RFC 9114 §6.2, RFC 9204 §4.2).

use alloc::vec::Vec;

use bytes::Bytes;

use crate::fault::ConnectionFault;
use crate::stream::{CriticalStream, Role, StreamId, StreamType};
use crate::varint::PartialVarint;

/// The number of unidirectional streams of the peer that may be open without their type being known.
pub const MAX_UNDETERMINED_STREAMS: usize = 16;

/// The peer's streams. Only those are kept whose type is not known yet, and the three that stay open.
#[derive(Debug, Default)]
pub(super) struct IncomingStreams {
    undetermined: Vec<(StreamId, PartialVarint)>,
    critical: [Option<StreamId>; CriticalStream::ALL.len()],
}

/// What a stream is, with the rest of the bytes that have arrived.
#[derive(Debug)]
pub(super) enum Incoming {
    /// Its type is not known yet, or it ended before.
    Undetermined,
    /// It is one of those that stay open.
    Critical(CriticalStream, Bytes),
    /// It means nothing here.
    Unknown,
}

impl IncomingStreams {
    /// Takes the next bytes of a stream.
    pub(super) fn receive(
        &mut self,
        role: Role,
        stream: StreamId,
        mut data: Bytes,
        fin: bool,
    ) -> Result<Incoming, ConnectionFault> {
        if let Some(critical) = self.critical(stream) {
            return Ok(Incoming::Critical(critical, data));
        }
        let known = self.undetermined.iter().position(|(other, _)| *other == stream);
        let mut partial =
            known.map_or(PartialVarint::EMPTY, |at| self.undetermined.swap_remove(at).1);
        let Some(value) = partial.read(&mut data) else {
            // "A receiver MUST tolerate unidirectional streams being closed or reset prior to the
            // reception of the unidirectional stream header" (RFC 9114 §6.2).
            if !fin {
                if self.undetermined.len() == MAX_UNDETERMINED_STREAMS {
                    let limit = MAX_UNDETERMINED_STREAMS;
                    return Err(ConnectionFault::UndeterminedStreams { limit });
                }
                self.undetermined.push((stream, partial));
            }
            return Ok(Incoming::Undetermined);
        };
        match (StreamType::from_value(value), role) {
            (StreamType::Critical(critical), _) => {
                match &mut self.critical[critical as usize] {
                    Some(_) => return Err(ConnectionFault::StreamRepeated(critical)),
                    slot @ None => *slot = Some(stream),
                }
                Ok(Incoming::Critical(critical, data))
            }
            // "Only servers can push; if a server receives a client-initiated push stream, this MUST be
            // treated as a connection error of type H3_STREAM_CREATION_ERROR" (RFC 9114 §6.2.2).
            (StreamType::Push, Role::Server) => Err(ConnectionFault::PushStreamFromClient),
            // "A client MUST treat receipt of a push stream as a connection error of type H3_ID_ERROR
            // when no MAX_PUSH_ID frame has been sent" (RFC 9114 §4.6), and this client sends none.
            (StreamType::Push, Role::Client) => Err(ConnectionFault::PushStreamNotAllowed),
            (StreamType::Reserved(_) | StreamType::Unknown(_), _) => Ok(Incoming::Unknown),
        }
    }

    /// Takes note that a stream was reset.
    pub(super) fn reset(&mut self, stream: StreamId) -> Result<(), ConnectionFault> {
        self.undetermined.retain(|(other, _)| *other != stream);
        self.critical(stream)
            .map_or(Ok(()), |critical| Err(ConnectionFault::StreamClosed(critical)))
    }

    fn critical(&self, stream: StreamId) -> Option<CriticalStream> {
        CriticalStream::ALL
            .into_iter()
            .find(|critical| self.critical[*critical as usize] == Some(stream))
    }
}
