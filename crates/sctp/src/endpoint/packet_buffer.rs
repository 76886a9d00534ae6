//! Buffers that packets are written to, in their outgoing form.

use alloc::vec::Vec;
use bytes::BytesMut;

use super::train::PacketRoute;
use crate::config::PacketForm;
use crate::io::{Output, Transmit};
use crate::wire::{CommonHeader, PacketWriter, StructPacket, StructPackets};

/// Consecutive packets.
#[derive(Debug)]
pub(crate) enum PacketBuffer {
    Wire(BytesMut),
    Struct(StructPackets),
}

impl PacketBuffer {
    pub(crate) fn new(form: PacketForm) -> Self {
        match form {
            PacketForm::Wire => Self::Wire(BytesMut::new()),
            PacketForm::Struct => Self::Struct(StructPackets::default()),
        }
    }

    /// Starts a packet after the existing ones.
    pub(crate) fn begin(&mut self, header: CommonHeader, limit: usize) -> PacketWriter<'_> {
        match self {
            Self::Wire(buffer) => PacketWriter::begin(buffer, header, limit),
            Self::Struct(packets) => PacketWriter::begin(packets, header, limit),
        }
    }

    /// Returns the length of all packets in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Wire(buffer) => buffer.len(),
            Self::Struct(packets) => packets.len(),
        }
    }

    /// Removes the first packets, of `bytes` in total, each of `size` except the last.
    pub(crate) fn remove_packets(
        &mut self,
        bytes: usize,
        route: PacketRoute,
        size: usize,
    ) -> TrainContents {
        match self {
            Self::Wire(buffer) => {
                TrainContents::Wire(transmit(route, buffer.split_to(bytes).freeze(), size))
            }
            Self::Struct(packets) => {
                TrainContents::Struct(transmit(route, packets.split_to(bytes), size))
            }
        }
    }
}

/// Packets that are sent together.
#[derive(Debug)]
pub(crate) enum TrainContents {
    Wire(Transmit),
    Struct(Transmit<Vec<StructPacket>>),
}

impl TrainContents {
    /// Returns the number of packets.
    pub(crate) fn packets(&self) -> usize {
        match self {
            Self::Wire(bytes) => bytes.contents.len().div_ceil(bytes.segment_size.max(1)),
            Self::Struct(values) => values.contents.len(),
        }
    }
}

impl From<TrainContents> for Output {
    fn from(trainload: TrainContents) -> Self {
        match trainload {
            TrainContents::Wire(bytes) => Self::Transmit(bytes),
            TrainContents::Struct(values) => Self::TransmitStructs(values),
        }
    }
}

fn transmit<C>(route: PacketRoute, contents: C, segment_size: usize) -> Transmit<C> {
    let PacketRoute { local, remote, ecn, marking, fragmentation, peer } = route;
    Transmit { local, remote, ecn, marking, fragmentation, contents, segment_size, peer }
}
