//! The race's use of DNS: the resolution, and the plan that results from it.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use super::Setup;
use crate::dns::{Answer, DnsFailure, Query, QueryId, RecordType};
use crate::plan::{Plan, PlanRequest, plan};
use crate::resolve::{Resolution, ServiceInfo};

/// A resolution, and what of it the race has already planned with. Each network has a resolution
/// of its own, and the queries of the race are numbered through.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    resolution: Resolution,
    /// Added to the resolution's own numbers.
    base: u32,
    /// The least number that no query has had.
    next: u32,
    /// Whether there may be something to ask.
    may_ask: bool,
    news: News,
}

/// Whether there is reason to plan again.
#[derive(Clone, Debug)]
enum News {
    /// Whatever DNS says, the present plan is out of date.
    Everything,
    /// An answer came in since this was planned with.
    Since(Arc<Vec<ServiceInfo>>),
    /// Nothing has changed since this was planned with.
    None(Arc<Vec<ServiceInfo>>),
}

impl Lookup {
    pub(super) fn new(setup: &Arc<Setup>, now: Duration) -> Self {
        let resolution = resolution(setup, now);
        Self { resolution, base: 0, next: 0, may_ask: true, news: News::Everything }
    }

    /// Starts again, on another network. Answers to older queries are ignored from now on.
    pub(super) fn restart(&mut self, setup: &Arc<Setup>, now: Duration) {
        self.resolution = resolution(setup, now);
        self.base = self.next;
        self.may_ask = true;
        self.news = News::Everything;
    }

    /// Plans again even if DNS says nothing new.
    pub(super) fn invalidate_plan(&mut self) {
        self.news = News::Everything;
    }

    pub(super) fn poll_query(&mut self) -> Option<Query> {
        let Some(mut query) = self.resolution.poll_query() else {
            self.may_ask = false;
            return None;
        };
        query.id = QueryId(query.id.0.saturating_add(self.base));
        self.next = self.next.max(query.id.0.saturating_add(1));
        Some(query)
    }

    /// Takes in an answer. [`Lookup::conclude`] is to follow, after all answers of the instant.
    pub(super) fn note_answer(&mut self, mut answer: Answer) {
        let Some(id) = answer.id.0.checked_sub(self.base) else { return };
        answer.id = QueryId(id);
        self.resolution.note_answer(answer);
        self.may_ask = true;
        if let News::None(planned) = &mut self.news {
            self.news = News::Since(core::mem::take(planned));
        }
    }

    pub(super) fn conclude(&mut self, now: Duration) {
        self.resolution.conclude(now);
    }

    /// A new plan, if the rule for moving on allows one and the facts have changed.
    pub(super) fn plan(&mut self, setup: &Setup, now: Duration) -> Option<Plan> {
        let planned = match &self.news {
            News::None(_) => return None,
            News::Since(services) => Some(services),
            News::Everything => None,
        };
        if !self.resolution.may_move_on(now) {
            return None;
        }
        let services = Arc::clone(self.resolution.known_services());
        let made = (planned != Some(&services)).then(|| self.planned_with(&services, setup, now));
        self.news = News::None(services);
        made
    }

    fn planned_with(&self, services: &[ServiceInfo], setup: &Setup, now: Duration) -> Plan {
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

    /// When there is something to ask, or to plan with: `now` if there is.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let has_news = !matches!(self.news, News::None(_));
        if self.may_ask || has_news && self.resolution.may_move_on(now) {
            return Some(now);
        }
        if has_news { self.resolution.next_timeout() } else { None }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.resolution.is_complete()
    }

    pub(super) fn failures(&self) -> Vec<(RecordType, DnsFailure)> {
        self.resolution.failures()
    }
}

fn resolution(setup: &Arc<Setup>, now: Duration) -> Resolution {
    Resolution::of(Arc::clone(setup), now)
}
