//! The path for lost chunks (RTX policies, Iyengar et al. 2006 §4).

use core::cmp::Reverse;

use super::super::retransmission::same_or_better;
use super::ConcurrentTransfer;
use super::automatic::time_for;
use crate::config::RtxPolicy;
use crate::congestion::nanoseconds;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, Path, PathState};

/// Returns the path for chunks lost on `from`, which still works as far as is known.
pub(in crate::send) fn path_for_lost(
    concurrent: Option<&ConcurrentTransfer>,
    from: PathId,
    paths: &AssociationPaths,
) -> PathId {
    concurrent
        .and_then(|concurrent| best(concurrent.choices.rtx_policy, paths.iter(), Some(from)))
        .unwrap_or_else(|| same_or_better(from, paths))
}

/// Returns the path for chunks in flight on `from`, which did not respond: another active one (RFC
/// 9260 §6.4.1). By arrival, it is the one on which all of them would arrive first: on a slow path,
/// what a fast one had in flight would fill the buffer of the receiver for seconds.
pub(in crate::send) fn path_instead_of(
    concurrent: Option<&ConcurrentTransfer>,
    from: PathId,
    paths: &AssociationPaths,
) -> PathId {
    let others = || paths.iter().filter(|path| path.id != from);
    concurrent
        .and_then(|concurrent| match concurrent.choices.rtx_policy {
            RtxPolicy::EarliestArrival => {
                let bytes = paths.get(from).map_or(0, Path::outstanding);
                soonest(others(), bytes).map(|path| path.id)
            }
            policy => best(policy, others(), None),
        })
        .unwrap_or_else(|| paths.for_retransmission(from))
}

/// Returns the path that delivers a packet that `from` lost earlier than `from` itself would, with
/// the bytes that it may send now.
pub(in crate::send) fn sooner_path(
    concurrent: Option<&ConcurrentTransfer>,
    from: PathId,
    paths: &AssociationPaths,
) -> Option<(PathId, usize)> {
    concurrent.filter(|concurrent| concurrent.choices.rtx_policy == RtxPolicy::EarliestArrival)?;
    let own = paths.get(from)?;
    let other = soonest(paths.iter().filter(|path| path.id != from), own.mtu())?;
    let is_sooner = time_to_deliver(other, own.mtu()) < time_to_deliver(own, own.mtu());
    is_sooner.then(|| (other.id, other.room().max(own.mtu())))
}

/// Returns the active path that delivers `bytes` first.
fn soonest<'a>(paths: impl Iterator<Item = &'a Path>, bytes: usize) -> Option<&'a Path> {
    let active = paths.filter(|path| path.state() == PathState::Active);
    active.min_by_key(|path| time_to_deliver(path, bytes))
}

/// Returns how long a path takes to deliver `bytes` behind what it has in flight, in nanoseconds.
/// What is not known of it counts against it.
fn time_to_deliver(path: &Path, bytes: usize) -> u64 {
    let (Some(rate), Some(rtt)) = (path.delivery_rate(), path.min_rtt()) else { return u64::MAX };
    nanoseconds(rtt).max(time_for(path.outstanding().saturating_add(bytes), rate))
}

/// Returns the best of the active paths by the policy, the first among equals. `from` is the path
/// that lost the chunk.
fn best<'a>(
    policy: RtxPolicy,
    paths: impl Iterator<Item = &'a Path>,
    from: Option<PathId>,
) -> Option<PathId> {
    let active = paths.filter(|path| path.state() == PathState::Active);
    let key = |path: &&Path| {
        let is_other = Some(path.id) != from;
        let highest_first = |value: usize| (Reverse(value as u64), is_other);
        match policy {
            RtxPolicy::Same | RtxPolicy::EarliestArrival => {
                (Reverse(u64::from(!is_other)), is_other)
            }
            RtxPolicy::Asap => {
                highest_first(path.congestion.window().saturating_sub(path.outstanding()))
            }
            RtxPolicy::Cwnd => highest_first(path.congestion.window()),
            RtxPolicy::Ssthresh => highest_first(path.congestion.slow_start_threshold()),
            RtxPolicy::LossRate => (Reverse(u64::MAX - path.loss_rate()), is_other),
        }
    };
    let best = active.min_by_key(key)?;
    // An active path is not left for one that is not.
    let stays = matches!(policy, RtxPolicy::Same | RtxPolicy::EarliestArrival);
    (!stays || from.is_none_or(|from| best.id == from)).then_some(best.id)
}
