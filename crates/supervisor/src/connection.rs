//! Requests of programs, one after another.

use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::local::{Op, blocks};
use crate::requests::{CallRefusal, ProgramRequests};
use crate::service::{SocketCall, SocketService};
use crate::supervisor::{Attempt, Reply, Supervisor, User};
use crate::user_quotas::is_ours;

/// How long a program may take for its first request, which it opens the connection for.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves one connection of this user, whose requests must contain this key, until the last process
/// of the program that holds it closes it.
pub(crate) async fn serve<S: SocketService>(
    mut stream: UnixStream,
    (key, user_id): (u64, u32),
    user: User<S>,
) {
    let supervisor = &user.0;
    let mut requests = ProgramRequests::new(key, is_ours(user_id)).with_user(user_id);
    let first = next_to_answer(&mut stream, &mut requests);
    let first = timeout(FIRST_REQUEST_TIMEOUT, first).await;
    let Ok(mut received) = first else { return };
    loop {
        let mut call = match received {
            Ok(Ok(call)) => call,
            Ok(Err(CallRefusal::Version)) => {
                let _ = send(&stream, Reply::errno(libc::EPROTONOSUPPORT)).await;
                return;
            }
            Ok(Err(CallRefusal::Key)) | Err(_) => return,
        };
        let has_socket = supervisor.resolve(&mut call);
        let reply = match call.request.op {
            Op::Closed => {
                if has_socket {
                    closed(supervisor, &call).await;
                }
                Ok(Reply::errno(0))
            }
            Op::Socket | Op::Status => attempt(supervisor, &mut stream, &mut requests, &call).await,
            _ if has_socket => attempt(supervisor, &mut stream, &mut requests, &call).await,
            _ => Ok(Reply::errno(libc::ECONNRESET)),
        };
        let Ok(reply) = reply else { return };
        if send(&stream, reply).await.is_err() {
            return;
        }
        received = next_to_answer(&mut stream, &mut requests).await;
    }
}

/// Reads the next call that is to be answered. What a late [`Op::Cancel`] was meant for has been
/// answered already.
async fn next_to_answer(
    stream: &mut UnixStream,
    requests: &mut ProgramRequests,
) -> io::Result<Result<SocketCall, CallRefusal>> {
    loop {
        match next(stream, requests).await? {
            Ok(call) if call.request.op == Op::Cancel => {}
            received => return Ok(received),
        }
    }
}

/// Reads a call. Cancel-safe: nothing is lost if the future is dropped.
async fn next(
    stream: &mut UnixStream,
    requests: &mut ProgramRequests,
) -> io::Result<Result<SocketCall, CallRefusal>> {
    loop {
        match requests.call() {
            Ok(Some(call)) => return Ok(Ok(call)),
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        if stream.read_buf(&mut requests.buffer()).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Makes a call, and repeats it whenever its result may have changed, if the program waits for it.
async fn attempt<S: SocketService>(
    supervisor: &Arc<Supervisor<S>>,
    stream: &mut UnixStream,
    requests: &mut ProgramRequests,
    call: &SocketCall,
) -> io::Result<Reply> {
    let retry = supervisor.retry(call.socket);
    let blocks = call.request.blocks == blocks::YES;
    let mut waiting = None;
    let mut is_first = true;
    loop {
        let Some(retry) = &retry else {
            return Ok(match supervisor.attempt(call, true) {
                Attempt::Answered(reply) => *reply,
                Attempt::Opens(answer, _) => supervisor.opened(call, *answer),
                Attempt::Blocked(errno) => Reply::errno(errno),
            });
        };
        let mut notified = pin!(retry.notified());
        // Enabled before the call, so that no notification between the call and the wait is missed.
        notified.as_mut().enable();
        match supervisor.attempt(call, is_first) {
            Attempt::Answered(reply) => return Ok(*reply),
            Attempt::Opens(answer, association) => {
                if blocks {
                    let connection = (&mut *stream, &mut *requests);
                    until_open(supervisor, connection, call, retry, association).await?;
                }
                return Ok(supervisor.opened(call, *answer));
            }
            Attempt::Blocked(errno) if !blocks => {
                return Ok(supervisor.cancel_call(call, errno));
            }
            Attempt::Blocked(_) => {}
        }
        is_first = false;
        waiting.get_or_insert_with(|| supervisor.wait(call.socket));
        tokio::select! {
            () = notified => {
                if !supervisor.has_socket(call.socket) {
                    // The socket was closed during the call.
                    return Ok(Reply::errno(libc::ECONNRESET));
                }
            }
            result = cancelled(stream, requests) => {
                if result.is_err() {
                    supervisor.with_service(|service| service.call_cancelled(call));
                }
                result?;
                return Ok(supervisor.cancel_call(call, libc::EINTR));
            }
        }
    }
}

/// Waits until an association is established or has failed, or the program cancels the wait; the
/// message that opened it has been accepted in any case.
async fn until_open<S: SocketService>(
    supervisor: &Arc<Supervisor<S>>,
    (stream, requests): (&mut UnixStream, &mut ProgramRequests),
    call: &SocketCall,
    retry: &Notify,
    association: i32,
) -> io::Result<()> {
    loop {
        let mut notified = pin!(retry.notified());
        notified.as_mut().enable();
        if !supervisor.is_opening(call, association) {
            return Ok(());
        }
        tokio::select! {
            () = notified => {}
            result = cancelled(stream, requests) => return result,
        }
    }
}

/// Waits until the program cancels the wait.
async fn cancelled(stream: &mut UnixStream, requests: &mut ProgramRequests) -> io::Result<()> {
    match next(stream, requests).await? {
        Ok(call) if call.request.op == Op::Cancel => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Handles a closed descriptor.
async fn closed<S: SocketService>(supervisor: &Supervisor<S>, call: &SocketCall) {
    let socket = call.socket;
    if let Some((time, done)) = supervisor.closed(socket) {
        if call.request.blocks == blocks::YES {
            // Return when either happens.
            let _ = timeout(time, done.notified()).await;
        }
        supervisor.stop_lingering(socket);
    }
}

/// Sends a response, with its descriptor and its data.
async fn send(stream: &UnixStream, reply: Reply) -> io::Result<()> {
    let header = reply.response.encode();
    let total = header.len() + reply.data.len();
    let descriptors: Vec<_> = reply.descriptor.iter().map(AsRawFd::as_raw_fd).collect();
    let mut done = 0;
    while done < total {
        stream.writable().await?;
        let head = header.get(done..).unwrap_or_default();
        let data = &reply.data[done.saturating_sub(header.len())..];
        let parts = [IoSlice::new(head), IoSlice::new(data)];
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let control: &[ControlMessage<'_>] =
            if done == 0 && !descriptors.is_empty() { &rights } else { &[] };
        let sent = stream.try_io(Interest::WRITABLE, || {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            Ok(sendmsg::<()>(stream.as_raw_fd(), &parts, control, flags, None)?)
        });
        match sent {
            Ok(sent) => done += sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
