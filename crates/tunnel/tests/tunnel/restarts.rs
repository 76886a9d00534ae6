//! Servers that are killed and restarted, and paths that forget: programs that connect afterwards do not wait until
//! somebody gives the old session up.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use eyas::race::candidate::Transport;
use eyas_tunnel::{ClientForwards, TunnelNotice};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::{ALL, Stage, TIMEOUT, converse, destination, echo, forward, ports, wait};

/// Runs a stage in a runtime of its own.
async fn run<F>(start: F) -> (Runtime, Stage)
where
    F: Future<Output = Stage> + Send + 'static,
{
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
    let stage = wait(runtime.spawn(start)).await.expect("it starts");
    (runtime, stage)
}

/// Ends a runtime with everything in it, as a kill ends a process.
fn kill(runtime: Runtime) {
    tokio::task::block_in_place(|| runtime.shutdown_timeout(TIMEOUT));
}

/// Returns the notices so far.
fn so_far(notices: &Receiver<TunnelNotice>) -> Vec<TunnelNotice> {
    notices.try_iter().collect()
}

async fn connect(port: u16) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens")
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_after_a_restart_of_the_server_are_served_over_every_transport() {
    let port = echo().await;
    for transport in ALL {
        let (first, mut stage) = run(Stage::new("")).await;
        let (here, there) = (ports::own_port(), ports::own_port());
        let forwards = ClientForwards {
            local: vec![forward(format!("127.0.0.1:{here}:127.0.0.1:{port}"))],
            remote: vec![forward(format!("{there}:127.0.0.1:{port}"))],
            ..ClientForwards::default()
        };
        let at = stage.address.port();
        let (stop, notices, running, _) = stage.client_over(at, &[transport], forwards).await;
        converse(connect(here).await, 1000).await;
        kill(first);
        stage.running = None;
        let (second, _stage) = run(async move {
            stage.start().await;
            stage
        })
        .await;
        // All of them wait for the same new session.
        let programs = (0..5).map(|_| async { converse(connect(here).await, 1000).await });
        futures_util::future::join_all(programs).await;
        // The ports at the server come back as well, perhaps a moment later.
        wait(async {
            let mut received = String::new();
            while received != "again" {
                received.clear();
                let Ok(mut program) = TcpStream::connect((Ipv4Addr::LOCALHOST, there)).await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                if program.write_all(b"again").await.is_ok() && program.shutdown().await.is_ok() {
                    // It is reset if the server does not yet know where it leads.
                    let _ = program.read_to_string(&mut received).await;
                }
            }
        })
        .await;
        let notices = so_far(&notices);
        let gave_up = notices.iter().any(|notice| notice.text.contains("nothing was received"));
        assert!(!gave_up, "{transport}: {notices:?}");
        // The restarted server sends a stateless reset. Elsewhere, or if that is late, another session is tried.
        let is_told = notices.iter().any(|notice| notice.text.contains("as after a restart"));
        let is_replaced = notices.iter().any(|notice| notice.event == "replaced");
        if transport == Transport::Quic {
            assert!(is_told || is_replaced, "{notices:?}");
        }
        stop.cancel();
        wait(running).await.expect("it ends").expect("it was stopped");
        kill(second);
    }
}

/// A middlebox that translates ports: from time to time it forgets all connections through it.
#[derive(Clone)]
pub(crate) struct Middlebox {
    server: SocketAddr,
    flows: Arc<Mutex<BTreeMap<SocketAddr, Flow>>>,
    /// What ends with a connection that is forgotten; nothing that its ends would notice.
    streams: Arc<Mutex<Vec<JoinHandle<()>>>>,
    held: Arc<Mutex<Vec<TcpStream>>>,
}

struct Flow {
    far: Arc<UdpSocket>,
    back: JoinHandle<()>,
}

impl Middlebox {
    /// Forwards UDP and TCP from this port to the server.
    pub(crate) async fn new(port: u16, server: SocketAddr) -> Self {
        let this =
            Self { server, flows: Arc::default(), streams: Arc::default(), held: Arc::default() };
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).await.expect("it is our port");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("our port");
        tokio::spawn(this.clone().forward_udp(Arc::new(near)));
        tokio::spawn(this.clone().forward_tcp(listener));
        this
    }

    async fn forward_udp(self, near: Arc<UdpSocket>) {
        let mut datagram = [0; 2048];
        loop {
            let Ok((length, from)) = near.recv_from(&mut datagram).await else { continue };
            let known =
                self.flows.lock().expect("the lock").get(&from).map(|flow| flow.far.clone());
            let far = match known {
                Some(far) => far,
                None => {
                    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
                    far.connect(self.server).await.expect("an address");
                    let far = Arc::new(far);
                    let (near, answers) = (Arc::clone(&near), Arc::clone(&far));
                    let back = tokio::spawn(async move {
                        let mut datagram = [0; 2048];
                        loop {
                            if let Ok(length) = answers.recv(&mut datagram).await {
                                let _ = near.send_to(&datagram[..length], from).await;
                            }
                        }
                    });
                    let flow = Flow { far: Arc::clone(&far), back };
                    self.flows.lock().expect("the lock").insert(from, flow);
                    far
                }
            };
            let _ = far.send(&datagram[..length]).await;
        }
    }

    async fn forward_tcp(self, listener: TcpListener) {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(self.server).await.expect("it listens");
            let held = Arc::clone(&self.held);
            let copying = tokio::spawn(async move {
                let mut streams = Streams { pair: Some((near, far)), held };
                if let Some((near, far)) = &mut streams.pair {
                    let _ = tokio::io::copy_bidirectional(near, far).await;
                }
                streams.pair = None;
            });
            self.streams.lock().expect("the lock").push(copying);
        }
    }

    pub(crate) fn forget(&self) {
        for flow in std::mem::take(&mut *self.flows.lock().expect("the lock")).into_values() {
            flow.back.abort();
        }
        self.streams.lock().expect("the lock").drain(..).for_each(|copying| copying.abort());
    }
}

/// A connection through the middlebox. If it is forgotten, it stays open, but nobody reads it any more.
struct Streams {
    pair: Option<(TcpStream, TcpStream)>,
    held: Arc<Mutex<Vec<TcpStream>>>,
}

impl Drop for Streams {
    fn drop(&mut self) {
        if let Some((near, far)) = self.pair.take() {
            self.held.lock().expect("the lock").extend([near, far]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_after_a_middlebox_forgot_the_session_are_served_over_every_transport() {
    let (port, (answers, mut ends)) = (echo().await, destination().await);
    for transport in ALL {
        let mut stage = Stage::new("").await;
        let at = ports::own_port();
        // SCTP inside UDP has a UDP port of its own, and the SCTP port stays the server's.
        let (server, target) = match transport {
            Transport::SctpUdp => {
                ((stage.address.ip(), stage.sctp_port).into(), stage.address.port())
            }
            _ => (stage.address, at),
        };
        let middlebox = Middlebox::new(at, server).await;
        stage.sctp_port = at;
        let (here, other) = (ports::own_port(), ports::own_port());
        let local = [(here, port), (other, answers)];
        let local = local.map(|(at, to)| forward(format!("127.0.0.1:{at}:127.0.0.1:{to}")));
        let forwards = ClientForwards { local: local.to_vec(), ..ClientForwards::default() };
        let (stop, notices, running, _) = stage.client_over(target, &[transport], forwards).await;
        converse(connect(here).await, 1000).await;
        let mut open = connect(other).await;
        open.write_all(b"x").await.expect("writes");
        wait(open.read_u8()).await.expect("an answer");
        middlebox.forget();
        converse(connect(here).await, 1000).await;
        let notices = so_far(&notices);
        let gave_up = notices.iter().any(|notice| notice.text.contains("nothing was received"));
        assert!(!gave_up, "{transport}: {notices:?}");
        let is_replaced = notices.iter().any(|notice| notice.event == "replaced");
        // Over QUIC a connection moves to the new port (RFC 9000 §9.3.3), unless that takes too long.
        assert!(is_replaced || transport == Transport::Quic, "{transport}: {notices:?}");
        if !is_replaced {
            open.shutdown().await.expect("ends");
            assert_eq!(wait(ends.recv()).await.expect("an end").expect("as it should"), 0);
        }
        stop.cancel();
        wait(running).await.expect("it ends").expect("it was stopped");
    }
}
