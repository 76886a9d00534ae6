//! Closes a TCP connection without losing the end of a response.
//!
//! RFC 9112 §9.6: if a server closes both directions at once, and the client has sent something that
//! it has not read, or sends more, the client gets a reset, which can make it discard the response.
//! So the server has ended its own direction, and reads until the client has ended, too. The same is
//! true of HTTP/2, where a client that reads slowly sends WINDOW_UPDATE frames.

use std::time::Duration;

use eyas::sockets;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    limits::CLOSING_TIME,
    pace::{Progress, Rate},
    shared::Shared,
};

/// How long a client that has all of the response may go on sending. A client that sends nothing has
/// [`CLOSING_TIME`].
const MAX_SENDING_TIME: Duration = Duration::from_secs(30);
/// How often it is checked whether the client has all of the response.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// Reads and discards what a client sends on a connection that was shut down, until the client ends
/// its side, takes too little of the response, or goes on for too long. Returns at once if nothing
/// is under way in either direction.
pub(super) async fn close(shared: &Shared, tcp: TcpStream, has_unread_request: bool) {
    let has_input = || match tcp.try_read(&mut [0]) {
        Ok(length) => length > 0,
        Err(_) => false,
    };
    // The FIN counts as one segment until it is acknowledged.
    let is_delivered = sockets::undelivered(&tcp).is_some_and(|bytes| bytes <= ONE_SEGMENT);
    if is_delivered && !has_unread_request && !has_input() {
        return;
    }
    tokio::select! {
        () = discard(&tcp) => {}
        () = is_stalled(shared, &tcp) => tracing::debug!("a client did not read its response"),
        () = shared.abort.cancelled() => {}
    }
}

/// More than any segment has, other than of offloaded or local ones.
const ONE_SEGMENT: u64 = 65_535;

/// Reads until the client has ended its side, or sends nothing for too long though it has everything.
async fn discard(tcp: &TcpStream) {
    let mut discarded = [0; 4096];
    loop {
        match timeout(CLOSING_TIME, tcp.readable()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) if has_everything(tcp) => return,
            Err(_) => continue,
        }
        loop {
            match tcp.try_read(&mut discarded) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => return,
            }
        }
    }
}

fn has_everything(tcp: &TcpStream) -> bool {
    sockets::undelivered(tcp).is_none_or(|bytes| bytes == 0)
}

/// Resolves if the client takes too little of what was written, or a while after it has everything.
async fn is_stalled(shared: &Shared, tcp: &TcpStream) {
    let rate = Rate::minimum(&shared.limits);
    let taken = async {
        let mut progress = Progress::default();
        loop {
            sleep(rate.step()).await;
            let left = sockets::undelivered(tcp).unwrap_or_default();
            if progress.has_stalled(rate, u64::MAX - left) {
                return;
            }
        }
    };
    let everything = async {
        while !has_everything(tcp) {
            sleep(CHECK_EVERY).await;
        }
        sleep(MAX_SENDING_TIME).await;
    };
    tokio::select! {
        () = taken => {}
        () = everything => {}
    }
}
