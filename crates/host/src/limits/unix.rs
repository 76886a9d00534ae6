//! getrlimit(2) and getrusage(2).

use std::time::Duration;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeVal;

use super::CpuTime;

pub(super) fn descriptors() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().and_then(|(soft, _)| unsigned(soft))
}

/// Limits are signed on FreeBSD.
fn unsigned(limit: impl TryInto<u64>) -> Option<u64> {
    limit.try_into().ok()
}

pub(super) fn cpu_time() -> Option<CpuTime> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some(CpuTime { user: duration(usage.user_time())?, system: duration(usage.system_time())? })
}

fn duration(time: TimeVal) -> Option<Duration> {
    let seconds = Duration::from_secs(time.tv_sec().try_into().ok()?);
    Some(seconds + Duration::from_micros(time.tv_usec().try_into().ok()?))
}
