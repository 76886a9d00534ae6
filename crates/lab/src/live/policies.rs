//! A run: its visitors, executed concurrently.

use std::sync::atomic::AtomicBool;

use eyas::Resolver;
use eyas_emulator::units::PercentValue;
use eyas_netem::random::derive;

use super::server_kind::ServerKind;
use super::servers::{NAME, RunningServers};
use super::testbed::LiveTestbed;
use super::trial::{OBJECT, TrialOutcome, TrialParameters, run_concurrently, runtime};
use super::{LiveError, RunLive, awake, dns};
use crate::run::RunResult;
use crate::situation::live::{ClientStrategy, PoliciesSetup};

/// Returns the kind of server for a trial.
fn kind(setup: &PoliciesSetup, seed: u64, trial: u32) -> ServerKind {
    let chance = |purpose: u64, share: PercentValue| {
        let drawn = derive(seed, purpose, u64::from(trial)) >> 11;
        (drawn as f64) < share.0 * (1_u64 << 53) as f64
    };
    match (chance(1, setup.http3), chance(2, setup.swallowed)) {
        (true, false) => ServerKind::Http3,
        (true, true) => ServerKind::Http3Swallowed,
        (false, false) => ServerKind::WithoutHttp3,
        (false, true) => ServerKind::WithoutHttp3Swallowed,
    }
}

impl RunLive for PoliciesSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        let _awake = awake::keep();
        let testbed = LiveTestbed::start(&self.link, seed)?;
        let servers = RunningServers::start(&testbed, &ServerKind::ALL)?;
        let name_server = (testbed.server_address()?, dns::PORT).into();
        let name = match self.strategy {
            ClientStrategy::HttpsRecords => format!("{}.{NAME}", dns::WITH_RECORDS),
            _ => NAME.to_owned(),
        };
        let kinds: Vec<ServerKind> =
            (0..self.trials).map(|trial| kind(self, seed, trial)).collect();
        let trial = |kind: ServerKind| TrialParameters {
            strategy: self.strategy,
            policy: self.strategy.race(self.give_up.0),
            give_up: self.give_up.0,
            url: format!("https://{name}:{}{OBJECT}", kind.port()),
            security: servers.trusted(),
            // A separate resolver has no cached answers.
            resolver: Resolver::server(name_server),
        };
        let (outcomes, traffic) = testbed.in_client(|| {
            runtime()?.block_on(async {
                let (pace, earlier) = (self.pace.0, trial(ServerKind::Http3));
                let memories = self.memory.for_trials(self.trials, &earlier, pace, stop).await?;
                let before = testbed.traffic()?;
                let trials = kinds.iter().zip(memories);
                let trials =
                    trials.map(|(kind, memory)| trial(*kind).run(memory, self.second_after.0));
                let outcomes = run_concurrently(trials, pace, stop).await?;
                Ok::<_, LiveError>((outcomes, testbed.traffic()?.since(before)))
            })
        })??;
        let mut run = RunResult::default();
        for (number, outcome) in &outcomes {
            store_outcome(&mut run, kinds[*number], outcome);
        }
        let trials = outcomes.len().max(1) as f64;
        let packets = (traffic.packets_in + traffic.packets_out) as f64 / trials;
        run.columns.entry("packets".to_owned()).or_default().push(packets);
        Ok(run)
    }
}

fn store_outcome(run: &mut RunResult, kind: ServerKind, outcome: &TrialOutcome) {
    let mut put = |column: &str, number: f64| {
        run.columns.entry(column.to_owned()).or_default().push(number);
    };
    let percent = |yes: bool| if yes { 100.0 } else { 0.0 };
    put("failed", percent(outcome.first.is_none()));
    let Some(first) = &outcome.first else { return };
    put("time", first.usable.as_secs_f64() * 1e3);
    put("adopted", percent(first.over_http3));
    put("wasted", f64::from(first.attempts.saturating_sub(first.used)));
    if let Some(over_http3) = outcome.second_over_http3 {
        put("second", percent(over_http3));
        put("wrong", percent(over_http3 != (kind == ServerKind::Http3)));
    }
}
