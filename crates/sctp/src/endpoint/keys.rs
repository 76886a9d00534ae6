//! Shared keys of AUTH (RFC 6458 §8.1.8, §8.3.3 to §8.3.5).

use bytes::Bytes;
use core::time::Duration;

use super::Endpoint;
use crate::association::authentication::KeyChange;
use crate::error::Error;
use crate::identifier::AssociationId;

impl Endpoint {
    /// Adds or replaces a key that the peer has too (`SCTP_AUTH_KEY`).
    ///
    /// # Errors
    /// If AUTH was not agreed on, or there are too many keys ([`Error::Full`]).
    pub fn set_shared_key(
        &mut self,
        now: Duration,
        id: AssociationId,
        key_id: u16,
        key: Bytes,
    ) -> Result<(), Error> {
        self.with(now, id, |association, _, _| association.change_key(KeyChange::Set(key_id, key)))
    }

    /// Chooses the shared key to sign with (`SCTP_AUTH_ACTIVE_KEY`).
    ///
    /// # Errors
    /// If AUTH was not agreed on, or there is no such key.
    pub fn activate_shared_key(
        &mut self,
        now: Duration,
        id: AssociationId,
        key_id: u16,
    ) -> Result<(), Error> {
        self.with(now, id, |association, _, _| association.change_key(KeyChange::Activate(key_id)))
    }

    /// Removes a shared key (`SCTP_AUTH_DELETE_KEY`): what is signed with it counts for nothing.
    ///
    /// # Errors
    /// If AUTH was not agreed on, there is no such key, or it is the one that is signed with
    /// ([`Error::Busy`]).
    pub fn remove_shared_key(
        &mut self,
        now: Duration,
        id: AssociationId,
        key_id: u16,
    ) -> Result<(), Error> {
        self.with(now, id, |association, _, _| association.change_key(KeyChange::Remove(key_id)))
    }
}
