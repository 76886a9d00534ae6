//! AUTH in the packets of an association (RFC 4895 §6): keys made when both sides have introduced
//! themselves, packets signed, chunks that come without a signature left out.

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

/// What is to be done with a chunk that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It goes to its procedure.
    Admitted,
    /// It is left out.
    LeftOut,
    /// It is left out with all that follows it.
    EndsPacket,
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

/// The authentication that both sides agreed on. `before` is that of the association before a
/// restart, whose shared keys go on.
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

/// The authentication that a cookie stands for. `before` is that of the association which is there.
pub(crate) fn of_cookie(
    cookie: &Cookie,
    config: &AssociationConfig,
    before: Option<&Authentication>,
) -> Option<Box<Authentication>> {
    let agreed = cookie.own.offers.and(cookie.peer.offers);
    agree(&cookie.own, &cookie.peer, agreed, config, before)
}

/// Bytes that AUTH takes in every packet with data: none, unless the peer wants data authenticated.
pub(super) fn reserved(authentication: Option<&Authentication>, agreed: Agreed) -> usize {
    let data = if agreed.interleaving { ChunkType::I_DATA } else { ChunkType::DATA };
    authentication.filter(|auth| auth.wants(data)).map_or(0, Authentication::chunk_len)
}

impl Association {
    /// The authentication that a cookie stands for which came for this association.
    pub(crate) fn keys_of(&self, cookie: &Cookie) -> Option<Box<Authentication>> {
        of_cookie(cookie, &self.config, self.authentication.as_deref())
    }

    /// Looks at a chunk before its procedure does. `vouched` is whether an AUTH chunk came before
    /// it in its packet.
    #[inline]
    pub(super) fn admit(
        &mut self,
        chunk: &Chunk,
        vouched: &mut bool,
        path: PathId,
        counters: &mut Counters,
    ) -> Admission {
        let Some(authentication) = &self.authentication else { return Admission::Admitted };
        if let Chunk::Auth(auth) = chunk {
            let verification = authentication.verify(auth);
            *vouched = verification == Verification::Authentic;
            return self.judge(auth, verification, path, counters);
        }
        if *vouched || !authentication.expects(chunk.chunk_type()) {
            return Admission::Admitted;
        }
        counters.unauthenticated_chunks += 1;
        Admission::LeftOut
    }

    fn judge(
        &mut self,
        auth: &AuthChunk,
        verification: Verification,
        path: PathId,
        counters: &mut Counters,
    ) -> Admission {
        match verification {
            // The chunk itself has done its work.
            Verification::Authentic => return Admission::LeftOut,
            Verification::UnsupportedHmac => {
                let causes = Cause::UnsupportedHmac { hmac_id: auth.hmac_id }.into();
                self.waiting.push(Some(path), Chunk::Error(ErrorChunk { causes }), counters);
            }
            Verification::UnknownKey | Verification::Forged => {}
        }
        counters.forged_authentications += 1;
        Admission::EndsPacket
    }

    /// Puts AUTH into a packet: what follows is covered.
    pub(super) fn put_auth(&self, packet: &mut PacketWriter<'_>) {
        if let Some(authentication) = &self.authentication {
            packet.authenticate_from_here();
            packet.put(&authentication.chunk());
        }
    }

    /// Whether the peer wants a control chunk that waits to come authenticated.
    pub(super) fn control_wants_auth(&self) -> bool {
        let Some(authentication) = &self.authentication else { return false };
        let mut waiting = self.waiting.control.iter();
        waiting.any(|control| authentication.wants(control.chunk.chunk_type()))
    }

    /// Signs what follows the AUTH chunk of a packet, if it has one.
    pub(super) fn sign(&self, packet: &mut PacketWriter<'_>) {
        if let Some(authentication) = &self.authentication {
            packet.authenticate(|covered| authentication.sign(covered));
        }
    }

    /// Bytes that AUTH takes before a chunk of this type.
    pub(super) fn auth_len(&self, chunk_type: ChunkType) -> usize {
        let wanted = self.authentication.as_ref().filter(|auth| auth.wants(chunk_type));
        wanted.map_or(0, |auth| auth.chunk_len())
    }

    /// The user changes a shared key.
    pub(crate) fn change_key(&mut self, change: KeyChange) -> Result<(), Error> {
        let authentication = self.authentication.as_mut().ok_or(Error::NotSupported)?;
        match change {
            KeyChange::Set(id, key) => authentication.set_key(id, key),
            KeyChange::Activate(id) => authentication.activate_key(id),
            KeyChange::Remove(id) => authentication.remove_key(id),
        }
    }
}
