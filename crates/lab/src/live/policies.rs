//! A run: its visitors, executed concurrently.

use std::sync::atomic::AtomicBool;

use eyas::Resolver;
use eyas_emulator::units::PercentValue;
use eyas_netem::random::derive;

use super::server_kind::Kind;
use super::servers::{NAME, Servers};
use super::testbed::Testbed;
use super::trial::{OBJECT, Outcome, Trial, run_concurrently, runtime};
use super::{LiveError, Run, awake, dns};
use crate::run::RunResult;
use crate::situation::live::{ClientStrategy, PoliciesSetup};

/// Returns the kind of server for a trial.
fn kind(setup: &PoliciesSetup, seed: u64, trial: u32) -> Kind {
    let chance = |purpose: u64, share: PercentValue| {
        let drawn = derive(seed, purpose, u64::from(trial)) >> 11;
        (drawn as f64) < share.0 * (1_u64 << 53) as f64
    };
    match (chance(1, setup.http3), chance(2, setup.swallowed)) {
        (true, false) => Kind::Http3,
        (true, true) => Kind::Http3Swallowed,
        (false, false) => Kind::WithoutHttp3,
        (false, true) => Kind::WithoutHttp3Swallowed,
    }
}

impl Run for PoliciesSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        let _awake = awake::keep();
        let testbed = Testbed::start(&self.link, seed)?;
        let servers = Servers::start(&testbed, &Kind::ALL)?;
        let name_server = (testbed.server_address()?, dns::PORT).into();
        let name = match self.strategy {
            ClientStrategy::HttpsRecords => format!("{}.{NAME}", dns::WITH_RECORDS),
            _ => NAME.to_owned(),
        };
        let kinds: Vec<Kind> = (0..self.trials).map(|trial| kind(self, seed, trial)).collect();
        let trial = |kind: Kind| Trial {
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
                let (pace, earlier) = (self.pace.0, trial(Kind::Http3));
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
            put(&mut run, kinds[*number], outcome);
        }
        let trials = outcomes.len().max(1) as f64;
        let packets = (traffic.packets_in + traffic.packets_out) as f64 / trials;
        run.columns.entry("packets".to_owned()).or_default().push(packets);
        Ok(run)
    }
}

fn put(run: &mut RunResult, kind: Kind, outcome: &Outcome) {
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
        put("wrong", percent(over_http3 != (kind == Kind::Http3)));
    }
}
