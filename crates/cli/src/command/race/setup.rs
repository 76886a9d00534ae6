//! What the flags of `eyas race` ask for: the target, the policy, the endpoint.

use std::time::Duration;

use eyas::race::policy::Policy;
use eyas::race::target::Target;
use eyas::{Connection, ConnectionInfo, NameSource};
use eyas_sctp_tokio::SctpAssociation;
use eyas_sctp_tokio::protocol::endpoint::PathStatus;

use crate::command::linger::linger;
use crate::command::setting::{self, RaceContext};
use crate::command::target;
use crate::failure::Failure;
use crate::flags::RaceFlags;
use crate::race_report::{ReplayedRace, name_source};

/// The default time of each candidate with `--all`: enough for two retransmissions.
const ALL_DEADLINE: Duration = Duration::from_secs(8);
/// How long to wait for the late switch after a race was won.
const WATCH_TIME: Duration = Duration::from_secs(1);

/// Everything that a race needs, as often as it is run.
pub(super) struct RacePreparation {
    pub(super) context: RaceContext,
    pub(super) source: Option<NameSource>,
    target: Target,
    policy: Policy,
    seed: Option<u64>,
}

/// A race that is over.
pub(super) struct FinishedRace {
    pub(super) report: ReplayedRace,
    /// The connection that won.
    pub(super) connection: Option<ConnectionInfo>,
    /// The paths of the association, if SCTP won.
    pub(super) paths: Vec<PathStatus>,
}

impl RacePreparation {
    /// Reads the flags.
    pub(super) async fn new(flags: &RaceFlags) -> Result<Self, Failure> {
        let target = target::parse(&flags.target, &flags.service, flags.versions)?;
        let context = RaceContext::new(&flags.choice, &flags.reach, &flags.trust, &target).await?;
        let mut policy = setting::policy(flags.policy, &flags.choice, &flags.reach, &target)?;
        if flags.all || flags.count.is_some() {
            setting::let_all_finish(&mut policy, &target);
            if flags.reach.connect_timeout().is_none() && flags.reach.max_time().is_none() {
                policy.deadline = ALL_DEADLINE;
            }
        }
        let source = name_source(context.endpoint.resolver(), &target).filter(|_| flags.explain);
        Ok(Self { context, source, target, policy, seed: flags.choice.seed })
    }

    /// Races once. Each of several races has another seed.
    pub(super) async fn race(&self, number: u64) -> Result<FinishedRace, Failure> {
        let preconnection = self.context.endpoint.preconnection(self.target.clone());
        let mut preconnection = preconnection.policy(self.policy.clone());
        if let Some(seed) = self.seed {
            preconnection = preconnection.seed(seed.wrapping_add(number));
        }
        let mut initiation = preconnection.initiate();
        let connected = initiation.usable().await;
        if connected.is_ok() {
            // The late switch is part of the picture; waiting longer would not show more.
            let _ = tokio::time::timeout(WATCH_TIME, initiation.finished()).await;
            linger(|| initiation.trace(), &self.context.memory).await;
        }
        let connection = connected.as_ref().ok().map(|won| won.info().clone());
        let association = connected.as_ref().ok().and_then(Connection::sctp);
        let paths = association.map(SctpAssociation::paths).unwrap_or_default();
        let report = ReplayedRace::from_trace(initiation.trace())?;
        Ok(FinishedRace { report, connection, paths })
    }
}
