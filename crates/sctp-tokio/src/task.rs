//! The task of a shared endpoint: drives the protocol with packets from the sockets and with time.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use eyas_sctp::config::EndpointConfig;
use eyas_sctp::io::Input;
use tokio::io::Ready;

use super::carrier::{Arrivals, ReceiveBuffers, Wire};
use super::outbox::Outbox;
use super::own_addresses::{BoundAddresses, Watch};
use super::path_sessions::PathSessions;
use super::shared_endpoint::{EndpointHandle, Next, ReaderGuard, SharedEndpoint};
use super::wires::read;

/// The maximum number of sockets of one endpoint: for eight addresses, or for four with both UDP
/// and raw.
const MAX_WIRES: usize = 8;

/// Whether the addresses of this host are announced to peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Homing {
    /// None are announced: inside DTLS as RFC 8261 §6.1 has it, there is one path.
    Single,
    /// All that the sockets serve are announced.
    Multi,
}

/// Starts an endpoint and its task. `reader` keeps alive the endpoint that reads its sockets, if
/// that is another one. Must be called inside a tokio runtime.
pub(super) fn start(
    mut config: EndpointConfig,
    wires: Vec<Wire>,
    homing: Homing,
    reader: Option<ReaderGuard>,
) -> io::Result<EndpointHandle> {
    if wires.len() > MAX_WIRES {
        let what = format!("SCTP has {MAX_WIRES} sockets at most, one for each address");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let watch = (homing == Homing::Multi).then(|| {
        let bound = BoundAddresses::from_wires(&wires);
        config.addresses = bound.current();
        Watch::new(bound, config.addresses.clone())
    });
    let shared = Arc::new(SharedEndpoint::new(config, wires)?);
    tokio::spawn(run(Arc::clone(&shared), watch, reader));
    Ok(EndpointHandle(shared))
}

/// Ends the associations and DTLS sessions when the task ends, even if the runtime drops it.
struct EndOnDrop(Arc<SharedEndpoint>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.lock().end();
        self.0.wires.iter().for_each(Wire::close);
    }
}

/// What woke the task.
enum Woken {
    /// This wire is readable, or has an error to report.
    Readable(usize, Ready),
    /// Links, addresses or routes have changed.
    NetworkChanged,
    /// A timer is due, a caller has changed something, or a full socket has space.
    Other,
}

/// Runs until the endpoint is no longer needed.
async fn run(shared: Arc<SharedEndpoint>, mut watch: Option<Watch>, _reader: Option<ReaderGuard>) {
    let _end = EndOnDrop(Arc::clone(&shared));
    let mut buffers = ReceiveBuffers::new();
    let mut arrivals = Arrivals::new();
    let mut outbox = Outbox::default();
    let mut sessions = PathSessions::from_wires(&shared.wires);
    let mut source = None;
    loop {
        shared.wires.iter().for_each(|wire| wire.handle_timeout(Instant::now()));
        if let Some(present) = watch.as_mut().and_then(|watch| watch.due_addresses(Instant::now()))
        {
            arrivals.push(Input::LocalAddresses(present));
            sessions.iter_mut().for_each(|sessions| sessions.schedule(Instant::now()));
        }
        let (next, path_changes) = {
            let now = shared.now();
            let mut state = shared.lock();
            let is_shared = source.is_some_and(|wire: usize| shared.wires[wire].is_shared());
            for input in arrivals.drain(..) {
                state.handle_input(now, input, is_shared);
            }
            (state.drain(now, &mut outbox.trains), state.take_path_changes())
        };
        if let Some(sessions) = &mut sessions {
            if !path_changes.is_empty() {
                sessions.schedule(Instant::now());
            }
            let locals = watch.as_ref().map_or(&[][..], Watch::known);
            sessions.open(Instant::now(), &shared, locals);
        }
        path_changes.into_iter().for_each(|change| shared.follow(change));
        outbox.send(&shared.wires, &mut arrivals, None);
        let until = match next {
            _ if !arrivals.is_empty() => continue,
            Next::Over if outbox.trains.is_empty() => return,
            Next::Full if outbox.trains.is_empty() => {
                tokio::task::consume_budget().await;
                continue;
            }
            Next::Wait(until) => until.map(|time| shared.instant(time)),
            // Wait until the full socket has space.
            Next::Full | Next::Over => None,
        };
        let timers = shared.wires.iter().filter_map(Wire::next_timeout);
        let check = watch.as_ref().and_then(Watch::next_timeout);
        let opening = sessions.as_ref().and_then(PathSessions::next_timeout);
        let until = until.into_iter().chain(timers).chain(check).chain(opening).min();
        source = match wait(&shared, watch.as_ref(), until, outbox.full()).await {
            Woken::Readable(wire, ready) => {
                read(&shared.wires[wire], ready, &mut buffers, &mut arrivals).await;
                shared.divert(wire, &mut arrivals);
                Some(wire)
            }
            Woken::NetworkChanged => {
                outbox.clear_sources();
                watch.iter_mut().for_each(Watch::schedule_check);
                None
            }
            Woken::Other => None,
        };
    }
}

/// Waits for something to do.
async fn wait(
    shared: &SharedEndpoint,
    watch: Option<&Watch>,
    until: Option<Instant>,
    full: Option<usize>,
) -> Woken {
    tokio::select! {
        (wire, ready) = readable(&shared.wires) => Woken::Readable(wire, ready),
        () = shared.wake.notified() => Woken::Other,
        () = writable(&shared.wires, full) => Woken::Other,
        () = network_changed(watch) => Woken::NetworkChanged,
        () = sleep_until(until) => Woken::Other,
    }
}

/// Waits until one of the wires is readable.
async fn readable(wires: &[Wire]) -> (usize, Ready) {
    let wire_readable = |index: usize| async move {
        match wires.get(index) {
            Some(wire) => match wire.readable().await {
                Ok(ready) => (index, ready),
                // The runtime is being shut down.
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    };
    // One for each of `MAX_WIRES`.
    tokio::select! {
        ready = wire_readable(0) => ready,
        ready = wire_readable(1) => ready,
        ready = wire_readable(2) => ready,
        ready = wire_readable(3) => ready,
        ready = wire_readable(4) => ready,
        ready = wire_readable(5) => ready,
        ready = wire_readable(6) => ready,
        ready = wire_readable(7) => ready,
    }
}

async fn writable(wires: &[Wire], full: Option<usize>) {
    match full.and_then(|index| wires.get(index)) {
        Some(wire) if wire.writable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

/// Waits until the kernel reports a change.
async fn network_changed(watch: Option<&Watch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        // A timer rounds up to the next millisecond, so do not sleep for what is already due.
        Some(time) if time <= Instant::now() => {}
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
