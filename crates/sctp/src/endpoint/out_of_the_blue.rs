//! Packets without a matching association (RFC 9260 §8.4).

use super::Endpoint;
use super::packet_buffer::PacketBuffer;
use super::train::PacketRoute;
use crate::association::{PacketArrival, addresses};
use crate::identifier::VerificationTag;
use crate::io::{Ecn, Fragmentation};
use crate::wire::{
    AbortChunk, Causes, ChecksumKind, Chunk, ChunkType, CommonHeader, EncodeChunk, PACKET_HEADER,
    PacketChunks, padded,
};

/// The maximum number of queued responses; callers drain them after each input.
const MAX_ANSWERS: usize = 1024;

/// The maximum length of a response in bytes: what every path carries.
const MAX_ANSWER: usize = 1232;

impl Endpoint {
    /// Responds to a packet without an association, if required.
    pub(super) fn handle_out_of_the_blue(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        chunks: PacketChunks<'_>,
    ) {
        self.counters.out_of_the_blue += 1;
        // Rule 1: packets to or from an address that is not unicast are not answered.
        let is_unicast = addresses::is_unicast(arrival.remote.ip())
            && arrival.local.is_none_or(addresses::is_unicast);
        if !is_unicast {
            return;
        }
        let mut answer = None;
        for chunk_type in chunks.types() {
            match chunk_type {
                // Rules 2 and 6; §3.3.7.
                ChunkType::ABORT | ChunkType::SHUTDOWN_COMPLETE => return,
                // Rule 5, as far as §5.1.5 has not dealt with it, and 7.
                ChunkType::COOKIE_ECHO | ChunkType::COOKIE_ACK | ChunkType::ERROR => return,
                ChunkType::SHUTDOWN_ACK => {
                    answer = Some(Chunk::ShutdownComplete { reflected: true });
                }
                _ => {}
            }
        }
        if chunks.remaining() == 0 {
            return;
        }
        let abort = AbortChunk { reflected: true, causes: Causes::default() };
        let answer = answer.unwrap_or(Chunk::Abort(abort));
        self.answer_rate_limited(arrival, header, header.tag, &answer);
    }

    /// Sends a response that any host can provoke, unless the rate limit is exceeded.
    pub(super) fn answer_rate_limited(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        tag: VerificationTag,
        chunk: &Chunk,
    ) {
        if self.limit.allows(self.now) {
            self.answer(arrival, header, tag, chunk);
        } else {
            self.counters.answers_withheld += 1;
        }
    }

    /// Sends one chunk back to the source of a packet.
    pub(super) fn answer(
        &mut self,
        arrival: &PacketArrival,
        header: &CommonHeader,
        tag: VerificationTag,
        chunk: &Chunk,
    ) {
        let length = PACKET_HEADER + padded(chunk.encoded_len());
        if self.answers.len() >= MAX_ANSWERS || length > MAX_ANSWER {
            self.counters.answers_withheld += 1;
            return;
        }
        let header = CommonHeader {
            source_port: header.destination_port,
            destination_port: header.source_port,
            tag,
        };
        let mut buffer = PacketBuffer::new(self.config.packets);
        let mut packet = buffer.begin(header, length);
        packet.append(chunk);
        packet.finish(ChecksumKind::Crc32c);
        let route = PacketRoute {
            local: arrival.local,
            remote: arrival.remote,
            ecn: Ecn::NotCapable,
            marking: self.accepting.markings.towards(arrival.remote),
            fragmentation: Fragmentation::Allowed,
            peer: arrival.peer,
        };
        self.answers.push_back(buffer.remove_packets(buffer.len(), route, length));
    }
}
