//! What all sessions of a client have in common.

use std::sync::Arc;

use eyas::Endpoint;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use tokio::sync::Semaphore;

use super::forward::Forward;
use super::notice::Observer;
use super::packets::Interface;
use super::reach::{Tunnel, TunnelError, reach};
use super::session::SessionLimits;
use super::sessions::Sessions;

/// Where the sessions lead, and who hears of them.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) endpoint: Endpoint,
    pub(super) target: Target,
    pub(super) policy: Policy,
    pub(super) remote: Vec<Forward>,
    pub(super) interface: Option<Interface>,
    pub(super) observer: Observer,
    pub(super) limits: SessionLimits,
    pub(super) programs: Arc<Semaphore>,
    pub(super) sessions: Sessions,
}

impl Setup {
    /// Begins a session over what this target and policy let win.
    pub(super) async fn begin(
        &self,
        target: &Target,
        policy: &Policy,
    ) -> Result<Tunnel, TunnelError> {
        let (carrier, _) = reach(&self.endpoint, target, policy).await?;
        Tunnel::begin(carrier, self.limits.clone()).await
    }
}
