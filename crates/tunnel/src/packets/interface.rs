//! A device, and the peers that its packets go to.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use eyas_relay::device::{DeviceHandle, MAX_PACKET, PacketDevice};
use eyas_relay::packet::{UnreachableCause, unreachable_if_host};
use eyas_sctp_tokio::UnannouncedAddresses;
use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::header::PacketHeader;
use super::queue::PacketQueue;
use super::routes::{PeerRoutes, TakenNetwork};
use crate::packet_counts::{PacketOutcome, PacketTally};

/// The configuration of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its name.
    pub name: String,
    /// Its addresses with their networks, at most [`Self::MAX_ADDRESSES`].
    pub addresses: Vec<IpNet>,
    /// Further networks that a client reaches through it. A server gets the networks from the keys.
    pub networks: Vec<IpNet>,
    /// Its MTU in bytes.
    pub mtu: u16,
}

impl InterfaceConfig {
    /// The limit on the addresses of an interface.
    pub const MAX_ADDRESSES: usize = 8;
}

/// An interface whose packets go to the other ends of sessions. Cheap to clone; it works until the last clone is
/// dropped.
#[derive(Clone, Debug)]
pub struct TunnelInterface {
    shared: Arc<SharedInterface>,
    gone: CancellationToken,
    /// Stops the reading task when the last handle is dropped, not when the last session ends.
    _reading: Arc<DropGuard>,
}

#[derive(Debug)]
struct SharedInterface {
    device: PacketDevice,
    config: InterfaceConfig,
    /// No session has a path through the interface that it carries.
    _unannounced: UnannouncedAddresses,
    routes: RwLock<PeerRoutes<InterfacePeer>>,
    epoch: Instant,
}

/// The other end of a session.
#[derive(Clone, Debug)]
struct InterfacePeer(Arc<WaitingPackets>);

/// The packets that wait to be sent to a peer.
#[derive(Debug, Default)]
struct WaitingPackets {
    queue: Mutex<PacketQueue>,
    arrived: Notify,
    tally: Arc<PacketTally>,
}

impl PartialEq for InterfacePeer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A session that gets the packets for its networks until this is dropped.
#[derive(Debug)]
pub(crate) struct InterfaceAttachment {
    shared: Arc<SharedInterface>,
    peer: InterfacePeer,
}

impl TunnelInterface {
    /// Starts reading the packets of the device: a non-blocking TUN device without packet headers, configured
    /// as given. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the device cannot be registered with the runtime.
    pub fn new(device: DeviceHandle, config: InterfaceConfig) -> io::Result<Self> {
        let addresses = config.addresses.iter().map(IpNet::addr);
        let shared = Arc::new(SharedInterface {
            device: PacketDevice::new(device)?,
            _unannounced: UnannouncedAddresses::new(addresses),
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

    /// Returns the configuration.
    pub fn config(&self) -> &InterfaceConfig {
        &self.shared.config
    }

    /// Waits until the interface is removed, for example by `ip link delete`.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Assigns these networks to a session, which gets the packets for them and may send packets from them.
    ///
    /// # Errors
    /// Returns a network that another session has.
    pub(crate) fn attach(&self, networks: &[IpNet]) -> Result<InterfaceAttachment, IpNet> {
        let peer = InterfacePeer(Arc::default());
        let mut routes = self.shared.routes.write().unwrap_or_else(PoisonError::into_inner);
        routes.insert(networks, &peer).map_err(|TakenNetwork { network, .. }| network)?;
        drop(routes);
        Ok(InterfaceAttachment { shared: Arc::clone(&self.shared), peer })
    }

    /// Returns the networks that a client reaches through it.
    pub(crate) fn remote_networks(&self) -> Vec<IpNet> {
        let config = &self.shared.config;
        config.addresses.iter().chain(&config.networks).map(IpNet::trunc).collect()
    }

    /// Returns its addresses.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.shared.config.addresses.iter().map(IpNet::addr).collect()
    }
}

impl SharedInterface {
    /// Reads packets as long as the device exists.
    async fn read(&self) {
        let mut packet = vec![0; MAX_PACKET];
        while let Ok(length) = self.device.read(&mut packet).await {
            self.route(&packet[..length]);
        }
    }

    /// Queues a packet for the peer that has its destination.
    fn route(&self, packet: &[u8]) {
        let Some(header) = PacketHeader::read(packet) else { return };
        match self.peer(header.destination) {
            Some(InterfacePeer(waiting)) => {
                waiting.lock().push(self.epoch.elapsed(), Bytes::copy_from_slice(packet));
                waiting.arrived.notify_one();
            }
            None => self.reject(packet, header),
        }
    }

    /// Sends an ICMP error, so that the program on this host need not wait. Its source is the packet's destination,
    /// since a host ignores packets from its own addresses (RFC 1122 §3.2.1.3).
    fn reject(&self, packet: &[u8], header: PacketHeader) {
        if let Some(error) = unreachable_if_host(packet, header.destination, UnreachableCause::Host)
        {
            self.device.write(&error);
        }
    }

    fn peer(&self, address: IpAddr) -> Option<InterfacePeer> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).peer(address).cloned()
    }
}

impl WaitingPackets {
    fn lock(&self) -> MutexGuard<'_, PacketQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InterfaceAttachment {
    /// Returns the counters of its packets.
    pub(crate) fn tally(&self) -> &Arc<PacketTally> {
        &self.peer.0.tally
    }

    /// Returns the next packet for the other end, if one is waiting.
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
                None => self.peer.0.arrived.notified().await,
            }
        }
    }

    /// Passes a packet from the other end to the interface, if its source is one of the session's networks.
    pub(super) fn receive(&self, packet: &[u8]) {
        let outcome = match PacketHeader::read(packet).map(|header| self.shared.peer(header.source))
        {
            None => PacketOutcome::Malformed,
            Some(peer) if peer.as_ref() != Some(&self.peer) => PacketOutcome::Forged,
            Some(_) if self.shared.device.write(packet) => PacketOutcome::Accepted,
            Some(_) => PacketOutcome::Refused,
        };
        self.tally().count_received(outcome, packet.len());
    }
}

impl Drop for InterfaceAttachment {
    fn drop(&mut self) {
        let mut routes = self.shared.routes.write().unwrap_or_else(PoisonError::into_inner);
        routes.remove(&self.peer);
    }
}
