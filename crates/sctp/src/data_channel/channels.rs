//! The API of data channels.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use bytes::Bytes;
use core::time::Duration;

use super::assembly::ChannelAssembly;
use super::channel::{ChannelState, DataChannel};
use super::closing::ClosingStreams;
use super::counters::ChannelCounters;
use super::dcep::DcepMessage;
use super::error::ChannelError;
use super::event::{ChannelEvent, DataChannelOutput};
use super::notices::PendingNotices;
use super::payload::{MessageKind, ppid};
use super::settings::{ChannelOptions, ChannelSettings};
use crate::endpoint::Endpoint;
use crate::identifier::{AssociationId, StreamId};
use crate::io;
use crate::message::SendInfo;

/// The number of streams that channels can use: no association has one with the number 65,535 (RFC
/// 8831 §6.2).
const MAX_STREAMS: u16 = 65_535;

/// A DCEP message that is still queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueuedDcep {
    Open,
    Ack,
}

/// The data channels of one association.
#[derive(Debug)]
pub struct DataChannels {
    pub(super) association: AssociationId,
    pub(super) settings: ChannelSettings,
    /// The number of streams that both sides may send on, once the association is established.
    pub(super) streams: Option<u16>,
    pub(super) has_ended: bool,
    is_paused: bool,
    pub(super) channels: BTreeMap<StreamId, DataChannel>,
    /// The total length of the names of channels that the peer opened.
    pub(super) name_bytes: usize,
    pub(super) control: VecDeque<(StreamId, QueuedDcep)>,
    pub(super) closings: ClosingStreams,
    pub(super) assembly: ChannelAssembly,
    pub(super) notices: PendingNotices,
    pub(super) events: VecDeque<ChannelEvent>,
    /// Closed channels that have not been reported to the user.
    pub(super) unreported: BTreeSet<StreamId>,
    /// Channels with more queued than their threshold.
    above_threshold: BTreeSet<StreamId>,
    pub(super) counters: ChannelCounters,
}

impl DataChannels {
    /// Creates a set without channels. `association` belongs to `endpoint`, in any state.
    #[must_use]
    pub fn new(endpoint: &Endpoint, association: AssociationId, settings: ChannelSettings) -> Self {
        let mut channels = Self {
            association,
            assembly: ChannelAssembly::new(settings.max_message_size),
            settings,
            streams: None,
            has_ended: false,
            is_paused: false,
            channels: BTreeMap::new(),
            name_bytes: 0,
            control: VecDeque::new(),
            closings: ClosingStreams::default(),
            notices: PendingNotices::default(),
            events: VecDeque::new(),
            unreported: BTreeSet::new(),
            above_threshold: BTreeSet::new(),
            counters: ChannelCounters::default(),
        };
        channels.streams = channels.negotiated_streams(endpoint);
        channels
    }

    /// Opens a channel and returns its stream, which identifies it. Messages can be sent at once;
    /// [`ChannelEvent::Opened`] reports that the peer has it too.
    ///
    /// # Errors
    /// If there are too many channels, a name is too long, or the requested stream is not free.
    pub fn open(
        &mut self,
        now: Duration,
        endpoint: &mut Endpoint,
        options: &ChannelOptions,
    ) -> Result<StreamId, ChannelError> {
        if self.has_ended {
            return Err(ChannelError::NotOpen);
        }
        if options.label.len().max(options.protocol.len()) > usize::from(u16::MAX) {
            return Err(ChannelError::NameTooLong);
        }
        if self.channels.len() >= self.settings.max_channels {
            return Err(ChannelError::TooManyChannels);
        }
        let id = match options.negotiated {
            Some(id) if self.is_free(id) => id,
            Some(_) => return Err(ChannelError::BadStream),
            None => self.free_stream().ok_or(ChannelError::TooManyChannels)?,
        };
        let mut channel = DataChannel::new(options);
        if !channel.negotiated {
            self.control.push_back((id, QueuedDcep::Open));
        } else if self.streams.is_some() {
            channel.state = ChannelState::Open;
            self.events.push_back(ChannelEvent::Opened { id, by_peer: false });
        }
        self.channels.insert(id, channel);
        self.send_control(now, endpoint);
        Ok(id)
    }

    /// Sends a message. It is accepted whole or not at all.
    ///
    /// # Errors
    /// [`ChannelError::Full`] until [`ChannelEvent::Writable`]; other errors are permanent.
    pub fn send(
        &mut self,
        now: Duration,
        endpoint: &mut Endpoint,
        id: StreamId,
        kind: MessageKind,
        data: Bytes,
    ) -> Result<(), ChannelError> {
        self.send_control(now, endpoint);
        let channel = self.channels.get(&id).ok_or(ChannelError::NoChannel)?;
        if channel.state == ChannelState::Closing || self.has_ended {
            return Err(ChannelError::NotOpen);
        }
        let limit = self.settings.max_sent_message();
        if data.len() > limit {
            return Err(ChannelError::MessageTooLarge { limit });
        }
        if self.has_queued_control(id) {
            endpoint.wait_for_room(now, self.association, data.len());
            return Err(ChannelError::Full);
        }
        let (ppid, data) = kind.to_wire(data);
        let info = SendInfo {
            stream: id,
            ppid,
            // Until the peer knows the channel, nothing may overtake the message that opens it.
            unordered: !channel.ordered && channel.state == ChannelState::Open,
            reliability: channel.reliability,
            ..SendInfo::default()
        };
        let threshold = channel.low_threshold;
        endpoint.send(now, self.association, &info, data)?;
        if threshold.is_some_and(|threshold| self.buffered_amount(endpoint, id) > threshold) {
            self.above_threshold.insert(id);
        }
        Ok(())
    }

    /// Closes a channel once the waiting messages have been sent. [`ChannelEvent::Closed`] reports
    /// that both sides have closed it; until then, messages may still arrive.
    ///
    /// # Errors
    /// If there is no such channel.
    pub fn close(
        &mut self,
        now: Duration,
        endpoint: &mut Endpoint,
        id: StreamId,
    ) -> Result<(), ChannelError> {
        let channel = self.channels.get(&id).ok_or(ChannelError::NoChannel)?;
        if channel.state == ChannelState::Closing {
            return Ok(());
        }
        // The peer does not know it yet.
        let unsent_open =
            self.control.iter().position(|waiting| *waiting == (id, QueuedDcep::Open));
        if let Some(unsent_open) = unsent_open {
            self.control.remove(unsent_open);
            self.forget(id);
            return Ok(());
        }
        self.begin_closing(id, false);
        self.advance(now, endpoint);
        Ok(())
    }

    /// Returns how many bytes of a channel have not been sent for the first time yet
    /// (`bufferedAmount`), including the message that opens it.
    #[must_use]
    pub fn buffered_amount(&self, endpoint: &Endpoint, id: StreamId) -> usize {
        endpoint.stream_queue(self.association, id).map_or(0, |queue| queue.unsent)
    }

    /// Enables [`ChannelEvent::BufferedAmountLow`] whenever the buffered amount falls to this
    /// number of bytes (`bufferedAmountLowThreshold`). It is disabled by default.
    ///
    /// # Errors
    /// If there is no such channel.
    pub fn set_low_threshold(
        &mut self,
        endpoint: &Endpoint,
        id: StreamId,
        bytes: usize,
    ) -> Result<(), ChannelError> {
        let buffered = self.buffered_amount(endpoint, id);
        let channel = self.channels.get_mut(&id).ok_or(ChannelError::NoChannel)?;
        channel.low_threshold = Some(bytes);
        if buffered > bytes {
            self.above_threshold.insert(id);
        } else {
            self.above_threshold.remove(&id);
        }
        Ok(())
    }

    /// While paused, no message is read from the association, so that its window closes and the
    /// peer must wait; everything else continues.
    pub fn pause_receiving(&mut self, paused: bool) {
        self.is_paused = paused;
    }

    /// Returns a channel.
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<&DataChannel> {
        self.channels.get(&id)
    }

    /// Returns all channels with their streams.
    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &DataChannel)> {
        self.channels.iter().map(|(id, channel)| (*id, channel))
    }

    /// Returns the association that they belong to.
    #[must_use]
    pub const fn association(&self) -> AssociationId {
        self.association
    }

    /// Returns the counters of invalid input from the peer.
    #[must_use]
    pub const fn counters(&self) -> ChannelCounters {
        self.counters
    }

    /// Returns the next output. It replaces [`Endpoint::poll_output`] and must be called after each
    /// input or call until it returns [`io::Output::Timeout`]. Events of this association that do
    /// not concern channels, and those of other associations, are passed on. When the association
    /// ends, its own last event is returned first, then what had arrived before, then a
    /// [`ChannelEvent::Closed`] for each channel.
    pub fn poll_output(&mut self, now: Duration, endpoint: &mut Endpoint) -> DataChannelOutput {
        loop {
            if let Some(event) = self.events.pop_front() {
                if let ChannelEvent::Closed { id } = event {
                    self.unreported.remove(&id);
                }
                return DataChannelOutput::Channel(event);
            }
            match endpoint.poll_output(now) {
                io::Output::Event(id, event) if id == self.association => {
                    if !self.handle_event(endpoint, &event) {
                        return DataChannelOutput::Endpoint(io::Output::Event(id, event));
                    }
                }
                io::Output::Timeout(at) => {
                    if !self.advance(now, endpoint) && !self.receive_messages(now, endpoint) {
                        return DataChannelOutput::Endpoint(io::Output::Timeout(at));
                    }
                }
                other => return DataChannelOutput::Endpoint(other),
            }
        }
    }

    /// Continues operations that waited for room or for sent messages; returns whether there were
    /// any.
    pub(super) fn advance(&mut self, now: Duration, endpoint: &mut Endpoint) -> bool {
        let sent = self.send_control(now, endpoint);
        let requested = self.request_resets(now, endpoint);
        self.check_thresholds(endpoint);
        sent || requested || !self.events.is_empty()
    }

    /// Processes received messages until there is an event; returns whether anything was received.
    fn receive_messages(&mut self, now: Duration, endpoint: &mut Endpoint) -> bool {
        let mut received = false;
        while !self.is_paused && self.events.is_empty() {
            match endpoint.receive(now, self.association) {
                Some(message) => self.handle_message(message),
                None if self.handle_deferred(endpoint) => {}
                None => break,
            }
            received = true;
        }
        received
    }

    /// Sends queued DCEP messages while there is room; returns whether there were any.
    fn send_control(&mut self, now: Duration, endpoint: &mut Endpoint) -> bool {
        let mut sent = false;
        while let Some(&(id, control)) = self.control.front() {
            let message = match (control, self.channels.get(&id)) {
                (QueuedDcep::Open, Some(channel)) => {
                    DcepMessage::Open(channel.to_open()).to_bytes()
                }
                (QueuedDcep::Ack, Some(_)) => DcepMessage::Ack.to_bytes(),
                (_, None) => Bytes::new(),
            };
            if !message.is_empty() {
                let info = SendInfo { stream: id, ppid: ppid::DCEP, ..SendInfo::default() };
                if endpoint.send(now, self.association, &info, message).is_err() {
                    break;
                }
                sent = true;
            }
            self.control.pop_front();
        }
        sent
    }

    /// Returns whether the message that opens a channel is still queued.
    pub(super) fn has_queued_control(&self, id: StreamId) -> bool {
        self.control.iter().any(|(other, _)| *other == id)
    }

    fn check_thresholds(&mut self, endpoint: &Endpoint) {
        let (events, channels, association) = (&mut self.events, &self.channels, self.association);
        self.above_threshold.retain(|id| {
            let Some(channel) = channels.get(id) else { return false };
            let unsent = endpoint.stream_queue(association, *id).map_or(0, |queue| queue.unsent);
            let is_above = channel.low_threshold.is_some_and(|threshold| unsent > threshold);
            if !is_above {
                events.push_back(ChannelEvent::BufferedAmountLow { id: *id });
            }
            is_above
        });
    }

    fn is_free(&self, id: StreamId) -> bool {
        id.0 < self.streams.unwrap_or(MAX_STREAMS)
            && !self.channels.contains_key(&id)
            && !self.closings.contains(id)
            && !self.unreported.contains(&id)
    }

    /// Returns the first free stream on which this side may open a channel.
    fn free_stream(&self) -> Option<StreamId> {
        let all = self.settings.role.first()..MAX_STREAMS;
        all.step_by(2).map(StreamId).find(|id| self.is_free(*id))
    }
}
