//! The configuration that all sessions of a client share.

use std::sync::Arc;

use eyas::Endpoint;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use tokio::sync::Semaphore;

use crate::demand::Demand;
use crate::error::TunnelError;
use crate::forward::Forward;
use crate::notice::Observer;
use crate::packets::Interface;
use crate::proxied::ServerProxy;
use crate::reach::{Tunnel, reach};
use crate::session::SessionLimits;
use crate::sessions::Sessions;

/// The configuration that all sessions share.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) endpoint: Endpoint,
    pub(crate) target: Target,
    pub(crate) policy: Policy,
    pub(crate) proxy: Option<ServerProxy>,
    pub(crate) remote: Vec<Forward>,
    pub(crate) interface: Option<Interface>,
    pub(crate) observer: Observer,
    pub(crate) limits: SessionLimits,
    pub(crate) programs: Arc<Semaphore>,
    pub(crate) sessions: Sessions,
    pub(crate) demand: Demand,
}

impl Setup {
    /// Connects with this target and policy, and begins a session.
    pub(crate) async fn begin(
        &self,
        target: &Target,
        policy: &Policy,
    ) -> Result<Tunnel, TunnelError> {
        let (connection, _) = reach(&self.endpoint, target, policy, self.proxy.as_ref()).await?;
        Tunnel::begin(connection, self.limits.clone()).await
    }
}
