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
    task::coop::consume_budget,
    time::{sleep, timeout},
};

use super::{
    limits::CLOSING_TIME,
    pace::{Progress, Rate},
};

/// How long a client that has all of the response may go on sending. A client that sends nothing has
/// [`CLOSING_TIME`].
const MAX_SENDING_TIME: Duration = Duration::from_secs(30);
/// How long a client that has all of the response is waited for.
struct Patience {
    /// If it sends nothing.
    silence: Duration,
    /// Whatever it sends.
    sending: Duration,
}

const PATIENCE: Patience = Patience { silence: CLOSING_TIME, sending: MAX_SENDING_TIME };

/// How often it is checked whether the client has all of the response.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// How long to wait for more from a client that sends against a window that was just full: it probes
/// after its retransmission timeout (RFC 9293 §3.8.6.1), and again after twice that.
const PROBING_TIME: Duration = Duration::from_secs(2);

/// Reads and discards what a client sends on a connection that was shut down, until the client ends
/// its side, takes too little of the response, or goes on for too long. Returns at once if nothing
/// is under way in either direction.
pub(super) async fn close(rate: Rate, tcp: &TcpStream, has_unread_request: bool) {
    let has_input = || match tcp.try_read(&mut [0]) {
        Ok(length) => length > 0,
        Err(_) => false,
    };
    // The FIN counts as one segment until it is acknowledged.
    let is_delivered = sockets::undelivered(tcp).is_some_and(|bytes| bytes <= ONE_SEGMENT);
    if is_delivered && !has_unread_request && !has_input() {
        return;
    }
    linger(rate, tcp, &PATIENCE).await;
}

async fn linger(rate: Rate, tcp: &TcpStream, patience: &Patience) {
    tokio::select! {
        () = discard(tcp, patience) => {}
        () = is_stalled(rate, tcp, patience) => {
            tracing::debug!("a client did not read its response, or went on sending");
            // A kernel resets an MPTCP connection only if something is unread when it is closed: what
            // arrives later fills a window that nobody opens, and the client waits.
            let _ = timeout(PROBING_TIME, tcp.peek(&mut [0])).await;
        }
    }
}

/// More than any segment has, other than of offloaded or local ones.
const ONE_SEGMENT: u64 = 65_535;

/// Reads until the client has ended its side, or sends nothing for too long though it has everything.
async fn discard(tcp: &TcpStream, patience: &Patience) {
    let mut discarded = [0; 4096];
    loop {
        match timeout(patience.silence, tcp.readable()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) if has_everything(tcp) => return,
            Err(_) => continue,
        }
        match tcp.try_read(&mut discarded) {
            Ok(0) => return,
            // One that sends without a pause must not keep its time from passing.
            Ok(_) => consume_budget().await,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

fn has_everything(tcp: &TcpStream) -> bool {
    sockets::undelivered(tcp).is_none_or(|bytes| bytes == 0)
}

/// Resolves if the client takes too little of what was written, or a while after it has everything.
async fn is_stalled(rate: Rate, tcp: &TcpStream, patience: &Patience) {
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
        sleep(patience.sending).await;
    };
    tokio::select! {
        () = taken => {}
        () = everything => {}
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{SocketAddr, TcpListener},
        thread,
    };

    use socket2::{Domain, Protocol, Socket, Type};
    use tokio::{io::AsyncWriteExt, task::spawn_blocking};

    use super::*;
    use crate::serve::Limits;

    const LONG: Duration = Duration::from_secs(3600);
    const BOUND: Duration = Duration::from_secs(20);

    /// A socket that speaks MPTCP if the kernel does, or TCP.
    fn socket(protocol: Protocol) -> Socket {
        let create = |protocol| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol));
        create(protocol).or_else(|_| create(Protocol::TCP)).expect("a socket")
    }

    /// A server that has answered and ended its direction, and what its client does, in a thread.
    async fn answered(
        protocol: Protocol,
        act: impl FnOnce(std::net::TcpStream) + Send + 'static,
    ) -> (TcpStream, thread::JoinHandle<()>) {
        let listener = socket(protocol);
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        listener.listen(1).expect("a backlog");
        let listener = TcpListener::from(listener);
        let address = listener.local_addr().expect("bound");
        let client = thread::spawn(move || {
            let client = socket(protocol);
            client.connect(&address.into()).expect("a connection");
            act(client.into());
        });
        let (server, _) = listener.accept().expect("a connection");
        server.set_nonblocking(true).expect("an open socket");
        let mut server = TcpStream::from_std(server).expect("a runtime");
        server.write_all(b"answer").await.expect("sent");
        server.shutdown().await.expect("ended");
        (server, client)
    }

    //= hostile http
    //# sending for ever after a refusal
    //= bound: `MAX_SENDING_TIME`
    #[tokio::test]
    async fn a_client_that_sends_for_ever_is_cut_after_its_time() {
        for protocol in [Protocol::TCP, Protocol::MPTCP] {
            let (server, client) = answered(protocol, |mut client| {
                let mut answer = String::new();
                client.read_to_string(&mut answer).expect("the whole answer");
                assert_eq!(answer, "answer");
                while client.write_all(&[b'.'; 65_536]).is_ok() {}
            })
            .await;
            let patience = Patience { silence: LONG, sending: Duration::from_millis(200) };
            let lingering = linger(Rate::minimum(&Limits::default()), &server, &patience);
            timeout(BOUND, lingering).await.expect("its time has passed");
            assert!(!client.is_finished(), "until here it could send");
            drop(server);
            let ended = spawn_blocking(|| client.join());
            timeout(BOUND, ended).await.expect("it is told").expect("a thread").expect("no panic");
        }
    }

    #[tokio::test]
    async fn a_client_that_sends_everything_before_it_reads_gets_the_answer() {
        let (server, client) = answered(Protocol::TCP, |mut client| {
            client.write_all(&vec![b'.'; 20_000_000]).expect("everything is taken");
            client.shutdown(std::net::Shutdown::Write).expect("an open socket");
            let mut answer = String::new();
            client.read_to_string(&mut answer).expect("the whole answer");
            assert_eq!(answer, "answer");
        })
        .await;
        let patience = Patience { silence: LONG, sending: LONG };
        let lingering = linger(Rate::minimum(&Limits::default()), &server, &patience);
        timeout(BOUND, lingering).await.expect("the client has ended");
        drop(server);
        client.join().expect("no panic");
    }
}
