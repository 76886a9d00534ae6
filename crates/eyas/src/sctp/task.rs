//! The task of a hub: moves packets and times between the sockets and the protocol.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use eyas_sctp::config::EndpointConfig;
use eyas_sctp::io::Input;
use tokio::io::Ready;

use super::carrier::{Arrivals, ReceiveBuffers, Wire};
use super::hub::{Anchor, Dependence, Hub, Next};
use super::outbox::Outbox;
use super::own_addresses::{Bound, Watch};
use super::wires::read;

/// Sockets of one endpoint: eight addresses, or four inside UDP and not.
const MAX_WIRES: usize = 8;

/// Whether the addresses of this host are announced to peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Homes {
    /// Of none but the one that packets leave from: inside DTLS there is one path (RFC 8261 §6.1).
    One,
    /// Of all that the sockets serve.
    Many,
}

/// Starts a hub and its task. The hub that reads its sockets, if that is another one, lives as long.
/// Must be called inside a tokio runtime.
pub(super) fn start(
    mut config: EndpointConfig,
    wires: Vec<Wire>,
    homes: Homes,
    reader: Option<Dependence>,
) -> io::Result<Anchor> {
    if wires.len() > MAX_WIRES {
        let what = format!("SCTP has {MAX_WIRES} sockets at most, one for each address");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let watch = (homes == Homes::Many).then(|| {
        let bound = Bound::of(&wires);
        config.addresses = bound.now();
        Watch::new(bound, config.addresses.clone())
    });
    let hub = Arc::new(Hub::new(config, wires)?);
    tokio::spawn(run(Arc::clone(&hub), watch, reader));
    Ok(Anchor(hub))
}

/// Ends the associations when the task does, and says goodbye to their peers, also if the runtime
/// drops it.
struct EndOnDrop(Arc<Hub>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.lock().end();
        self.0.wires.iter().for_each(Wire::close);
    }
}

/// What woke the task.
enum Woken {
    /// This wire can be read, or has something to report.
    Readable(usize, Ready),
    /// Links, addresses or routes have changed.
    Moved,
    /// Time has come, a caller called, or a full socket has room.
    Other,
}

/// Runs until the hub is no longer needed.
async fn run(hub: Arc<Hub>, mut watch: Option<Watch>, _reader: Option<Dependence>) {
    let _end = EndOnDrop(Arc::clone(&hub));
    let mut buffers = ReceiveBuffers::new();
    let mut arrivals = Arrivals::new();
    let mut outbox = Outbox::default();
    let mut source = None;
    loop {
        hub.wires.iter().for_each(|wire| wire.handle_timeout(Instant::now()));
        if let Some(present) = watch.as_mut().and_then(|watch| watch.due_addresses(Instant::now()))
        {
            arrivals.push(Input::LocalAddresses(present));
        }
        let next = {
            let now = hub.now();
            let mut state = hub.lock();
            let is_shared = source.is_some_and(|wire: usize| hub.wires[wire].is_shared());
            for input in arrivals.drain(..) {
                state.handle(now, input, is_shared);
            }
            state.drain(now, &mut outbox.trains)
        };
        outbox.send(&hub.wires, &mut arrivals, None);
        let until = match next {
            _ if !arrivals.is_empty() => continue,
            Next::Over if outbox.trains.is_empty() => return,
            Next::Full if outbox.trains.is_empty() => {
                tokio::task::consume_budget().await;
                continue;
            }
            Next::Wait(until) => until.map(|time| hub.instant(time)),
            // The full socket decides how soon.
            Next::Full | Next::Over => None,
        };
        let timers = hub.wires.iter().filter_map(Wire::next_timeout);
        let look = watch.as_ref().and_then(Watch::next_timeout);
        let until = until.into_iter().chain(timers).chain(look).min();
        source = match wait(&hub, watch.as_ref(), until, outbox.full()).await {
            Woken::Readable(wire, ready) => {
                read(&hub.wires[wire], ready, &mut buffers, &mut arrivals).await;
                hub.divert(wire, &mut arrivals);
                Some(wire)
            }
            Woken::Moved => {
                outbox.forget_sources();
                watch.iter_mut().for_each(Watch::settle);
                None
            }
            Woken::Other => None,
        };
    }
}

/// Waits for something to do.
async fn wait(
    hub: &Hub,
    watch: Option<&Watch>,
    until: Option<Instant>,
    full: Option<usize>,
) -> Woken {
    tokio::select! {
        (wire, ready) = readable(&hub.wires) => Woken::Readable(wire, ready),
        () = hub.wake.notified() => Woken::Other,
        () = writable(&hub.wires, full) => Woken::Other,
        () = noticed(watch) => Woken::Moved,
        () = reached(until) => Woken::Other,
    }
}

/// Waits until one of the wires can be read.
async fn readable(wires: &[Wire]) -> (usize, Ready) {
    let one = |index: usize| async move {
        match wires.get(index) {
            Some(wire) => match wire.readable().await {
                Ok(ready) => (index, ready),
                // The runtime is being shut down.
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    };
    // As many as `MAX_WIRES`.
    tokio::select! {
        ready = one(0) => ready,
        ready = one(1) => ready,
        ready = one(2) => ready,
        ready = one(3) => ready,
        ready = one(4) => ready,
        ready = one(5) => ready,
        ready = one(6) => ready,
        ready = one(7) => ready,
    }
}

async fn writable(wires: &[Wire], full: Option<usize>) {
    match full.and_then(|index| wires.get(index)) {
        Some(wire) if wire.writable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

/// Waits until the kernel gives notice of a change.
async fn noticed(watch: Option<&Watch>) {
    match watch {
        Some(watch) => watch.noticed().await,
        None => std::future::pending().await,
    }
}

async fn reached(until: Option<Instant>) {
    match until {
        // A timer rounds up to the next millisecond, so do not sleep for what is already due.
        Some(time) if time <= Instant::now() => {}
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
