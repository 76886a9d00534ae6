//! A UDP shim that delays what a client sends.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    net::UdpSocket,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

/// The maximum number of clients; datagrams of further ones are lost.
const MAX_CLIENTS: usize = 256;

/// The maximum number of datagrams of one client in flight; further ones are lost, as in any router
/// queue.
const MAX_DATAGRAMS: usize = 1024;

/// How long a client may send nothing before it is forgotten.
const CLIENT_IDLE: Duration = Duration::from_secs(120);

/// The maximum size of a datagram.
const DATAGRAM: usize = 65_536;

type DelayQueue = mpsc::Sender<(Instant, Bytes)>;

/// Forwards datagrams to `inner`, delaying what clients send by `by`.
pub(crate) async fn run(outer: UdpSocket, inner: SocketAddr, by: Duration) {
    let outer = Arc::new(outer);
    let mut clients: HashMap<SocketAddr, DelayQueue> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        while tasks.try_join_next().is_some() {}
        // An error here concerns an earlier answer (ICMP), not the next datagram.
        let Ok((length, client)) = outer.recv_from(&mut buffer).await else { continue };
        clients.retain(|_, queue| !queue.is_closed());
        if !clients.contains_key(&client) && clients.len() < MAX_CLIENTS {
            let (queue, datagrams) = mpsc::channel(MAX_DATAGRAMS);
            tasks.spawn(forward(Arc::clone(&outer), client, inner, datagrams));
            clients.insert(client, queue);
        }
        if let Some(queue) = clients.get(&client) {
            let _ =
                queue.try_send((Instant::now() + by, Bytes::copy_from_slice(&buffer[..length])));
        }
    }
}

/// Forwards one client's datagrams until the client is idle.
async fn forward(
    outer: Arc<UdpSocket>,
    client: SocketAddr,
    inner: SocketAddr,
    mut datagrams: mpsc::Receiver<(Instant, Bytes)>,
) {
    let Ok(upstream) = connected(inner).await else { return };
    let to_server = async {
        while let Ok(Some((due, datagram))) = timeout(CLIENT_IDLE, datagrams.recv()).await {
            sleep_until(due).await;
            let _ = upstream.send(&datagram).await;
        }
    };
    let to_client = async {
        let mut buffer = vec![0; DATAGRAM];
        loop {
            if let Ok(length) = upstream.recv(&mut buffer).await {
                let _ = outer.send_to(&buffer[..length], client).await;
            }
        }
    };
    tokio::select! {
        () = to_server => {}
        () = to_client => {}
    }
}

async fn connected(inner: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::new(inner.ip(), 0)).await?;
    socket.connect(inner).await?;
    Ok(socket)
}
