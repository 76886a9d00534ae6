//! A connection to a server that all queries share (RFC 7766 §6.2.1).

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, FutureExt, Shared};

use super::ServerTrouble;
use super::message::{DnsQuestion, DnsResponse};

/// The maximum number of connections for one query. Servers exist that end each one after an answer.
const MAX_CONNECTIONS: usize = 8;

/// A connection over which several questions may be asked at once. Clones share it.
pub(super) trait QueryConnection: Clone + Send + Sync + 'static {
    /// Asks a question.
    fn ask(
        &self,
        question: &DnsQuestion,
        edns: bool,
    ) -> impl Future<Output = Result<DnsResponse, ServerTrouble>> + Send;

    /// Returns whether further questions may be asked.
    fn is_open(&self) -> bool;

    /// Returns whether the server has answered a question over it.
    fn has_answered(&self) -> bool;
}

/// A server that is asked over connections.
pub(super) trait ConnectedServer {
    type Connection: QueryConnection;

    /// Connects to it.
    fn connect(&self) -> BoxFuture<'static, Result<Self::Connection, ServerTrouble>>;
}

/// A connection that is being made, for everybody who waits for it.
type PendingConnection<C> = Shared<BoxFuture<'static, Result<C, ServerTrouble>>>;

/// A server, with the latest connection to it. It is made when it is first needed.
pub(super) struct SharedConnection<S: ConnectedServer> {
    server: S,
    latest: Mutex<Option<PendingConnection<S::Connection>>>,
}

impl<S: ConnectedServer> SharedConnection<S> {
    pub(super) fn new(server: S) -> Self {
        Self { server, latest: Mutex::new(None) }
    }

    /// Returns a connection that is open, or makes one.
    pub(super) async fn open(&self) -> Result<S::Connection, ServerTrouble> {
        let made = {
            let mut latest = self.latest();
            match latest.as_ref().filter(|made| is_usable(made)) {
                Some(made) => made.clone(),
                None => latest.insert(self.server.connect().shared()).clone(),
            }
        };
        made.await
    }

    /// Asks a question, over a new connection if the one that there is ends before the answer: a server may end one
    /// that has served at any time, and the client is to ask again then (RFC 7766 §6.2.4).
    pub(super) async fn ask(
        &self,
        question: &DnsQuestion,
        edns: bool,
    ) -> Result<DnsResponse, ServerTrouble> {
        for _ in 1..MAX_CONNECTIONS {
            let connection = self.open().await?;
            match connection.ask(question, edns).await {
                Err(ServerTrouble::Unreachable) if connection.has_answered() => {}
                result => return result,
            }
        }
        self.open().await?.ask(question, edns).await
    }

    /// Makes the next question go over a new connection. Those that wait for answers go on waiting.
    pub(super) fn replace(&self) {
        *self.latest() = None;
    }

    fn latest(&self) -> MutexGuard<'_, Option<PendingConnection<S::Connection>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_usable<C: QueryConnection>(made: &PendingConnection<C>) -> bool {
    made.peek().is_none_or(|made| made.as_ref().is_ok_and(QueryConnection::is_open))
}

impl<S: ConnectedServer + fmt::Debug> fmt::Debug for SharedConnection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedConnection").field(&self.server).finish()
    }
}
