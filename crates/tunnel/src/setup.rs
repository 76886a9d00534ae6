//! The configuration that all sessions of a client share.

use std::sync::Arc;

use eyas::Endpoint;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use tokio::sync::Semaphore;

use crate::demand::TunnelDemand;
use crate::error::TunnelError;
use crate::forward::PortForward;
use crate::notice::NoticeObserver;
use crate::packets::TunnelInterface;
use crate::proxied::ServerProxy;
use crate::server_tunnel::{ServerTunnel, reach};
use crate::session::SessionLimits;
use crate::sessions::CurrentSessions;

/// The configuration that all sessions share.
#[derive(Debug)]
pub(crate) struct TunnelSetup {
    pub(crate) endpoint: Endpoint,
    pub(crate) target: Target,
    pub(crate) policy: Policy,
    pub(crate) proxy: Option<ServerProxy>,
    pub(crate) remote: Vec<PortForward>,
    pub(crate) interface: Option<TunnelInterface>,
    pub(crate) observer: NoticeObserver,
    pub(crate) limits: SessionLimits,
    pub(crate) programs: Arc<Semaphore>,
    pub(crate) sessions: CurrentSessions,
    pub(crate) demand: TunnelDemand,
}

impl TunnelSetup {
    /// Connects with this target and policy, and begins a session.
    pub(crate) async fn begin(
        &self,
        target: &Target,
        policy: &Policy,
    ) -> Result<ServerTunnel, TunnelError> {
        let (connection, _) = reach(&self.endpoint, target, policy, self.proxy.as_ref()).await?;
        ServerTunnel::begin(connection, self.limits.clone()).await
    }
}
