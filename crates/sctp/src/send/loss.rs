//! Loss detection: by missing reports, or by time.
//!
//! | file | method | source |
//! | --- | --- | --- |
//! | `classic` | three missing reports | RFC 9260 §7.2.4 |
//! | `rack` | something sent later has arrived, and enough time has passed | RFC 8985 §6 |
//! | `tail_loss_probe` | a probe at the tail, where nothing later is sent | RFC 8985 §7 |
//! | `doubt` | a silent path while there is another one | beyond RFC 7829 §3.2 |
//! | `spurious` | spurious retransmissions | RFC 9260 §7.2.4, RFC 3708 |

mod classic;
mod doubt;
mod rack;
mod spurious;
mod tail_loss_probe;

pub(super) use rack::RackState;
pub(super) use tail_loss_probe::TailLossProbe;

use core::time::Duration;

use super::AssociationSender;
use crate::config::LossDetection;
use crate::path::AssociationPaths;

impl AssociationSender {
    /// Detects losses after a SACK.
    pub(super) fn detect_losses(&mut self, now: Duration, paths: &mut AssociationPaths) {
        match self.rules.detection {
            LossDetection::Classic => self.count_missing(now, paths),
            LossDetection::Rack => {
                for number in self.outstanding.numbers() {
                    if self.outstanding.flight(number).seen.acknowledged {
                        self.detect_by_time(number, now, paths);
                    }
                }
            }
        }
        for flight in self.outstanding.flights_mut() {
            let Some(highest) = flight.seen.highest else { continue };
            if flight.highest_acknowledged.is_none_or(|known| highest.is_after(known)) {
                flight.highest_acknowledged = Some(highest);
            }
        }
    }

    /// Handles the timers of loss detection.
    pub(super) fn handle_loss_timers(
        &mut self,
        number: u8,
        now: Duration,
        paths: &mut AssociationPaths,
    ) {
        let flight = self.outstanding.flight(number);
        if flight.rack.timer.is_some_and(|at| at <= now) {
            self.detect_by_time(number, now, paths);
            self.restart_t3(number, now, paths);
        }
        let flight = self.outstanding.flight(number);
        if flight.probe.timer.is_some_and(|at| at <= now) {
            self.send_probe(number, now, paths);
        }
        if self.outstanding.flight(number).doubt.is_some_and(|at| at <= now) {
            self.doubt(number, now, paths);
        }
    }
}
