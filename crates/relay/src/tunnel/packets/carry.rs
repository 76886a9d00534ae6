//! Packets over a channel of a session.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::task::coop::consume_budget;

use super::framing;
use super::interface::Attachment;
use crate::tunnel::link::{ChannelStream, Link};

/// Bytes that are written to the channel at once, about, and as many may wait there: what waits before it is
/// dropped once it is late, what waits in the channel is not.
const BATCH: usize = 16 * 1024;
/// Bytes that are read at once.
const READ: usize = 64 * 1024;

/// Carries packets both ways until the channel ends.
pub(in crate::tunnel) async fn carry(link: &Link, channel: ChannelStream, with: Attachment) {
    let id = channel.id();
    link.set_packets(Some(Arc::clone(with.tally())));
    let (from, to) = tokio::io::split(channel);
    // In one task, so that nobody else has the packets of these networks once it is over.
    tokio::select! {
        // However it ends, it ends.
        _ = receive(from, &with) => {}
        _ = send(link, id, to, &with) => {}
    }
    link.set_packets(None);
}

async fn receive(mut from: ReadHalf<ChannelStream>, with: &Attachment) -> io::Result<()> {
    let mut unread = BytesMut::new();
    loop {
        unread.reserve(READ);
        if from.read_buf(&mut unread).await? == 0 {
            return Ok(());
        }
        while let Some(packet) = framing::take(&mut unread) {
            with.receive(&packet);
        }
        consume_budget().await;
    }
}

async fn send(
    link: &Link,
    id: u32,
    mut to: WriteHalf<ChannelStream>,
    with: &Attachment,
) -> io::Result<()> {
    let mut out = BytesMut::new();
    loop {
        link.unsent_below(id, BATCH).await;
        let mut next = Some(with.next().await);
        while let Some(packet) = next {
            framing::put(&packet, &mut out);
            with.tally().sent(packet.len());
            next = if out.len() < BATCH { with.try_next() } else { None };
        }
        to.write_all_buf(&mut out).await?;
    }
}
