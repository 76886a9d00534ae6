//! dcsctp.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendError, SendOptions, SocketEvent, SocketTime,
    StreamId, ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS,
};

use crate::link::LARGEST;
use crate::side::{
    BUFFER, Failure, Incoming, LARGEST_MESSAGE, Outgoing, PORT, Side, SideEvent, SideOptions,
};

/// A socket and its events.
pub struct Dcsctp {
    socket: Box<dyn DcSctpSocket>,
    packets: Vec<Bytes>,
    events: VecDeque<SideEvent>,
    used: BTreeSet<u16>,
}

fn at(now: Duration) -> SocketTime {
    SocketTime::zero() + now
}

impl Dcsctp {
    pub fn new(options: SideOptions) -> Self {
        let mut config = Options {
            local_port: PORT,
            remote_port: PORT,
            announced_maximum_outgoing_streams: options.streams,
            mtu: LARGEST,
            max_message_size: LARGEST_MESSAGE,
            max_receiver_window_buffer_size: BUFFER,
            max_send_buffer_size: BUFFER,
            per_stream_send_queue_limit: BUFFER,
            enable_message_interleaving: options.interleaving,
            ..Options::default()
        };
        if options.zero_checksum {
            config.zero_checksum_alternate_error_detection_method =
                ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS;
        }
        Self {
            socket: dcsctp::new_socket("peer", &config),
            packets: Vec::new(),
            events: VecDeque::new(),
            used: BTreeSet::new(),
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            let side_event = match event {
                SocketEvent::SendPacket(packet) => {
                    self.packets.push(packet.into());
                    continue;
                }
                SocketEvent::OnConnected() => SideEvent::Up,
                SocketEvent::OnClosed() => SideEvent::Closed,
                SocketEvent::OnAborted(kind, text) => SideEvent::Lost(format!("{kind:?}: {text}")),
                SocketEvent::OnIncomingStreamReset(_) => SideEvent::TheirStreamsReset,
                SocketEvent::OnStreamsResetPerformed(_) => SideEvent::OurStreamsReset,
                _ => continue,
            };
            self.events.push_back(side_event);
        }
    }
}

impl Side for Dcsctp {
    fn connect(&mut self, now: Duration) -> Result<(), Failure> {
        self.socket.advance_time(at(now));
        self.socket.connect();
        self.drain();
        Ok(())
    }

    fn handle(&mut self, now: Duration, packet: Bytes) {
        self.socket.advance_time(at(now));
        self.socket.handle_input(&packet);
        self.drain();
    }

    fn tick(&mut self, now: Duration) {
        self.socket.advance_time(at(now));
        self.drain();
    }

    fn timeout(&self) -> Option<Duration> {
        let after = self.socket.poll_timeout() - SocketTime::zero();
        (after < Duration::MAX).then_some(after)
    }

    fn transmit(&mut self, _: Duration, packets: &mut Vec<Bytes>) {
        self.drain();
        packets.append(&mut self.packets);
    }

    fn poll(&mut self) -> Option<SideEvent> {
        self.events.pop_front()
    }

    fn send(&mut self, _: Duration, message: &Outgoing) -> Result<bool, Failure> {
        let options = SendOptions {
            unordered: message.unordered,
            max_retransmissions: message.retransmissions,
            ..SendOptions::default()
        };
        self.used.insert(message.stream);
        let queued = Message::new(StreamId(message.stream), PpId(53), message.data.to_vec());
        match self.socket.send(queued, &options) {
            Ok(()) => Ok(true),
            Err(SendError::ResourceExhaustion) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self, _: Duration) -> Option<Incoming> {
        let message = self.socket.get_next_message()?;
        Some(Incoming { stream: message.stream_id.0, data: message.payload.into() })
    }

    fn is_dry(&self) -> bool {
        let metrics = self.socket.get_metrics();
        metrics.is_none_or(|metrics| metrics.unack_data_count == 0)
            && self.used.iter().all(|stream| self.socket.buffered_amount(StreamId(*stream)) == 0)
    }

    fn reset(&mut self, _: Duration, streams: &[u16]) -> Result<(), Failure> {
        let streams: Vec<_> = streams.iter().copied().map(StreamId).collect();
        Ok(self.socket.reset_streams(&streams)?)
    }

    fn shutdown(&mut self, _: Duration) -> Result<(), Failure> {
        self.socket.shutdown();
        Ok(())
    }

    fn abort(&mut self, _: Duration) -> Result<(), Failure> {
        self.socket.close();
        self.drain();
        // It has no event for its own abort.
        self.events.push_back(SideEvent::Lost("aborted here".into()));
        Ok(())
    }
}
