//! The graceful end: SHUTDOWN, SHUTDOWN ACK, SHUTDOWN COMPLETE (RFC 9260 §9.2).

use core::time::Duration;

use super::state::{Farewell, State};
use super::{Association, Ending};
use crate::counters::Counters;
use crate::error::Error;
use crate::event::{Event, LossReason};
use crate::identifier::PathId;
use crate::serial::Tsn;
use crate::wire::Chunk;

impl Association {
    /// The user wants to end; what was handed in still goes.
    pub(crate) fn shutdown(&mut self, now: Duration, counters: &mut Counters) -> Result<(), Error> {
        match &mut self.state {
            // Said again.
            State::CookieWait(wait) if wait.shutdown => {}
            State::CookieWait(_) | State::Held(_) => self.end(Ending::Quiet, Event::Closed),
            State::CookieEchoed(echoed) => echoed.shutdown = true,
            State::Established => {
                self.state = State::ShutdownPending;
                self.linger(now);
                self.advance_shutdown(now, counters);
            }
            // The peer was first, or the user says it again: it is under way.
            State::ShutdownPending
            | State::ShutdownSent(_)
            | State::ShutdownReceived
            | State::ShutdownAckSent(_) => {}
            State::Closed => return Err(Error::WrongState),
        }
        Ok(())
    }

    /// Takes the step that waits for all data to be acknowledged.
    pub(crate) fn advance_shutdown(&mut self, now: Duration, counters: &mut Counters) {
        if !self.sender.is_dry() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                let (path, farewell) = self.farewell(now);
                self.state = State::ShutdownSent(farewell);
                self.receiver.acknowledge_every_packet();
                self.send_shutdown(path, counters);
            }
            State::ShutdownReceived => self.acknowledge_shutdown(now, counters),
            _ => {}
        }
    }

    /// SHUTDOWN, with what it acknowledges.
    pub(crate) fn handle_shutdown(
        &mut self,
        now: Duration,
        cumulative_tsn: Tsn,
        counters: &mut Counters,
    ) {
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.linger(now);
                self.events.push(Event::PeerShutdown);
            }
            State::ShutdownReceived => {}
            // Both at once: no data is left on this side.
            State::ShutdownSent(_) => return self.acknowledge_shutdown(now, counters),
            State::CookieWait(_)
            | State::Held(_)
            | State::CookieEchoed(_)
            | State::ShutdownAckSent(_)
            | State::Closed => {
                counters.unexpected_chunks += 1;
                return;
            }
        }
        self.handle_cumulative_tsn(now, cumulative_tsn, counters);
        self.advance_shutdown(now, counters);
    }

    /// SHUTDOWN ACK: the peer has nothing left either.
    pub(crate) fn handle_shutdown_ack(&mut self, path: PathId, counters: &mut Counters) {
        match self.state {
            State::ShutdownSent(_) | State::ShutdownAckSent(_) => {
                let complete = Chunk::ShutdownComplete { reflected: false };
                self.waiting.push_alone(path, self.peer_tag, complete);
                self.end(Ending::Last, Event::Closed);
            }
            // The peer is at the end of an association that is gone here (RFC 9260 §8.5.1 E).
            State::CookieWait(_) | State::CookieEchoed(_) => {
                let complete = Chunk::ShutdownComplete { reflected: true };
                self.waiting.push_alone(path, self.local_tag, complete);
            }
            _ => counters.unexpected_chunks += 1,
        }
    }

    /// SHUTDOWN COMPLETE, whose tag was found to be right.
    pub(crate) fn handle_shutdown_complete(&mut self, counters: &mut Counters) {
        if matches!(self.state, State::ShutdownAckSent(_)) {
            self.end(Ending::Quiet, Event::Closed);
        } else {
            counters.unexpected_chunks += 1;
        }
    }

    /// Data came after the SHUTDOWN: it is acknowledged with another one (RFC 9260 §9.2).
    pub(crate) fn repeat_shutdown(&mut self, now: Duration, path: PathId, counters: &mut Counters) {
        if let State::ShutdownSent(farewell) = &mut self.state {
            farewell.t2.due = now.saturating_add(farewell.t2.timeout);
            self.send_shutdown(path, counters);
        }
    }

    /// T2-shutdown or its guard ran out.
    pub(crate) fn handle_t2(&mut self, now: Duration, counters: &mut Counters) {
        let (State::ShutdownSent(farewell) | State::ShutdownAckSent(farewell)) = &mut self.state
        else {
            return;
        };
        if now >= farewell.guard {
            return self.abort_for(LossReason::PeerUnreachable);
        }
        let last = farewell.t2.path;
        self.paths.on_error(last, &self.config);
        if self.paths.is_peer_unreachable(&self.config) {
            return self.end(Ending::Quiet, Event::Lost(LossReason::PeerUnreachable));
        }
        let path = self.paths.for_retransmission(last);
        farewell.t2.again(now, path, self.config.rto_max);
        counters.retransmissions += 1;
        if matches!(self.state, State::ShutdownSent(_)) {
            self.send_shutdown(path, counters);
        } else {
            self.waiting.push(Some(path), Chunk::ShutdownAck, counters);
        }
    }

    fn send_shutdown(&mut self, path: PathId, counters: &mut Counters) {
        // Its number is put in when it is written; one that waits already will do.
        let waits = self.waiting.control.iter().any(|c| matches!(c.chunk, Chunk::Shutdown { .. }));
        if !waits {
            let cumulative_tsn = self.receiver.cumulative_tsn();
            self.waiting.push(Some(path), Chunk::Shutdown { cumulative_tsn }, counters);
        }
    }

    fn acknowledge_shutdown(&mut self, now: Duration, counters: &mut Counters) {
        let (path, farewell) = self.farewell(now);
        self.state = State::ShutdownAckSent(farewell);
        self.waiting.control.retain(|control| !matches!(control.chunk, Chunk::Shutdown { .. }));
        self.waiting.push(Some(path), Chunk::ShutdownAck, counters);
    }

    fn farewell(&mut self, now: Duration) -> (PathId, Farewell) {
        // No more heartbeats: T2 alone asks whether the peer is still there (§8.3).
        self.paths.stop();
        let path = self.paths.for_data(None).unwrap_or(self.paths.primary());
        let timeout = self.timeout_of(path);
        (path, Farewell::new(now, timeout, path, self.config.rto_max))
    }
}
