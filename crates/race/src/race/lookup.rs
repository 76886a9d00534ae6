//! The race's use of DNS: the resolution, and the plan that results from it.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use super::RaceSetup;
use crate::dns::{DnsAnswer, DnsFailure, DnsQuery, QueryId, RecordType};
use crate::plan::{Plan, PlanRequest, plan};
use crate::resolve::{RaceResolution, ServiceInfo};

/// A resolution, and whether the plan reflects it. Each network has its own resolution, and queries
/// are numbered consecutively across all of them.
#[derive(Clone, Debug)]
pub(super) struct RaceLookup {
    resolution: RaceResolution,
    /// The offset added to the resolution's own query numbers.
    base: u32,
    /// The smallest unused query number.
    next: u32,
    /// Whether there may be queries to send.
    may_query: bool,
    plan_state: PlanState,
}

/// Whether the plan is up to date.
#[derive(Clone, Debug)]
enum PlanState {
    /// The plan must be computed anew, regardless of DNS.
    OutOfDate,
    /// An answer has arrived since the plan was made from these services.
    AnswerSince(Arc<Vec<ServiceInfo>>),
    /// Nothing has changed since the plan was made from these services.
    UpToDate(Arc<Vec<ServiceInfo>>),
}

impl RaceLookup {
    pub(super) fn new(setup: &Arc<RaceSetup>, now: Duration) -> Self {
        let resolution = resolution(setup, now);
        Self { resolution, base: 0, next: 0, may_query: true, plan_state: PlanState::OutOfDate }
    }

    /// Starts anew on another network. Answers to older queries are ignored from now on.
    pub(super) fn restart(&mut self, setup: &Arc<RaceSetup>, now: Duration) {
        self.resolution = resolution(setup, now);
        self.base = self.next;
        self.may_query = true;
        self.plan_state = PlanState::OutOfDate;
    }

    /// Makes the next call of [`RaceLookup::plan`] return a plan even without a new answer.
    pub(super) fn invalidate_plan(&mut self) {
        self.plan_state = PlanState::OutOfDate;
    }

    pub(super) fn poll_query(&mut self) -> Option<DnsQuery> {
        let Some(mut query) = self.resolution.poll_query() else {
            self.may_query = false;
            return None;
        };
        query.id = QueryId(query.id.0.saturating_add(self.base));
        self.next = self.next.max(query.id.0.saturating_add(1));
        Some(query)
    }

    /// Stores an answer. [`RaceLookup::apply_answers`] must follow, after all answers of the instant.
    pub(super) fn store_answer(&mut self, mut answer: DnsAnswer) {
        let Some(id) = answer.id.0.checked_sub(self.base) else { return };
        answer.id = QueryId(id);
        self.resolution.store_answer(answer);
        self.may_query = true;
        if let PlanState::UpToDate(planned) = &mut self.plan_state {
            self.plan_state = PlanState::AnswerSince(core::mem::take(planned));
        }
    }

    pub(super) fn apply_answers(&mut self, now: Duration) {
        self.resolution.apply_answers(now);
    }

    /// Returns whether an answer has arrived since the plan was made, so that the next plan shows
    /// what answers have changed.
    pub(super) const fn has_answer_since_plan(&self) -> bool {
        matches!(self.plan_state, PlanState::AnswerSince(_))
    }

    /// Returns a new plan, if the race may begin and the services have changed.
    pub(super) fn plan(&mut self, setup: &RaceSetup, now: Duration) -> Option<Plan> {
        let planned = match &self.plan_state {
            PlanState::UpToDate(_) => return None,
            PlanState::AnswerSince(services) => Some(services),
            PlanState::OutOfDate => None,
        };
        if !self.resolution.may_move_on(now) {
            return None;
        }
        let services = Arc::clone(self.resolution.known_services());
        let new_plan = (planned != Some(&services)).then(|| self.make_plan(&services, setup, now));
        self.plan_state = PlanState::UpToDate(services);
        new_plan
    }

    fn make_plan(&self, services: &[ServiceInfo], setup: &RaceSetup, now: Duration) -> Plan {
        plan(&PlanRequest {
            target: &setup.target,
            policy: &setup.policy,
            services,
            notes: &self.resolution.notes(),
            view: &setup.view,
            network: &setup.network,
            seed: setup.seed,
            now,
        })
    }

    /// Returns when there is a query to send or a plan to make; `now` if there is one already.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let may_be_outdated = !matches!(self.plan_state, PlanState::UpToDate(_));
        if self.may_query || may_be_outdated && self.resolution.may_move_on(now) {
            return Some(now);
        }
        if may_be_outdated { self.resolution.next_timeout() } else { None }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.resolution.is_complete()
    }

    pub(super) fn failures(&self) -> Vec<(RecordType, DnsFailure)> {
        self.resolution.failures()
    }
}

fn resolution(setup: &Arc<RaceSetup>, now: Duration) -> RaceResolution {
    RaceResolution::from_setup(Arc::clone(setup), now)
}
