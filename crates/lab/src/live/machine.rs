//! What else the machine does during a run: a measurement beside other work shows that work.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use super::host::kernel_memory;

/// Ticks of `/proc` per second (`USER_HZ`, which is 100 on all current machines).
const TICKS: f64 = 100.0;
/// The process whose children are the threads of the kernel.
const KERNEL_THREADS: u32 = 2;

/// The CPU time that others have used, and the kernel's networking memory.
#[derive(Clone, Debug)]
pub(super) struct MachineReading {
    at: Instant,
    /// Ticks of each process that is not part of this program, with those of its ended children.
    processes: BTreeMap<u32, u64>,
    /// Ticks in which a hypervisor ran other machines instead of this one (proc_stat(5), steal).
    stolen: u64,
    /// In bytes; `None` if the kernel does not report it.
    kernel_memory: Option<u64>,
}

impl MachineReading {
    /// Reads the current values. Nothing of a run may exist: its sockets would count.
    pub(super) fn now() -> Self {
        kernel_memory::release_unused();
        let list = fs::read_dir("/proc").into_iter().flatten();
        let pids = list.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let read = |pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse(&stat)?))
        };
        let all: BTreeMap<u32, ProcessReading> = pids.filter_map(read).collect();
        Self {
            at: Instant::now(),
            processes: others(&all, std::process::id()),
            stolen: stolen(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            kernel_memory: kernel_memory::now(),
        }
    }

    /// Returns the columns of the time since an earlier reading.
    pub(super) fn since(&self, before: &Self) -> BTreeMap<String, Vec<f64>> {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let used = |(pid, ticks): (&u32, &u64)| {
            ticks.saturating_sub(before.processes.get(pid).copied().unwrap_or(0))
        };
        let used: u64 = self.processes.iter().map(used).sum();
        let ticks = used + self.stolen.saturating_sub(before.stolen);
        let mut columns = BTreeMap::new();
        let share = 100.0 * ticks as f64 / TICKS / seconds.max(f64::MIN_POSITIVE);
        columns.insert("others".to_owned(), vec![share]);
        if let (Some(after), Some(before)) = (self.kernel_memory, before.kernel_memory) {
            let change = after.abs_diff(before) as f64 / 1024.0;
            columns.insert("others-memory".to_owned(), vec![change]);
        }
        columns
    }
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProcessReading {
    parent: u32,
    /// With those of children that have ended.
    ticks: u64,
}

/// Parses a line of proc_pid_stat(5).
fn parse(stat: &str) -> Option<ProcessReading> {
    // The name is in parentheses and can contain anything, including parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    Some(ProcessReading { parent, ticks: ticks.sum::<Option<u64>>()? })
}

/// Returns the ticks of all processes except this one, its descendants and the kernel's threads.
fn others(all: &BTreeMap<u32, ProcessReading>, this: u32) -> BTreeMap<u32, u64> {
    let is_other = |pid: u32| {
        let ancestors = std::iter::successors(Some(pid), |pid| Some(all.get(pid)?.parent));
        // Processes that ended during the listing could make a circle.
        !ancestors.take(all.len() + 1).any(|pid| pid == this || pid == KERNEL_THREADS)
    };
    let others = all.iter().filter(|(pid, _)| is_other(**pid));
    others.map(|(pid, process)| (*pid, process.ticks)).collect()
}

fn stolen(stat: &str) -> u64 {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let field = line.and_then(|line| line.split_whitespace().nth(7));
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_programs_count() {
        let process = |parent, ticks| ProcessReading { parent, ticks };
        let all = BTreeMap::from([
            (1, process(0, 5)),
            (2, process(0, 100)),
            (3, process(2, 100)),
            (10, process(1, 7)),
            (11, process(10, 100)),
            (12, process(11, 100)),
            (20, process(1, 40)),
        ]);
        assert_eq!(others(&all, 11), BTreeMap::from([(1, 5), (10, 7), (20, 40)]));
    }

    #[test]
    fn ticks_include_those_of_ended_children() {
        let stat = "42 (a ) b) S 7 2 3 4 5 6 7 8 9 10 170 30 5 1 20 0";
        assert_eq!(parse(stat), Some(ProcessReading { parent: 7, ticks: 206 }));
        assert_eq!(parse("42 (short) S 1"), None);
        assert_eq!(stolen("cpu  9 9 9 9 9 9 9 44 0 0\ncpu0 1 1 1 1 1 1 1 9\n"), 44);
    }

    #[test]
    fn a_busy_machine_shows() {
        let at = Instant::now();
        let before = MachineReading {
            at,
            processes: BTreeMap::from([(5, 100), (6, 50)]),
            stolen: 10,
            kernel_memory: Some(4096),
        };
        let after = MachineReading {
            at: at + std::time::Duration::from_secs(2),
            // 6 has ended, 7 is new.
            processes: BTreeMap::from([(5, 160), (7, 30)]),
            stolen: 20,
            kernel_memory: Some(1024),
        };
        let columns = after.since(&before);
        assert_eq!((columns["others"][0], columns["others-memory"][0]), (50.0, 3.0));
        let unknown = MachineReading { kernel_memory: None, ..after };
        assert!(!unknown.since(&before).contains_key("others-memory"));
        assert!(MachineReading::now().processes.len() > 1, "Linux lists them");
    }
}
