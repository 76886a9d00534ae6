//! The resources that the server's host has used so far, and during an interval.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::kernel_memory;

/// Ticks of `/proc` per second (`USER_HZ`, which is 100 on all current machines).
const TICKS: f64 = 100.0;

/// The resources that the server's host has used since its start, and those in use.
#[derive(Clone, Debug)]
pub(super) struct HostUsage {
    at: Instant,
    process: Duration,
    receiving: Duration,
    user_ticks: u64,
    kernel_ticks: u64,
    idle_ticks: u64,
    /// The kernel's memory for networking, in bytes.
    pub(super) kernel_memory: Option<u64>,
    /// The resident memory of the server process, in bytes.
    pub(super) resident: u64,
}

/// Shares of a core in percent, during an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CpuShare {
    pub(super) user: f64,
    pub(super) kernel: f64,
    pub(super) receiving: f64,
    pub(super) busy: f64,
}

impl HostUsage {
    /// Reads the current values; `None` if the server has ended.
    pub(super) fn now(server: Pid, receivers: &[Pid], core: usize) -> Option<Self> {
        let process = threads(server)?;
        let receiving = receivers.iter().filter_map(|thread| threads(*thread)).sum();
        let stat = read(format!("/proc/{}/stat", server.as_raw_nonzero()))?;
        let status = read(format!("/proc/{}/status", server.as_raw_nonzero()))?;
        let (user_ticks, kernel_ticks) = ticks(&stat)?;
        Some(Self {
            at: Instant::now(),
            process,
            receiving,
            user_ticks,
            kernel_ticks,
            idle_ticks: idle(&read("/proc/stat".to_owned())?, core)?,
            kernel_memory: kernel_memory::now(),
            resident: resident(&status)?,
        })
    }

    /// Returns what was used since an earlier reading.
    pub(super) fn since(&self, before: &Self) -> CpuShare {
        let wall = self.at.duration_since(before.at).as_secs_f64();
        let percent = |seconds: f64| 100.0 * seconds / wall;
        let process = percent((self.process.saturating_sub(before.process)).as_secs_f64());
        // The kernel knows the sum exactly, and its split only in ticks.
        let user = (self.user_ticks.saturating_sub(before.user_ticks)) as f64;
        let kernel = (self.kernel_ticks.saturating_sub(before.kernel_ticks)) as f64;
        let share = if user + kernel > 0.0 { user / (user + kernel) } else { 1.0 };
        let idle = self.idle_ticks.saturating_sub(before.idle_ticks) as f64 / TICKS;
        CpuShare {
            user: process * share,
            kernel: process * (1.0 - share),
            receiving: percent(self.receiving.saturating_sub(before.receiving).as_secs_f64()),
            busy: (100.0 - percent(idle)).max(0.0),
        }
    }
}

impl CpuShare {
    /// Returns the share of the whole host.
    pub(super) fn all(&self) -> f64 {
        self.user + self.kernel + self.receiving
    }
}

fn read(path: String) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Returns the CPU time of all threads of a process, in nanoseconds. The time of threads that have
/// ended is not included; the server keeps its threads.
fn threads(process: Pid) -> Option<Duration> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).ok()?;
    let spent = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    Some(tasks.filter_map(|task| spent(task.ok()?)).sum())
}

/// Returns the user and system time of a process (proc_pid_stat(5)), without its children.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    // The name is in parentheses and can contain anything, including parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Returns the idle time of a core, including waiting for a disk (proc_stat(5)).
fn idle(stat: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    let field = |at| line.split_whitespace().nth(at)?.parse::<u64>().ok();
    Some(field(4)? + field(5)?)
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_the_name() {
        let stat = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 170 30 0 0 20 0";
        assert_eq!(ticks(stat), Some((170, 30)));
        let all = "cpu  9 9 9 9 9\ncpu0 1 2 3 40 5 6\ncpu1 1 2 3 70 8 6\n";
        assert_eq!((idle(all, 1), idle(all, 7)), (Some(78), None));
        assert_eq!(resident("Name:\tx\nVmRSS:\t  20 kB\n"), Some(20_480));
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let at = Instant::now();
        let before = HostUsage {
            at,
            process: Duration::from_secs(1),
            receiving: Duration::from_secs(1),
            user_ticks: 50,
            kernel_ticks: 50,
            idle_ticks: 1000,
            kernel_memory: None,
            resident: 0,
        };
        let after = HostUsage {
            at: at + Duration::from_secs(2),
            process: Duration::from_millis(1_400),
            receiving: Duration::from_millis(1_100),
            user_ticks: 80,
            kernel_ticks: 60,
            idle_ticks: 1150,
            ..before.clone()
        };
        let share = after.since(&before);
        assert!((share.all() - 25.0).abs() < 1e-9, "{share:?}");
        assert!((share.user - 15.0).abs() < 1e-9 && (share.kernel - 5.0).abs() < 1e-9);
        assert!((share.busy - 25.0).abs() < 1e-9);
    }

    #[test]
    fn this_process_can_be_measured() {
        let usage = HostUsage::now(rustix::process::getpid(), &[], 0).expect("Linux reports it");
        assert!(usage.resident > 0 && !usage.process.is_zero());
    }
}
