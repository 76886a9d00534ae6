//! One packet, chunk by chunk: each goes to the file of its procedure.

use core::time::Duration;

use super::authentication::Admission;
use super::state::State;
use super::transfer::cause_of;
use super::{Arrival, Association};
use crate::counters::Counters;
use crate::identifier::PathId;
use crate::io::Ecn;
use crate::serial::Tsn;
use crate::wire::{Chunk, Chunks};

/// A packet that was found to be for the association: where it came from, how, and with which tag.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    now: Duration,
    arrival: Arrival,
    path: PathId,
}

impl Association {
    /// A packet with our tag, or what follows a COOKIE ECHO in one. `vouched` is whether an AUTH
    /// chunk in front of that has vouched for it.
    pub(crate) fn handle_packet(
        &mut self,
        now: Duration,
        arrival: &Arrival,
        chunks: Chunks<'_>,
        mut vouched: bool,
        counters: &mut Counters,
    ) {
        let path = self.path_of(arrival);
        let incoming = Incoming { now, arrival: *arrival, path };
        let size = chunks.remaining();
        let mut first_tsn: Option<Tsn> = None;
        for chunk in chunks {
            match self.admit(&chunk, &mut vouched, path, counters) {
                Admission::Admitted => {}
                Admission::LeftOut => continue,
                Admission::EndsPacket => break,
            }
            if let Chunk::Data(data) = &chunk {
                first_tsn.get_or_insert(data.tsn);
            }
            if !self.handle_chunk(&incoming, chunk, counters) {
                break;
            }
        }
        self.end_of_packet(&incoming, first_tsn, size, counters);
    }

    /// The only place that knows every type of chunk. Says whether to go on with the packet.
    fn handle_chunk(&mut self, at: &Incoming, chunk: Chunk, counters: &mut Counters) -> bool {
        let &Incoming { now, ref arrival, path } = at;
        if self.state.is_opening() && !may_come_early(&chunk) {
            counters.unexpected_chunks += 1;
            return true;
        }
        match chunk {
            Chunk::Data(data) => return self.handle_data(path, data, counters),
            // Not agreed on, and of a type that is skipped without a report (RFC 9260 §3.2).
            Chunk::Sack(sack) if sack.is_nr && !self.agreed.nr_sack => {
                counters.unexpected_chunks += 1;
            }
            Chunk::Sack(sack) => self.handle_sack(now, &sack, path, counters),
            Chunk::InitAck(init) => self.handle_init_ack(now, arrival, &init, counters),
            Chunk::CookieAck => self.handle_cookie_ack(now, counters),
            Chunk::Heartbeat(heartbeat) => self.handle_heartbeat(path, heartbeat, counters),
            Chunk::HeartbeatAck(heartbeat) => {
                self.handle_heartbeat_ack(now, arrival, &heartbeat, counters);
            }
            Chunk::Shutdown { cumulative_tsn } => {
                self.handle_shutdown(now, cumulative_tsn, counters);
            }
            Chunk::ShutdownAck => self.handle_shutdown_ack(path, counters),
            Chunk::ShutdownComplete { reflected: false } => self.handle_shutdown_complete(counters),
            Chunk::Abort(_) if self.is_leaving(arrival.local) => {
                counters.unexpected_chunks += 1;
                return false;
            }
            Chunk::Abort(abort) if !abort.reflected => {
                self.handle_abort(&abort);
                return false;
            }
            Chunk::Error(error) => {
                counters.errors_in += 1;
                self.handle_error(now, &error);
            }
            Chunk::ForwardTsn(_) | Chunk::IForwardTsn(_) => {
                return self.handle_skip(path, &chunk, counters);
            }
            Chunk::Ecne { lowest_tsn } if self.agreed.ecn => {
                self.handle_ecne(now, path, lowest_tsn, counters);
            }
            Chunk::Cwr { lowest_tsn } if self.agreed.ecn => self.paths.on_cwr(lowest_tsn),
            Chunk::Reconfig(chunk) if self.agreed.reconfiguration => {
                counters.reconfigurations_in += 1;
                self.handle_reconfig(now, path, &chunk, counters);
            }
            Chunk::Asconf(asconf) => self.handle_asconf(arrival, &asconf, counters),
            Chunk::AsconfAck(ack) => self.handle_asconf_ack(now, &ack, counters),
            Chunk::Pad { .. } => {}
            Chunk::Unknown(unknown) => return self.handle_unknown(path, &unknown, counters),
            Chunk::Malformed { .. } => {
                counters.malformed_chunks += 1;
                return false;
            }
            // Those with rules of their own about tags, which this packet does not fulfil
            // (RFC 9260 §8.5.1), a second COOKIE ECHO, and what was not agreed on.
            Chunk::Init(_)
            | Chunk::CookieEcho(_)
            | Chunk::Abort(_)
            | Chunk::ShutdownComplete { .. }
            | Chunk::Ecne { .. }
            | Chunk::Cwr { .. }
            | Chunk::Auth(_)
            | Chunk::Reconfig(_) => counters.unexpected_chunks += 1,
        }
        true
    }

    /// FORWARD-TSN or I-FORWARD-TSN. Says whether to go on with the packet.
    fn handle_skip(&mut self, path: PathId, chunk: &Chunk, counters: &mut Counters) -> bool {
        if !self.agreed.partial_reliability {
            counters.unexpected_chunks += 1;
            self.report_chunk(path, chunk, counters);
            return true;
        }
        let outcome = match chunk {
            Chunk::ForwardTsn(forward) => self.receiver.handle_forward_tsn(forward, counters),
            Chunk::IForwardTsn(forward) => self.receiver.handle_i_forward_tsn(forward, counters),
            _ => Ok(()),
        };
        if let Err(violation) = outcome {
            self.abort_for_violation(cause_of(violation));
        }
        outcome.is_ok()
    }

    /// What one packet brought has been taken in.
    fn end_of_packet(
        &mut self,
        at: &Incoming,
        first_tsn: Option<Tsn>,
        size: usize,
        counters: &mut Counters,
    ) {
        if matches!(self.state, State::Closed) {
            return;
        }
        if let Some(tsn) = first_tsn
            && self.state.takes_data()
        {
            if self.agreed.ecn
                && at.arrival.ecn == Ecn::CongestionExperienced
                && let Some(path) = self.paths.get_mut(at.path)
            {
                path.on_marked(tsn);
            }
            self.repeat_shutdown(at.now, at.path, counters);
        }
        self.receiver.end_of_packet(at.now, at.path, size);
        self.advance_reconfiguration(at.now, counters);
        self.advance_shutdown(at.now, counters);
        self.collect_events();
        self.collect_path_changes(at.now);
    }

    /// ECNE: the path on which the marked packet went is to slow down, and the peer to be told that
    /// it did (RFC 9260 appendix A).
    fn handle_ecne(&mut self, now: Duration, path: PathId, tsn: Tsn, counters: &mut Counters) {
        let answer = self.sender.handle_ecne(now, tsn, path, &mut self.paths);
        if let Some(lowest_tsn) = answer {
            // One answer is enough for all echoes in a row.
            self.waiting.control.retain(|waits| !matches!(waits.chunk, Chunk::Cwr { .. }));
            self.waiting.push(Some(path), Chunk::Cwr { lowest_tsn }, counters);
        }
    }

    /// What the two halves have to tell the user.
    pub(super) fn collect_events(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            self.notify(event);
        }
        while let Some(event) = self.receiver.poll_event() {
            self.notify(event);
        }
        while let Some(event) = self.reconfiguration.poll_event() {
            self.notify(event);
        }
    }
}

/// Whether a chunk means something before the association is up. What is about the transfer does
/// not: nothing may leave that answers it, so no timer may run for that either (RFC 9260 §5.1 C).
fn may_come_early(chunk: &Chunk) -> bool {
    matches!(
        chunk,
        Chunk::Init(_)
            | Chunk::InitAck(_)
            | Chunk::CookieEcho(_)
            | Chunk::CookieAck
            | Chunk::Heartbeat(_)
            | Chunk::HeartbeatAck(_)
            | Chunk::Abort(_)
            | Chunk::Error(_)
            | Chunk::ShutdownAck
            | Chunk::ShutdownComplete { .. }
            | Chunk::Pad { .. }
            | Chunk::Unknown(_)
            | Chunk::Malformed { .. }
    )
}
