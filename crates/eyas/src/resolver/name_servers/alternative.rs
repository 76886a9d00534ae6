//! A DNS server that is asked over HTTPS, and over HTTP/3 where it has announced that.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use rustls::ClientConfig;

use super::super::encryption::{EndpointOutcome, SharedResolverMemory};
use super::ServerTrouble;
use super::announced::AnnouncedHttp3;
use super::attempt::ATTEMPT_DELAY;
use super::http3::Http3Connection;
use super::https::{HttpsConnection, HttpsServer};
use super::message::{DnsQuestion, DnsResponse};
use super::shared_connection::{ConnectedServer, QueryConnection};

/// A server at one of its addresses.
#[derive(Debug)]
pub(in super::super) struct DohServer {
    https: HttpsServer,
    http3: Arc<AnnouncedHttp3>,
}

impl DohServer {
    /// Returns the server at this address with this name, or `None` if it is not a name of a server, or the path is
    /// none. It begins with HTTP/3 if that was announced on this network not long ago.
    pub(in super::super) async fn new(
        address: SocketAddr,
        name: &str,
        path: &str,
        config: ClientConfig,
        memory: SharedResolverMemory,
    ) -> Option<Self> {
        let http3 = AnnouncedHttp3::recalled(address, name, path, config.clone(), memory).await;
        let http3 = Arc::new(http3);
        let https = HttpsServer::new(address, name, path, config)?.announcing(Arc::clone(&http3));
        Some(Self { https, http3 })
    }
}

impl ConnectedServer for DohServer {
    type Connection = DohConnection;

    /// Connects over HTTP/3 if that is announced, and over HTTP/2 when that has failed, or has not succeeded for a while.
    fn connect(&self) -> BoxFuture<'static, Result<DohConnection, ServerTrouble>> {
        let (https, announced) = (self.https.connect(), Arc::clone(&self.http3));
        let over_https = async move { https.await.map(DohConnection::Https) };
        async move {
            let Some(port) = announced.port() else { return over_https.await };
            let opened = Arc::clone(&announced);
            let over_http3 = async move {
                let connection = opened.connect(port).await?;
                Ok::<_, ServerTrouble>(DohConnection::Http3(connection, opened))
            };
            tokio::pin!(over_http3, over_https);
            tokio::select! {
                biased;
                opened = &mut over_http3 => return match opened {
                    Ok(connection) => Ok(connection),
                    Err(_) => over_https.await,
                },
                () = tokio::time::sleep(ATTEMPT_DELAY) => {}
            }
            tokio::select! {
                opened = &mut over_http3 => match opened {
                    Ok(connection) => Ok(connection),
                    Err(_) => over_https.await,
                },
                opened = &mut over_https => match opened {
                    Ok(connection) => {
                        announced.note_failure(port, Some(EndpointOutcome::CutShort));
                        Ok(connection)
                    }
                    Err(trouble) => over_http3.await.map_err(|_| trouble),
                },
            }
        }
        .boxed()
    }
}

/// A connection over the one or the other.
#[derive(Clone, Debug)]
pub(super) enum DohConnection {
    Https(HttpsConnection),
    Http3(Http3Connection, Arc<AnnouncedHttp3>),
}

impl QueryConnection for DohConnection {
    async fn ask(&self, question: &DnsQuestion, edns: bool) -> Result<DnsResponse, ServerTrouble> {
        match self {
            Self::Https(connection) => connection.ask(question, edns).await,
            Self::Http3(connection, announced) => {
                let answer = connection.ask(question, edns).await;
                if connection.has_answered() {
                    announced.note_answer();
                }
                answer
            }
        }
    }

    fn is_open(&self) -> bool {
        match self {
            Self::Https(connection) => connection.is_open(),
            Self::Http3(connection, _) => connection.is_open(),
        }
    }

    fn has_answered(&self) -> bool {
        match self {
            Self::Https(connection) => connection.has_answered(),
            Self::Http3(connection, _) => connection.has_answered(),
        }
    }
}
