//! A link between two ends that goes silent.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};
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
