//! What all connections of a program share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas_race::candidate::Candidate;
use eyas_race::evidence::Failure;
use eyas_race::target::Host;

use crate::attempt::{Attempt, Reporter, server_name};
use crate::connector::Connector;
use crate::{Connection, Error, Feedback, Resolver, SecurityParameters};

/// What all connections of a program share: security parameters, resolver, and one UDP socket
/// per address family for all of QUIC. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    connector: Connector,
    resolver: Resolver,
}

/// Settles what an [`Endpoint`] is made of.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct EndpointBuilder {
    security: SecurityParameters,
    resolver: Resolver,
    fast_open: bool,
}

impl EndpointBuilder {
    /// Whom to trust; [`SecurityParameters::platform`] unless said.
    pub fn security(mut self, security: SecurityParameters) -> Self {
        self.security = security;
        self
    }

    /// Whom to ask for names; [`Resolver::system`] unless said.
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// TCP Fast Open (RFC 7413) where nothing races: in a race it would win before the peer has
    /// answered. Off unless asked, for some paths swallow it.
    pub fn fast_open(mut self, fast_open: bool) -> Self {
        self.fast_open = fast_open;
        self
    }

    /// Makes the endpoint. Sockets are opened when they are needed.
    pub fn build(self) -> Result<Endpoint, Error> {
        let connector = Connector::new(&self.security, self.fast_open)?;
        Ok(Endpoint { shared: Arc::new(Shared { connector, resolver: self.resolver }) })
    }
}

impl Endpoint {
    /// Starts with the defaults.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// The resolver in use.
    pub fn resolver(&self) -> &Resolver {
        &self.shared.resolver
    }

    /// Connects to exactly this candidate, without a race, without memory. The certificate must
    /// be good for `host`. Dropping the future closes the attempt.
    ///
    /// # Errors
    /// Says how far the attempt came and what ended it. There is no deadline here but the
    /// transport's own.
    pub async fn attempt(
        &self,
        host: &Host,
        candidate: Candidate,
        initial_rtt: Option<Duration>,
    ) -> Result<Connection, Failure> {
        let attempt = Attempt {
            candidate,
            server_name: server_name(host),
            initial_rtt,
            origin: Instant::now(),
            alone: true,
        };
        let established = attempt.run(&self.shared.connector, &Reporter::none()).await?;
        Ok(Connection::new(established.carrier, established.info, Feedback::none()))
    }
}
