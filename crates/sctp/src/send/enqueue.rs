//! Messages from the user: accepted as a whole, or refused.

use bytes::Bytes;
use core::time::Duration;

use super::{AssociationSender, BufferAllowance};
use crate::error::Error;
#[cfg(doc)]
use crate::event::Event;
use crate::message::SendInfo;
use crate::path::AssociationPaths;

impl AssociationSender {
    /// Queues a message, as a whole or not at all.
    ///
    /// # Errors
    /// [`Error::Full`] until [`Event::Writable`]; other errors are permanent.
    pub fn send(
        &mut self,
        now: Duration,
        info: &SendInfo,
        data: Bytes,
        paths: &mut AssociationPaths,
    ) -> Result<(), Error> {
        // While nothing is queued, expired messages go unnoticed.
        self.abandon_expired(now, paths);
        self.admit(now, info, data.len(), paths)?;
        let (slot, is_new) = self.queue.push(now, info, data)?;
        self.record_enqueued(slot, info.stream, is_new, now);
        self.note_event();
        self.check();
        Ok(())
    }

    fn admit(
        &mut self,
        now: Duration,
        info: &SendInfo,
        length: usize,
        paths: &mut AssociationPaths,
    ) -> Result<(), Error> {
        if length == 0 {
            return Err(Error::EmptyMessage);
        }
        if info.stream.0 >= self.terms.outbound {
            return Err(Error::NoSuchStream);
        }
        let limit = self.queue.max_message_len();
        if length > limit {
            return Err(Error::MessageTooLarge { limit });
        }
        if self.is_writable(length) {
            return Ok(());
        }
        self.make_room(now, info.reliability, length, paths);
        if self.is_writable(length) {
            return Ok(());
        }
        self.queue.wait_for_room(length);
        Err(Error::Full)
    }

    /// Requests [`Event::Writable`] once a message of `length` bytes would be accepted.
    pub(crate) fn wait_for_room(&mut self, length: usize) {
        self.queue.wait_for_room(length);
        self.notify_room();
    }

    /// Returns whether a message of this length would be accepted now.
    #[must_use]
    pub fn is_writable(&self, length: usize) -> bool {
        self.queue.is_writable(length)
    }

    /// Limits the use of the send buffer; data in it is kept.
    pub(crate) fn set_allowance(&mut self, allowance: BufferAllowance) {
        self.queue.set_allowance(allowance);
        self.notify_room();
    }

    /// Returns how much of the send buffer may currently be used.
    #[must_use]
    pub fn usable_buffer(&self) -> usize {
        self.queue.usable_buffer()
    }

    /// Returns the bytes of user data that are queued and neither non-renegably acknowledged nor
    /// abandoned.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.queue.queued()
    }
}
