//! Tries transports with streams from time to time, while a session uses one without streams.

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetService};
use tokio::time::sleep;

use crate::server_tunnel::ServerTunnel;
use crate::setup::TunnelSetup;

/// When transports with streams are tried again, in the background.
///
/// This happens while the session is on a transport without streams, TCP or MPTCP, where a lost packet holds up
/// every connection: after [`first`](Self::first), then after twice as long each time, up to
/// [`longest`](Self::longest), and at once when the machine moves to another network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbingTimes {
    /// The first pause: 1 minute by default.
    pub first: Duration,
    /// The longest pause: 30 minutes by default.
    pub longest: Duration,
}

impl Default for ProbingTimes {
    fn default() -> Self {
        Self { first: Duration::from_mins(1), longest: Duration::from_mins(30) }
    }
}

/// Returns the same target and policy with only the transports that have streams, or `None` if there are none.
fn with_streams(target: &Target, policy: &Policy) -> Option<(Target, Policy)> {
    let (mut target, mut policy) = (target.clone(), policy.clone());
    policy.transports.retain(|transport| transport.has_streams());
    if let TargetService::Plain { transports, .. } = &mut target.service {
        transports.retain(|transport| policy.transports.contains(transport));
        if transports.is_empty() {
            return None;
        }
    }
    (!policy.transports.is_empty()).then_some((target, policy))
}

impl ProbingTimes {
    /// Waits for a session with streams that can replace one over this transport. Never returns if there cannot
    /// be one.
    pub(crate) async fn better(self, setup: &TunnelSetup, than: Transport) -> ServerTunnel {
        let better = with_streams(&setup.target, &setup.policy);
        // Through a proxy there is only one stream, and nothing goes past it.
        let may_be_better = setup.proxy.is_none() && !than.has_streams();
        let Some((target, policy)) = better.filter(|_| may_be_better) else {
            return std::future::pending().await;
        };
        let mut changes = setup.endpoint.network_changes();
        let mut pause = self.first;
        loop {
            tokio::select! {
                () = sleep(pause) => pause = (2 * pause).min(self.longest),
                Some(_) = changes.next() => pause = self.first,
            }
            match setup.begin(&target, &policy).await {
                Ok(tunnel) => return tunnel,
                // The current session works, so this is not reported.
                Err(error) => tracing::debug!(%error, "the tunnel stays on {than}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use eyas::race::candidate::Security;
    use eyas::race::target::TargetHost;

    use super::*;

    #[test]
    fn only_allowed_transports_with_streams_are_tried() {
        let among = |offered: &[Transport], allowed: &[Transport]| {
            let host = TargetHost::Name("gate.example".into());
            let target = Target::plain(host, 4433, offered.to_vec(), Security::Tls);
            let policy = Policy { transports: allowed.to_vec(), ..Policy::default() };
            with_streams(&target, &policy).map(|(target, policy)| match target.service {
                TargetService::Plain { transports, .. } => (transports, policy.transports),
                other => panic!("it was plain: {other:?}"),
            })
        };
        let all = [Transport::SctpUdp, Transport::Quic, Transport::Tcp];
        let found = among(&all, &all).expect("there are some");
        assert_eq!(found.0, [Transport::SctpUdp, Transport::Quic]);
        assert_eq!(found.0, found.1);
        assert_eq!(among(&[Transport::Tcp, Transport::Mptcp], &all), None);
        assert_eq!(among(&all, &[Transport::Tcp]), None);
        assert_eq!(among(&[Transport::Quic], &[Transport::SctpUdp]), None);
    }
}
