//! The end that connects: it listens for local programs, has the server listen for remote ones, and reconnects when
//! the session is over.

use std::sync::Arc;
use std::time::Duration;

use eyas::Endpoint;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::client_session::{ClientSession, HANDOVER};
use super::dynamic::{ProxyRequest, read_request};
use super::forward::{Forward, Place};
use super::frame::{Purpose, RefuseReason};
use super::link::{ChannelStream, Link};
use super::notice::{Notice, Observer, ThrottledWarnings};
use super::packets::Interface;
use super::probing::Probing;
use super::reach::{Tunnel, TunnelError};
use super::session::SessionLimits;
use super::sessions::Sessions;
use super::setup::Setup;
use super::sockets::{accept, forward, listen, reset_when_dropped};
use crate::handshake::{Destination, Refusal};

/// How long a connected program waits for a session.
const SESSION_TIME: Duration = Duration::from_secs(30);
/// The limit on concurrent programs, over all listeners. Further ones wait to be accepted.
const MAX_PROGRAMS: usize = 4096;
/// The first and the longest pause before reconnecting. Each pause is twice as long as the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
/// After a session that lasted this long, the pauses start with the first one.
const STABLE: Duration = Duration::from_secs(30);

/// The forwardings of a client.
#[derive(Clone, Debug, Default)]
pub struct Forwards {
    /// Listen at this end, and have the other end connect.
    pub local: Vec<Forward>,
    /// Have the other end listen, and connect at this end.
    pub remote: Vec<Forward>,
    /// Listen at this end for SOCKS and HTTP CONNECT, and have the other end connect to the requested destinations.
    pub dynamic: Vec<Place>,
    /// Exchange packets between this interface and that of the other end.
    pub interface: Option<Interface>,
}

/// A tunnel that is kept up: it reconnects whenever its session is over, and moves to a transport with streams when
/// one is available.
#[derive(Debug)]
pub struct Client {
    setup: Arc<Setup>,
    probing: Probing,
    listeners: Vec<(TcpListener, Kind)>,
}

/// The kind of a listener.
#[derive(Clone, Debug)]
enum Kind {
    Local(Destination),
    Dynamic,
}

impl Client {
    /// Listens for local programs. Sessions are opened by this endpoint, which must trust only the key of the
    /// server.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn new(
        endpoint: Endpoint,
        (target, policy): (Target, Policy),
        forwards: Forwards,
        probing: Probing,
        observer: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Result<Self, TunnelError> {
        let observer = Observer(Arc::new(observer));
        let mut listeners = Vec::new();
        let local = forwards.local.iter().map(|one| (&one.at, Kind::Local(one.to.clone())));
        let dynamic = forwards.dynamic.iter().map(|at| (at, Kind::Dynamic));
        for (at, kind) in local.chain(dynamic) {
            let (bound, port) =
                listen(at).map_err(|why| TunnelError::Listen(at.clone(), why.to_string()))?;
            let at = Place { port, ..at.clone() };
            let leads = match &kind {
                Kind::Local(to) => to.to_string(),
                Kind::Dynamic => "the destinations of SOCKS and CONNECT".to_owned(),
            };
            observer.notify("listening", format!("{at} leads to {leads}"));
            listeners.extend(bound.into_iter().map(|one| (one, kind.clone())));
        }
        let Forwards { remote, interface, .. } = forwards;
        let limits = SessionLimits::default();
        let programs = Arc::new(Semaphore::new(MAX_PROGRAMS));
        let sessions = Sessions::default();
        let setup = Setup {
            endpoint,
            target,
            policy,
            remote,
            interface,
            observer,
            limits,
            programs,
            sessions,
        };
        Ok(Self { setup: Arc::new(setup), probing, listeners })
    }

    /// Returns its sessions: none while it reconnects; otherwise the one for new connections, and those with
    /// connections that are still open.
    pub fn sessions(&self) -> Sessions {
        self.setup.sessions.clone()
    }

    /// Runs over this session and those after it until it is stopped.
    ///
    /// # Errors
    /// If the first session does not grant everything that was requested.
    pub async fn run(self, first: Tunnel, stop: CancellationToken) -> Result<(), TunnelError> {
        let (sender, sessions) = watch::channel(None);
        let mut tasks = JoinSet::new();
        for (listener, kind) in self.listeners {
            tasks.spawn(serve_all(Arc::clone(&self.setup), listener, kind, sessions.clone()));
        }
        let setup = &self.setup;
        let mut retiring = JoinSet::new();
        let remote = setup.remote.clone();
        let mut session = ClientSession::begin(setup, first, remote, Duration::ZERO).await?;
        loop {
            let began = Instant::now();
            sender.send_replace(Some(session.tunnel().link.clone()));
            let transport = session.tunnel().transport;
            let next = tokio::select! {
                () = stop.cancelled() => {
                    session.end().await;
                    break;
                }
                end = session.serve(setup) => Err(end.to_string()),
                better = self.probing.better(setup, transport) => {
                    sender.send_replace(Some(better.link.clone()));
                    setup.observer.notify("moved", move_text(session.tunnel(), &better));
                    let remote = session.release_ports();
                    retiring.spawn(session.retire(Arc::clone(setup), stop.clone()));
                    let begun = ClientSession::begin(setup, better, remote, HANDOVER).await;
                    begun.map_err(|error| error.to_string())
                }
            };
            session = match next {
                Ok(session) => session,
                Err(reason) => {
                    sender.send_replace(None);
                    match setup.restore(reason, began.elapsed(), &stop).await {
                        Some(session) => session,
                        None => break,
                    }
                }
            };
        }
        while retiring.join_next().await.is_some() {}
        Ok(())
    }
}

fn move_text(former: &Tunnel, better: &Tunnel) -> String {
    format!(
        "connected over {} as well: new connections use it, open ones stay on {}",
        better.description, former.description
    )
}

impl Setup {
    /// Replaces a session that is over, however long that takes. Returns `None` if it is stopped.
    async fn restore(
        &self,
        mut reason: String,
        duration: Duration,
        stop: &CancellationToken,
    ) -> Option<ClientSession> {
        let mut pause = if duration >= STABLE { PAUSES.0 } else { 4 * PAUSES.0 };
        loop {
            self.observer.warn("disconnected", format!("{reason}; reconnecting"));
            let tunnel = self.reconnect(pause, stop).await?;
            tokio::select! {
                () = stop.cancelled() => return None,
                begun = ClientSession::begin(self, tunnel, self.remote.clone(), Duration::ZERO) => {
                    match begun {
                        Ok(session) => return Some(session),
                        Err(error) => reason = error.to_string(),
                    }
                }
            }
            pause = 4 * PAUSES.0;
        }
    }

    /// Reconnects, however long that takes.
    async fn reconnect(&self, mut pause: Duration, stop: &CancellationToken) -> Option<Tunnel> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return None,
                () = sleep(pause) => {}
            }
            pause = (2 * pause).min(PAUSES.1);
            tokio::select! {
                () = stop.cancelled() => return None,
                begun = self.begin(&self.target, &self.policy) => match begun {
                    Ok(tunnel) => {
                        let text = format!("reconnected over {}", tunnel.description);
                        self.observer.notify("connected", text);
                        return Some(tunnel);
                    }
                    Err(error) => {
                        self.observer.warn("unreachable", format!("{error}; trying again"));
                    }
                },
            }
        }
    }
}

/// Serves every program that connects to a listener.
async fn serve_all(
    setup: Arc<Setup>,
    listener: TcpListener,
    kind: Kind,
    sessions: watch::Receiver<Option<Link>>,
) {
    let mut tasks = JoinSet::new();
    let warnings = ThrottledWarnings::new(setup.observer.clone());
    loop {
        while tasks.try_join_next().is_some() {}
        // First the permit, then the program: without a permit, programs wait in the kernel's queue.
        let Ok(permit) = Arc::clone(&setup.programs).acquire_owned().await else { return };
        let Some((client, _)) = accept(&listener, &warnings).await else { continue };
        let (setup, kind, sessions) = (Arc::clone(&setup), kind.clone(), sessions.clone());
        tasks.spawn(async move {
            match kind {
                Kind::Local(to) => serve_local(&setup, client, to, sessions).await,
                Kind::Dynamic => serve_dynamic(&setup, client, sessions).await,
            }
            drop(permit);
        });
    }
}

/// Opens a channel to this destination over the current session, or the next one.
async fn open_channel(
    to: Destination,
    mut sessions: watch::Receiver<Option<Link>>,
) -> Result<ChannelStream, (RefuseReason, String)> {
    let opening = match timeout(SESSION_TIME, sessions.wait_for(Option::is_some)).await {
        // Under the lock, so that a session being replaced has this channel before it is found empty.
        Ok(Ok(session)) => session.as_ref().map(|link| link.open(Purpose::Connect(to))),
        _ => None,
    };
    match opening {
        Some(opening) => opening.await.map(|(channel, _)| channel),
        None => Err((RefuseReason::Failed, "there is no session with the server".to_owned())),
    }
}

async fn serve_local(
    setup: &Setup,
    client: TcpStream,
    to: Destination,
    sessions: watch::Receiver<Option<Link>>,
) {
    reset_when_dropped(&client);
    match open_channel(to.clone(), sessions).await {
        Ok(channel) => {
            forward(client, channel).await;
        }
        Err((_, reason)) => setup.observer.warn("refused", format!("{to}: {reason}")),
    }
}

async fn serve_dynamic(
    setup: &Setup,
    mut client: TcpStream,
    sessions: watch::Receiver<Option<Link>>,
) {
    let Some(ProxyRequest { to, handshake }) = read_request(&mut client).await else { return };
    match open_channel(to.clone(), sessions).await {
        Ok(mut channel) => {
            let granted = handshake.granted(None);
            let rest = handshake.into_rest();
            let is_granted = client.write_all(&granted).await.is_ok();
            if is_granted && channel.write_all(&rest).await.is_ok() {
                forward(client, channel).await;
            }
        }
        Err((why, reason)) => {
            setup.observer.warn("refused", format!("{to}: {reason}"));
            let refusal = match why {
                RefuseReason::NotAllowed => Refusal::NotAllowed(reason),
                _ => Refusal::HostUnreachable(reason),
            };
            let _ = client.write_all(&handshake.refused(&refusal)).await;
            let _ = client.shutdown().await;
        }
    }
}
