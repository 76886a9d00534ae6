//! A message is handed in: taken whole, or refused.

use bytes::Bytes;
use core::time::Duration;

use super::Sender;
use crate::error::Error;
#[cfg(doc)]
use crate::event::Event;
use crate::message::SendInfo;
use crate::path::Paths;

impl Sender {
    /// Takes a message, whole or not at all.
    ///
    /// # Errors
    /// [`Error::Full`] until [`Event::Writable`]; others for good.
    pub fn send(
        &mut self,
        now: Duration,
        info: &SendInfo,
        data: Bytes,
        paths: &mut Paths,
    ) -> Result<(), Error> {
        // While nothing waits, deadlines pass unnoticed.
        self.drop_overdue(now, paths);
        self.admit(now, info, data.len(), paths)?;
        let (slot, is_new) = self.queue.push(now, info, data)?;
        self.note_handed_in(slot, info.stream, is_new, now);
        self.note_event();
        self.check();
        Ok(())
    }

    fn admit(
        &mut self,
        now: Duration,
        info: &SendInfo,
        length: usize,
        paths: &mut Paths,
    ) -> Result<(), Error> {
        if length == 0 {
            return Err(Error::EmptyMessage);
        }
        if info.stream.0 >= self.terms.outbound {
            return Err(Error::NoSuchStream);
        }
        let limit = self.queue.most_in_a_message();
        if length > limit {
            return Err(Error::MessageTooLarge { limit });
        }
        if !self.is_writable(length) {
            self.make_room(now, info.reliability, length, paths);
        }
        if !self.is_writable(length) {
            self.queue.refuse(length);
            return Err(Error::Full);
        }
        Ok(())
    }

    /// Lets [`Event::Writable`] come once a message of so many bytes would be taken.
    pub(crate) fn wait_for_room(&mut self, length: usize) {
        self.queue.refuse(length);
        self.note_room();
    }

    /// Whether a message of this many bytes would be taken now.
    #[must_use]
    pub fn is_writable(&self, length: usize) -> bool {
        self.queue.is_writable(length)
    }

    /// How much of the send buffer may be used from now on. What is in it stays.
    pub fn set_allowance(&mut self, allowance: usize) {
        self.queue.set_allowance(allowance);
        self.note_room();
    }

    /// Bytes of user data handed in and not yet acknowledged for good, nor given up.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.queue.queued()
    }
}
