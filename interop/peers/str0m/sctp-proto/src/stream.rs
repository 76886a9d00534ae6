//! The messages of a stream, and resets of streams.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::error::Error as Ours;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::{MessageReliability, SendInfo};

use crate::association::Association;
use crate::names::{Error, Event, PayloadProtocolIdentifier, ReliabilityType, StreamEvent};

/// The state of a stream.
#[derive(Debug, Default)]
pub(crate) struct Half {
    pub(crate) incoming: VecDeque<(PayloadProtocolIdentifier, Vec<u8>)>,
    pub(crate) partial: Vec<u8>,
    unordered: bool,
    reliability: MessageReliability,
    pub(crate) low_threshold: usize,
    /// Whether more is queued than the threshold.
    pub(crate) is_above: bool,
    /// Whether the peer has reset its stream, which is reported once everything has been read.
    is_reset: bool,
}

/// A stream that is being reset.
#[derive(Debug)]
pub(crate) struct Closing {
    outgoing: Outgoing,
    incoming_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outgoing {
    Draining,
    Requested,
    Done,
}

/// A stream of an association.
#[derive(Debug)]
pub struct Stream<'a> {
    pub(crate) association: &'a mut Association,
    pub(crate) id: u16,
}

/// A message.
#[derive(Debug)]
pub struct Chunks {
    pub ppi: PayloadProtocolIdentifier,
    data: Vec<u8>,
}

impl Chunks {
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        let into = buffer.get_mut(..self.data.len());
        into.ok_or(Error::Other("the buffer is too short".into()))?.copy_from_slice(&self.data);
        Ok(self.data.len())
    }
}

impl Stream<'_> {
    fn half(&mut self) -> Result<&mut Half, Error> {
        self.association.streams.get_mut(&self.id).ok_or(Error::ErrStreamNotExisted)
    }

    pub fn set_reliability_params(
        &mut self,
        unordered: bool,
        kind: ReliabilityType,
        value: u32,
    ) -> Result<(), Error> {
        let half = self.half()?;
        half.unordered = unordered;
        half.reliability = match kind {
            ReliabilityType::Reliable => MessageReliability::Reliable,
            ReliabilityType::Rexmit => {
                MessageReliability::Retransmissions(u16::try_from(value).unwrap_or(u16::MAX))
            }
            ReliabilityType::Timed => {
                MessageReliability::Lifetime(Duration::from_millis(value.into()))
            }
        };
        Ok(())
    }

    pub fn write_with_ppi(
        &mut self,
        data: &[u8],
        ppi: PayloadProtocolIdentifier,
    ) -> Result<usize, Error> {
        if data.len() > self.association.max_send {
            return Err(Error::ErrOutboundPacketTooLarge);
        }
        let half = self.half()?;
        let is_dcep = ppi == PayloadProtocolIdentifier::Dcep;
        let mut info = SendInfo { ppid: ppi.number(), ..SendInfo::default() };
        if !is_dcep {
            (info.unordered, info.reliability) = (half.unordered, half.reliability);
        }
        info.stream = StreamId(self.id);
        let wire = if data.is_empty() { Bytes::from_static(&[0]) } else { data.to_vec().into() };
        let association = &mut *self.association;
        let id = association.id.ok_or(Error::Other("no association yet".into()))?;
        association.endpoint.send(association.now, id, &info, wire)?;
        let queued = self.buffered_amount()?;
        let half = self.half()?;
        half.is_above |= queued > half.low_threshold;
        Ok(data.len())
    }

    pub fn read(&mut self) -> Result<Option<Chunks>, Error> {
        let half = self.half()?;
        let message = half.incoming.pop_front().map(|(ppi, data)| Chunks { ppi, data });
        if half.incoming.is_empty() && half.is_reset {
            self.association.reset_back(self.id);
        }
        Ok(message)
    }

    pub fn buffered_amount(&self) -> Result<usize, Error> {
        let id = self.association.id.ok_or(Error::ErrStreamNotExisted)?;
        let queue = self.association.endpoint.stream_queue(id, StreamId(self.id));
        Ok(queue.map_or(0, |queue| queue.unsent))
    }

    pub fn set_buffered_amount_low_threshold(&mut self, bytes: usize) -> Result<(), Error> {
        let queued = self.buffered_amount()?;
        let half = self.half()?;
        (half.low_threshold, half.is_above) = (bytes, queued > bytes);
        Ok(())
    }

    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.association.streams.contains_key(&self.id)
    }

    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.association.streams.contains_key(&self.id)
    }

    /// Resets the stream once its queue has been sent; incoming messages are dropped.
    pub fn close(&mut self) -> Result<(), Error> {
        let id = self.association.id.ok_or(Error::ErrStreamNotExisted)?;
        if self.association.is_closed() || self.association.is_closing() {
            return Err(Ours::WrongState.into());
        }
        self.association.endpoint.status(id).ok_or(Error::ErrStreamNotExisted)?;
        let half = self.association.streams.remove(&self.id);
        let incoming_done = half.is_some_and(|half| half.is_reset);
        let closing = Closing { outgoing: Outgoing::Draining, incoming_done };
        self.association.closing.insert(self.id, closing);
        Ok(())
    }
}

impl Association {
    /// Handles a reset by the peer.
    pub(crate) fn peer_stream_reset(&mut self, id: u16) {
        if let Some(closing) = self.closing.get_mut(&id) {
            closing.incoming_done = true;
            self.settle(id);
        } else if let Some(half) = self.streams.get_mut(&id) {
            half.is_reset = true;
            if half.incoming.is_empty() {
                self.reset_back(id);
            }
        }
    }

    /// Resets our side of a stream that the peer has reset, once everything has been read.
    fn reset_back(&mut self, id: u16) {
        self.streams.remove(&id);
        let closing = Closing { outgoing: Outgoing::Draining, incoming_done: true };
        self.closing.insert(id, closing);
        self.events.push_back(Event::Stream(StreamEvent::Finished { id }));
    }

    /// Handles the peer's answer to our reset.
    pub(crate) fn own_stream_reset(&mut self, id: u16, done: bool) {
        if let Some(closing) = self.closing.get_mut(&id)
            && closing.outgoing == Outgoing::Requested
        {
            closing.outgoing = if done { Outgoing::Done } else { Outgoing::Draining };
            self.settle(id);
        }
    }

    /// Returns whether the peer reuses a stream for which only its answer to our reset is missing.
    pub(crate) fn is_reopened(&mut self, id: u16) -> bool {
        let answered = |it: &&mut Closing| it.incoming_done && it.outgoing == Outgoing::Requested;
        let Some(closing) = self.closing.get_mut(&id).filter(answered) else { return false };
        closing.outgoing = Outgoing::Done;
        self.settle(id);
        true
    }

    fn settle(&mut self, id: u16) {
        let done = |it: &Closing| it.incoming_done && it.outgoing == Outgoing::Done;
        if self.closing.get(&id).is_some_and(done) {
            self.closing.remove(&id);
            self.events.push_back(Event::Stream(StreamEvent::ResetComplete { id }));
        }
    }

    /// Resets the streams whose queues are empty; returns whether there were any.
    pub(crate) fn reset_closing(&mut self) -> bool {
        let Some(association) = self.id else { return false };
        let mut all = self.closing.values();
        if self.closing.is_empty() || all.any(|closing| closing.outgoing == Outgoing::Requested) {
            return false;
        }
        let queued = |id: u16| {
            let queue = self.endpoint.stream_queue(association, StreamId(id));
            queue.map_or(0, |queue| queue.unsent)
        };
        let waiting = |closing: &Closing| closing.outgoing == Outgoing::Draining;
        let ready: Vec<StreamId> = self
            .closing
            .iter()
            .filter(|(id, closing)| waiting(closing) && queued(**id) == 0)
            .map(|(id, _)| StreamId(*id))
            .collect();
        if ready.is_empty() {
            return false;
        }
        let ours = self.endpoint.association_mut(self.now, association);
        if ours.and_then(|mut ours| ours.reset_streams(true, &ready)).is_err() {
            return false;
        }
        for id in ready {
            if let Some(closing) = self.closing.get_mut(&id.0) {
                closing.outgoing = Outgoing::Requested;
            }
        }
        true
    }
}
