//! AUTH in the packets of an association (RFC 4895 §6): derives keys once both sides have exchanged
//! parameters, signs packets, and discards chunks that lack a required signature.

use alloc::boxed::Box;
use bytes::Bytes;

use super::Association;
use super::init_params::InitParams;
use crate::auth::{Authentication, SharedKeys, Verification};
use crate::config::AssociationConfig;
use crate::counters::Counters;
use crate::endpoint::Agreed;
use crate::endpoint::cookie::Cookie;
use crate::error::Error;
use crate::identifier::PathId;
use crate::wire::{AuthChunk, Cause, Chunk, ChunkType, ErrorChunk, PacketWriter};

/// How to proceed with a received chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
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
    agreed: Agreed,
    config: &AssociationConfig,
    before: Option<&Authentication>,
) -> Option<Box<Authentication>> {
    let (ours, theirs) = (own.authentication.as_ref()?, peer.authentication.as_ref()?);
    if !agreed.authentication {
        return None;
    }
    let keys: SharedKeys = before.map_or(&config.shared_keys, Authentication::keys).clone();
    Authentication::new(ours.clone(), theirs, keys).map(Box::new)
}

/// Returns the authentication negotiated by the handshake of `cookie`. `before` is that of the
/// existing association, if any.
pub(crate) fn of_cookie(
    cookie: &Cookie,
    config: &AssociationConfig,
    before: Option<&Authentication>,
) -> Option<Box<Authentication>> {
    let agreed = cookie.own.offers.and(cookie.peer.offers);
    agree(&cookie.own, &cookie.peer, agreed, config, before)
}

/// Returns the bytes that AUTH takes in each packet with data: none, unless the peer requires
/// authenticated data.
pub(super) fn reserved(authentication: Option<&Authentication>, agreed: Agreed) -> usize {
    let data = if agreed.interleaving { ChunkType::I_DATA } else { ChunkType::DATA };
    authentication.filter(|auth| auth.wants(data)).map_or(0, Authentication::chunk_len)
}

impl Association {
    /// Returns the authentication negotiated by the handshake of `cookie`, which arrived for this
    /// association.
    pub(crate) fn keys_of(&self, cookie: &Cookie) -> Option<Box<Authentication>> {
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
        counters: &mut Counters,
    ) -> Admission {
        let Some(authentication) = &self.authentication else { return Admission::Accepted };
        if let Chunk::Auth(auth) = chunk {
            let verification = authentication.verify(auth);
            *authenticated = verification == Verification::Authentic;
            return self.handle_verification(auth, verification, path, counters);
        }
        if *authenticated || !authentication.expects(chunk.chunk_type()) {
            return Admission::Accepted;
        }
        counters.unauthenticated_chunks += 1;
        Admission::Skipped
    }

    fn handle_verification(
        &mut self,
        auth: &AuthChunk,
        verification: Verification,
        path: PathId,
        counters: &mut Counters,
    ) -> Admission {
        match verification {
            // AUTH itself needs no further processing.
            Verification::Authentic => return Admission::Skipped,
            Verification::UnsupportedHmac => {
                let causes = Cause::UnsupportedHmac { hmac_id: auth.hmac_id }.into();
                self.queues.push(Some(path), Chunk::Error(ErrorChunk { causes }), counters);
            }
            Verification::UnknownKey | Verification::Forged => {}
        }
        counters.forged_authentications += 1;
        Admission::PacketDiscarded
    }

    /// Writes AUTH to a packet; the signature covers what follows.
    pub(super) fn put_auth(&self, packet: &mut PacketWriter<'_>) {
        if let Some(authentication) = &self.authentication {
            packet.authenticate_from_here();
            packet.put(&authentication.chunk());
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
