//! Links between two ends, of which some go silent.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio_util::sync::CancellationToken;

use crate::wait;

/// Forwards a connection until it goes silent, without closing anything.
pub(crate) struct Line {
    pub(crate) port: u16,
    silence: CancellationToken,
    is_silent: CancellationToken,
}

impl Line {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
        let port = listener.local_addr().expect("an address").port();
        let (silence, is_silent) = (CancellationToken::new(), CancellationToken::new());
        let (requested, reached) = (silence.clone(), is_silent.clone());
        tokio::spawn(async move {
            let (mut near, _) = listener.accept().await.expect("a connection");
            let mut far = TcpStream::connect(address).await.expect("it listens");
            tokio::select! {
                biased;
                () = requested.cancelled() => {}
                _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            }
            reached.cancel();
            std::future::pending::<()>().await;
        });
        Self { port, silence, is_silent }
    }

    /// Returns once nothing more is forwarded.
    pub(crate) async fn go_silent(&self) {
        self.silence.cancel();
        wait(self.is_silent.cancelled()).await;
    }
}

/// Forwards datagrams between the server and the last client that has sent one.
pub(crate) async fn forward_udp(port: u16, server: SocketAddr) {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).await.expect("it is our port");
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback");
    far.connect(server).await.expect("an address");
    tokio::spawn(async move {
        let (mut out, mut back) = ([0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((length, from)) = near.recv_from(&mut out) => {
                    client = Some(from);
                    let _ = far.send(&out[..length]).await;
                }
                Ok(length) = far.recv(&mut back), if client.is_some() => {
                    let _ = near.send_to(&back[..length], client.expect("a client")).await;
                }
            }
        }
    });
}

/// Forwards only TCP.
pub(crate) async fn forward_tcp(port: u16, server: SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("it is our port");
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = TcpStream::connect(server).await.expect("it listens");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
}
