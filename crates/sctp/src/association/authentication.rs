//! AUTH in the packets of an association (RFC 4895 §6): derives keys once both sides have exchanged
//! parameters, signs packets, and discards chunks that lack a required signature.

use alloc::boxed::Box;
use bytes::Bytes;
use core::net::IpAddr;

use super::Association;
use super::init_params::InitParams;
use crate::auth::{AssociationAuthentication, AuthVerification, SharedKeys};
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::endpoint::AgreedExtensions;
use crate::endpoint::cookie::CookieContents;
use crate::error::Error;
use crate::identifier::PathId;
use crate::wire::{
    AuthChunk, Chunk, ChunkType, ErrorCause, ErrorChunk, PacketChunks, PacketWriter,
};

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

/// Returns the authentication that both sides agreed on. `before` is that of the association before
/// a restart, whose shared keys are kept.
pub(super) fn agree(
    own: &InitParams,
    peer: &InitParams,
    agreed: AgreedExtensions,
    config: &AssociationConfig,
    before: Option<&AssociationAuthentication>,
) -> Option<Box<AssociationAuthentication>> {
    let (ours, theirs) = (own.authentication.as_ref()?, peer.authentication.as_ref()?);
    if !agreed.authentication {
        return None;
    }
    let keys: SharedKeys =
        before.map_or(&config.shared_keys, AssociationAuthentication::keys).clone();
    AssociationAuthentication::new(ours.clone(), theirs, keys).map(Box::new)
}

/// Returns the authentication negotiated by the handshake of `cookie`. `before` is that of the
/// existing association, if any.
pub(crate) fn of_cookie(
    cookie: &CookieContents,
    config: &AssociationConfig,
    before: Option<&AssociationAuthentication>,
) -> Option<Box<AssociationAuthentication>> {
    let agreed = cookie.own.offers.and(cookie.peer.offers);
    agree(&cookie.own, &cookie.peer, agreed, config, before)
}

/// Returns the bytes that AUTH takes in each packet with data: none, unless the peer requires
/// authenticated data.
pub(super) fn reserved(
    authentication: Option<&AssociationAuthentication>,
    agreed: AgreedExtensions,
) -> usize {
    let data = if agreed.interleaving { ChunkType::I_DATA } else { ChunkType::DATA };
    authentication.filter(|auth| auth.wants(data)).map_or(0, AssociationAuthentication::chunk_len)
}

impl Association {
    /// Returns the authentication negotiated by the handshake of `cookie`, which arrived for this
    /// association.
    pub(crate) fn keys_of(
        &self,
        cookie: &CookieContents,
    ) -> Option<Box<AssociationAuthentication>> {
        of_cookie(cookie, &self.config, self.authentication.as_deref())
    }

    /// Decides how to proceed with a chunk before it is processed. `authenticated` is whether a
    /// valid AUTH chunk preceded it in its packet.
    #[inline]
    pub(super) fn admit(
        &mut self,
        chunk: &Chunk,
        authenticated: &mut bool,
        path: PathId,
        counters: &mut EndpointCounters,
    ) -> ChunkAdmission {
        let Some(authentication) = &self.authentication else { return ChunkAdmission::Accepted };
        if let Chunk::Auth(auth) = chunk {
            let verification = authentication.verify(auth);
            *authenticated = verification == AuthVerification::Authentic;
            return self.handle_verification(auth, verification, path, counters);
        }
        if *authenticated || !authentication.expects(chunk.chunk_type()) {
            return ChunkAdmission::Accepted;
        }
        counters.unauthenticated_chunks += 1;
        ChunkAdmission::Skipped
    }

    fn handle_verification(
        &mut self,
        auth: &AuthChunk,
        verification: AuthVerification,
        path: PathId,
        counters: &mut EndpointCounters,
    ) -> ChunkAdmission {
        match verification {
            // AUTH itself needs no further processing.
            AuthVerification::Authentic => return ChunkAdmission::Skipped,
            AuthVerification::UnsupportedHmac => {
                let causes = ErrorCause::UnsupportedHmac { hmac_id: auth.hmac_id }.into();
                self.queues.push(Some(path), Chunk::Error(ErrorChunk { causes }), counters);
            }
            AuthVerification::UnknownKey | AuthVerification::Forged => {}
        }
        counters.forged_authentications += 1;
        ChunkAdmission::PacketDiscarded
    }

    /// Writes AUTH to a packet; the signature covers what follows.
    pub(super) fn put_auth(&self, packet: &mut PacketWriter<'_>) {
        if let Some(authentication) = &self.authentication {
            packet.authenticate_from_here();
            packet.append(&authentication.chunk());
        }
    }

    /// Returns whether the peer requires authentication of a queued control chunk.
    pub(super) fn control_requires_auth(&self) -> bool {
        let Some(authentication) = &self.authentication else { return false };
        let mut waiting = self.queues.control.iter();
        waiting.any(|control| authentication.wants(control.chunk.chunk_type()))
    }

    /// Signs what follows the packet's AUTH chunk, if it has one.
    pub(super) fn sign(&self, packet: &mut PacketWriter<'_>) {
        if let Some(authentication) = &self.authentication {
            packet.authenticate(|covered| authentication.sign(covered));
        }
    }

    /// Returns the bytes that AUTH takes before a chunk of this type.
    pub(super) fn auth_len(&self, chunk_type: ChunkType) -> usize {
        let wanted = self.authentication.as_ref().filter(|auth| auth.wants(chunk_type));
        wanted.map_or(0, |auth| auth.chunk_len())
    }

    /// Returns whether to accept a packet with our tag from an unknown address: it must begin with
    /// a valid signature and contain an ASCONF that names an address of the peer (RFC 5061 §4.1.1).
    pub(crate) fn accepts_from_unknown_address(&self, chunks: PacketChunks<'_>) -> bool {
        let Some(authentication) = &self.authentication else { return false };
        let mut chunks = chunks.take(MAX_INSPECTED);
        let Some(Chunk::Auth(auth)) = chunks.next() else { return false };
        let known =
            |address: IpAddr| address.is_unspecified() || self.paths.by_address(address).is_some();
        authentication.verify(&auth) == AuthVerification::Authentic
            && chunks.any(|chunk| matches!(chunk, Chunk::Asconf(it) if known(it.address)))
    }

    /// Changes a shared key at the user's request.
    pub(crate) fn change_key(&mut self, change: KeyChange) -> Result<(), Error> {
        let authentication = self.authentication.as_mut().ok_or(Error::NotSupported)?;
        match change {
            KeyChange::Set(id, key) => authentication.set_key(id, key),
            KeyChange::Activate(id) => authentication.activate_key(id),
            KeyChange::Remove(id) => authentication.remove_key(id),
        }
    }
}
