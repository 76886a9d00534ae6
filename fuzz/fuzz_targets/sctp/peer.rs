//! A peer that knows the tags and sends arbitrary chunks.

use arbitrary::Arbitrary;
use bytes::{Bytes, BytesMut};
use eyas_sctp::identifier::{Ppid, StreamId, VerificationTag};
use eyas_sctp::serial::{Mid, ReconfigurationNumber, Ssn, Tsn};
use eyas_sctp::wire::parameter::{
    AddStreams, IncomingSsnReset, OutgoingSsnReset, ReconfigurationResponse, ReconfigurationResult,
    StreamList,
};
use eyas_sctp::wire::{
    AbortChunk, ChecksumKind, Chunk, ChunkType, CommonHeader, DataChunk, DataFlags, DataOrder,
    ErrorChunk, ForwardTsnChunk, GapBlock, HeartbeatChunk, IForwardTsnChunk, InitChunk,
    PacketParser, PacketWriter, Parameter, Parameters, ReconfigChunk, SackBuilder, SkippedMid,
    SkippedSsn, UnknownChunk,
};

/// A chunk, with numbers relative to those that the other side expects.
#[derive(Arbitrary, Debug)]
pub enum Action {
    Data {
        ahead: i8,
        stream: u8,
        bits: u8,
        number: u8,
        fsn: u8,
        length: u16,
    },
    NextData {
        stream: u8,
        bits: u8,
        number: u8,
        length: u8,
    },
    Sack {
        ahead: i16,
        window: u32,
        blocks: Vec<(u8, u8)>,
        nr: Vec<(u8, u8)>,
        dups: u8,
        is_nr: bool,
    },
    SackAll {
        window: u16,
    },
    Forward {
        ahead: i8,
        skipped: Vec<(u8, bool, u8)>,
        interleaved: bool,
    },
    Reset {
        ahead: i8,
        incoming: bool,
        streams: Vec<u8>,
        last: i8,
    },
    Add {
        ahead: i8,
        incoming: bool,
        count: u16,
    },
    ResetAll {
        ahead: i8,
    },
    Answer {
        ahead: i8,
        result: u8,
        tsns: Option<(u32, u32)>,
    },
    Heartbeat(Vec<u8>),
    Echo,
    InitAck {
        parameters: Vec<u8>,
        streams: u8,
        extensions: bool,
    },
    CookieAck,
    Init(Vec<u8>),
    CookieEcho(Vec<u8>),
    Shutdown {
        ahead: i8,
    },
    ShutdownAck,
    ShutdownComplete,
    Abort(Vec<u8>),
    Error(Vec<u8>),
    Ecne(i8),
    Cwr(i8),
    Any {
        chunk_type: u8,
        flags: u8,
        value: Vec<u8>,
    },
}

/// The peer's knowledge of the other side.
pub struct Peer {
    /// The ports, and the tag that the other side expects.
    pub header: CommonHeader,
    /// The next TSN that the peer sends.
    pub next: Tsn,
    /// The highest TSN of the other side.
    pub highest: Tsn,
    /// The next re-configuration number of the peer, and that of the other side.
    pub ours: ReconfigurationNumber,
    pub theirs: ReconfigurationNumber,
    /// The info of the other side's last heartbeat.
    pub heartbeat: Bytes,
}

fn blocks(list: &[(u8, u8)]) -> Vec<GapBlock> {
    list.iter()
        .map(|(start, length)| GapBlock {
            start: u16::from(*start),
            end: u16::from(*start).wrapping_add(u16::from(*length)),
        })
        .collect()
}

fn offset(tsn: Tsn, ahead: impl Into<i32>) -> Tsn {
    tsn.plus(ahead.into().cast_unsigned())
}

fn streams(list: &[u8]) -> Vec<StreamId> {
    list.iter().map(|stream| StreamId((*stream).into())).collect()
}

fn reconfig(parameter: Parameter) -> Chunk {
    Chunk::Reconfig(ReconfigChunk { parameters: [parameter].into_iter().collect() })
}

impl Peer {
    /// Learns from a packet of the other side.
    pub fn learn(&mut self, packet: &Bytes) {
        let Ok((_, chunks)) = PacketParser::parse(packet, ChecksumKind::Crc32c) else {
            panic!("an invalid packet");
        };
        for chunk in chunks {
            match chunk {
                Chunk::Data(data) if data.tsn.is_after(self.highest) => self.highest = data.tsn,
                Chunk::Heartbeat(heartbeat) => self.heartbeat = heartbeat.info,
                Chunk::Init(init) | Chunk::InitAck(init) => {
                    self.highest = init.initial_tsn.previous();
                    self.theirs = ReconfigurationNumber(init.initial_tsn.0);
                }
                Chunk::Sack(sack) => self.next = sack.cumulative_tsn.next(),
                Chunk::Malformed { .. } | Chunk::Unknown(_) => panic!("{chunk:?}"),
                _ => {}
            }
        }
    }

    /// Returns a packet with these chunks.
    pub fn packet(&mut self, actions: &[Action]) -> Bytes {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, self.header, 20_000);
        for action in actions {
            let chunk = self.chunk(action);
            packet.append(&chunk);
        }
        packet.finish(ChecksumKind::Crc32c);
        buffer.freeze()
    }

    fn chunk(&mut self, action: &Action) -> Chunk {
        match action {
            Action::Data { ahead, stream, bits, number, fsn, length } => {
                let tsn = offset(self.next, *ahead);
                data(tsn, *stream, *bits, (*number, *fsn), usize::from(*length % 9000))
            }
            Action::NextData { stream, bits, number, length } => {
                let tsn = self.next;
                self.next = tsn.next();
                data(tsn, *stream, *bits | 3, (*number, 0), usize::from(*length) + 1)
            }
            Action::Sack { ahead, window, blocks: gaps, nr, dups, is_nr } => Chunk::Sack(
                SackBuilder {
                    cumulative_tsn: offset(self.highest, *ahead),
                    a_rwnd: *window,
                    gap_blocks: &blocks(gaps),
                    nr_gap_blocks: &blocks(nr),
                    duplicates: &vec![self.highest; usize::from(*dups)],
                    dac_count: 0,
                    is_nr: *is_nr,
                }
                .build(),
            ),
            Action::SackAll { window } => Chunk::Sack(
                SackBuilder {
                    cumulative_tsn: self.highest,
                    a_rwnd: u32::from(*window),
                    ..SackBuilder::default()
                }
                .build(),
            ),
            Action::Forward { ahead, skipped, interleaved } => {
                self.forward(offset(self.next, *ahead), skipped, *interleaved)
            }
            Action::Reset { .. }
            | Action::Add { .. }
            | Action::ResetAll { .. }
            | Action::Answer { .. } => self.reconfigure(action),
            action => self.control(action),
        }
    }

    fn forward(&self, to: Tsn, skipped: &[(u8, bool, u8)], interleaved: bool) -> Chunk {
        if interleaved {
            let skip = |&(stream, unordered, mid): &(u8, bool, u8)| SkippedMid {
                stream: StreamId(stream.into()),
                unordered,
                mid: Mid(mid.into()),
            };
            let list: Vec<_> = skipped.iter().map(skip).collect();
            Chunk::IForwardTsn(IForwardTsnChunk::new(to, &list))
        } else {
            let skip = |&(stream, _, ssn): &(u8, bool, u8)| SkippedSsn {
                stream: StreamId(stream.into()),
                ssn: Ssn(ssn.into()),
            };
            let list: Vec<_> = skipped.iter().map(skip).collect();
            Chunk::ForwardTsn(ForwardTsnChunk::new(to, &list))
        }
    }

    fn reconfigure(&mut self, action: &Action) -> Chunk {
        let number = |ahead: i8| {
            ReconfigurationNumber(self.ours.0.wrapping_add(i32::from(ahead).cast_unsigned()))
        };
        let (asks, parameter) = match action {
            Action::Reset { ahead, incoming: true, streams: list, .. } => {
                let streams = StreamList::new(&streams(list));
                let request = number(*ahead);
                (ahead, Parameter::IncomingSsnReset(IncomingSsnReset { request, streams }))
            }
            Action::Reset { ahead, streams: list, last, .. } => {
                let reset = OutgoingSsnReset {
                    request: number(*ahead),
                    response: self.theirs,
                    last_assigned_tsn: offset(self.next, *last),
                    streams: StreamList::new(&streams(list)),
                };
                (ahead, Parameter::OutgoingSsnReset(reset))
            }
            Action::Add { ahead, incoming, count } => {
                let add = AddStreams { request: number(*ahead), count: *count };
                let parameter = match incoming {
                    true => Parameter::AddIncomingStreams(add),
                    false => Parameter::AddOutgoingStreams(add),
                };
                (ahead, parameter)
            }
            Action::Answer { ahead, result, tsns } => {
                let response = ReconfigurationResponse {
                    response: ReconfigurationNumber(
                        self.theirs.0.wrapping_add(i32::from(*ahead).cast_unsigned()),
                    ),
                    result: ReconfigurationResult::from_number((*result).into()),
                    next_tsns: tsns.map(|(sender, receiver)| (Tsn(sender), Tsn(receiver))),
                };
                return reconfig(Parameter::ReconfigurationResponse(response));
            }
            Action::ResetAll { ahead } => {
                (ahead, Parameter::SsnTsnReset { request: number(*ahead) })
            }
            _ => return Chunk::CookieAck,
        };
        if *asks == 0 {
            self.ours = self.ours.next();
        }
        reconfig(parameter)
    }

    fn control(&self, action: &Action) -> Chunk {
        let any = |chunk_type, flags, value: &[u8]| {
            let chunk_type = ChunkType(chunk_type);
            Chunk::Unknown(UnknownChunk { chunk_type, flags, value: Bytes::copy_from_slice(value) })
        };
        match action {
            Action::Heartbeat(info) => {
                Chunk::Heartbeat(HeartbeatChunk { info: Bytes::copy_from_slice(info) })
            }
            Action::Echo => Chunk::HeartbeatAck(HeartbeatChunk { info: self.heartbeat.clone() }),
            Action::InitAck { parameters, streams, extensions } => {
                self.init_ack(parameters, *streams, *extensions)
            }
            Action::CookieAck => Chunk::CookieAck,
            Action::Init(value) => any(1, 0, value),
            Action::CookieEcho(value) => any(10, 0, value),
            Action::Shutdown { ahead } => {
                Chunk::Shutdown { cumulative_tsn: offset(self.highest, *ahead) }
            }
            Action::ShutdownAck => Chunk::ShutdownAck,
            Action::ShutdownComplete => Chunk::ShutdownComplete { reflected: false },
            Action::Abort(causes) => Chunk::Abort(AbortChunk {
                reflected: false,
                causes: eyas_sctp::wire::Causes::from_bytes(Bytes::copy_from_slice(causes)),
            }),
            Action::Error(causes) => Chunk::Error(ErrorChunk {
                causes: eyas_sctp::wire::Causes::from_bytes(Bytes::copy_from_slice(causes)),
            }),
            Action::Ecne(ahead) => Chunk::Ecne { lowest_tsn: offset(self.highest, *ahead) },
            Action::Cwr(ahead) => Chunk::Cwr { lowest_tsn: offset(self.next, *ahead) },
            Action::Any { chunk_type, flags, value } => any(*chunk_type, *flags, value),
            _ => Chunk::CookieAck,
        }
    }

    fn init_ack(&self, more: &[u8], streams: u8, extensions: bool) -> Chunk {
        let mut parameters: Vec<Parameter> = vec![Parameter::StateCookie(Bytes::from_static(b"c"))];
        if extensions {
            let types = Bytes::from_static(&[192, 130, 193, 128, 64, 194, 16]);
            parameters.push(Parameter::SupportedExtensions(types));
            parameters.push(Parameter::ForwardTsnSupported);
            parameters.push(Parameter::EcnCapable);
        }
        let mut bytes =
            BytesMut::from(&parameters.into_iter().collect::<Parameters>().as_bytes()[..]);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(more);
        Chunk::InitAck(InitChunk {
            initiate_tag: VerificationTag(99),
            a_rwnd: 1 << 16,
            outbound_streams: u16::from(streams),
            inbound_streams: u16::from(streams),
            initial_tsn: self.next,
            parameters: Parameters::from_bytes(bytes.freeze()),
        })
    }
}

fn data(tsn: Tsn, stream: u8, bits: u8, (number, fsn): (u8, u8), length: usize) -> Chunk {
    let flags = DataFlags::from_bits(bits);
    let fsn = if flags.begin { 0 } else { fsn.into() };
    Chunk::Data(DataChunk {
        tsn,
        stream: StreamId((stream % 32).into()),
        flags,
        order: match bits & 128 != 0 {
            true => DataOrder::Ssn(Ssn(number.into())),
            false => DataOrder::Mid { mid: Mid(number.into()), fsn },
        },
        ppid: Ppid(1),
        payload: Bytes::from(vec![b'x'; length]),
    })
}
