//! Ports of this host that intercepted programs reach at the loopback addresses of their namespace.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas::race::target::TargetHost;
use eyas_relay::accept::accept_next;
use eyas_relay::copy::{self, CopyEnd, CopyUntil};
use eyas_relay::destination::{Destination, RequestRefusal};
use eyas_relay::handshake::HandshakeProtocol;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use crate::connection::ClientState;
use crate::report::ClientEnding;
use crate::shared::SharedProxy;

/// Starts to forward the connections of these listeners to their ports on this host, until the proxy ends.
pub(crate) fn start(
    shared: &Arc<SharedProxy>,
    listeners: Vec<std::net::TcpListener>,
) -> io::Result<()> {
    for listener in listeners {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = TcpListener::from_std(listener)?;
        let (shared, abort) = (Arc::clone(shared), shared.abort.clone());
        tokio::spawn(async move {
            abort.run_until_cancelled(accept(shared, listener, port)).await;
        });
    }
    Ok(())
}

async fn accept(shared: Arc<SharedProxy>, listener: TcpListener, port: u16) {
    loop {
        let (program, client) = accept_next(|| listener.accept(), |_| {}).await;
        shared.tasks.spawn(serve(Arc::clone(&shared), program, client, port));
    }
}

/// Serves a connection of a program until it ends, and reports the outcome.
async fn serve(shared: Arc<SharedProxy>, program: TcpStream, client: SocketAddr, port: u16) {
    shared.counters.accepted();
    let Ok(_permit) = shared.admission.admit_settled(client.ip(), None) else {
        return shared.counters.over_limit();
    };
    let mut client_state = ClientState::new(client);
    client_state.protocol = Some(HandshakeProtocol::Intercepted);
    client_state.destination =
        Some(Destination::new(TargetHost::Name("localhost".to_owned()), port));
    let ending = tokio::select! {
        ending = forward(&shared, &mut client_state, program, port) => ending,
        () = shared.abort.cancelled() => ClientEnding::Stopped,
    };
    client_state.report(&shared, ending);
}

/// Copies bytes between a program and a service of this host. If anything ends it before both directions have ended,
/// the program sees a reset.
async fn forward(
    shared: &SharedProxy,
    client_state: &mut ClientState,
    mut program: TcpStream,
    port: u16,
) -> ClientEnding {
    let _ = program.set_nodelay(true);
    let _ = SockRef::from(&program).set_linger(Some(Duration::ZERO));
    let mut service = match connect(port).await {
        Ok(service) => service,
        Err(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            let text = format!("nothing is listening on port {port} of this host");
            return ClientEnding::Refused(RequestRefusal::Refused(text));
        }
        Err(cause) => return ClientEnding::Refused(RequestRefusal::Failed(cause.to_string())),
    };
    let _ = service.set_nodelay(true);
    let kind = (CopyUntil::Both, shared.limits.idle_time);
    let end = copy::bidirectional(&mut program, &mut service, kind, &mut client_state.bytes).await;
    match end {
        CopyEnd::Both => {
            let _ = SockRef::from(&program).set_linger(None);
            ClientEnding::Done
        }
        CopyEnd::Idle => ClientEnding::Idle,
        CopyEnd::Client(error) => ClientEnding::Client(error.to_string()),
        CopyEnd::Destination(error) => ClientEnding::Destination(error.to_string()),
    }
}

async fn connect(port: u16) -> io::Result<TcpStream> {
    match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(service) => Ok(service),
        Err(cause) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.map_err(|_| cause),
    }
}
