//! A run: its trials, executed concurrently.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eyas::Resolver;
use eyas::race::policy::Policy;
use eyas_emulator::units::PercentValue;

use super::server_kind::ServerKind;
use super::servers::RunningServers;
use super::testbed::LiveTestbed;
use super::trial::{OBJECT, TrialOutcome, TrialParameters, run_concurrently, runtime};
use super::{LinkTraffic, LiveError, RunLive, awake};
use crate::run::RunResult;
use crate::situation::live::{ClientMemory, ConnectSetup, LinkSetup};

/// The pause that belongs to the second column of second requests.
const LONG_PAUSE: Duration = Duration::from_secs(10);

impl RunLive for ConnectSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        let learnt_over = match self.memory {
            // The losses of the network are to be learnt from actual losses.
            ClientMemory::Network => self.link.clone(),
            ClientMemory::Empty | ClientMemory::Warm => {
                LinkSetup { loss: PercentValue::default(), ..self.link.clone() }
            }
        };
        let _awake = awake::keep();
        let testbed = LiveTestbed::start(&learnt_over, seed)?;
        let servers = RunningServers::start(&testbed, &[ServerKind::Http3])?;
        let trial = TrialParameters {
            strategy: self.strategy,
            policy: policy(self),
            give_up: self.give_up.0,
            url: format!("https://{}{OBJECT}", servers.addresses()[0]),
            security: servers.trusted(),
            resolver: Resolver::system(),
        };
        let (outcomes, traffic) = testbed.in_client(|| {
            runtime()?.block_on(async {
                let pace = self.pace.0;
                let memories = self.memory.for_trials(self.trials, &trial, pace, stop).await?;
                testbed.change(&self.link)?;
                let before = testbed.traffic()?;
                let pauses = self.second_after.iter().cycle();
                let trials = memories
                    .into_iter()
                    .zip(pauses)
                    .map(|(memory, pause)| trial.clone().run(memory, pause.0));
                let outcomes = run_concurrently(trials, self.pace.0, stop).await?;
                Ok::<_, LiveError>((outcomes, testbed.traffic()?.since(before)))
            })
        })??;
        Ok(summarise(self, &outcomes, traffic))
    }
}

/// Returns the policy of the client's races.
fn policy(setup: &ConnectSetup) -> Policy {
    let mut policy = setup.strategy.race(setup.give_up.0);
    policy.second_tries = setup.second_tries.unwrap_or(policy.second_tries);
    match setup.head_start {
        Some(head_start) => policy.with_head_start(head_start.0),
        None => policy,
    }
}

fn summarise(
    setup: &ConnectSetup,
    outcomes: &[(usize, TrialOutcome)],
    traffic: LinkTraffic,
) -> RunResult {
    let mut run = RunResult::default();
    let mut put = |column: &str, number: f64| {
        run.columns.entry(column.to_owned()).or_default().push(number);
    };
    let percent = |yes: bool| if yes { 100.0 } else { 0.0 };
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    for (number, outcome) in outcomes {
        let pause = setup.second_after[number % setup.second_after.len()].0;
        put("failed", percent(outcome.first.is_none()));
        let Some(first) = &outcome.first else { continue };
        put("time", milliseconds(first.usable));
        put("adopted", percent(first.over_http3));
        put("attempts", f64::from(first.attempts));
        if let Some(over_http3) = outcome.second_over_http3 {
            put(second_column(pause), percent(over_http3));
        }
        if let Some(arrival) = outcome.arrival {
            put("arrival", milliseconds(arrival));
        }
    }
    let trials = outcomes.len().max(1) as f64;
    put("packets", (traffic.packets_in + traffic.packets_out) as f64 / trials);
    put("bytes", (traffic.bytes_in + traffic.bytes_out) as f64 / trials);
    run
}

/// Returns the column for a trial with this pause.
fn second_column(pause: Duration) -> &'static str {
    match pause {
        Duration::ZERO => "second-at-once",
        pause if pause >= LONG_PAUSE => "second-10s",
        _ => "second",
    }
}
