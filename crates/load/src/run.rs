//! Runs a load on its threads, and adds up what they report.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use eyas_http::{Direct, Versions};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::load::{Load, LoadError, LoadProgress, LoadStop};
use super::load_tally::LoadTally;
use super::outcome::LoadOutcome;
use super::prepare::PreparedLoad;
use super::worker::{LoadWorker, WorkerReport};

/// Runs the load and waits until it is over. `progress` is called every second, on this thread.
///
/// # Errors
/// What prevents it from starting. Later failures are part of the [`LoadOutcome`].
pub fn run(
    load: &Load,
    stop: &LoadStop,
    mut progress: impl FnMut(&LoadProgress<'_>),
) -> Result<LoadOutcome, LoadError> {
    let prepared = Arc::new(PreparedLoad::new(load)?);
    let workers = workers(&prepared, stop)?;
    let (sender, reports) = mpsc::channel();
    let start = Instant::now();
    let threads: Vec<_> = workers
        .into_iter()
        .map(|(worker, runtime)| {
            let sender = sender.clone();
            let name = thread::Builder::new().name("eyas-load".to_owned());
            name.spawn(move || {
                worker.run(&runtime, start, &sender);
                // Requests that are still in flight end here.
                runtime.shutdown_background();
            })
        })
        .collect::<Result<_, _>>()
        .inspect_err(|_| stop.stop())?;
    drop(sender);
    let outcome = collect(&prepared, &reports, start, stop, &mut progress);
    for thread in threads {
        // A worker that panicked has reported nothing, and its panic has been printed.
        let _ = thread.join();
    }
    outcome
}

fn workers(
    prepared: &Arc<PreparedLoad>,
    stop: &LoadStop,
) -> Result<Vec<(LoadWorker, Runtime)>, LoadError> {
    let load = &prepared.load;
    let most_in_flight = load.max_in_flight.max(load.clients.unwrap_or_default());
    let attempts = most_in_flight.saturating_mul(load.race.max_in_flight);
    (0..load.threads.max(1))
        .map(|number| {
            let endpoint = load.endpoint.clone().max_attempts_in_flight(attempts).build()?;
            let direct = Direct::new(endpoint.clone(), load.url.as_str(), load.versions)?;
            let plain = Direct::new(endpoint.clone(), without_tls(&load.url), Versions::HTTP_1)?;
            let runtime = Builder::new_current_thread().enable_all().build()?;
            Ok((LoadWorker::new(prepared, number, endpoint, [direct, plain], &stop.0), runtime))
        })
        .collect()
}

/// Returns the same URL without TLS.
fn without_tls(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("http://{host}:{port}/"),
        _ => url.to_string(),
    }
}

/// Adds up the reports of the workers until all are done.
fn collect(
    prepared: &PreparedLoad,
    reports: &mpsc::Receiver<WorkerReport>,
    start: Instant,
    stop: &LoadStop,
    progress: &mut impl FnMut(&LoadProgress<'_>),
) -> Result<LoadOutcome, LoadError> {
    let workers = prepared.load.threads.max(1);
    let mut outcome = LoadOutcome::new(&prepared.load);
    let (mut tally, mut reported, mut in_flight) = (LoadTally::default(), 0, 0);
    let mut failed = None;
    let mut last = Duration::ZERO;
    for report in reports {
        match report {
            WorkerReport::Interval { tally: part, in_flight: now } => {
                tally.add(&part);
                (reported, in_flight) = (reported + 1, in_flight + now);
            }
            WorkerReport::Finished(Ok(finished)) => outcome.add(&finished),
            WorkerReport::Finished(Err(cause)) => {
                stop.stop();
                failed = Some(cause);
            }
        }
        if reported >= workers {
            let elapsed = start.elapsed();
            outcome.tally.add(&tally);
            progress(&LoadProgress {
                elapsed,
                interval: elapsed.saturating_sub(last),
                tally: &tally,
                total: &outcome.tally,
                in_flight,
                is_warming_up: elapsed < prepared.load.warm_up,
            });
            (tally, reported, in_flight, last) = (LoadTally::default(), 0, 0, elapsed);
        }
    }
    outcome.tally.add(&tally);
    outcome.is_interrupted = stop.is_requested();
    match failed {
        Some(cause) => Err(cause.into()),
        None => Ok(outcome),
    }
}
