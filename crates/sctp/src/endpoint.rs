//! An endpoint: many associations behind one driver.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `mod` | the API | RFC 9260 §11.1, RFC 6458 |
//! | `input` | finding the association of a packet | RFC 9260 §8.4, §8.5 |
//! | `init` | INIT, answered without keeping state | RFC 9260 §5.1, §5.2 |
//! | `cookie_echo` | COOKIE ECHO, which creates an association | RFC 9260 §5.1.5, §5.2.4 |
//! | `cookie` | the signed cookie and its keys | RFC 9260 §5.1.3 |
//! | `out_of_the_blue` | packets without an association | RFC 9260 §8.4 |
//! | `limit` | rate limits for responses to unknown peers | RFC 9260 §8.4, §10 |
//! | `memory` | memory limits of associations | |
//! | `registry` | associations by tag and by address | RFC 9260 §1.3 |
//! | `timers` | the timers of associations | |
//! | `output`, `train` | outputs; packets that are sent together | |
//! | `packet_buffer` | buffers for packets, in either form | |
//! | `random` | tags, TSNs and keys from the seed | RFC 4086 |
//! | `association_mut` | operations on one association: paths, streams, addresses, keys | RFC 6458 §8.1, RFC 6525, RFC 5061 |
//! | `out_of_band` | associations whose INITs are exchanged out of band | draft-hancke-tsvwg-snap |
//! | `live` | changes at run time | RFC 6458 §8.1 |
//! | `status` | status queries | RFC 6458 §8.2 |

mod association_mut;
pub(crate) mod cookie;
mod cookie_echo;
mod init;
mod input;
mod limit;
mod live;
mod memory;
mod out_of_band;
mod out_of_the_blue;
mod output;
pub(crate) mod packet_buffer;
mod random;
pub(crate) mod registry;
mod status;
mod timers;
pub(crate) mod train;

use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use bytes::Bytes;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::association::init_params::InitParams;
use crate::association::{Association, AssociationSeed, addresses};
use crate::auth::{AuthOffer, RANDOM_LEN};
use crate::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use crate::counters::EndpointCounters;
use crate::error::Error;
use crate::identifier::{AssociationId, StreamId, VerificationTag};
use crate::message::{Message, SendInfo};
use crate::serial::Tsn;
use crate::wire::{ChunkType, HeaderShare};

use cookie::CookieKeys;
use limit::{RateLimit, SourceLimits};
use memory::SharedMemory;
use packet_buffer::TrainContents;
use random::RandomBytes;
use registry::{AssociationRegistry, PeerPorts};
use timers::AssociationTimers;
use train::PacketTrain;

pub use crate::path::PathState;
pub use crate::send::{AssociationQueueInfo, QueueInfo};
pub use association_mut::AssociationMut;
pub use status::{AgreedExtensions, AssociationState, PathStatus, Status};
pub use train::PacketMemory;

/// The first port that is chosen for associations without one of their own (RFC 6335 §6).
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// The first port that is chosen when all dynamic ones are in use towards a peer.
const FIRST_USER_PORT: u16 = 1024;

/// An SCTP endpoint. [`crate::io`] describes how to drive it.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    /// The configuration of associations that peers open.
    accepting: Arc<AssociationConfig>,
    /// The configuration of the last association opened here; most share one.
    connecting: Arc<AssociationConfig>,
    now: Duration,
    counters: EndpointCounters,
    random: RandomBytes,
    keys: CookieKeys,
    registry: AssociationRegistry,
    timers: AssociationTimers,
    /// Slots of associations that may have output.
    pending: VecDeque<u32>,
    /// Responses without an association, or of one that was dropped at its end.
    answers: VecDeque<TrainContents>,
    limit: RateLimit,
    /// INIT ACKs whose cookie has not been returned, by source.
    init_acks: SourceLimits,
    /// Heartbeats to addresses that have never responded, by the peer that listed them.
    probes: SourceLimits,
    train: PacketTrain,
    /// What the header of the last packet contributed to its checksum.
    header_share: HeaderShare,
    /// The addresses of this host that may be announced to peers, most preferred first.
    local_addresses: Vec<IpAddr>,
    memory: SharedMemory,
}

impl Endpoint {
    /// Creates an endpoint without associations. `seed` must be secret and, on a real network,
    /// different for each run: tags, TSNs and the cookie keys are derived from it.
    #[must_use]
    pub fn new(config: EndpointConfig, seed: [u8; 32], now: Duration) -> Self {
        let mut random = RandomBytes::new(seed);
        let keys = CookieKeys::new(random.branch(), now, config.cookie_key_life);
        let mut limits = random.branch();
        let accepting = Arc::new(config.association.clone());
        Self {
            connecting: accepting.clone(),
            accepting,
            now,
            counters: EndpointCounters::default(),
            random,
            keys,
            registry: AssociationRegistry::default(),
            timers: AssociationTimers::default(),
            pending: VecDeque::new(),
            answers: VecDeque::new(),
            limit: RateLimit::new(config.max_out_of_the_blue_answers, now),
            init_acks: SourceLimits::new(config.max_init_acks_per_source, &mut limits),
            probes: SourceLimits::new(config.max_probes_per_source, &mut limits),
            train: PacketTrain::new(config.packets),
            header_share: HeaderShare::default(),
            local_addresses: config.addresses.clone(),
            memory: SharedMemory::new(&config),
            config,
        }
    }

    /// Opens an association (RFC 9260 §11.1.2, ASSOCIATE). [`crate::event::Event::Up`] or
    /// [`crate::event::Event::Lost`] reports the outcome.
    ///
    /// # Errors
    /// If the peer has no unicast address or there are too many associations.
    pub fn connect(
        &mut self,
        now: Duration,
        options: &ConnectOptions,
    ) -> Result<AssociationId, Error> {
        self.advance_time(now);
        let unicast = |remote: &SocketAddr| addresses::is_unicast(remote.ip());
        if options.remotes.is_empty() || !options.remotes.iter().all(unicast) {
            return Err(Error::BadAddress);
        }
        if self.registry.len() >= self.config.max_associations {
            return Err(Error::TooManyAssociations);
        }
        let local_port = self.local_port(options)?;
        let config = self.share(&options.association);
        let own = self.own_params(&config, options.remotes[0].ip());
        let seed = self.next_seed();
        let (now, remotes, local) = (self.now, options.remotes.as_slice(), options.local);
        let (remote_port, hold) = (options.remote_port, options.hold_at_init_ack);
        let (slot, id) = self.registry.insert(|id| {
            let base = AssociationSeed { id, config, local_port, remote_port, seed };
            Association::open(now, base, own, remotes, local, hold)
        });
        self.update_allowance(slot);
        self.mark_pending(slot);
        Ok(id)
    }

    /// Proceeds with an association that is held at its INIT ACK
    /// ([`ConnectOptions::hold_at_init_ack`]), now or as soon as the INIT ACK arrives.
    ///
    /// # Errors
    /// If there is no such association.
    pub fn proceed(&mut self, now: Duration, id: AssociationId) -> Result<(), Error> {
        self.change_association(now, id, |association, now, _| {
            association.proceed(now);
            Ok(())
        })
    }

    /// Sends a message (RFC 9260 §11.1.5, SEND). It is accepted whole or not at all.
    ///
    /// # Errors
    /// [`Error::Full`] until [`crate::event::Event::Writable`]; other errors are permanent.
    pub fn send(
        &mut self,
        now: Duration,
        id: AssociationId,
        info: &SendInfo,
        data: Bytes,
    ) -> Result<(), Error> {
        self.record_queued(data.len());
        self.change_association(now, id, |association, now, _| association.send(now, info, data))
    }

    /// Returns whether [`Self::send`] would have space for a message of this length now. This does
    /// not cause [`crate::event::Event::Writable`]; only a refused message does.
    #[must_use]
    pub fn is_writable(&self, id: AssociationId, length: usize) -> bool {
        self.association(id).is_some_and(|association| association.is_writable(length))
    }

    /// Returns how much of its send buffer an association may use now: less than
    /// [`crate::config::AssociationConfig::send_buffer`] where many share the memory. Larger
    /// messages have to wait until they are alone, and until the peer's other associations use less.
    #[must_use]
    pub fn usable_send_buffer(&self, id: AssociationId) -> usize {
        self.association(id).map_or(0, |association| association.sender().usable_buffer())
    }

    /// Receives a message, or a part of one (RFC 9260 §11.1.6, RECEIVE). What arrived before an
    /// association ended can still be received afterwards.
    pub fn receive(&mut self, now: Duration, id: AssociationId) -> Option<Message> {
        self.advance_time(now);
        let slot = self.registry.slot(id)?;
        let entry = self.registry.entry_mut(slot)?;
        let message = entry.association.receive();
        // The window may have opened, or the last message of an ended association gone.
        entry.mark_pending(slot, &mut self.pending);
        message
    }

    /// Shuts an association down once all data has arrived (RFC 9260 §9.2).
    ///
    /// # Errors
    /// If there is no such association.
    pub fn shutdown(&mut self, now: Duration, id: AssociationId) -> Result<(), Error> {
        self.change_association(now, id, Association::shutdown)
    }

    /// Aborts an association and notifies the peer (RFC 9260 §9.1). An association that waits for
    /// its INIT ACK, or is held at it, ends without a packet, because the peer keeps no state.
    ///
    /// # Errors
    /// If there is no such association.
    pub fn abort(&mut self, now: Duration, id: AssociationId, reason: Bytes) -> Result<(), Error> {
        self.change_association(now, id, |association, _, _| {
            association.abort(reason);
            Ok(())
        })
    }

    /// Drops an association without notifying the peer, together with undelivered data. If it has
    /// already ended, its last packet, a SHUTDOWN COMPLETE or an ABORT, is still sent.
    pub fn forget(&mut self, now: Duration, id: AssociationId) {
        self.advance_time(now);
        let Some(slot) = self.registry.slot(id) else { return };
        if let Some(entry) = self.registry.entry_mut(slot)
            && entry.association.has_ended()
        {
            let (train, counters) = (&mut self.train, &mut self.counters);
            while let Some(last) = entry.association.poll_transmit(self.now, train, counters) {
                self.answers.push_back(last);
            }
        }
        self.drop_slot(slot);
    }

    /// Swaps the memory that packets are written into. A program that polls many endpoints in turn,
    /// each with few packets, can lend the same memory to each of them; otherwise each endpoint
    /// keeps its own. A partly written packet stays with the endpoint.
    pub fn swap_packet_memory(&mut self, memory: &mut PacketMemory) {
        self.train.swap_memory(memory);
    }

    /// Returns a snapshot of an association (`SCTP_STATUS`), if it exists.
    #[must_use]
    pub fn status(&self, id: AssociationId) -> Option<Status> {
        Some(self.association(id)?.status())
    }

    /// Returns what the send buffer contains, by stream (draft-dreibholz-tsvwg-sctpsocket-sqinfo),
    /// if the association exists. For a single stream, [`Self::stream_queue`] is cheaper.
    #[must_use]
    pub fn queue_info(&self, id: AssociationId) -> Option<AssociationQueueInfo> {
        Some(self.association(id)?.sender().queue_info())
    }

    /// Returns what one stream has in the send buffer (draft-dreibholz-tsvwg-sctpsocket-sqinfo), if
    /// the association exists.
    #[must_use]
    pub fn stream_queue(&self, id: AssociationId, stream: StreamId) -> Option<QueueInfo> {
        Some(self.association(id)?.sender().stream_queue(stream))
    }

    /// Returns whether an association has a path to this address, with the port of the UDP
    /// encapsulation or 0.
    #[must_use]
    pub fn has_path_to(&self, remote: SocketAddr) -> bool {
        !self.registry.associations_to(remote).is_empty()
    }

    /// Returns all associations, in the order of their slots.
    #[must_use]
    pub fn associations(&self) -> Vec<AssociationId> {
        self.registry.ids().collect()
    }

    /// Returns the counters over all associations, including those that have ended.
    #[must_use]
    pub fn counters(&self) -> EndpointCounters {
        self.counters
    }

    /// Returns the configuration of the endpoint.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    fn association(&self, id: AssociationId) -> Option<&Association> {
        Some(&*self.registry.entry(self.registry.slot(id)?)?.association)
    }

    /// Advances the time, which never goes back.
    fn advance_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Changes an association, which may have output afterwards.
    fn change_association<T>(
        &mut self,
        now: Duration,
        id: AssociationId,
        act: impl FnOnce(&mut Association, Duration, &mut EndpointCounters) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.association_mut(now, id)?.change(act)
    }

    /// Marks the association in `slot` as possibly having output.
    fn mark_pending(&mut self, slot: u32) {
        if let Some(entry) = self.registry.entry_mut(slot) {
            entry.mark_pending(slot, &mut self.pending);
        }
    }

    fn drop_slot(&mut self, slot: u32) {
        if let Some(mut entry) = self.registry.remove(slot) {
            self.timers.cancel(slot, &mut entry.scheduled);
            if entry.pending {
                self.pending.retain(|other| *other != slot);
            }
        }
    }

    /// Returns a configuration that equal associations share.
    fn share(&mut self, config: &AssociationConfig) -> Arc<AssociationConfig> {
        if *self.connecting != *config {
            self.connecting = Arc::new(config.clone());
        }
        self.connecting.clone()
    }

    /// Returns the parameters of our INIT or INIT ACK for a peer at this address.
    fn own_params(&mut self, config: &AssociationConfig, peer: IpAddr) -> InitParams {
        InitParams {
            tag: self.next_tag(),
            window: u32::try_from(config.receive_buffer).unwrap_or(u32::MAX),
            outbound: config.outbound_streams.max(1),
            inbound: config.max_inbound_streams.max(1),
            initial_tsn: Tsn(self.random.next_u32()),
            addresses: addresses::addresses_to_announce(&self.local_addresses, peer),
            offers: config.extensions.into(),
            authentication: self.auth_offer(config),
        }
    }

    /// Returns what we require to be authenticated, if anything (RFC 4895 §3).
    fn auth_offer(&mut self, config: &AssociationConfig) -> Option<AuthOffer> {
        let extensions = config.extensions;
        if !extensions.authentication && !extensions.dynamic_addresses {
            return None;
        }
        let mut random = [0; RANDOM_LEN];
        self.random.fill(&mut random);
        let mut chunks: Vec<ChunkType> = Vec::new();
        if extensions.dynamic_addresses {
            chunks.extend([ChunkType::ASCONF, ChunkType::ASCONF_ACK]);
        }
        chunks.extend(config.authenticated_chunks.iter().copied().map(ChunkType));
        Some(AuthOffer::new(random, &chunks))
    }

    /// Returns a tag that is not zero and not in use.
    fn next_tag(&mut self) -> VerificationTag {
        loop {
            let tag = self.random.next_u32();
            if tag != 0 && !self.registry.has_tag(tag) {
                return VerificationTag(tag);
            }
        }
    }

    fn next_seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.random.fill(&mut seed);
        seed
    }

    /// Returns the requested port, or one that is free towards all of the peer's addresses.
    fn local_port(&mut self, options: &ConnectOptions) -> Result<u16, Error> {
        let remote_port = options.remote_port;
        let is_free = |endpoint: &Self, local_port: u16| {
            let taken = |remote: &SocketAddr| {
                let peer = PeerPorts { remote: *remote, remote_port, local_port, identity: None };
                endpoint.registry.is_taken(&peer)
            };
            !options.remotes.iter().any(taken)
        };
        if options.local_port != 0 {
            let free = is_free(self, options.local_port);
            return if free { Ok(options.local_port) } else { Err(Error::Busy) };
        }
        let start = self.random.next_u32();
        let dynamic = ports_from(start, FIRST_DYNAMIC_PORT, u16::MAX);
        let others = ports_from(start, FIRST_USER_PORT, FIRST_DYNAMIC_PORT - 1);
        let mut ports = dynamic.chain(others);
        ports
            .find(|port| is_free(self, *port) && self.config.listen_port != Some(*port))
            .ok_or(Error::TooManyAssociations)
    }
}

/// Returns all ports from `first` to `last`, starting at a position given by `start`.
fn ports_from(start: u32, first: u16, last: u16) -> impl Iterator<Item = u16> {
    let count = u32::from(last - first) + 1;
    (0..count).map(move |step| first + ((start % count + step) % count) as u16)
}
