//! One endpoint: many associations behind one driver.

mod status;

use alloc::vec::Vec;
use bytes::Bytes;
use core::{net::IpAddr, time::Duration};

use crate::config::{ConnectOptions, EndpointConfig};
use crate::counters::Counters;
use crate::error::Error;
use crate::identifier::{AssociationId, PathId, StreamId};
use crate::io::{Input, Output};
use crate::message::{Message, SendInfo};

pub use status::{Agreed, AssociationState, PathState, PathStatus, Status};

/// One SCTP endpoint. [`crate::io`] says how it is driven.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    seed: [u8; 32],
    now: Duration,
    counters: Counters,
}

impl Endpoint {
    /// An endpoint without associations. `seed` must be secret and differ from run to run on a
    /// real network: tags, TSNs and the keys of the cookies come from it.
    #[must_use]
    pub fn new(config: EndpointConfig, seed: [u8; 32], now: Duration) -> Self {
        Self { config, seed, now, counters: Counters::default() }
    }

    /// Opens an association (RFC 9260 §11.1.2, ASSOCIATE). [`crate::event::Event::Up`] or
    /// [`crate::event::Event::Lost`] tells how it went.
    ///
    /// # Errors
    /// If no address of the peer is a unicast address or there are too many associations.
    pub fn connect(
        &mut self,
        now: Duration,
        options: &ConnectOptions,
    ) -> Result<AssociationId, Error> {
        self.see(now);
        if options.remotes.is_empty() {
            Err(Error::BadAddress)
        } else {
            Err(Error::TooManyAssociations)
        }
    }

    /// Goes on with an association that is held at its INIT ACK
    /// ([`ConnectOptions::hold_at_init_ack`]), now or as soon as the INIT ACK comes.
    ///
    /// # Errors
    /// If there is no such association.
    pub fn proceed(&mut self, now: Duration, id: AssociationId) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Hands in a message (RFC 9260 §11.1.5, SEND). It is taken whole or not at all.
    ///
    /// # Errors
    /// [`Error::Full`] until [`crate::event::Event::Writable`]; others for good.
    pub fn send(
        &mut self,
        now: Duration,
        id: AssociationId,
        _info: &SendInfo,
        _data: Bytes,
    ) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Takes a message, or a part of one, that came in (RFC 9260 §11.1.6, RECEIVE). What came in
    /// before an association ended can still be received afterwards.
    pub fn receive(&mut self, now: Duration, _id: AssociationId) -> Option<Message> {
        self.see(now);
        None
    }

    /// Ends an association once all data has arrived (RFC 9260 §9.2).
    ///
    /// # Errors
    /// If there is no such association, or it is not up.
    pub fn shutdown(&mut self, now: Duration, id: AssociationId) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Ends an association at once and tells the peer (RFC 9260 §9.1). One that waits for its
    /// INIT ACK, or is held at it, ends without a packet: the peer holds nothing.
    ///
    /// # Errors
    /// If there is no such association.
    pub fn abort(&mut self, now: Duration, id: AssociationId, _reason: Bytes) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Drops an association without a word to the peer, and what it still had to receive.
    pub fn forget(&mut self, now: Duration, _id: AssociationId) {
        self.see(now);
    }

    /// Asks for a reset of streams (RFC 6525 §5.1.2): our outgoing ones, or the peer's. All of
    /// them if `streams` is empty.
    ///
    /// # Errors
    /// If the peer cannot do it, or another request is under way.
    pub fn reset_streams(
        &mut self,
        now: Duration,
        id: AssociationId,
        _outgoing: bool,
        _streams: &[StreamId],
    ) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Asks for more streams (RFC 6525 §5.1.5, §5.1.6).
    ///
    /// # Errors
    /// If the peer cannot do it, or another request is under way.
    pub fn add_streams(
        &mut self,
        now: Duration,
        id: AssociationId,
        _outbound: u16,
        _inbound: u16,
    ) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Asks for a reset of both sides' TSNs and all streams (RFC 6525 §5.1.4).
    ///
    /// # Errors
    /// If the peer cannot do it, or another request is under way.
    pub fn reset_association(&mut self, now: Duration, id: AssociationId) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Tells the peer of another address of this host (RFC 5061 §4.2.1).
    ///
    /// # Errors
    /// If the peer cannot do it, or another request is under way.
    pub fn add_address(
        &mut self,
        now: Duration,
        id: AssociationId,
        _address: IpAddr,
    ) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Takes back an address of this host (RFC 5061 §4.2.2).
    ///
    /// # Errors
    /// If the peer cannot do it, or another request is under way.
    pub fn remove_address(
        &mut self,
        now: Duration,
        id: AssociationId,
        _address: IpAddr,
    ) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// Makes a path the primary one (`SCTP_PRIMARY_ADDR`).
    ///
    /// # Errors
    /// If there is no such path.
    pub fn set_primary(
        &mut self,
        now: Duration,
        id: AssociationId,
        _path: PathId,
    ) -> Result<(), Error> {
        self.refuse(now, id)
    }

    /// An association at this moment (`SCTP_STATUS`), while there is one.
    #[must_use]
    pub fn status(&self, _id: AssociationId) -> Option<Status> {
        None
    }

    /// All associations, in the order of their numbers.
    #[must_use]
    pub fn associations(&self) -> Vec<AssociationId> {
        Vec::new()
    }

    /// What was counted so far, over all associations, those that ended included.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes in what happened outside. Drain [`Self::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.see(now);
        if let Input::Packets(_) = input {
            self.counters.packets_in += 1;
        }
    }

    /// What is to be done next; ask again until it says [`Output::Timeout`].
    pub fn poll_output(&mut self, now: Duration) -> Output {
        self.see(now);
        Output::Timeout(None)
    }

    /// What the endpoint was made of.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    fn see(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    fn refuse(&mut self, now: Duration, _id: AssociationId) -> Result<(), Error> {
        self.see(now);
        self.seed.rotate_left(1);
        Err(Error::NoAssociation)
    }
}
