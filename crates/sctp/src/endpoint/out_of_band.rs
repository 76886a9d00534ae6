//! Associations whose INITs are exchanged out of band, as in SDP (draft-hancke-tsvwg-snap).

use core::{net::SocketAddr, time::Duration};

use super::Endpoint;
use super::registry::PeerPorts;
use crate::association::init_params::{InitParams, ParsedInit};
use crate::association::{Association, AssociationSeed, addresses};
use crate::config::{AssociationConfig, ConnectOptions};
use crate::error::Error;
use crate::identifier::AssociationId;
use crate::snap::SnapInit;

impl Endpoint {
    /// Returns an INIT to be sent to a peer out of band. No state is kept here and no timer runs;
    /// the caller keeps the INIT and passes it to [`Self::connect_out_of_band`] with the peer's. It
    /// lists no addresses, because the layer that carries the packets, such as ICE, has found them.
    #[must_use]
    pub fn init_out_of_band(&mut self, association: &AssociationConfig) -> SnapInit {
        let unspecified = core::net::Ipv4Addr::UNSPECIFIED.into();
        let mut own = self.own_params(association, unspecified);
        own.addresses.clear();
        SnapInit::from_chunk(&own.to_init(Duration::ZERO, true))
    }

    /// Opens an association from both INITs: it is established at once, without a packet, and
    /// [`crate::event::Event::Up`] reports it. The peer must do the same. `own` must come from
    /// [`Self::init_out_of_band`] with the same configuration as in `options`, and both SCTP ports
    /// must be known, as from `a=sctp-port`: `local_port` is not chosen here.
    ///
    /// Use this only if a lower layer protects against strangers, as DTLS does: there is no cookie.
    ///
    /// # Errors
    /// [`Error::BadInit`] if the peer's INIT is unusable or is our own, sent back: some peers
    /// answer with attributes that they do not know. [`Self::connect`] can be used instead.
    /// [`Error::Busy`] if the port towards this peer is in use, or `own` was used before. Otherwise
    /// the errors of [`Self::connect`].
    pub fn connect_out_of_band(
        &mut self,
        now: Duration,
        options: &ConnectOptions,
        own: &SnapInit,
        peer: &SnapInit,
    ) -> Result<AssociationId, Error> {
        self.advance_time(now);
        let unicast = |remote: &SocketAddr| addresses::is_unicast(remote.ip());
        if options.remotes.is_empty() || !options.remotes.iter().all(unicast) {
            return Err(Error::BadAddress);
        }
        let (local_port, remote_port) = (options.local_port, options.remote_port);
        if local_port == 0 || remote_port == 0 {
            return Err(Error::NoPort);
        }
        if self.registry.len() >= self.config.max_associations {
            return Err(Error::TooManyAssociations);
        }
        let is_taken = |remote: &SocketAddr| {
            let peer = PeerPorts { remote: *remote, remote_port, local_port, identity: None };
            self.registry.is_taken(&peer)
        };
        if options.remotes.iter().any(is_taken) {
            return Err(Error::Busy);
        }
        let (own, peer) = self.negotiate(options, own, peer)?;
        if self.registry.has_tag(own.tag.0) {
            return Err(Error::Busy);
        }
        let config = self.share(&options.association);
        let seed = self.next_seed();
        let (remotes, local) = (options.remotes.as_slice(), options.local);
        let (slot, id) = self.registry.insert(|id| {
            let base = AssociationSeed { id, config, local_port, remote_port, seed };
            Association::agreed_out_of_band(base, &own, &peer, remotes, local)
        });
        self.update_allowance(slot);
        self.mark_pending(slot);
        Ok(id)
    }

    /// Returns the parameters of both sides, if they are compatible.
    fn negotiate(
        &mut self,
        options: &ConnectOptions,
        own: &SnapInit,
        peer: &SnapInit,
    ) -> Result<(InitParams, InitParams), Error> {
        let source = options.remotes[0].ip();
        let config = &options.association;
        let mut read = |init: &SnapInit| {
            let read = ParsedInit::parse(init.chunk(), source, config, &mut self.counters);
            read.map_err(|_| Error::BadInit)
        };
        let (own, mut peer) = (read(own)?.params, read(peer)?);
        // The peer assumes that I-DATA has been negotiated, but it cannot be used.
        let mixed = peer.lacks_i_forward_tsn && own.offers.interleaving;
        if own.tag == peer.params.tag || mixed {
            return Err(Error::BadInit);
        }
        peer.params.addresses.clear();
        Ok((own, peer.params))
    }
}
