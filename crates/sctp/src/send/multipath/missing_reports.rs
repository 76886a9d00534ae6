//! What a SACK counts for a chunk that it does not report: split fast retransmission (SFR, Iyengar
//! et al. 2006 §3.1) and delayed acknowledgement (DAC, §3.3).

use super::super::outstanding::Outstanding;
use super::Concurrent;
use crate::serial::Tsn;

/// How many missing reports the SACK that was taken in is for a chunk of this path.
///
/// With DAC the receiver reports gaps late, and says for how many packets a SACK is. One that
/// newly acknowledges on several paths counts once. If it touches this path alone, all its
/// packets came later than the chunk if its lowest new TSN does, so each of them counts; else
/// it counts once.
pub(in crate::send) fn reports_for(
    concurrent: Option<&Concurrent>,
    outstanding: &Outstanding,
    number: u8,
    tsn: Tsn,
) -> u8 {
    let Some(concurrent) = concurrent else { return 1 };
    if !concurrent.choices.delayed_ack {
        return 1;
    }
    let mut touched =
        outstanding.flights().iter().enumerate().filter(|(_, flight)| flight.seen.acknowledged);
    let only = touched.next().filter(|_| touched.next().is_none());
    match only {
        Some((at, flight)) if at == usize::from(number) => {
            let mixed = flight.seen.lowest.is_some_and(|lowest| lowest.is_before(tsn));
            if mixed { 1 } else { concurrent.dac_count.max(1) }
        }
        _ => 1,
    }
}

/// Whether missing reports are counted for each path on its own.
pub(in crate::send) fn splits_reports(concurrent: Option<&Concurrent>) -> bool {
    concurrent.is_none_or(|concurrent| concurrent.choices.split_fast_retransmit)
}
