//! The task of an association of the kernel: what comes in goes to who waits for it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::PathId;

use super::association::{KernelAssociation, Shared, reason};
use super::options;
use super::socket::{KernelSocket, PIECE, Received};
use crate::sctp::slot::Stage;

/// Messages read before others get their turn.
const BATCH: usize = 32;
/// An association that nobody holds any more gets this long to end in order, while what the peer
/// still sends is read and dropped; then the kernel is left alone with it.
const FAREWELL: Duration = Duration::from_secs(30);
/// How often the kernel is asked whether an association has ended of which there is nothing more to
/// read: its last notification is not delivered then.
const END_POLL: Duration = Duration::from_millis(20);

/// Ends the association for its users when the task does, also if the runtime drops it.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(LossReason::Aborted);
        self.0.lock().slot.wake_all();
    }
}

/// What the task is to wait for.
#[derive(Clone, Copy, Debug)]
struct Wants {
    read: bool,
    write: bool,
}

/// What comes next.
enum Next {
    Wait(Wants),
    /// Nobody holds the association any more.
    Orphan,
    /// It has ended.
    Over,
}

impl Wants {
    fn of(shared: &Shared, is_at_end: bool) -> Next {
        let state = shared.lock();
        let slot = &state.slot;
        if matches!(slot.stage, Stage::Ended(_)) {
            return Next::Over;
        }
        if slot.is_orphan {
            return Next::Orphan;
        }
        Next::Wait(Self { read: !is_at_end && !slot.is_parking_full(), write: slot.is_full })
    }
}

/// Starts an established association and its task. Must be called inside a tokio runtime.
pub(super) fn start(socket: KernelSocket, remote: SocketAddr, by_peer: bool) -> KernelAssociation {
    let (association, shared) = KernelAssociation::new(socket, remote, by_peer);
    tokio::spawn(run(shared));
    association
}

/// Runs until the association has ended or its last handle was dropped.
async fn run(shared: Arc<Shared>) {
    let end = EndOnDrop(Arc::clone(&shared));
    let mut buffer = vec![0; PIECE];
    let mut is_at_end = false;
    loop {
        let wants = match Wants::of(&shared, is_at_end) {
            Next::Over => break,
            Next::Orphan => {
                farewell(&shared, &mut buffer).await;
                break;
            }
            Next::Wait(wants) => wants,
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            readable = shared.socket.readable(), if wants.read => {
                if readable.is_err() {
                    break;
                }
                is_at_end = read(&shared, &mut buffer);
            }
            writable = shared.socket.writable(), if wants.write => {
                if writable.is_err() {
                    break;
                }
                shared.lock().slot.handle(Event::Writable);
            }
            () = tokio::time::sleep(END_POLL), if is_at_end => {
                if options::status(&shared.socket.socket(), |_| PathId(0)).is_none() {
                    shared.lock().slot.handle(Event::Closed);
                }
            }
        }
        tokio::task::consume_budget().await;
    }
    drop(end);
}

/// Reads what is available, up to the buffer limit. Returns whether the end was reached.
fn read(shared: &Shared, buffer: &mut [u8]) -> bool {
    for _ in 0..BATCH {
        match shared.socket.try_receive(buffer) {
            Ok(Received::End) => {
                shared.handle(Received::End);
                return true;
            }
            Ok(received) => shared.handle(received),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => {
                shared.end(reason(&error));
                return true;
            }
        }
        let state = shared.lock();
        if state.slot.is_parking_full() || matches!(state.slot.stage, Stage::Ended(_)) {
            return false;
        }
    }
    false
}

/// Ends an association without an owner, once all data has arrived.
async fn farewell(shared: &Shared, buffer: &mut [u8]) {
    shared.socket.shutdown();
    let drained = async {
        while shared.socket.readable().await.is_ok() {
            match shared.socket.try_receive(buffer) {
                Ok(Received::Data(..)) => {}
                Ok(Received::End) => return,
                Ok(notification) => shared.handle(notification),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
            if matches!(shared.lock().slot.stage, Stage::Ended(_)) {
                return;
            }
        }
    };
    // The kernel goes on by itself once the socket is closed.
    let _ = tokio::time::timeout(FAREWELL, drained).await;
}
