//! The measurements of a load as columns.

use super::LoadObservation;
use crate::live::LinkTraffic;
use crate::run::RunResult;
use crate::situation::live::LOAD_COLUMNS;

/// The number of quantiles that represent the times of a run in its columns.
const QUANTILES: u32 = 200;

impl LoadObservation {
    /// Returns all columns.
    pub(in crate::live) fn result(&self) -> RunResult {
        let mut run = RunResult::default();
        let mut put = |column: &str, number: f64| {
            run.columns.entry(column.to_owned()).or_default().push(number);
        };
        self.samples(&mut put);
        self.times(&mut put);
        self.requests(&mut put);
        run
    }

    /// Adds one number per sample.
    fn samples(&self, put: &mut impl FnMut(&str, f64)) {
        let per_second = self.outcome.answered_per_second();
        for pair in self.usage.windows(2) {
            let share = pair[1].since(&pair[0]);
            put("cpu", share.all());
            put("cpu-user", share.user);
            put("cpu-kernel", share.kernel);
            put("cpu-receiving", share.receiving);
            put("cpu-busy", share.busy);
            if per_second > 0.0 {
                // One percent of a core is 10 ms per second.
                put("cpu-request", share.all() * 10.0 / per_second);
            }
            if let Some(bytes) = pair[1].kernel_memory {
                put("kernel-memory", bytes as f64 / 1024.0);
            }
            put("own-memory", pair[1].resident as f64 / (1024.0 * 1024.0));
        }
        for pair in self.middleboxes.windows(2) {
            let share = pair[1].share_since(&pair[0]);
            put("middlebox-entries", pair[1].entries as f64);
            put("middlebox-cpu", share);
            if per_second > 0.0 {
                put("middlebox-request", share * 1e4 / per_second);
            }
        }
    }

    /// Adds quantiles of times.
    fn times(&self, put: &mut impl FnMut(&str, f64)) {
        let times = &self.outcome.tally.times;
        for (column, histogram) in
            [("transaction", &times.total), ("first-byte", &times.first_byte)]
        {
            if histogram.is_empty() {
                continue;
            }
            for quantile in 0..QUANTILES {
                let at = (f64::from(quantile) + 0.5) / f64::from(QUANTILES);
                put(column, histogram.value_at_quantile(at) as f64 / 1e6);
            }
        }
    }

    /// Adds one number per run.
    fn requests(&self, put: &mut impl FnMut(&str, f64)) {
        let (tally, attempts) = (&self.outcome.tally, self.outcome.all_attempts());
        let intended = tally.intended.max(1) as f64;
        let per_second = self.outcome.answered_per_second();
        let requests = (per_second * self.duration.as_secs_f64()).max(1.0);
        let LinkTraffic { packets_in, packets_out, bytes_in, bytes_out } = self.traffic;
        put("request-packets", (packets_in + packets_out) as f64 / requests);
        put("request-bytes", (bytes_in + bytes_out) as f64 / requests);
        put("answered", 100.0 * tally.answered as f64 / intended);
        put("request-rate", per_second);
        put("late", tally.times.late.value_at_quantile(0.99) as f64 / 1e6);
        put("hit", 100.0 * tally.hits as f64 / intended);
        put("request-attempts", attempts.started as f64 / intended);
        let unused = attempts.completed.saturating_sub(attempts.used);
        // A race below TLS completes its handshakes as separate connections, which are not used.
        let beside = match self.below_tls {
            true => attempts.used.saturating_sub(tally.answered),
            false => 0,
        };
        put("request-completed", (unused + beside) as f64 / intended);
        for (name, _) in LOAD_COLUMNS.iter().filter(|(name, _)| name.starts_with("won-")) {
            let winners = tally.winners.iter();
            let over = winners.filter(|(winner, _)| name[4..] == *winner.transport.name());
            let won: u64 = over.map(|(_, count)| count).sum();
            put(name, 100.0 * won as f64 / tally.answered.max(1) as f64);
        }
    }
}
