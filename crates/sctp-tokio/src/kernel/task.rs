//! The task of an association of the kernel: passes what is received to its readers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::PathId;

use super::association::{KernelAssociation, Shared, reason};
use super::options;
use super::socket::{KernelSocket, READ_SIZE, Received};
use crate::slot::Stage;

/// The maximum number of messages read before other tasks get a turn.
const BATCH: usize = 32;
/// How long an association without handles has to shut down, while what the peer still sends is
/// read and dropped. After that, the socket is closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the kernel is asked whether an association has ended after the end of its data,
/// because its last notification is not delivered then.
const END_POLL: Duration = Duration::from_millis(20);

/// Ends the association for its users when the task ends, even if the runtime drops it.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(LossReason::Aborted);
        self.0.lock().slot.wake_all();
    }
}

/// What the task waits for.
#[derive(Clone, Copy, Debug)]
struct Interest {
    read: bool,
    write: bool,
}

/// What the task does next.
enum Next {
    Wait(Interest),
    /// The last handle was dropped.
    Orphan,
    /// The association has ended.
    Over,
}

impl Interest {
    fn next(shared: &Shared, is_at_end: bool) -> Next {
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
    let mut buffer = vec![0; READ_SIZE];
    let mut is_at_end = false;
    loop {
        let interest = match Interest::next(&shared, is_at_end) {
            Next::Over => break,
            Next::Orphan => {
                close_orphan(&shared, &mut buffer).await;
                break;
            }
            Next::Wait(interest) => interest,
        };
        tokio::select! {
            () = shared.wake.notified() => {}
            readable = shared.socket.readable(), if interest.read => {
                if readable.is_err() {
                    break;
                }
                is_at_end = read(&shared, &mut buffer);
            }
            writable = shared.socket.writable(), if interest.write => {
                if writable.is_err() {
                    break;
                }
                shared.lock().slot.handle_event(Event::Writable);
            }
            () = tokio::time::sleep(END_POLL), if is_at_end => {
                if options::status(&shared.socket.socket(), |_| PathId(0)).is_none() {
                    shared.lock().slot.handle_event(Event::Closed);
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
                shared.handle_received(Received::End);
                return true;
            }
            Ok(received) => shared.handle_received(received),
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
async fn close_orphan(shared: &Shared, buffer: &mut [u8]) {
    shared.socket.shutdown();
    let drained = async {
        while shared.socket.readable().await.is_ok() {
            match shared.socket.try_receive(buffer) {
                Ok(Received::Data(..)) => {}
                Ok(Received::End) => return,
                Ok(notification) => shared.handle_received(notification),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
            if matches!(shared.lock().slot.stage, Stage::Ended(_)) {
                return;
            }
        }
    };
    // The kernel continues the shutdown once the socket is closed.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, drained).await;
}
