//! The end that is connected to: it asks who comes, and does what their keys may.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use eyas::{Connection, Endpoint, KeyFingerprint, Listener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::carry::Carrier;
use super::ends::{accept, connect, pass, reset_when_dropped};
use super::forward::Place;
use super::frame::{Purpose, Why};
use super::keys::Grant;
use super::leases::Leases;
use super::link::{Asked, ChannelStream, Link};
use super::listening::{Listening, Places};
use super::notice::{Notice, Observer, Repeated};
use super::packets::{Interface, carry};
use super::session::{SessionLimits, Side};
use super::sessions::Sessions;

/// Sessions at once. One above it is closed at once.
const MAX_SESSIONS: usize = 256;
/// Places that one session may have listened at.
const MAX_LISTENERS: usize = 64;

/// What a key may do, asked for each connection anew.
pub type Grants = dyn Fn(&KeyFingerprint) -> Option<Grant> + Send + Sync;

/// A server of tunnels.
#[derive(Clone)]
pub struct Server {
    endpoint: Endpoint,
    grants: Arc<Grants>,
    limits: SessionLimits,
    observer: Observer,
    count: Arc<AtomicUsize>,
    sessions: Sessions,
    places: Places,
    interface: Option<Interface>,
    /// Who has packets: a key at a time.
    attached: Leases<()>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// One client, and what it may do.
#[derive(Clone, Debug)]
struct Guest {
    server: Server,
    key: KeyFingerprint,
    grant: Arc<Grant>,
    link: Link,
    listening: Arc<Semaphore>,
}

impl Server {
    /// A server that connects to destinations by this endpoint, and grants what these say.
    pub fn new(
        endpoint: Endpoint,
        grants: impl Fn(&KeyFingerprint) -> Option<Grant> + Send + Sync + 'static,
        observer: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Self {
        Self {
            endpoint,
            grants: Arc::new(grants),
            limits: SessionLimits::default(),
            observer: Observer(Arc::new(observer)),
            count: Arc::default(),
            sessions: Sessions::default(),
            places: Places::default(),
            interface: None,
            attached: Leases::default(),
        }
    }

    /// What one session may take.
    #[must_use]
    pub fn limits(mut self, limits: SessionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Exchanges packets between this interface and the clients whose keys may have addresses.
    #[must_use]
    pub fn interface(mut self, interface: Interface) -> Self {
        self.interface = Some(interface);
        self
    }

    /// The sessions that it has.
    pub fn sessions(&self) -> Sessions {
        self.sessions.clone()
    }

    /// Serves who connects to the listener, which has to ask for the keys that are granted something
    /// ([`ListenParameters::client_keys`](eyas::ListenParameters::client_keys)), until it is stopped, and
    /// then says goodbye to everybody.
    pub async fn serve(&self, listener: &Listener, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            tokio::select! {
                connection = listener.accept() => {
                    let (server, stop) = (self.clone(), stop.clone());
                    tasks.spawn(async move { server.welcome(connection, stop).await });
                }
                () = stop.cancelled() => break,
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn welcome(&self, connection: Connection, stop: CancellationToken) {
        let remote = connection.info().remote;
        let key = connection.info().peer_certificates.first().and_then(KeyFingerprint::of);
        // The handshake has asked for it already; without one nothing is read of who connects.
        let Some((key, grant)) = key.and_then(|key| Some((key, (self.grants)(&key)?))) else {
            self.observer
                .complain("refused", format!("{remote} presented no key that may connect"));
            return;
        };
        let transport = connection.info().transport;
        let Ok(carrier) = Carrier::new(connection) else { return };
        if self.count.fetch_add(1, Relaxed) < MAX_SESSIONS {
            let who = if grant.name.is_empty() { key.to_string() } else { grant.name.clone() };
            let text = format!("{who} has come over {transport} from {remote}");
            self.observer.say("connected", text);
            let (link, mut asked) = Link::new(Side::Server, self.limits.clone());
            let _presence = self.sessions.enter(who.clone(), link.clone());
            let guest = Guest {
                server: self.clone(),
                key,
                grant: Arc::new(grant),
                link: link.clone(),
                listening: Arc::new(Semaphore::new(MAX_LISTENERS)),
            };
            let mut tasks = JoinSet::new();
            let serving = async {
                while let Some(asked) = asked.next().await {
                    while tasks.try_join_next().is_some() {}
                    tasks.spawn(guest.clone().answer(asked));
                }
            };
            let farewell = async {
                stop.cancelled().await;
                link.drain().await;
                link.goodbye("the server stops");
            };
            let end = link.run(Side::Server, carrier);
            tokio::pin!(end);
            let end = tokio::select! {
                end = &mut end => end,
                () = serving => end.await,
                () = farewell => end.await,
            };
            self.observer.say("disconnected", format!("{who} has left: {end}"));
        } else {
            let text = format!("{remote} was refused: there are {MAX_SESSIONS} sessions");
            self.observer.complain("refused", text);
        }
        self.count.fetch_sub(1, Relaxed);
    }
}

impl Guest {
    async fn answer(self, asked: Asked) {
        match asked.purpose.clone() {
            Purpose::Connect(to) => {
                match connect(&self.server.endpoint, &self.grant.open, &to).await {
                    Ok(reached) => reached.pass(asked.accept(0)).await,
                    Err((why, words)) => asked.refuse(why, words),
                }
            }
            Purpose::Listen { bind, port } => self.listen(asked, Place { bind, port }).await,
            Purpose::Packets { addresses } => {
                if let Err((asked, why, words)) = self.exchange(asked, &addresses).await {
                    asked.refuse(why, words);
                }
            }
            Purpose::Accepted { .. } => {
                asked.refuse(Why::Unsupported, "a server asks for nothing".to_owned());
            }
        }
    }

    /// Listens for as long as the client wants.
    async fn listen(self, asked: Asked, at: Place) {
        if !self.grant.may_listen(&at.bind, at.port) {
            let words = format!("this key may not listen at {at} (permit-listen)");
            return asked.refuse(Why::NotAllowed, words);
        }
        let Ok(permit) = self.listening.try_acquire() else {
            let words =
                format!("this session listens at {MAX_LISTENERS} addresses, which is the limit");
            return asked.refuse(Why::TooMany, words);
        };
        let bound = self.server.places.listen(&at, self.key, &self.link).await;
        let (listeners, port) = match bound {
            Ok(bound) => bound,
            Err(why) => return asked.refuse(Why::Failed, why.to_string()),
        };
        let id = asked.id();
        let channel = asked.accept(port);
        let closed = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for listener in listeners {
            let complaints = Repeated::new(self.server.observer.clone());
            let of = (self.link.clone(), id);
            tasks.spawn(accept_all(listener, of, closed.clone(), complaints));
        }
        // Nothing is said on it; its end is the end of the listening.
        wait_for_end(channel).await;
        closed.cancel();
        drop(permit);
        while tasks.join_next().await.is_some() {}
    }

    /// Exchanges packets with a client that has these addresses, for as long as it wants.
    async fn exchange(
        &self,
        asked: Asked,
        addresses: &[IpAddr],
    ) -> Result<(), (Asked, Why, String)> {
        let Some(interface) = &self.server.interface else {
            let words = "this server has no interface: it was started without --tun".to_owned();
            return Err((asked, Why::Unsupported, words));
        };
        if let Some(address) = addresses.iter().find(|address| !self.grant.may_have(**address)) {
            let words = format!("this key may not have the address {address} (permit-tun)");
            return Err((asked, Why::NotAllowed, words));
        }
        let attached = &self.server.attached;
        let attachment = match interface.attach(&self.grant.networks) {
            Err(_) if attached.take_over(&(), self.key, &self.link).await => {
                interface.attach(&self.grant.networks)
            }
            attachment => attachment,
        };
        let attachment = match attachment {
            Ok(attachment) => attachment,
            Err(network) => {
                let words = format!("another session has the packets of {network}");
                return Err((asked, Why::Failed, words));
            }
        };
        let _lease = attached.hold((), self.key, &self.link);
        carry(&self.link, asked.accept(0), attachment).await;
        Ok(())
    }
}

async fn wait_for_end(mut channel: ChannelStream) {
    let mut piece = [0; 64];
    while let Ok(1..) = tokio::io::AsyncReadExt::read(&mut channel, &mut piece).await {}
}

/// Gives the client a channel for everybody who connects here until it is closed, and then waits for
/// these to end.
async fn accept_all(
    at: Listening,
    (link, listen): (Link, u32),
    closed: CancellationToken,
    complaints: Repeated,
) {
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let accepted = tokio::select! {
            () = closed.cancelled() => break,
            accepted = accept(&at.listener, &complaints) => accepted,
        };
        let Some((client, peer)) = accepted else { continue };
        reset_when_dropped(&client);
        let link = link.clone();
        tasks.spawn(async move {
            if let Ok((channel, _)) = link.open(Purpose::Accepted { listen, peer }).await {
                pass(client, channel).await;
            }
        });
    }
    drop(at);
    while tasks.join_next().await.is_some() {}
}
