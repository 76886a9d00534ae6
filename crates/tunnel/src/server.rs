//! The end that accepts connections: it authenticates clients, and serves what their keys permit.

use std::net::IpAddr;
use std::sync::Arc;

use eyas::{Connection, Endpoint, KeyFingerprint, Listener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::forward::{ListenAt, ListenPlace};
use crate::frame::{ChannelPurpose, RefuseReason};
use crate::keys::KeyGrant;
use crate::leases::ResourceLeases;
use crate::link::{ChannelRequest, ChannelStream, SessionLink};
use crate::local::reset_when_dropped;
use crate::notice::{NoticeObserver, ThrottledWarnings, TunnelNotice};
use crate::packets::{TunnelInterface, exchange_packets};
use crate::ports::{LeasedListener, ListeningPorts};
use crate::session::{ServerLimits, SessionLimits, SessionSide};
use crate::sessions::CurrentSessions;
use crate::shares::KeyShares;
use crate::sockets::{accept, connect, connect_unix, forward};
use crate::transport::SessionTransport;

/// The limit on the listeners of one session.
const MAX_LISTENERS: usize = 64;

/// Returns the permissions of a key. Called for each connection.
pub type GrantLookup = dyn Fn(&KeyFingerprint) -> Option<KeyGrant> + Send + Sync;

/// A server of tunnels.
#[derive(Clone)]
pub struct TunnelServer {
    endpoint: Endpoint,
    grants: Arc<GrantLookup>,
    limits: SessionLimits,
    observer: NoticeObserver,
    sessions: CurrentSessions,
    places: ServerPlaces,
    ports: ListeningPorts,
    interface: Option<TunnelInterface>,
    /// The sessions that exchange packets, one for each key.
    attached: ResourceLeases<()>,
}

impl std::fmt::Debug for TunnelServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunnelServer").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What all clients share.
#[derive(Clone, Debug)]
struct ServerPlaces {
    sessions: KeyShares,
    channels: KeyShares,
}

impl ServerPlaces {
    fn new(limits: &ServerLimits) -> Self {
        Self {
            sessions: KeyShares::new(limits.sessions),
            channels: KeyShares::new(limits.channels),
        }
    }
}

/// One client with its permissions.
#[derive(Clone, Debug)]
struct ServedClient {
    server: TunnelServer,
    key: KeyFingerprint,
    grant: Arc<KeyGrant>,
    link: SessionLink,
    listening: Arc<Semaphore>,
}

impl TunnelServer {
    /// Creates a server that connects to destinations with this endpoint, and grants these permissions.
    pub fn new(
        endpoint: Endpoint,
        grants: impl Fn(&KeyFingerprint) -> Option<KeyGrant> + Send + Sync + 'static,
        observer: impl Fn(TunnelNotice) + Send + Sync + 'static,
    ) -> Self {
        Self {
            endpoint,
            grants: Arc::new(grants),
            limits: SessionLimits::default(),
            observer: NoticeObserver(Arc::new(observer)),
            places: ServerPlaces::new(&ServerLimits::default()),
            sessions: CurrentSessions::default(),
            ports: ListeningPorts::default(),
            interface: None,
            attached: ResourceLeases::default(),
        }
    }

    /// Sets the limits of each session.
    #[must_use]
    pub fn limits(mut self, limits: SessionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limits on what all sessions have together.
    #[must_use]
    pub fn total_limits(mut self, limits: &ServerLimits) -> Self {
        self.places = ServerPlaces::new(limits);
        self
    }

    /// Exchanges packets between this interface and the clients whose keys may have addresses.
    #[must_use]
    pub fn interface(mut self, interface: TunnelInterface) -> Self {
        self.interface = Some(interface);
        self
    }

    /// Returns the current sessions.
    pub fn sessions(&self) -> CurrentSessions {
        self.sessions.clone()
    }

    /// Serves the clients of the listener until it is stopped, and then sends GOODBYE to all of them. The listener
    /// must require the keys that have permissions
    /// ([`ListenParameters::client_keys`](eyas::ListenParameters::client_keys)).
    pub async fn serve(&self, listener: &Listener, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            tokio::select! {
                connection = listener.accept() => {
                    let (server, stop) = (self.clone(), stop.clone());
                    tasks.spawn(async move { server.serve_connection(connection, stop).await });
                }
                () = stop.cancelled() => break,
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn serve_connection(&self, connection: Connection, stop: CancellationToken) {
        let remote = connection.info().remote;
        let key =
            connection.info().peer_certificates.first().and_then(KeyFingerprint::from_certificate);
        // The handshake has already checked it; without a key nothing is read from the client.
        let Some((key, grant)) = key.and_then(|key| Some((key, (self.grants)(&key)?))) else {
            self.observer.warn("refused", format!("{remote} presented no key that may connect"));
            return;
        };
        let transport = connection.info().transport;
        let name = if grant.name.is_empty() { key.to_string() } else { grant.name.clone() };
        let place = match self.places.sessions.acquire(key) {
            Ok(place) => place,
            Err(why) => {
                let text = format!("{name} from {remote} got no session: {why}");
                self.observer.warn("refused", text);
                return;
            }
        };
        let Ok(connection) = SessionTransport::new(connection) else { return };
        let text = format!("{name} connected over {transport} from {remote}");
        self.observer.notify("connected", text);
        let (link, mut requests) = SessionLink::new(SessionSide::Server, self.limits.clone());
        let _presence = self.sessions.enter(name.clone(), link.clone());
        let client = ServedClient {
            server: self.clone(),
            key,
            grant: Arc::new(grant),
            link: link.clone(),
            listening: Arc::new(Semaphore::new(MAX_LISTENERS)),
        };
        let mut tasks = JoinSet::new();
        let serving = async {
            while let Some(request) = requests.next().await {
                while tasks.try_join_next().is_some() {}
                tasks.spawn(client.clone().serve(request));
            }
        };
        let stopping = async {
            let goodbye = tokio::select! {
                () = stop.cancelled() => "the server stops",
                () = place.lost() => "another key, which has fewer sessions, needs this place",
            };
            if stop.is_cancelled() {
                link.drain().await;
            }
            link.goodbye(goodbye);
        };
        let end = link.run(SessionSide::Server, connection);
        tokio::pin!(end);
        let end = tokio::select! {
            end = &mut end => end,
            () = serving => end.await,
            () = stopping => end.await,
        };
        self.observer.notify("disconnected", format!("{name} disconnected: {end}"));
    }
}

impl ServedClient {
    /// Serves a channel as long as the key has a place for it.
    async fn serve(self, request: ChannelRequest) {
        let place = match self.server.places.channels.acquire(self.key) {
            Ok(place) => place,
            Err(why) => return request.refuse(RefuseReason::TooMany, format!("no channel: {why}")),
        };
        tokio::select! {
            () = self.serve_in_place(request) => {}
            // What it had is reset.
            () = place.lost() => {}
        }
    }

    async fn serve_in_place(self, request: ChannelRequest) {
        match request.purpose.clone() {
            ChannelPurpose::Connect(to) => {
                match connect(&self.server.endpoint, &self.grant.open, &to).await {
                    Ok(reached) => reached.forward(request.accept(0)).await,
                    Err((why, text)) => request.refuse(why, text),
                }
            }
            ChannelPurpose::ConnectUnix(path) => {
                if !self.grant.may_open_unix(&path) {
                    let text = format!("this key may not connect to {path} (permit-open)");
                    return request.refuse(RefuseReason::NotAllowed, text);
                }
                match connect_unix(&path).await {
                    Ok(reached) => reached.forward(request.accept(0)).await,
                    Err((why, text)) => request.refuse(why, text),
                }
            }
            ChannelPurpose::Listen { bind, port } => {
                let is_allowed = self.grant.may_listen(&bind, port);
                let at = ListenAt::Tcp(ListenPlace { bind, port });
                self.listen(request, at, is_allowed).await;
            }
            ChannelPurpose::ListenUnix(path) => {
                let is_allowed = self.grant.may_listen_unix(&path);
                self.listen(request, ListenAt::Unix(path), is_allowed).await;
            }
            ChannelPurpose::Packets { addresses } => {
                if let Err((request, why, text)) = self.exchange(request, &addresses).await {
                    request.refuse(why, text);
                }
            }
            ChannelPurpose::Accepted { .. } => {
                request
                    .refuse(RefuseReason::Unsupported, "a server requests no listeners".to_owned());
            }
        }
    }

    /// Listens until the client closes the channel.
    async fn listen(self, request: ChannelRequest, at: ListenAt, is_allowed: bool) {
        if !is_allowed {
            let text = format!("this key may not listen at {at} (permit-listen)");
            return request.refuse(RefuseReason::NotAllowed, text);
        }
        let Ok(permit) = self.listening.try_acquire() else {
            let text =
                format!("this session listens at {MAX_LISTENERS} addresses, which is the limit");
            return request.refuse(RefuseReason::TooMany, text);
        };
        let bound = self.server.ports.listen(&at, self.key, &self.link).await;
        let (listeners, port) = match bound {
            Ok(bound) => bound,
            Err(why) => return request.refuse(RefuseReason::Failed, why.to_string()),
        };
        let id = request.id();
        let channel = request.accept(port);
        let closed = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for listener in listeners {
            let warnings = ThrottledWarnings::new(self.server.observer.clone());
            let accepted = self.clone().accept_all(listener, id, closed.clone(), warnings);
            tasks.spawn(accepted);
        }
        // The channel carries no data; its end is the request to stop listening.
        wait_for_end(channel).await;
        closed.cancel();
        drop(permit);
        while tasks.join_next().await.is_some() {}
    }

    /// Exchanges packets with a client that has these addresses, until it closes the channel.
    async fn exchange(
        &self,
        request: ChannelRequest,
        addresses: &[IpAddr],
    ) -> Result<(), (ChannelRequest, RefuseReason, String)> {
        let Some(interface) = &self.server.interface else {
            let text = "this server has no interface: it was started without --tun".to_owned();
            return Err((request, RefuseReason::Unsupported, text));
        };
        if let Some(address) = addresses.iter().find(|address| !self.grant.may_have(**address)) {
            let text = format!("this key may not have the address {address} (permit-tun)");
            return Err((request, RefuseReason::NotAllowed, text));
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
                let text = format!("another session has the packets of {network}");
                return Err((request, RefuseReason::Failed, text));
            }
        };
        let _lease = attached.add((), self.key, &self.link);
        exchange_packets(&self.link, request.accept(0), attachment).await;
        Ok(())
    }

    /// Opens a channel to the client for each accepted connection until the listener is closed, and then waits for
    /// these to end.
    async fn accept_all(
        self,
        leased: LeasedListener,
        listen: u32,
        closed: CancellationToken,
        warnings: ThrottledWarnings,
    ) {
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let (client, peer) = tokio::select! {
                () = closed.cancelled() => break,
                accepted = accept(&leased.listener, &warnings) => accepted,
            };
            reset_when_dropped(&client);
            let place = match self.server.places.channels.acquire(self.key) {
                Ok(place) => place,
                Err(why) => {
                    warnings.warn("refused", format!("{peer} got no channel: {why}"));
                    continue;
                }
            };
            let link = self.link.clone();
            let forwarding = async move {
                if let Ok((channel, _)) = link.open(ChannelPurpose::Accepted { listen, peer }).await
                {
                    forward(client, channel).await;
                }
            };
            tasks.spawn(async move {
                tokio::select! {
                    () = forwarding => {}
                    () = place.lost() => {}
                }
            });
        }
        drop(leased);
        while tasks.join_next().await.is_some() {}
    }
}

async fn wait_for_end(mut channel: ChannelStream) {
    let mut piece = [0; 64];
    while let Ok(1..) = tokio::io::AsyncReadExt::read(&mut channel, &mut piece).await {}
}
