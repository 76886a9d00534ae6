//! The end that connects: it listens for local programs, has the server listen for remote ones, and reconnects when
//! the session is over.

use std::sync::Arc;
use std::time::Duration;

use eyas::Endpoint;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use eyas_relay::destination::RequestRefusal;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::client_session::{ClientSession, HANDOVER};
use crate::demand::TunnelDemand;
use crate::dynamic::{ProxyRequest, read_request};
use crate::error::TunnelError;
use crate::forward::{ForwardTo, ListenAt, ListenPlace, PortForward};
use crate::frame::{ChannelPurpose, RefuseReason};
use crate::link::{ChannelStream, SessionLink};
use crate::liveness::ReconnectAttempts;
use crate::local::{LocalListener, LocalStream, reset_when_dropped};
use crate::notice::{NoticeObserver, ThrottledWarnings, TunnelNotice};
use crate::packets::TunnelInterface;
use crate::probing::ProbingTimes;
use crate::proxied::ServerProxy;
use crate::server_tunnel::ServerTunnel;
use crate::session::SessionLimits;
use crate::sessions::CurrentSessions;
use crate::setup::TunnelSetup;
use crate::sockets::{accept, forward, listen};

/// How long a connected program waits for a session.
const SESSION_TIME: Duration = Duration::from_secs(30);
/// How long a request for a connection may remain unanswered before the server is asked if it is there. A destination
/// may take longer, and then costs one PING.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// The limit on concurrent programs, over all listeners. Further ones wait to be accepted.
const MAX_PROGRAMS: usize = 4096;

/// The forwardings of a client.
#[derive(Clone, Debug, Default)]
pub struct ClientForwards {
    /// Listen at this end, and have the other end connect.
    pub local: Vec<PortForward>,
    /// Have the other end listen, and connect at this end.
    pub remote: Vec<PortForward>,
    /// Listen at this end for SOCKS and HTTP CONNECT, and have the other end connect to the requested destinations.
    pub dynamic: Vec<ListenPlace>,
    /// Exchange packets between this interface and that of the other end.
    pub interface: Option<TunnelInterface>,
}

/// A tunnel that is kept up: it reconnects whenever its session is over, and moves to a transport with streams when
/// one is available.
#[derive(Debug)]
pub struct TunnelClient {
    setup: TunnelSetup,
    probing: ProbingTimes,
    listeners: Vec<(LocalListener, ListenerKind)>,
}

/// The kind of a listener.
#[derive(Clone, Debug)]
enum ListenerKind {
    Local(ForwardTo),
    Dynamic,
}

impl TunnelClient {
    /// Listens for local programs. Sessions are opened by this endpoint, which must trust only the key of the
    /// server.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn new(
        endpoint: Endpoint,
        (target, policy): (Target, Policy),
        forwards: ClientForwards,
        probing: ProbingTimes,
        observer: impl Fn(TunnelNotice) + Send + Sync + 'static,
    ) -> Result<Self, TunnelError> {
        let observer = NoticeObserver(Arc::new(observer));
        let mut listeners = Vec::new();
        let local =
            forwards.local.iter().map(|one| (one.at.clone(), ListenerKind::Local(one.to.clone())));
        let dynamic =
            forwards.dynamic.iter().map(|at| (ListenAt::Tcp(at.clone()), ListenerKind::Dynamic));
        for (mut at, kind) in local.chain(dynamic) {
            let (bound, port) =
                listen(&at).map_err(|why| TunnelError::Listen(at.clone(), why.to_string()))?;
            at.set_port(port);
            let leads = match &kind {
                ListenerKind::Local(to) => to.to_string(),
                ListenerKind::Dynamic => "the destinations of SOCKS and CONNECT".to_owned(),
            };
            observer.notify("listening", format!("{at} leads to {leads}"));
            listeners.extend(bound.into_iter().map(|one| (one, kind.clone())));
        }
        let ClientForwards { remote, interface, .. } = forwards;
        let limits = SessionLimits::default();
        let programs = Arc::new(Semaphore::new(MAX_PROGRAMS));
        let sessions = CurrentSessions::default();
        let setup = TunnelSetup {
            endpoint,
            target,
            policy,
            proxy: None,
            remote,
            interface,
            observer,
            limits,
            programs,
            sessions,
            demand: TunnelDemand::default(),
        };
        Ok(Self { setup, probing, listeners })
    }

    /// Has sessions reach the server through this proxy, and in no other way. The first one is the caller's.
    #[must_use]
    pub fn proxy(mut self, proxy: ServerProxy) -> Self {
        self.setup.proxy = Some(proxy);
        self
    }

    /// Returns its sessions: none while it reconnects; otherwise the one for new connections, and those with
    /// connections that are still open.
    pub fn sessions(&self) -> CurrentSessions {
        self.setup.sessions.clone()
    }

    /// Runs over this session and those after it until it is stopped.
    ///
    /// # Errors
    /// If the first session does not grant everything that was requested.
    pub async fn run(
        self,
        first: ServerTunnel,
        stop: CancellationToken,
    ) -> Result<(), TunnelError> {
        let (sender, sessions) = watch::channel(None);
        let mut tasks = JoinSet::new();
        let setup = &Arc::new(self.setup);
        for (listener, kind) in self.listeners {
            tasks.spawn(serve_all(Arc::clone(setup), listener, kind, sessions.clone()));
        }
        let mut retiring = JoinSet::new();
        let remote = setup.remote.clone();
        let mut session = ClientSession::begin(setup, first, remote, Duration::ZERO).await?;
        loop {
            while retiring.try_join_next().is_some() {}
            let began = Instant::now();
            let (link, transport) = (session.tunnel().link.clone(), session.tunnel().transport);
            sender.send_replace(Some(link.clone()));
            let next = tokio::select! {
                () = stop.cancelled() => {
                    session.end().await;
                    break;
                }
                end = session.serve(setup) => Err(end.to_string()),
                better = self.probing.better(setup, transport) => {
                    setup.observer.notify("moved", move_text(session.tunnel(), &better));
                    Ok(better)
                }
                other = setup.replacement(&link) => {
                    setup.observer.warn("replaced", replace_text(session.tunnel(), &other));
                    Ok(other)
                }
            };
            let next = match next {
                Ok(tunnel) => {
                    sender.send_replace(Some(tunnel.link.clone()));
                    let remote = session.release_ports();
                    retiring.spawn(session.retire(Arc::clone(setup), stop.clone()));
                    let begun = ClientSession::begin(setup, tunnel, remote, HANDOVER).await;
                    begun.map_err(|error| error.to_string())
                }
                Err(reason) => Err(reason),
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

fn move_text(former: &ServerTunnel, better: &ServerTunnel) -> String {
    format!(
        "connected over {} as well: new connections use it, open ones stay on {}",
        better.description, former.description
    )
}

fn replace_text(former: &ServerTunnel, other: &ServerTunnel) -> String {
    format!(
        "the server does not answer over {}, but over {}: new connections use that, open ones stay where they are",
        former.description, other.description
    )
}

impl TunnelSetup {
    /// Waits until the session with this link shows no sign of life, and another one is up before it does.
    async fn replacement(&self, link: &SessionLink) -> ServerTunnel {
        loop {
            link.doubted().await;
            tracing::debug!("the session is silent: trying another one beside it");
            tokio::select! {
                () = link.trusted() => tracing::debug!("the session lives"),
                tunnel = self.another() => return tunnel,
            }
        }
    }

    /// Begins a session beside a silent one, at once and then again and again.
    async fn another(&self) -> ServerTunnel {
        let mut attempts = ReconnectAttempts::after_session(self.demand.now(), Duration::MAX);
        loop {
            match self.begin(&self.target, &self.policy).await {
                Ok(tunnel) => return tunnel,
                // The silent session says enough when it ends.
                Err(error) => tracing::debug!(%error, "no other session"),
            }
            attempts.handle_failure(self.demand.now());
            self.until_due(&attempts).await;
        }
    }

    /// Waits until it is time for the next attempt: when the pause is over, or the network changes.
    async fn until_due(&self, attempts: &ReconnectAttempts) {
        let mut changes = self.endpoint.network_changes();
        tokio::select! {
            () = self.demand.until_due(attempts) => {}
            Some(_) = changes.next() => {}
        }
    }

    /// Replaces a session that is over, however long that takes. Returns `None` if it is stopped.
    async fn restore(
        &self,
        mut reason: String,
        duration: Duration,
        stop: &CancellationToken,
    ) -> Option<ClientSession> {
        let mut attempts = ReconnectAttempts::after_session(self.demand.now(), duration);
        loop {
            self.observer.warn("disconnected", format!("{reason}; reconnecting"));
            let tunnel = self.reconnect(attempts, stop).await?;
            tokio::select! {
                () = stop.cancelled() => return None,
                begun = ClientSession::begin(self, tunnel, self.remote.clone(), Duration::ZERO) => {
                    match begun {
                        Ok(session) => return Some(session),
                        Err(error) => reason = error.to_string(),
                    }
                }
            }
            attempts = ReconnectAttempts::after_session(self.demand.now(), Duration::ZERO);
        }
    }

    /// Reconnects, however long that takes.
    async fn reconnect(
        &self,
        mut attempts: ReconnectAttempts,
        stop: &CancellationToken,
    ) -> Option<ServerTunnel> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return None,
                () = self.until_due(&attempts) => {}
            }
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
            attempts.handle_failure(self.demand.now());
        }
    }
}

/// Serves every program that connects to a listener.
async fn serve_all(
    setup: Arc<TunnelSetup>,
    listener: LocalListener,
    kind: ListenerKind,
    sessions: watch::Receiver<Option<SessionLink>>,
) {
    let mut tasks = JoinSet::new();
    let warnings = ThrottledWarnings::new(setup.observer.clone());
    loop {
        while tasks.try_join_next().is_some() {}
        // First the permit, then the program: without a permit, programs wait in the kernel's queue.
        let Ok(permit) = Arc::clone(&setup.programs).acquire_owned().await else { return };
        let (client, _) = accept(&listener, &warnings).await;
        let (setup, kind, sessions) = (Arc::clone(&setup), kind.clone(), sessions.clone());
        tasks.spawn(async move {
            match kind {
                ListenerKind::Local(to) => serve_local(&setup, client, to, sessions).await,
                ListenerKind::Dynamic => serve_dynamic(&setup, client, sessions).await,
            }
            drop(permit);
        });
    }
}

/// Opens a channel for this purpose over the current session, or the next one. If the session ends before the
/// channel is open, or is replaced because it is silent, the channel is requested again from the next one: nothing was
/// sent on it.
async fn open_channel(
    demand: &TunnelDemand,
    purpose: ChannelPurpose,
    mut sessions: watch::Receiver<Option<SessionLink>>,
) -> Result<ChannelStream, (RefuseReason, String)> {
    let _wanted = demand.enter();
    let opened = timeout(SESSION_TIME, async {
        loop {
            // Under the lock, so that a session being replaced has this channel before it is found empty.
            let found = match sessions.wait_for(Option::is_some).await {
                Ok(session) => session.clone().map(|link| {
                    let opening = link.open(purpose.clone());
                    (link, opening)
                }),
                Err(_) => return None,
            };
            let Some((link, opening)) = found else { continue };
            tokio::select! {
                opened = opening => match opened {
                    Err(_) if link.end().is_some() => until_replaced(&link, &mut sessions, false).await,
                    opened => return Some(opened.map(|(channel, _)| channel)),
                },
                () = until_replaced(&link, &mut sessions, true) => {}
                () = ask_if_unanswered(&link) => {}
            }
        }
    });
    let no_session = || (RefuseReason::Failed, "there is no session with the server".to_owned());
    opened.await.ok().flatten().ok_or_else(no_session)?
}

/// Asks the other end if it is there when a request has not been answered for long. Never returns.
async fn ask_if_unanswered(link: &SessionLink) {
    sleep(ANSWER_TIME).await;
    link.ask();
    std::future::pending().await
}

/// Waits until there is another session than this one, or none; if `is_doubted`, because this one is silent.
async fn until_replaced(
    link: &SessionLink,
    sessions: &mut watch::Receiver<Option<SessionLink>>,
    is_doubted: bool,
) {
    let is_other = |other: &Option<SessionLink>| {
        other.as_ref().is_none_or(|other| !other.is_same(link))
            && (!is_doubted || link.is_doubted())
    };
    if sessions.wait_for(is_other).await.is_err() {
        std::future::pending().await
    }
}

async fn serve_local(
    setup: &TunnelSetup,
    client: LocalStream,
    to: ForwardTo,
    sessions: watch::Receiver<Option<SessionLink>>,
) {
    reset_when_dropped(&client);
    match open_channel(&setup.demand, to.purpose(), sessions).await {
        Ok(channel) => {
            forward(client, channel).await;
        }
        Err((_, reason)) => setup.observer.warn("refused", format!("{to}: {reason}")),
    }
}

async fn serve_dynamic(
    setup: &TunnelSetup,
    mut client: LocalStream,
    sessions: watch::Receiver<Option<SessionLink>>,
) {
    let Some(ProxyRequest { to, handshake }) = read_request(&mut client).await else { return };
    match open_channel(&setup.demand, ChannelPurpose::Connect(to.clone()), sessions).await {
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
                RefuseReason::NotAllowed => RequestRefusal::NotAllowed(reason),
                _ => RequestRefusal::HostUnreachable(reason),
            };
            let _ = client.write_all(&handshake.refused(&refusal)).await;
            let _ = client.shutdown().await;
        }
    }
}
