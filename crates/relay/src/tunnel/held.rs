//! A session of the client that is held up: what the server listens at for it, and who is served here.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::ends::connect;
use super::forward::Forward;
use super::frame::{Purpose, Why};
use super::link::{Asked, ChannelStream, Link};
use super::packets::{Attachment, Interface, carry};
use super::reach::{Tunnel, TunnelError};
use super::session::End;
use super::sessions::Presence;
use super::setup::Setup;
use crate::handshake::Destination;

/// How long the server may take to let go of the ports of a session that another one takes the place of.
pub(super) const HANDOVER: Duration = Duration::from_secs(5);
/// Before it is asked for them once more.
const HANDOVER_PAUSE: Duration = Duration::from_millis(50);

/// A session, and what hangs on it.
#[derive(Debug)]
pub(super) struct Held {
    tunnel: Tunnel,
    /// What the server listens at.
    listening: Vec<ChannelStream>,
    /// Where each of these leads.
    leads: Vec<(u32, Destination)>,
    /// Programs of the server that are connected with here.
    served: JoinSet<()>,
    /// What carries the packets of the interface, if there is one.
    exchanging: JoinSet<()>,
    /// What was asked for, with the ports that the server has chosen.
    remote: Vec<Forward>,
    _presence: Presence,
}

impl Held {
    /// Has the server listen at these places; it may take so long to let go of them where the session before
    /// this one has had them.
    pub(super) async fn begin(
        setup: &Setup,
        tunnel: Tunnel,
        mut remote: Vec<Forward>,
        within: Duration,
    ) -> Result<Self, TunnelError> {
        let peer = format!("{}:{}", setup.target.host, setup.target.port);
        let presence = tunnel.enter(&setup.sessions, peer);
        let (mut listening, mut leads) = (Vec::new(), Vec::new());
        let until = Instant::now() + within;
        for forward in &mut remote {
            let channel = loop {
                match ask_to_listen(&tunnel.link, forward).await {
                    Ok(channel) => break channel,
                    Err(_) if Instant::now() < until => sleep(HANDOVER_PAUSE).await,
                    Err(error) => return Err(error),
                }
            };
            let text = format!("{} at the server leads to {}", forward.at, forward.to);
            setup.observer.say("listening", text);
            leads.push((channel.id(), forward.to.clone()));
            listening.push(channel);
        }
        let mut exchanging = JoinSet::new();
        if let Some(interface) = &setup.interface {
            exchanging.spawn(exchange(&tunnel.link, interface, until).await?);
            let text = format!("{} exchanges packets with the server", interface.config().name);
            setup.observer.say("exchanging", text);
        }
        let served = JoinSet::new();
        Ok(Self { tunnel, listening, leads, served, exchanging, remote, _presence: presence })
    }

    /// Has the server listen and exchange packets no more, and says what it has listened at.
    pub(super) fn let_go_of_ports(&mut self) -> Vec<Forward> {
        self.listening.clear();
        self.exchanging.abort_all();
        self.remote.clone()
    }

    pub(super) fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    /// Serves what the server asks for until the session is over. Cancel-safe.
    pub(super) async fn serve(&mut self, setup: &Arc<Setup>) -> End {
        loop {
            let asked = tokio::select! {
                end = &mut self.tunnel.running => {
                    return end.unwrap_or_else(|_| End::Lost("it ended".to_owned()));
                }
                Some(asked) = self.tunnel.questions.next() => asked,
            };
            while self.served.try_join_next().is_some() {}
            let lead = match &asked.purpose {
                Purpose::Accepted { listen, .. } => {
                    self.leads.iter().find(|(id, _)| id == listen).map(|(_, to)| to.clone())
                }
                _ => None,
            };
            match lead {
                Some(to) => {
                    self.served.spawn(answer(Arc::clone(setup), asked, to));
                }
                None => {
                    asked.refuse(Why::NotAllowed, "this client has not requested it".to_owned())
                }
            }
        }
    }

    /// Ends the session, and what is open over it.
    pub(super) async fn end(self) {
        self.tunnel.end().await;
    }

    /// Ends the session once nothing is open over it any more.
    pub(super) async fn retire(mut self, setup: Arc<Setup>, stop: CancellationToken) {
        let link = self.tunnel.link.clone();
        tokio::select! {
            _ = self.serve(&setup) => return,
            () = link.empty() => {}
            () = stop.cancelled() => {}
        }
        self.end().await;
    }
}

/// Asks for one place, and fills in its port where the server chooses.
async fn ask_to_listen(link: &Link, forward: &mut Forward) -> Result<ChannelStream, TunnelError> {
    let (bind, port) = (forward.at.bind.clone(), forward.at.port);
    let asked = link.open(Purpose::Listen { bind, port }).await;
    let (channel, port) = asked.map_err(|(why, words)| {
        let what = format!("the server does not listen at {}", forward.at);
        TunnelError::Refused { what, why, words }
    })?;
    forward.at.port = port;
    Ok(channel)
}

/// Asks the server to exchange packets with this interface, and gives what does so here. The session before
/// this one may not have let go of them yet.
async fn exchange(
    link: &Link,
    interface: &Interface,
    until: Instant,
) -> Result<impl Future<Output = ()> + use<>, TunnelError> {
    let (attachment, channel) = loop {
        match ask_to_exchange(link, interface).await {
            Ok(asked) => break asked,
            Err(_) if Instant::now() < until => sleep(HANDOVER_PAUSE).await,
            Err(error) => return Err(error),
        }
    };
    let link = link.clone();
    Ok(async move { carry(&link, channel, attachment).await })
}

async fn ask_to_exchange(
    link: &Link,
    interface: &Interface,
) -> Result<(Attachment, ChannelStream), TunnelError> {
    let refused = |why, words| {
        let what = format!("the server exchanges no packets with {}", interface.config().name);
        TunnelError::Refused { what, why, words }
    };
    let attachment = interface.attach(&interface.beyond()).map_err(|network| {
        refused(Why::Failed, format!("another session has the packets of {network}"))
    })?;
    let asked = link.open(Purpose::Packets { addresses: interface.addresses() }).await;
    let (channel, _) = asked.map_err(|(why, words)| refused(why, words))?;
    Ok((attachment, channel))
}

/// Connects a program of the server with where it is to be led.
async fn answer(setup: Arc<Setup>, asked: Asked, to: Destination) {
    match connect(&setup.endpoint, &Arc::default(), &to).await {
        Ok(reached) => reached.pass(asked.accept(0)).await,
        Err((why, words)) => {
            setup.observer.complain("unreachable", format!("{to}: {words}"));
            asked.refuse(why, words);
        }
    }
}
