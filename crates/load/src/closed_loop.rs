//! A closed loop: clients that each wait for their response before they send the next request.
//!
//! It answers how many requests a server sustains at most, which an open loop asks by its rate; its
//! times are those of sending, and say nothing about requests that would have arrived meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::draw::RequestDraws;
use super::worker::{ArrivalsEnd, InFlight, RunningWorker, lock};

/// How long a client waits after a failure: a server that refuses would otherwise get requests as
/// fast as this machine can fail.
const PAUSE: Duration = Duration::from_millis(100);

impl RunningWorker {
    /// Runs the clients of this worker until the end of the load.
    pub(super) async fn run_clients(
        self: &Arc<Self>,
        (worker, clients): (usize, usize),
        stop: &CancellationToken,
    ) -> ArrivalsEnd {
        let load = &self.prepared.load;
        let draws = RequestDraws::new(
            load.hit_rate,
            self.prepared.choices.len(),
            self.prepared.objects.len(),
            load.seed.wrapping_add(worker as u64),
        );
        let draws = Arc::new(Mutex::new(draws));
        let mut tasks: JoinSet<()> = JoinSet::new();
        for _ in 0..clients {
            tasks.spawn(client(Arc::clone(self), Arc::clone(&draws)));
        }
        let end = async {
            match load.extent.duration {
                Some(duration) => tokio::time::sleep_until((self.start() + duration).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = end => {}
            () = stop.cancelled() => {}
            () = async { while tasks.join_next().await.is_some() {} } => {}
        }
        // A client ends by itself once its request in flight has ended, which the worker waits for.
        tasks.detach_all();
        let ended = self.now();
        let arriving_until = load.extent.duration.map_or(ended, |duration| duration.min(ended));
        ArrivalsEnd { arriving_until, fell_behind: false }
    }
}

async fn client(running: Arc<RunningWorker>, draws: Arc<Mutex<RequestDraws>>) {
    let end = running.prepared.load.extent.duration.unwrap_or(Duration::MAX);
    while running.now() < end && running.prepared.begin() {
        let Some(draw) = lock(&draws).next() else { return };
        let at = running.now();
        let is_counted = running.is_counted(at);
        let in_flight = InFlight::new(&running, is_counted);
        let is_answered = running.exchange(at, draw, is_counted).await;
        drop(in_flight);
        if !is_answered {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
