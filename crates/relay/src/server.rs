//! The proxy: sockets, clients, the end.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::sockets::{self, StreamProtocol, Wanted};
use eyas::{Endpoint, ServerIdentity};
use eyas_http::metrics;
use nix::libc;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::rules::Rules;
use crate::shared::{Observers, Shared};
use crate::stats::{Counters, Stats};
use crate::users::Users;
use crate::via::Via;
use crate::{Limits, Report, connection};

/// After a failed accept nothing is accepted for this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What goes wrong again and again is said this often.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// What is to be started: see [`Proxy::builder`].
#[derive(Debug)]
pub struct Proxy;

impl Proxy {
    /// A proxy that connects by this endpoint, with its memory.
    pub fn builder(endpoint: Endpoint) -> ProxyBuilder {
        ProxyBuilder {
            endpoint,
            addresses: Vec::new(),
            policy: Policy { transports: vec![Transport::Tcp], ..Policy::default() },
            rules: Rules::default(),
            users: None,
            via: None,
            security: None,
            limits: Limits::default(),
            metrics: None,
            observers: Observers::default(),
        }
    }
}

/// A proxy before its start.
#[derive(Debug)]
#[must_use]
pub struct ProxyBuilder {
    endpoint: Endpoint,
    addresses: Vec<SocketAddr>,
    policy: Policy,
    rules: Rules,
    users: Option<Arc<Users>>,
    via: Option<Via>,
    security: Option<ServerIdentity>,
    limits: Limits,
    metrics: Option<SocketAddr>,
    observers: Observers,
}

/// Why a proxy cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Everybody could use it.
    #[error(
        "{0} can be reached from elsewhere, and without users anybody there could use the proxy: \
         name them, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// Nothing can be proved with this certificate.
    #[error("cannot use the certificate: {0}")]
    Security(#[from] eyas::Error),
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] eyas::sockets::BindError),
}

impl ProxyBuilder {
    /// Listens on this address, too: 127.0.0.1 and a free port unless said.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// How destinations are raced. The transports are those of [`Transport`] that carry bytes without
    /// more ado: TCP, unless said, and MPTCP.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Where clients may go.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Who may use it. Without users it listens on loopback alone.
    pub fn users(mut self, users: Users) -> Self {
        self.users = Some(Arc::new(users));
        self
    }

    /// Reaches destinations through another proxy, which is raced to as they would be, and is the one to
    /// judge the addresses behind their names. There is no UDP then.
    pub fn via(mut self, via: Via) -> Self {
        self.via = Some(via);
        self
    }

    /// Speaks TLS with its clients, as whoever this is: none is heard in the clear. They get no UDP then.
    pub fn security(mut self, identity: ServerIdentity) -> Self {
        self.security = Some(identity);
        self
    }

    /// What clients may take.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Tells at this address, in the text format of Prometheus, what the proxy does:
    /// `http://ADDRESS/metrics`. Whoever reaches the address can read it.
    pub fn metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self
    }

    /// Tells what became of each client. It is called by the tasks that serve, so it must not wait.
    pub fn reports(mut self, observer: impl Fn(Report) + Send + Sync + 'static) -> Self {
        self.observers.reports = Some(Arc::new(observer));
        self
    }

    /// Tells what is wrong with the proxy itself, such as descriptors that have run out, at most every
    /// ten seconds.
    pub fn notices(mut self, observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.observers.notices = Some(Arc::new(observer));
        self
    }

    /// Binds the sockets and starts to serve. To be called inside a tokio runtime.
    ///
    /// # Errors
    /// If it would be open to everybody, cannot listen, or cannot use its certificate.
    pub fn start(mut self) -> Result<Running, ProxyError> {
        if self.addresses.is_empty() {
            self = self.listen((std::net::Ipv4Addr::LOCALHOST, 0).into());
        }
        let is_open = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
        if self.users.is_none()
            && let Some(address) = self.addresses.iter().find(is_open)
        {
            return Err(ProxyError::Open(*address));
        }
        let acceptor = match &self.security {
            Some(identity) => {
                let mut config = identity.server_config()?;
                config.alpn_protocols = vec![b"http/1.1".to_vec()];
                Some(TlsAcceptor::from(Arc::new(config)))
            }
            None => None,
        };
        let wanted = Wanted { stream: Some(StreamProtocol::Tcp), udp: false };
        let bound = sockets::bind(&self.addresses, wanted)?;
        let addresses = bound.iter().map(|one| one.address).collect();
        let mut policy = self.policy;
        policy.deadline = self.limits.connect_time;
        let shared = Arc::new(Shared {
            endpoint: self.endpoint,
            policy,
            rules: Arc::new(self.rules),
            users: self.users,
            via: self.via,
            acceptor,
            admission: Admission::new(&self.limits),
            associations: Semaphore::new(self.limits.associations.min(Semaphore::MAX_PERMITS)),
            limits: self.limits,
            counters: Counters::default(),
            observers: self.observers,
            drain: CancellationToken::new(),
            abort: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let metrics = match self.metrics {
            Some(address) => {
                let of_page = Arc::clone(&shared);
                let page = move || crate::metrics::render(&of_page.stats());
                Some(metrics::start(address, page, &shared.tasks, &shared.drain)?)
            }
            None => None,
        };
        for listener in bound.into_iter().filter_map(|one| one.tcp) {
            shared.tasks.spawn(accept(Arc::clone(&shared), listener));
        }
        Ok(Running { shared, addresses, metrics })
    }
}

/// Accepts clients until the proxy stops.
async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut said_at: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            () = shared.drain.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (tcp, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_client(&error) => continue,
            Err(error) => {
                if said_at.is_none_or(|at| at.elapsed() >= SAY_AGAIN) {
                    said_at = Some(Instant::now());
                    shared.notify(exhausted(&error));
                }
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        shared.counters.accepted();
        match shared.admission.admit(client.ip()) {
            Ok(permit) => {
                let serving = connection::serve(Arc::clone(&shared), tcp, client, permit);
                shared.tasks.spawn(serving);
            }
            Err(why) => {
                shared.counters.turned_away();
                if said_at.is_none_or(|at| at.elapsed() >= SAY_AGAIN) {
                    said_at = Some(Instant::now());
                    shared.notify(format!("{client} was turned away: {why}"));
                }
            }
        }
    }
}

/// An error of one connection that was gone before it was accepted is no reason to wait.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | ConnectionRefused)
}

fn exhausted(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => format!(
            "no descriptors are left ({error}): new clients wait until others have gone; raise the \
             limit (ulimit -n), or lower that on connections"
        ),
        _ => format!("cannot accept clients: {error}; it is tried again"),
    }
}

/// A proxy that runs. Dropping it stops it at once.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
}

impl Running {
    /// The first address it listens on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses it listens on.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where its metrics are, if it tells them.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Serves, too, programs that are not asked: what they send comes by `device`, a TUN device without
    /// headers of its own, that does not block, in a namespace whose addresses are
    /// [`interception::HOST`](crate::interception::HOST) and whose routes lead there; there the
    /// `listeners` are bound to those addresses, one for each family. To be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// If the runtime cannot have them.
    pub fn intercept(
        &self,
        device: OwnedFd,
        listeners: Vec<std::net::TcpListener>,
    ) -> io::Result<()> {
        crate::interception::start(Arc::clone(&self.shared), device, listeners)
    }

    /// Takes no new clients, lets those that are there finish for as long as the limits say, and then
    /// cuts what is left. Gives how many were cut.
    pub async fn shutdown(self) -> usize {
        self.shared.drain.cancel();
        self.shared.tasks.close();
        let cut = match timeout(self.shared.limits.grace, self.shared.tasks.wait()).await {
            Ok(()) => 0,
            Err(_) => self.shared.admission.open(),
        };
        self.shared.abort.cancel();
        self.shared.tasks.wait().await;
        cut
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.drain.cancel();
        self.shared.abort.cancel();
        self.shared.tasks.close();
    }
}
