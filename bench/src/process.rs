//! The CPU time and memory of a process, from `/proc`.

use std::fs;

/// The kernel's unit of CPU time in `/proc`, in milliseconds.
const TICK: f64 = 10.0;
/// The kernel's page size, in KiB.
const PAGE: f64 = 4.0;

/// Returns the user and system CPU time of a process so far, in milliseconds.
pub(crate) fn cpu_time(id: u32) -> Result<f64, String> {
    let path = format!("/proc/{id}/stat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    ticks(&text).map(|ticks| ticks * TICK).ok_or_else(|| format!("cannot parse {path}"))
}

/// Returns the sum of fields 14 and 15 of `stat`; field 2, in parentheses, may contain spaces.
fn ticks(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let kernel: f64 = fields.next()?.parse().ok()?;
    Some(user + kernel)
}

/// Returns the resident memory of a process, in KiB.
pub(crate) fn resident(id: u32) -> Result<f64, String> {
    let path = format!("/proc/{id}/statm");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    pages.map(|pages| pages * PAGE).ok_or_else(|| format!("cannot parse {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_parsed_from_a_stat_line() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(line), Some(42.0));
        assert_eq!(ticks("nothing"), None);
    }

    #[test]
    fn the_cost_of_this_process_is_measured() {
        let id = std::process::id();
        assert!(resident(id).unwrap() > 0.0);
        assert!(cpu_time(id).unwrap() >= 0.0);
        assert!(cpu_time(u32::MAX).is_err());
    }
}
