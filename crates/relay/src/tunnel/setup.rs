//! The configuration that all sessions of a client share.

use std::sync::Arc;

use eyas::Endpoint;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use tokio::sync::Semaphore;

use super::demand::Demand;
use super::error::TunnelError;
use super::forward::Forward;
use super::notice::Observer;
use super::packets::Interface;
use super::proxied::ServerProxy;
use super::reach::{Tunnel, reach};
use super::session::SessionLimits;
use super::sessions::Sessions;

/// The configuration that all sessions share.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) endpoint: Endpoint,
    pub(super) target: Target,
    pub(super) policy: Policy,
    pub(super) proxy: Option<ServerProxy>,
    pub(super) remote: Vec<Forward>,
    pub(super) interface: Option<Interface>,
    pub(super) observer: Observer,
    pub(super) limits: SessionLimits,
    pub(super) programs: Arc<Semaphore>,
    pub(super) sessions: Sessions,
    pub(super) demand: Demand,
}

impl Setup {
    /// Connects with this target and policy, and begins a session.
    pub(super) async fn begin(
        &self,
        target: &Target,
        policy: &Policy,
    ) -> Result<Tunnel, TunnelError> {
        let (connection, _) = reach(&self.endpoint, target, policy, self.proxy.as_ref()).await?;
        Tunnel::begin(connection, self.limits.clone()).await
    }
}
