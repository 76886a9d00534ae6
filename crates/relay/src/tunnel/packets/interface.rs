//! A device, and whom its packets go to.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::counts::{Fate, Tally};
use super::header::Header;
use super::queue::PacketQueue;
use super::routes::{Routes, Taken};
use crate::device::{Device, LONGEST};
use crate::interception::{Unreachable, unreachable};

/// Addresses that an interface has at most.
pub const MAX_ADDRESSES: usize = 8;

/// What an interface is called, and what is where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its name.
    pub name: String,
    /// Its addresses, each with the network that it is in: [`MAX_ADDRESSES`] at most.
    pub addresses: Vec<IpNet>,
    /// What else a client reaches through it. A server knows by the keys what is where.
    pub networks: Vec<IpNet>,
    /// The longest packet that this host sends by it, in bytes.
    pub mtu: u16,
}

/// An interface whose packets go to the other ends of sessions. Cheap to clone; it works until the last clone
/// is dropped.
#[derive(Clone, Debug)]
pub struct Interface {
    shared: Arc<Shared>,
    gone: CancellationToken,
    /// Who reads ends with the last handle, and not with the last session.
    _reading: Arc<DropGuard>,
}

#[derive(Debug)]
struct Shared {
    device: Device,
    config: InterfaceConfig,
    routes: RwLock<Routes<Peer>>,
    epoch: Instant,
}

/// The other end of a session.
#[derive(Clone, Debug)]
struct Peer(Arc<Waiting>);

/// What waits to be sent there.
#[derive(Debug, Default)]
struct Waiting {
    queue: Mutex<PacketQueue>,
    came: Notify,
    tally: Arc<Tally>,
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A session that has the packets for its networks, until this is dropped.
#[derive(Debug)]
pub(in crate::tunnel) struct Attachment {
    shared: Arc<Shared>,
    peer: Peer,
}

impl Interface {
    /// Reads what comes by the device: a TUN device without headers of its own, that does not block, set up
    /// as the configuration says. To be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the runtime cannot have it.
    pub fn new(device: OwnedFd, config: InterfaceConfig) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            device: Device::new(device)?,
            config,
            routes: RwLock::default(),
            epoch: Instant::now(),
        });
        let (gone, dropped) = (CancellationToken::new(), CancellationToken::new());
        let reading = Arc::clone(&shared);
        let (ended, stop) = (gone.clone(), dropped.clone());
        tokio::spawn(async move {
            if stop.run_until_cancelled(reading.read()).await.is_some() {
                ended.cancel();
            }
        });
        Ok(Self { shared, gone, _reading: Arc::new(dropped.drop_guard()) })
    }

    /// How it is set up.
    pub fn config(&self) -> &InterfaceConfig {
        &self.shared.config
    }

    /// Waits until it was taken away, as `ip link delete` does.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Gives the packets for these networks to a session, and takes from it what comes from there.
    ///
    /// # Errors
    /// Gives the network that another session has.
    pub(in crate::tunnel) fn attach(&self, networks: &[IpNet]) -> Result<Attachment, IpNet> {
        let peer = Peer(Arc::default());
        let mut routes = self.shared.routes.write().unwrap_or_else(PoisonError::into_inner);
        routes.insert(networks, &peer).map_err(|Taken { network, .. }| network)?;
        drop(routes);
        Ok(Attachment { shared: Arc::clone(&self.shared), peer })
    }

    /// What a client reaches through it.
    pub(in crate::tunnel) fn beyond(&self) -> Vec<IpNet> {
        let config = &self.shared.config;
        config.addresses.iter().chain(&config.networks).map(IpNet::trunc).collect()
    }

    /// Its addresses alone.
    pub(in crate::tunnel) fn addresses(&self) -> Vec<IpAddr> {
        self.shared.config.addresses.iter().map(IpNet::addr).collect()
    }
}

impl Shared {
    /// Reads packets for as long as there is a device.
    async fn read(&self) {
        let mut packet = vec![0; LONGEST];
        while let Ok(length) = self.device.read(&mut packet).await {
            self.route(&packet[..length]);
        }
    }

    /// Has a packet wait for its turn with who has its destination. What is said on a link alone, to find
    /// routers and neighbours, is for nobody.
    fn route(&self, packet: &[u8]) {
        let Some(header) = Header::read(packet) else { return };
        match self.peer(header.destination) {
            Some(Peer(waiting)) => {
                waiting.lock().push(self.epoch.elapsed(), Bytes::copy_from_slice(packet));
                waiting.came.notify_one();
            }
            None => self.say_unreachable(packet, header),
        }
    }

    /// Tells a program of this host, so that it need not wait. It comes from where the packet goes, for what
    /// comes from an address of its own a host does not believe (RFC 1122 §3.2.1.3).
    fn say_unreachable(&self, packet: &[u8], header: Header) {
        if let Some(error) = unreachable(packet, header.destination, Unreachable::Host) {
            self.device.write(&error);
        }
    }

    fn peer(&self, address: IpAddr) -> Option<Peer> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).peer(address).cloned()
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, PacketQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attachment {
    /// What becomes of its packets.
    pub(in crate::tunnel) fn tally(&self) -> &Arc<Tally> {
        &self.peer.0.tally
    }

    /// The next packet for the other end, if one waits.
    pub(super) fn try_next(&self) -> Option<Bytes> {
        let mut queue = self.peer.0.lock();
        let packet = queue.pop(self.shared.epoch.elapsed());
        self.tally().dropped(queue.late(), queue.overflow());
        packet
    }

    /// Waits for the next packet for the other end.
    pub(super) async fn next(&self) -> Bytes {
        loop {
            match self.try_next() {
                Some(packet) => return packet,
                None => self.peer.0.came.notified().await,
            }
        }
    }

    /// Gives the interface a packet of the other end, if it comes from there.
    pub(super) fn receive(&self, packet: &[u8]) {
        let fate = match Header::read(packet).map(|header| self.shared.peer(header.source)) {
            None => Fate::Malformed,
            Some(peer) if peer.as_ref() != Some(&self.peer) => Fate::Forged,
            Some(_) if self.shared.device.write(packet) => Fate::Taken,
            Some(_) => Fate::Refused,
        };
        self.tally().came(fate, packet.len());
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut routes = self.shared.routes.write().unwrap_or_else(PoisonError::into_inner);
        routes.remove(&self.peer);
    }
}
