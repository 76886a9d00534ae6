//! A session of a client: the ports that the server listens at for it, and the connections from there.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::error::TunnelError;
use crate::forward::{ForwardTo, PortForward};
use crate::frame::{ChannelPurpose, RefuseReason};
use crate::link::{ChannelRequest, ChannelStream, SessionLink};
use crate::packets::{InterfaceAttachment, TunnelInterface, exchange_packets};
use crate::server_tunnel::ServerTunnel;
use crate::session::SessionEnd;
use crate::sessions::SessionPresence;
use crate::setup::TunnelSetup;
use crate::sockets::{connect, connect_unix};

/// How long the server may take to release the ports of a session that is being replaced.
pub(crate) const HANDOVER: Duration = Duration::from_secs(5);
/// The pause before the ports are requested again.
const HANDOVER_PAUSE: Duration = Duration::from_millis(50);

/// A session with everything that depends on it.
#[derive(Debug)]
pub(crate) struct ClientSession {
    tunnel: ServerTunnel,
    /// The channels for which the server listens.
    listening: Vec<ChannelStream>,
    /// The destinations of these channels.
    destinations: Vec<(u32, ForwardTo)>,
    /// The tasks that serve connections from the server.
    served: JoinSet<()>,
    /// The task that exchanges the packets of the interface, if there is one.
    exchanging: JoinSet<()>,
    /// The remote forwardings, with the ports that the server has chosen.
    remote: Vec<PortForward>,
    _presence: SessionPresence,
}

impl ClientSession {
    /// Has the server listen for these forwardings. If the session before this one used the same ports, the
    /// server may take this long to release them.
    pub(crate) async fn begin(
        setup: &TunnelSetup,
        tunnel: ServerTunnel,
        mut remote: Vec<PortForward>,
        within: Duration,
    ) -> Result<Self, TunnelError> {
        let peer = format!("{}:{}", setup.target.host, setup.target.port);
        let presence = tunnel.enter(&setup.sessions, peer);
        let (mut listening, mut destinations) = (Vec::new(), Vec::new());
        let until = Instant::now() + within;
        for forward in &mut remote {
            let channel = loop {
                match request_listener(&tunnel.link, forward).await {
                    Ok(channel) => break channel,
                    Err(_) if Instant::now() < until => sleep(HANDOVER_PAUSE).await,
                    Err(error) => return Err(error),
                }
            };
            let text = format!("{} at the server leads to {}", forward.at, forward.to);
            setup.observer.notify("listening", text);
            destinations.push((channel.id(), forward.to.clone()));
            listening.push(channel);
        }
        let mut exchanging = JoinSet::new();
        if let Some(interface) = &setup.interface {
            exchanging.spawn(attach_interface(&tunnel.link, interface, until).await?);
            let text = format!("{} exchanges packets with the server", interface.config().name);
            setup.observer.notify("exchanging", text);
        }
        let served = JoinSet::new();
        let _presence = presence;
        Ok(Self { tunnel, listening, destinations, served, exchanging, remote, _presence })
    }

    /// Has the server stop listening and exchanging packets. Returns the forwardings for the next session.
    pub(crate) fn release_ports(&mut self) -> Vec<PortForward> {
        self.listening.clear();
        self.exchanging.abort_all();
        self.remote.clone()
    }

    pub(crate) fn tunnel(&self) -> &ServerTunnel {
        &self.tunnel
    }

    /// Serves the server's requests until the session is over. Cancel-safe.
    pub(crate) async fn serve(&mut self, setup: &Arc<TunnelSetup>) -> SessionEnd {
        loop {
            let request = tokio::select! {
                end = &mut self.tunnel.running => {
                    return end.unwrap_or_else(|_| SessionEnd::Lost("it ended".to_owned()));
                }
                Some(request) = self.tunnel.requests.next() => request,
            };
            while self.served.try_join_next().is_some() {}
            let destination = match &request.purpose {
                ChannelPurpose::Accepted { listen, .. } => {
                    let mut destinations = self.destinations.iter();
                    destinations.find(|(id, _)| id == listen).map(|(_, to)| to.clone())
                }
                _ => None,
            };
            match destination {
                Some(to) => {
                    self.served.spawn(serve(Arc::clone(setup), request, to));
                }
                None => request.refuse(
                    RefuseReason::NotAllowed,
                    "this client has not requested it".to_owned(),
                ),
            }
        }
    }

    /// Ends the session with all its connections.
    pub(crate) async fn end(self) {
        self.tunnel.end().await;
    }

    /// Ends the session once it has no more connections.
    pub(crate) async fn retire(mut self, setup: Arc<TunnelSetup>, stop: CancellationToken) {
        let link = self.tunnel.link.clone();
        tokio::select! {
            _ = self.serve(&setup) => return,
            () = link.empty() => {}
            () = stop.cancelled() => {}
        }
        self.end().await;
    }
}

/// Requests a listener, and stores its port if the server has chosen it.
async fn request_listener(
    link: &SessionLink,
    forward: &mut PortForward,
) -> Result<ChannelStream, TunnelError> {
    let opened = link.open(forward.at.purpose()).await;
    let (channel, port) = opened.map_err(|(why, text)| {
        let what = format!("the server does not listen at {}", forward.at);
        TunnelError::Refused { what, why, text }
    })?;
    forward.at.set_port(port);
    Ok(channel)
}

/// Requests that the server exchanges packets with this interface, and returns the task that does so at this
/// end. The server may not have released the addresses of the session before this one.
async fn attach_interface(
    link: &SessionLink,
    interface: &TunnelInterface,
    until: Instant,
) -> Result<impl Future<Output = ()> + use<>, TunnelError> {
    let (attachment, channel) = loop {
        match request_packets(link, interface).await {
            Ok(granted) => break granted,
            Err(_) if Instant::now() < until => sleep(HANDOVER_PAUSE).await,
            Err(error) => return Err(error),
        }
    };
    let link = link.clone();
    Ok(async move { exchange_packets(&link, channel, attachment).await })
}

async fn request_packets(
    link: &SessionLink,
    interface: &TunnelInterface,
) -> Result<(InterfaceAttachment, ChannelStream), TunnelError> {
    let refused = |why, text| {
        let what = format!("the server exchanges no packets with {}", interface.config().name);
        TunnelError::Refused { what, why, text }
    };
    let attachment = interface.attach(&interface.remote_networks()).map_err(|network| {
        refused(RefuseReason::Failed, format!("another session has the packets of {network}"))
    })?;
    let opened = link.open(ChannelPurpose::Packets { addresses: interface.addresses() }).await;
    let (channel, _) = opened.map_err(|(why, text)| refused(why, text))?;
    Ok((attachment, channel))
}

/// Connects a program at the server to its destination.
async fn serve(setup: Arc<TunnelSetup>, request: ChannelRequest, to: ForwardTo) {
    let reached = match &to {
        ForwardTo::Tcp(to) => connect(&setup.endpoint, &Arc::default(), to).await,
        ForwardTo::Unix(path) => connect_unix(path).await,
    };
    match reached {
        Ok(reached) => reached.forward(request.accept(0)).await,
        Err((why, reason)) => {
            setup.observer.warn("unreachable", format!("{to}: {reason}"));
            request.refuse(why, reason);
        }
    }
}
