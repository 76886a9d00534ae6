//! AUTH in the packets of an association (RFC 4895 §6): derives keys once both sides have exchanged
//! parameters, signs packets, and discards chunks that lack a required signature.

use alloc::boxed::Box;
use bytes::Bytes;
use core::net::IpAddr;

use super::control::ChunkQueues;
use super::init_params::InitParams;
use crate::auth::{AssociationAuthentication, AuthVerification, SharedKeys};
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::endpoint::AgreedExtensions;
use crate::endpoint::cookie::CookieContents;
use crate::error::Error;
use crate::path::AssociationPaths;
use crate::wire::{AuthChunk, Chunk, ChunkType, PacketChunks, PacketWriter};

/// The maximum number of chunks of a packet from an unknown address that are looked at.
const MAX_INSPECTED: usize = 8;

/// How to proceed with a received chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkAdmission {
    /// Process the chunk.
    Accepted,
    /// Skip the chunk.
    Skipped,
    /// Discard the chunk and the rest of the packet.
    PacketDiscarded,
    /// The same, and report this identifier of an HMAC that was not offered.
    UnsupportedHmac(u16),
}

/// A change of the keys that both endpoints share (RFC 6458 §8.1.8, §8.3.3 to §8.3.5).
#[derive(Debug)]
pub(crate) enum KeyChange {
    /// `SCTP_AUTH_KEY`.
    Set(u16, Bytes),
    /// `SCTP_AUTH_ACTIVE_KEY`.
    Activate(u16),
    /// `SCTP_AUTH_DELETE_KEY`.
    Remove(u16),
}

/// The authentication of an association's packets; the default is none.
#[derive(Debug, Default)]
pub(crate) struct PacketAuthentication {
    negotiated: Option<Box<AssociationAuthentication>>,
}

impl PacketAuthentication {
    /// Agrees on the authentication by the parameters of both sides. The shared keys of an earlier
    /// agreement, before a restart, are kept.
    pub(super) fn agree(
        &mut self,
        own: &InitParams,
        peer: &InitParams,
        agreed: AgreedExtensions,
        config: &AssociationConfig,
    ) {
        self.negotiated = self.negotiate(own, peer, agreed, config);
    }

    fn negotiate(
        &self,
        own: &InitParams,
        peer: &InitParams,
        agreed: AgreedExtensions,
        config: &AssociationConfig,
    ) -> Option<Box<AssociationAuthentication>> {
        let (ours, theirs) = (own.authentication.as_ref()?, peer.authentication.as_ref()?);
        if !agreed.authentication {
            return None;
        }
        let before = self.negotiated.as_deref();
        let keys: SharedKeys =
            before.map_or(&config.shared_keys, AssociationAuthentication::keys).clone();
        AssociationAuthentication::new(ours.clone(), theirs, keys).map(Box::new)
    }

    /// Returns the authentication negotiated by the handshake of `cookie`, with the shared keys of
    /// this one, if any.
    pub(crate) fn of_cookie(
        &self,
        cookie: &CookieContents,
        config: &AssociationConfig,
    ) -> Option<Box<AssociationAuthentication>> {
        let agreed = cookie.own.offers.and(cookie.peer.offers);
        self.negotiate(&cookie.own, &cookie.peer, agreed, config)
    }

    /// Returns the bytes that AUTH takes in each packet with data: none, unless the peer requires
    /// authenticated data.
    pub(super) fn reserved(&self, agreed: AgreedExtensions) -> usize {
        self.len_before(if agreed.interleaving { ChunkType::I_DATA } else { ChunkType::DATA })
    }

    /// Decides how to proceed with a chunk before it is processed. `authenticated` is whether a
    /// valid AUTH chunk preceded it in its packet.
    #[inline]
    pub(super) fn admit(
        &self,
        chunk: &Chunk,
        authenticated: &mut bool,
        counters: &mut EndpointCounters,
    ) -> ChunkAdmission {
        let Some(authentication) = &self.negotiated else { return ChunkAdmission::Accepted };
        if let Chunk::Auth(auth) = chunk {
            let verification = authentication.verify(auth);
            *authenticated = verification == AuthVerification::Authentic;
            return admission(auth, verification, counters);
        }
        if *authenticated || !authentication.expects(chunk.chunk_type()) {
            return ChunkAdmission::Accepted;
        }
        counters.unauthenticated_chunks += 1;
        ChunkAdmission::Skipped
    }

    /// Returns whether to accept a packet with our tag from an unknown address: it must begin with
    /// a valid signature and contain an ASCONF that names an address of the peer (RFC 5061 §4.1.1).
    pub(super) fn admits_from_unknown_address(
        &self,
        chunks: PacketChunks<'_>,
        paths: &AssociationPaths,
    ) -> bool {
        let Some(authentication) = &self.negotiated else { return false };
        let mut chunks = chunks.take(MAX_INSPECTED);
        let Some(Chunk::Auth(auth)) = chunks.next() else { return false };
        let known =
            |address: IpAddr| address.is_unspecified() || paths.by_address(address).is_some();
        authentication.verify(&auth) == AuthVerification::Authentic
            && chunks.any(|chunk| matches!(chunk, Chunk::Asconf(it) if known(it.address)))
    }

    /// Returns whether packets may have to be signed.
    pub(super) const fn is_negotiated(&self) -> bool {
        self.negotiated.is_some()
    }

    /// Returns whether the peer requires authentication of a chunk of this type.
    pub(super) fn wants(&self, chunk_type: ChunkType) -> bool {
        self.negotiated.as_ref().is_some_and(|authentication| authentication.wants(chunk_type))
    }

    /// Returns whether the peer requires authentication of a queued control chunk.
    pub(super) fn wants_any(&self, queues: &ChunkQueues) -> bool {
        let Some(authentication) = &self.negotiated else { return false };
        queues.types().any(|kind| authentication.wants(kind))
    }

    /// Returns the bytes that AUTH takes before a chunk of this type.
    pub(super) fn len_before(&self, chunk_type: ChunkType) -> usize {
        let wanted = self.negotiated.as_ref().filter(|auth| auth.wants(chunk_type));
        wanted.map_or(0, |auth| auth.chunk_len())
    }

    /// Writes AUTH to a packet; the signature covers what follows.
    pub(super) fn begin(&self, packet: &mut PacketWriter<'_>) {
        if let Some(authentication) = &self.negotiated {
            packet.authenticate_from_here();
            packet.append(&authentication.chunk());
        }
    }

    /// Signs what follows the packet's AUTH chunk, if it has one.
    #[inline]
    pub(super) fn sign(&self, packet: &mut PacketWriter<'_>) {
        if let Some(authentication) = &self.negotiated {
            packet.authenticate(|covered| authentication.sign(covered));
        }
    }

    /// Changes a shared key at the user's request.
    pub(super) fn change_key(&mut self, change: KeyChange) -> Result<(), Error> {
        let authentication = self.negotiated.as_mut().ok_or(Error::NotSupported)?;
        match change {
            KeyChange::Set(id, key) => authentication.set_key(id, key),
            KeyChange::Activate(id) => authentication.activate_key(id),
            KeyChange::Remove(id) => authentication.remove_key(id),
        }
    }
}

/// Decides how to proceed with a packet after its AUTH chunk.
fn admission(
    auth: &AuthChunk,
    verification: AuthVerification,
    counters: &mut EndpointCounters,
) -> ChunkAdmission {
    if verification == AuthVerification::Authentic {
        // AUTH itself needs no further processing.
        return ChunkAdmission::Skipped;
    }
    counters.forged_authentications += 1;
    match verification {
        AuthVerification::UnsupportedHmac => ChunkAdmission::UnsupportedHmac(auth.hmac_id),
        _ => ChunkAdmission::PacketDiscarded,
    }
}
