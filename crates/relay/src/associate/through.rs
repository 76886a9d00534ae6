//! An association whose datagrams go to their destinations through another proxy.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::OptionFuture;
use tokio::io::AsyncReadExt as _;
use tokio::net::UdpSocket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use super::owner::{Dropped, Setup};
use super::sockets::hear;
use super::tunnels::{TunnelOutput, Tunnels};
use crate::client::Client;
use crate::connect_udp::{CapsuleStream, Event};
use crate::far::Far;
use crate::handshake::{Destination, Refusal};
use crate::report::Ending;
use crate::shared::Shared;
use crate::traffic::Traffic;
use crate::via::Wanted;

/// Bytes that wait for a tunnel whose stream takes no more. Further datagrams are dropped.
const ROOM: usize = 128 * 1024;
/// What a datagram that waits counts for beside its bytes.
const OVERHEAD: usize = 64;
/// Datagrams of all tunnels that wait for the client. Beyond them the other proxy is not read from.
const ARRIVED: usize = 16;

/// A datagram that waits for its tunnel, and its share of the room there.
type Waiting = (Bytes, OwnedSemaphorePermit);

/// What has become of a tunnel.
enum News {
    Opened,
    Refused(Refusal),
    Datagram(Bytes),
    Ended,
}

/// The way into a tunnel.
struct Entrance {
    datagrams: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
}

/// An association at work.
struct Running<'a> {
    shared: &'a Arc<Shared>,
    tunnels: Tunnels,
    /// Where the client sends to.
    socket: UdpSocket,
    entrances: BTreeMap<u64, Entrance>,
    tell: mpsc::Sender<(u64, News)>,
    news: mpsc::Receiver<(u64, News)>,
    epoch: Instant,
    traffic: Traffic<'a>,
}

/// Passes datagrams on until the client's connection ends, or nothing has moved for long.
pub(crate) async fn serve_through(
    shared: &Arc<Shared>,
    tcp: &mut Client,
    setup: &Setup,
    socket: UdpSocket,
    traffic: Traffic<'_>,
) -> Ending {
    let (tell, news) = mpsc::channel(ARRIVED);
    let mut running = Running {
        shared,
        tunnels: Tunnels::new(setup),
        socket,
        entrances: BTreeMap::new(),
        tell,
        news,
        epoch: Instant::now(),
        traffic,
    };
    let ending = running.run(tcp).await;
    running.traffic.datagrams.dropped = running.tunnels.dropped();
    ending
}

impl Running<'_> {
    async fn run(&mut self, tcp: &mut Client) -> Ending {
        let mut said = [0; 64];
        loop {
            let idle = self.traffic.idle(self.shared.limits.idle_time);
            let expiry = self.tunnels.poll_timeout().map(|at| sleep_until(self.epoch + at));
            tokio::select! {
                // What it says is of no meaning; that it is there is.
                read = tcp.read(&mut said) => match read {
                    Ok(0) => return Ending::Done,
                    Ok(_) => {}
                    Err(error) => return Ending::Client(error.to_string()),
                },
                ready = self.socket.readable() => match ready {
                    Ok(()) => self.hear_client(),
                    Err(error) => return Ending::Client(error.to_string()),
                },
                Some((id, news)) = self.news.recv() => self.learn(id, news),
                Some(()) = OptionFuture::from(expiry) => {
                    self.tunnels.handle_timeout(self.epoch.elapsed());
                }
                () = idle => return Ending::Idle,
            }
            self.perform();
        }
    }

    fn hear_client(&mut self) {
        let now = self.epoch.elapsed();
        hear(&self.socket, |bytes, from| {
            self.tunnels.handle_client(now, from, bytes);
            true
        });
    }

    fn learn(&mut self, id: u64, news: News) {
        let now = self.epoch.elapsed();
        match news {
            News::Opened => self.tunnels.opened(id),
            News::Refused(why) => {
                let dropped = match why {
                    Refusal::NotAllowed(_) => Dropped::NotAllowed,
                    _ => Dropped::NoWay,
                };
                self.tunnels.refused(now, id, dropped);
                self.entrances.remove(&id);
                self.traffic.datagrams.refusal = Some(why);
            }
            News::Datagram(data) => self.tunnels.handle_datagram(now, id, &data),
            News::Ended => {
                self.tunnels.ended(id);
                self.entrances.remove(&id);
            }
        }
    }

    /// Does what there is to do. What cannot be taken at once is lost, as on any line.
    fn perform(&mut self) {
        while let Some(output) = self.tunnels.poll_output() {
            match output {
                TunnelOutput::Open { id, to } => self.open(id, to),
                TunnelOutput::Send { id, data } => self.send(id, data),
                // The tunnel ends with its entrance.
                TunnelOutput::Close { id } => drop(self.entrances.remove(&id)),
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
        self.entrances.insert(id, Entrance { datagrams, room: Arc::new(Semaphore::new(ROOM)) });
        let (shared, tell) = (Arc::clone(self.shared), self.tell.clone());
        // In a task of its own, which ends with the entrance and takes leave of the other proxy.
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = carry(&shared, to, waiting, (id, tell)) => {}
                () = shared.abort.cancelled() => {}
            }
        });
    }

    fn send(&mut self, id: u64, data: Bytes) {
        let length = data.len();
        let sent = self.entrances.get(&id).and_then(|entrance| {
            let size = u32::try_from(length + OVERHEAD).ok()?;
            let place = Arc::clone(&entrance.room).try_acquire_many_owned(size).ok()?;
            entrance.datagrams.send((data, place)).ok()
        });
        match sent {
            Some(()) => self.traffic.sent(length),
            None => self.tunnels.not_taken(),
        }
    }
}

/// A tunnel, from the request for it to its end.
async fn carry(
    shared: &Shared,
    to: Destination,
    mut waiting: mpsc::UnboundedReceiver<Waiting>,
    (id, tell): (u64, mpsc::Sender<(u64, News)>),
) {
    let reached = tokio::select! {
        reached = reach(shared, &to) => reached,
        // Nothing is sent before it is open, so this is its end.
        _ = waiting.recv() => return,
    };
    // Who has gone need not know.
    let _ = match reached {
        Ok(mut far) => {
            let _ = tell.send((id, News::Opened)).await;
            let datagrams = far.take_datagrams();
            let mut stream = CapsuleStream::new(far, b"").with_frames(datagrams, true);
            if pass(&mut stream, &mut waiting, (id, &tell)).await {
                stream.end().await;
            }
            tell.send((id, News::Ended)).await
        }
        Err(why) => tell.send((id, News::Refused(why))).await,
    };
}

async fn reach(shared: &Shared, to: &Destination) -> Result<Far, Refusal> {
    let none = || Refusal::Failed("there is no other proxy".to_owned());
    let via = shared.via.as_ref().ok_or_else(none)?;
    let reached = via.reach(Wanted::Datagrams, to, &mut None).await.map_err(|refused| refused.why);
    reached.inspect_err(|why| tracing::debug!(%to, %why, "no tunnel for datagrams"))
}

/// Forwards datagrams until one side ends. Returns whether the other proxy is to be told of the end.
async fn pass(
    stream: &mut CapsuleStream<Far>,
    waiting: &mut mpsc::UnboundedReceiver<Waiting>,
    (id, tell): (u64, &mpsc::Sender<(u64, News)>),
) -> bool {
    loop {
        tokio::select! {
            event = stream.next() => match event {
                Ok(Event::Datagram(data)) => {
                    if tell.send((id, News::Datagram(data))).await.is_err() {
                        return true;
                    }
                }
                Ok(Event::Room) => {}
                Ok(Event::End) => return true,
                Err(error) => {
                    tracing::debug!(%error, "a tunnel for datagrams broke");
                    return false;
                }
            },
            next = waiting.recv(), if stream.has_room() => match next {
                Some((data, _place)) => stream.put(&data),
                None => return true,
            },
        }
    }
}
