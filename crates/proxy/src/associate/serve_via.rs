//! Serves an association whose datagrams go through another proxy.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use eyas_relay::destination::{Destination, RequestRefusal};
use eyas_relay::destination_stream::DestinationStream;
use eyas_relay::via::TunnelKind;
use futures_util::future::OptionFuture;
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use super::owner::AssociationSetup;
use super::tunnels::{AssociationTunnels, TunnelOutput};
use crate::client::ClientStream;
use crate::connect_udp::{CapsuleEvent, CapsuleStream};
use crate::peers::receive;
use crate::report::{ClientEnding, DropReason};
use crate::shared::SharedProxy;
use crate::traffic::DatagramTraffic;

/// The limit on data that waits for the stream of a tunnel, in bytes. Further datagrams are dropped.
const MAX_WAITING: usize = 128 * 1024;
/// The bytes that a waiting datagram counts in addition to its payload.
const OVERHEAD: usize = 64;
/// Received datagrams of all tunnels that wait for this task. Beyond them the other proxy is not read from.
const MAX_RECEIVED: usize = 16;

/// A datagram that waits for its tunnel, with its share of [`MAX_WAITING`].
type WaitingDatagram = (Bytes, OwnedSemaphorePermit);

/// An event of a tunnel.
enum TunnelEvent {
    Opened,
    Refused(RequestRefusal),
    Datagram(Bytes),
    Ended,
}

/// The queue of a tunnel. The tunnel ends when it is dropped.
struct TunnelQueue {
    datagrams: mpsc::UnboundedSender<WaitingDatagram>,
    room: Arc<Semaphore>,
}

/// A running association.
struct TunneledAssociation<'a> {
    shared: &'a Arc<SharedProxy>,
    tunnels: AssociationTunnels,
    /// The socket to which the client sends.
    socket: UdpSocket,
    queues: BTreeMap<u64, TunnelQueue>,
    event_sender: mpsc::Sender<(u64, TunnelEvent)>,
    events: mpsc::Receiver<(u64, TunnelEvent)>,
    epoch: Instant,
    traffic: DatagramTraffic<'a>,
}

/// Forwards datagrams until the client's connection ends or the idle time is over.
pub(crate) async fn serve_via(
    shared: &Arc<SharedProxy>,
    tcp: &mut ClientStream,
    setup: &AssociationSetup,
    socket: UdpSocket,
    traffic: DatagramTraffic<'_>,
) -> ClientEnding {
    let (event_sender, events) = mpsc::channel(MAX_RECEIVED);
    let mut running = TunneledAssociation {
        shared,
        tunnels: AssociationTunnels::new(setup),
        socket,
        queues: BTreeMap::new(),
        event_sender,
        events,
        epoch: Instant::now(),
        traffic,
    };
    let ending = running.run(tcp).await;
    running.traffic.datagrams.dropped = running.tunnels.dropped();
    ending
}

impl TunneledAssociation<'_> {
    async fn run(&mut self, tcp: &mut ClientStream) -> ClientEnding {
        let mut ignored = [0; 64];
        loop {
            let idle = self.traffic.idle(self.shared.limits.idle_time);
            let expiry = self.tunnels.poll_timeout().map(|at| sleep_until(self.epoch + at));
            tokio::select! {
                // Its data has no meaning, but its end does.
                read = tcp.read(&mut ignored) => match read {
                    Ok(0) => return ClientEnding::Done,
                    Ok(_) => {}
                    Err(error) => return ClientEnding::Client(error.to_string()),
                },
                ready = self.socket.readable() => match ready {
                    Ok(()) => self.receive_from_client(),
                    Err(error) => return ClientEnding::Client(error.to_string()),
                },
                Some((id, event)) = self.events.recv() => self.handle_event(id, event),
                Some(()) = OptionFuture::from(expiry) => {
                    self.tunnels.handle_timeout(self.epoch.elapsed());
                }
                () = idle => return ClientEnding::Idle,
            }
            self.perform();
        }
    }

    fn receive_from_client(&mut self) {
        let now = self.epoch.elapsed();
        receive(&self.socket, |bytes, from| {
            self.tunnels.handle_client(now, from, bytes);
            true
        });
    }

    fn handle_event(&mut self, id: u64, event: TunnelEvent) {
        let now = self.epoch.elapsed();
        match event {
            TunnelEvent::Opened => self.tunnels.opened(id),
            TunnelEvent::Refused(why) => {
                let dropped = match why {
                    RequestRefusal::NotAllowed(_) => DropReason::NotAllowed,
                    _ => DropReason::Unreachable,
                };
                self.tunnels.refused(now, id, dropped);
                self.queues.remove(&id);
                self.traffic.datagrams.refusal = Some(why);
            }
            TunnelEvent::Datagram(data) => self.tunnels.handle_datagram(now, id, &data),
            TunnelEvent::Ended => {
                self.tunnels.ended(id);
                self.queues.remove(&id);
            }
        }
    }

    /// Performs the outputs. A datagram that a socket does not accept at once is lost, as on any link.
    fn perform(&mut self) {
        while let Some(output) = self.tunnels.poll_output() {
            match output {
                TunnelOutput::Open { id, to } => self.open(id, to),
                TunnelOutput::Send { id, data } => self.send(id, data),
                TunnelOutput::Close { id } => drop(self.queues.remove(&id)),
                TunnelOutput::Deliver { to, datagram, length } => {
                    if self.socket.try_send_to(&datagram, to).is_ok() {
                        self.traffic.received(length);
                    }
                }
            }
        }
    }

    fn open(&mut self, id: u64, to: Destination) {
        let (datagrams, waiting) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(MAX_WAITING));
        self.queues.insert(id, TunnelQueue { datagrams, room });
        let (shared, events) = (Arc::clone(self.shared), self.event_sender.clone());
        // In a task of its own, which ends after the queue is dropped and the stream is shut down.
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = run_tunnel(&shared, to, waiting, (id, events)) => {}
                () = shared.abort.cancelled() => {}
            }
        });
    }

    fn send(&mut self, id: u64, data: Bytes) {
        let length = data.len();
        let sent = self.queues.get(&id).and_then(|queue| {
            let size = u32::try_from(length + OVERHEAD).ok()?;
            let permit = Arc::clone(&queue.room).try_acquire_many_owned(size).ok()?;
            queue.datagrams.send((data, permit)).ok()
        });
        match sent {
            Some(()) => self.traffic.sent(length),
            None => self.tunnels.queue_full(),
        }
    }
}

/// Requests a tunnel, and forwards its datagrams until it ends.
async fn run_tunnel(
    shared: &SharedProxy,
    to: Destination,
    mut waiting: mpsc::UnboundedReceiver<WaitingDatagram>,
    (id, events): (u64, mpsc::Sender<(u64, TunnelEvent)>),
) {
    let reached = tokio::select! {
        reached = reach(shared, &to) => reached,
        // No datagram is queued before the tunnel is open, so the queue was dropped.
        _ = waiting.recv() => return,
    };
    // The association may be over already.
    let _ = match reached {
        Ok(mut destination) => {
            let _ = events.send((id, TunnelEvent::Opened)).await;
            let datagrams = destination.take_datagrams();
            let mut stream = CapsuleStream::new(destination, b"").with_frames(datagrams, true);
            if forward(&mut stream, &mut waiting, (id, &events)).await {
                stream.end().await;
            }
            events.send((id, TunnelEvent::Ended)).await
        }
        Err(why) => events.send((id, TunnelEvent::Refused(why))).await,
    };
}

async fn reach(
    shared: &SharedProxy,
    to: &Destination,
) -> Result<DestinationStream, RequestRefusal> {
    let none = || RequestRefusal::Failed("there is no other proxy".to_owned());
    let via = shared.via.as_ref().ok_or_else(none)?;
    let reached = via
        .reach((TunnelKind::Datagrams, to), None, &mut None)
        .await
        .map_err(|refused| refused.why);
    reached.inspect_err(|why| tracing::debug!(%to, %why, "no tunnel for datagrams"))
}

/// Forwards datagrams until one side ends. Returns whether the stream is to be shut down.
async fn forward(
    stream: &mut CapsuleStream<DestinationStream>,
    waiting: &mut mpsc::UnboundedReceiver<WaitingDatagram>,
    (id, events): (u64, &mpsc::Sender<(u64, TunnelEvent)>),
) -> bool {
    loop {
        tokio::select! {
            event = stream.next() => match event {
                Ok(CapsuleEvent::Datagram(data)) => {
                    if events.send((id, TunnelEvent::Datagram(data))).await.is_err() {
                        return true;
                    }
                }
                Ok(CapsuleEvent::Room) => {}
                Ok(CapsuleEvent::End) => return true,
                Err(error) => {
                    tracing::debug!(%error, "a tunnel for datagrams broke");
                    return false;
                }
            },
            next = waiting.recv(), if stream.has_room() => match next {
                Some((data, _permit)) => stream.send_datagram(&data),
                None => return true,
            },
        }
    }
}
