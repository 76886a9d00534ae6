//! A way with streams for a session that won without them: tried now and then while the session works.

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::race::target::{Service, Target};
use tokio::time::sleep;

use super::reach::Tunnel;
use super::setup::Setup;

/// When a transport that did not get through is tried again, in the background.
///
/// It is while the session is on one without streams, TCP or MPTCP, where a lost packet holds up every
/// connection: after [`first`](Self::first), then after twice as long each time, up to
/// [`longest`](Self::longest), and at once when the machine comes to another network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// The first pause: one minute.
    pub first: Duration,
    /// The longest pause: half an hour.
    pub longest: Duration,
}

impl Default for Probing {
    fn default() -> Self {
        Self { first: Duration::from_mins(1), longest: Duration::from_mins(30) }
    }
}

/// The same target and policy over the transports with streams alone; `None` if none of them is wanted.
fn with_streams(target: &Target, policy: &Policy) -> Option<(Target, Policy)> {
    let (mut target, mut policy) = (target.clone(), policy.clone());
    policy.transports.retain(|transport| transport.has_streams());
    if let Service::Plain { transports, .. } = &mut target.service {
        transports.retain(|transport| policy.transports.contains(transport));
        if transports.is_empty() {
            return None;
        }
    }
    (!policy.transports.is_empty()).then_some((target, policy))
}

impl Probing {
    /// A session with streams for one over this transport, once there is one. It does not end where there
    /// is nothing to look for.
    pub(super) async fn better(self, setup: &Setup, than: Transport) -> Tunnel {
        let wanted = with_streams(&setup.target, &setup.policy);
        let Some((target, policy)) = wanted.filter(|_| !than.has_streams()) else {
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
                // The session that there is works: nobody need hear of it.
                Err(error) => tracing::debug!(%error, "the tunnel stays on {than}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use eyas::race::candidate::Security;
    use eyas::race::target::Host;

    use super::*;

    #[test]
    fn only_transports_with_streams_that_are_wanted_are_tried() {
        let among = |wanted: &[Transport], allowed: &[Transport]| {
            let host = Host::Name("gate.example".into());
            let target = Target::plain(host, 4433, wanted.to_vec(), Security::Tls);
            let policy = Policy { transports: allowed.to_vec(), ..Policy::default() };
            with_streams(&target, &policy).map(|(target, policy)| match target.service {
                Service::Plain { transports, .. } => (transports, policy.transports),
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
