//! Exchanges packets over a channel of a session, and as datagrams or messages beside it.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use eyas::quinn;
use eyas_sctp_tokio::SctpMessages;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::datagrams::{
    DatagramMethod, SendingTurns, SessionDatagrams, TooLong, send_datagram, yield_to_streams,
};
use super::framing;
use super::interface::InterfaceAttachment;
use super::queue::LIFETIME;
use crate::link::{ChannelStream, SessionLink};

/// About how many bytes are written to the channel at once, and may wait there. Packets that wait in the queue are
/// dropped when they are late, but not those in the channel.
const BATCH: usize = 16 * 1024;
/// Bytes read at once.
const READ: usize = 64 * 1024;

/// Exchanges packets in both directions until the channel ends.
pub(crate) async fn exchange_packets(
    link: &SessionLink,
    channel: ChannelStream,
    attachment: InterfaceAttachment,
) {
    let id = channel.id();
    link.set_packets(Some(Arc::clone(attachment.tally())));
    let datagrams = SessionDatagrams::from_paths(link.paths().as_ref());
    let (from, to) = tokio::io::split(channel);
    let sender = PacketSender { link, id, to, attachment: &attachment, out: BytesMut::new() };
    // In one task, so that the networks are detached as soon as any part ends.
    tokio::select! {
        // The reason does not matter.
        _ = receive(from, &attachment, &datagrams) => {}
        _ = sender.run(&datagrams) => {}
        () = datagrams.receive(&attachment) => {}
    }
    link.set_packets(None);
}

async fn receive(
    mut from: ReadHalf<ChannelStream>,
    attachment: &InterfaceAttachment,
    datagrams: &SessionDatagrams,
) -> io::Result<()> {
    let mut unread = BytesMut::new();
    loop {
        unread.reserve(READ);
        if from.read_buf(&mut unread).await? == 0 {
            return Ok(());
        }
        while let Some(packet) = framing::remove_packet(&mut unread) {
            if packet[..] == framing::TAKES_DATAGRAMS {
                datagrams.set_accepted();
            } else {
                attachment.receive(&packet);
            }
        }
        consume_budget().await;
    }
}

struct PacketSender<'a> {
    link: &'a SessionLink,
    id: u32,
    to: WriteHalf<ChannelStream>,
    attachment: &'a InterfaceAttachment,
    /// Packets for the channel.
    out: BytesMut,
}

impl PacketSender<'_> {
    async fn run(mut self, datagrams: &SessionDatagrams) -> io::Result<()> {
        if datagrams.are_available() {
            framing::append_packet(&framing::TAKES_DATAGRAMS, &mut self.out);
            self.flush().await?;
        }
        while datagrams.ready().is_none() {
            self.link.unsent_below(self.id, BATCH).await;
            let mut next = Some(self.attachment.next().await);
            while let Some(packet) = next {
                self.append(&packet);
                next = if self.out.len() < BATCH { self.attachment.try_next() } else { None };
            }
            self.flush().await?;
        }
        match datagrams.ready() {
            Some(DatagramMethod::Quic(quic)) => self.send_datagrams(quic).await,
            Some(DatagramMethod::Sctp(messages)) => self.send_messages(messages).await,
            None => Ok(()),
        }
    }

    /// Sends packets as datagrams, and those that are too long through the channel.
    async fn send_datagrams(&mut self, quic: &quinn::Connection) -> io::Result<()> {
        let (mut turns, room) = (SendingTurns::default(), quic.datagram_send_buffer_space());
        loop {
            let mut next = Some(self.attachment.next().await);
            let (began, mut sent) = (Instant::now(), 0);
            while let Some(packet) = next {
                sent += packet.len();
                self.send_datagram(quic, packet).await;
                next = if sent < turns.left() { self.attachment.try_next() } else { None };
            }
            if !self.out.is_empty() {
                self.link.unsent_below(self.id, BATCH).await;
                self.flush().await?;
            }
            yield_to_streams(quic, began, sent, room, &mut turns).await;
        }
    }

    /// Sends packets as messages. Few of them may wait in the association, since late packets are dropped from
    /// the queue before it.
    async fn send_messages(&self, messages: &SctpMessages) -> io::Result<()> {
        loop {
            messages.unsent_below(BATCH).await;
            let packet = self.attachment.next().await;
            messages.send(&packet, LIFETIME).await?;
            self.attachment.tally().sent(packet.len());
            self.attachment.tally().sent_as_datagram();
            consume_budget().await;
        }
    }

    async fn send_datagram(&mut self, quic: &quinn::Connection, packet: Bytes) {
        let length = packet.len();
        match send_datagram(quic, packet).await {
            Ok(()) => {
                self.attachment.tally().sent(length);
                self.attachment.tally().sent_as_datagram();
            }
            Err(TooLong(packet)) => self.append(&packet),
        }
    }

    fn append(&mut self, packet: &[u8]) {
        framing::append_packet(packet, &mut self.out);
        self.attachment.tally().sent(packet.len());
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.to.write_all_buf(&mut self.out).await
    }
}
