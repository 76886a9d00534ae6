//! The end that connects: it listens for programs here, asks the other end to listen, and connects again
//! when the session is over.

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

use super::dynamic::{Speaker, introduce};
use super::ends::{accept, listen, pass, reset_when_dropped};
use super::forward::{Forward, Place};
use super::frame::{Purpose, Why};
use super::held::{HANDOVER, Held};
use super::link::{ChannelStream, Link};
use super::notice::{Notice, Observer, Repeated};
use super::packets::Interface;
use super::probing::Probing;
use super::reach::{Tunnel, TunnelError};
use super::session::SessionLimits;
use super::sessions::Sessions;
use super::setup::Setup;
use crate::handshake::{Destination, Refusal};

/// How long a program that connects here waits for a session.
const SESSION_TIME: Duration = Duration::from_secs(30);
/// Programs at once, over all listeners; those above it wait to be accepted.
const MAX_PROGRAMS: usize = 4096;
/// The first pause before it is connected again, and the longest; each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
/// A session that was up for so long has earned the first pause.
const LASTING: Duration = Duration::from_secs(30);

/// What programs here and there are given.
#[derive(Clone, Debug, Default)]
pub struct Forwards {
    /// Listen here, and have the other end connect.
    pub local: Vec<Forward>,
    /// Have the other end listen, and connect here.
    pub remote: Vec<Forward>,
    /// Listen here for SOCKS and HTTP CONNECT, and have the other end connect where these say.
    pub dynamic: Vec<Place>,
    /// Exchange packets between this interface and that of the other end.
    pub interface: Option<Interface>,
}

/// A tunnel that is held up: connected again whenever its session is over, and by a transport with streams
/// once there is one.
#[derive(Debug)]
pub struct Client {
    setup: Arc<Setup>,
    probing: Probing,
    listeners: Vec<(TcpListener, Kind)>,
}

/// What a listener is for.
#[derive(Clone, Debug)]
enum Kind {
    Local(Destination),
    Dynamic,
}

impl Client {
    /// Listens for the programs here. Sessions are made by this endpoint, which has to trust the key of
    /// the server alone.
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
                Kind::Dynamic => "where SOCKS and CONNECT say".to_owned(),
            };
            observer.say("listening", format!("{at} leads to {leads}"));
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

    /// The sessions that it has: none while it is connected again, and besides the one that new
    /// connections go to those that others are still open on.
    pub fn sessions(&self) -> Sessions {
        self.setup.sessions.clone()
    }

    /// Serves over this session and those after it until it is stopped.
    ///
    /// # Errors
    /// If the first session does not give what was asked for.
    pub async fn run(self, first: Tunnel, stop: CancellationToken) -> Result<(), TunnelError> {
        let (sender, sessions) = watch::channel(None);
        let mut tasks = JoinSet::new();
        for (listener, kind) in self.listeners {
            tasks.spawn(serve_all(Arc::clone(&self.setup), listener, kind, sessions.clone()));
        }
        let setup = &self.setup;
        let mut retiring = JoinSet::new();
        let mut held = Held::begin(setup, first, setup.remote.clone(), Duration::ZERO).await?;
        loop {
            let began = Instant::now();
            sender.send_replace(Some(held.tunnel().link.clone()));
            let transport = held.tunnel().transport;
            let next = tokio::select! {
                () = stop.cancelled() => {
                    held.end().await;
                    break;
                }
                end = held.serve(setup) => Err(end.to_string()),
                better = self.probing.better(setup, transport) => {
                    sender.send_replace(Some(better.link.clone()));
                    setup.observer.say("moved", told_of_move(held.tunnel(), &better));
                    let remote = held.let_go_of_ports();
                    retiring.spawn(held.retire(Arc::clone(setup), stop.clone()));
                    let begun = Held::begin(setup, better, remote, HANDOVER).await;
                    begun.map_err(|error| error.to_string())
                }
            };
            held = match next {
                Ok(held) => held,
                Err(words) => {
                    sender.send_replace(None);
                    match setup.restore(words, began.elapsed(), &stop).await {
                        Some(held) => held,
                        None => break,
                    }
                }
            };
        }
        while retiring.join_next().await.is_some() {}
        Ok(())
    }
}

fn told_of_move(former: &Tunnel, better: &Tunnel) -> String {
    format!(
        "connected over {} as well: new connections use it, open ones stay on {}",
        better.way, former.way
    )
}

impl Setup {
    /// A session in the place of one that is over, for as long as it takes; `None` where it is stopped.
    async fn restore(
        &self,
        mut words: String,
        lasted: Duration,
        stop: &CancellationToken,
    ) -> Option<Held> {
        let mut pause = if lasted >= LASTING { PAUSES.0 } else { 4 * PAUSES.0 };
        loop {
            self.observer.complain("disconnected", format!("{words}; it is connected again"));
            let tunnel = self.again(pause, stop).await?;
            tokio::select! {
                () = stop.cancelled() => return None,
                begun = Held::begin(self, tunnel, self.remote.clone(), Duration::ZERO) => match begun {
                    Ok(held) => return Some(held),
                    Err(error) => words = error.to_string(),
                },
            }
            pause = 4 * PAUSES.0;
        }
    }

    /// Connects again, for as long as it takes.
    async fn again(&self, mut pause: Duration, stop: &CancellationToken) -> Option<Tunnel> {
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
                        let text = format!("connected again over {}", tunnel.way);
                        self.observer.say("connected", text);
                        return Some(tunnel);
                    }
                    Err(error) => {
                        self.observer.complain("unreachable", format!("{error}; it is tried again"));
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
    let complaints = Repeated::new(setup.observer.clone());
    loop {
        while tasks.try_join_next().is_some() {}
        // First the permit, then the program: who finds all taken waits in the kernel's queue.
        let Ok(permit) = Arc::clone(&setup.programs).acquire_owned().await else { return };
        let Some((client, _)) = accept(&listener, &complaints).await else { continue };
        let (setup, kind, sessions) = (Arc::clone(&setup), kind.clone(), sessions.clone());
        tasks.spawn(async move {
            match kind {
                Kind::Local(to) => local(&setup, client, to, sessions).await,
                Kind::Dynamic => dynamic(&setup, client, sessions).await,
            }
            drop(permit);
        });
    }
}

/// A channel to this destination, over the session that there is, or the next one.
async fn channel(
    to: Destination,
    mut sessions: watch::Receiver<Option<Link>>,
) -> Result<ChannelStream, (Why, String)> {
    let opening = match timeout(SESSION_TIME, sessions.wait_for(Option::is_some)).await {
        // A session that another one takes the place of is not empty until it has this channel.
        Ok(Ok(session)) => session.as_ref().map(|link| link.open(Purpose::Connect(to))),
        _ => None,
    };
    match opening {
        Some(opening) => opening.await.map(|(channel, _)| channel),
        None => Err((Why::Failed, "there is no session with the server".to_owned())),
    }
}

async fn local(
    setup: &Setup,
    client: TcpStream,
    to: Destination,
    sessions: watch::Receiver<Option<Link>>,
) {
    reset_when_dropped(&client);
    match channel(to.clone(), sessions).await {
        Ok(channel) => {
            pass(client, channel).await;
        }
        Err((_, words)) => setup.observer.complain("refused", format!("{to}: {words}")),
    }
}

async fn dynamic(setup: &Setup, mut client: TcpStream, sessions: watch::Receiver<Option<Link>>) {
    let Some(Speaker { to, handshake }) = introduce(&mut client).await else { return };
    match channel(to.clone(), sessions).await {
        Ok(mut channel) => {
            let granted = handshake.granted(None);
            let rest = handshake.into_rest();
            let told = client.write_all(&granted).await.is_ok();
            if told && channel.write_all(&rest).await.is_ok() {
                pass(client, channel).await;
            }
        }
        Err((why, words)) => {
            setup.observer.complain("refused", format!("{to}: {words}"));
            let refusal = match why {
                Why::NotAllowed => Refusal::NotAllowed(words),
                _ => Refusal::HostUnreachable(words),
            };
            let _ = client.write_all(&handshake.refused(&refusal)).await;
            let _ = client.shutdown().await;
        }
    }
}
