//! The missing reports of a SACK for a chunk: split fast retransmit (SFR, Iyengar et al. 2006 §3.1)
//! and delayed acknowledgement (DAC, §3.3).

use super::super::outstanding::OutstandingData;
use super::ConcurrentTransfer;
use crate::serial::Tsn;

/// Returns how many missing reports the current SACK counts as for a chunk of this path.
///
/// With DAC, the receiver delays gap reports, and states how many packets a SACK covers. A SACK
/// that newly acknowledges data on several paths counts once. If it only concerns this path and its
/// lowest new TSN is above the chunk, all its packets were sent later, so each of them counts;
/// otherwise it counts once.
pub(in crate::send) fn reports_for(
    concurrent: Option<&ConcurrentTransfer>,
    outstanding: &OutstandingData,
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

/// Returns whether missing reports are counted for each path separately.
pub(in crate::send) fn splits_reports(concurrent: Option<&ConcurrentTransfer>) -> bool {
    concurrent.is_none_or(|concurrent| concurrent.choices.split_fast_retransmit)
}
