//! The end that connects: it listens for programs here, asks the other end to listen, and connects again
//! when the session is over.

use std::sync::Arc;
use std::time::Duration;

use eyas::race::policy::Policy;
use eyas::race::target::Target;
use eyas::{ConnectError, Connection, Endpoint, KeyFingerprint};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::carry::Carrier;
use super::dynamic::{Speaker, introduce};
use super::ends::{accept, connect, listen, pass, reset_when_dropped};
use super::forward::{Forward, Place};
use super::frame::{Purpose, Why};
use super::link::{ChannelStream, Link, Questions};
use super::notice::{Notice, Observer};
use super::session::{End, SessionLimits, Side};
use super::sessions::{Presence, Sessions};
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
}

/// Why a tunnel cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// Nothing can be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection shows no key.
    #[error("the server shows no key")]
    NoKey,
    /// The session ended before it had begun.
    #[error("the server does not let this key in, or serves no tunnels: {0}")]
    NotLetIn(End),
    /// It cannot be listened here.
    #[error("cannot listen at {0}: {1}")]
    Listen(Place, String),
    /// The other end does not give what was asked for.
    #[error("{what}: {words}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Why it is not given.
        why: Why,
        /// The same in words.
        words: String,
    },
    /// The session is over.
    #[error("the session is over: {0}")]
    Over(End),
}

/// A connection to a server, and the key that it has proved to hold.
pub async fn reach(
    endpoint: &Endpoint,
    target: &Target,
    policy: &Policy,
) -> Result<(Carrier, KeyFingerprint), TunnelError> {
    let connecting = endpoint.preconnection(target.clone()).policy(policy.clone()).connect();
    let connection = connecting.await?;
    let key = connection.info().peer_certificates.first().and_then(KeyFingerprint::of);
    let key = key.ok_or(TunnelError::NoKey)?;
    let closed = |connection: Connection| {
        // A QUIC server that does not accept our key has said so by now.
        let reason = connection.quic().and_then(|quic| quic.close_reason());
        let words = reason.map_or("it was closed at once".to_owned(), |why| why.to_string());
        TunnelError::NotLetIn(End::Lost(words))
    };
    Ok((Carrier::new(connection).map_err(closed)?, key))
}

/// A session with a server.
#[derive(Debug)]
pub struct Tunnel {
    link: Link,
    questions: Option<Questions>,
    running: tokio::task::JoinHandle<End>,
}

impl Tunnel {
    /// Begins a session over a connection, and waits until the server has introduced itself.
    pub async fn begin(carrier: Carrier, limits: SessionLimits) -> Result<Self, TunnelError> {
        let (link, questions) = Link::new(Side::Client, limits);
        let carried = link.clone();
        let running = tokio::spawn(async move { carried.run(Side::Client, carrier).await });
        let tunnel = Self { link, questions: Some(questions), running };
        match tunnel.link.up().await {
            Ok(()) => Ok(tunnel),
            Err(end) => Err(TunnelError::NotLetIn(end)),
        }
    }

    /// Has the server connect to this destination, and gives what it has connected.
    pub async fn open(
        &self,
        to: Destination,
    ) -> Result<impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + use<>, TunnelError>
    {
        let what = format!("cannot connect to {to} through the tunnel");
        let opened = self.link.open(Purpose::Connect(to)).await;
        opened.map(|(channel, _)| channel).map_err(|(why, words)| TunnelError::Refused {
            what,
            why,
            words,
        })
    }

    /// Streams of the transport that both ends use, the first included.
    pub fn streams(&self) -> usize {
        self.link.lanes()
    }

    /// Is among these sessions for as long as what this gives is kept, under the name of the other end.
    pub fn enter(&self, sessions: &Sessions, peer: String) -> Presence {
        sessions.enter(peer, self.link.clone())
    }

    /// Waits until the other end has passed on what was said on the channels that have ended, for as
    /// long as the [limits](SessionLimits::drain) let it, says goodbye, and waits for the end.
    pub async fn end(mut self) {
        self.link.drain().await;
        self.link.goodbye("the client stops");
        let _ = (&mut self.running).await;
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.link.goodbye("the client stops");
    }
}

/// A tunnel that is held up: connected again whenever its session is over.
#[derive(Debug)]
pub struct Client {
    setup: Arc<Setup>,
    listeners: Vec<(TcpListener, Kind)>,
}

#[derive(Debug)]
struct Setup {
    endpoint: Endpoint,
    target: Target,
    policy: Policy,
    remote: Vec<Forward>,
    observer: Observer,
    limits: SessionLimits,
    programs: Arc<Semaphore>,
    sessions: Sessions,
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
        let remote = forwards.remote;
        let limits = SessionLimits::default();
        let programs = Arc::new(Semaphore::new(MAX_PROGRAMS));
        let sessions = Sessions::default();
        let setup =
            Setup { endpoint, target, policy, remote, observer, limits, programs, sessions };
        Ok(Self { setup: Arc::new(setup), listeners })
    }

    /// The session that it has: none while it is connected again.
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
        let mut tunnel = first;
        let mut is_first = true;
        loop {
            let began = Instant::now();
            let ended = self.setup.hold(&mut tunnel, &sender, &stop).await;
            sender.send_replace(None);
            let end = match ended {
                Ok(None) => {
                    tunnel.end().await;
                    return Ok(());
                }
                Ok(Some(end)) => end.to_string(),
                Err(error) if is_first => return Err(error),
                Err(error) => error.to_string(),
            };
            is_first = false;
            self.setup.observer.complain("disconnected", format!("{end}; it is connected again"));
            let pause = if began.elapsed() >= LASTING { PAUSES.0 } else { 4 * PAUSES.0 };
            match self.setup.again(pause, &stop).await {
                Some(next) => tunnel = next,
                None => return Ok(()),
            }
        }
    }
}

impl Setup {
    /// Holds a session up until it is over, or `None` where it is stopped.
    async fn hold(
        self: &Arc<Self>,
        tunnel: &mut Tunnel,
        sessions: &watch::Sender<Option<Link>>,
        stop: &CancellationToken,
    ) -> Result<Option<End>, TunnelError> {
        let link = tunnel.link.clone();
        let mut listening = Vec::new();
        for forward in &self.remote {
            listening.push(self.ask_to_listen(&link, forward).await?);
        }
        sessions.send_replace(Some(link.clone()));
        let peer = format!("{}:{}", self.target.host, self.target.port);
        let _presence = tunnel.enter(&self.sessions, peer);
        let leads: Vec<(u32, Destination)> = listening
            .iter()
            .zip(&self.remote)
            .map(|(channel, forward)| (channel.id(), forward.to.clone()))
            .collect();
        let mut tasks = JoinSet::new();
        let questions = &mut tunnel.questions;
        let answering = async {
            let Some(questions) = questions else { return std::future::pending().await };
            while let Some(asked) = questions.next().await {
                while tasks.try_join_next().is_some() {}
                let to = match &asked.purpose {
                    Purpose::Accepted { listen, .. } => {
                        leads.iter().find(|(id, _)| id == listen).map(|(_, to)| to.clone())
                    }
                    _ => None,
                };
                let Some(to) = to else {
                    asked.refuse(Why::NotAllowed, "this client has not asked for it".to_owned());
                    continue;
                };
                let setup = Arc::clone(self);
                tasks.spawn(async move {
                    match connect(&setup.endpoint, &Arc::default(), &to).await {
                        Ok(reached) => reached.pass(asked.accept(0)).await,
                        Err((why, words)) => {
                            setup.observer.complain("unreachable", format!("{to}: {words}"));
                            asked.refuse(why, words);
                        }
                    }
                });
            }
        };
        tokio::select! {
            () = stop.cancelled() => Ok(None),
            end = &mut tunnel.running => {
                Ok(Some(end.unwrap_or_else(|_| End::Lost("it ended".to_owned()))))
            }
            () = async { answering.await; std::future::pending().await } => Ok(None),
        }
    }

    async fn ask_to_listen(
        &self,
        link: &Link,
        forward: &Forward,
    ) -> Result<ChannelStream, TunnelError> {
        let Place { bind, port } = forward.at.clone();
        let asked = link.open(Purpose::Listen { bind, port }).await;
        let (channel, port) = asked.map_err(|(why, words)| {
            let what = format!("the server does not listen at {}", forward.at);
            TunnelError::Refused { what, why, words }
        })?;
        let at = Place { port, ..forward.at.clone() };
        self.observer.say("listening", format!("{at} at the server leads to {}", forward.to));
        Ok(channel)
    }

    /// Connects again, for as long as it takes.
    async fn again(&self, mut pause: Duration, stop: &CancellationToken) -> Option<Tunnel> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return None,
                () = sleep(pause) => {}
            }
            pause = (2 * pause).min(PAUSES.1);
            let begun = async {
                let (carrier, _) = reach(&self.endpoint, &self.target, &self.policy).await?;
                let way = carrier.to_string();
                Tunnel::begin(carrier, self.limits.clone()).await.map(|tunnel| (tunnel, way))
            };
            tokio::select! {
                () = stop.cancelled() => return None,
                begun = begun => match begun {
                    Ok((tunnel, way)) => {
                        self.observer.say("connected", format!("connected again over {way}"));
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
    loop {
        while tasks.try_join_next().is_some() {}
        // First the permit, then the program: who finds all taken waits in the kernel's queue.
        let Ok(permit) = Arc::clone(&setup.programs).acquire_owned().await else { return };
        let Some((client, _)) = accept(&listener).await else { continue };
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
    let session = timeout(SESSION_TIME, sessions.wait_for(Option::is_some));
    let link = match session.await {
        Ok(Ok(session)) => session.clone(),
        _ => None,
    };
    match link {
        Some(link) => link.open(Purpose::Connect(to)).await.map(|(channel, _)| channel),
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
