//! The race's hold on DNS: the resolution, and the plan it leads to.

use alloc::vec::Vec;
use core::time::Duration;

use super::Setup;
use crate::dns::{Answer, DnsFailure, Query, RecordType};
use crate::plan::{Plan, PlanRequest, plan};
use crate::resolve::{Resolution, ServiceInfo};

/// A resolution, and what of it the race has already planned with.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    resolution: Resolution,
    news: News,
}

/// Whether there is reason to plan again.
#[derive(Clone, Debug)]
enum News {
    /// Whatever DNS says, the present plan is out of date.
    Everything,
    /// An answer came in since this was planned with.
    Since(Vec<ServiceInfo>),
    /// Nothing has changed since this was planned with.
    None(Vec<ServiceInfo>),
}

impl Lookup {
    pub(super) fn new(setup: &Setup, now: Duration) -> Self {
        let Setup { target, network, policy, seed, .. } = setup;
        let resolution = Resolution::new(target, network, policy, *seed, now);
        Self { resolution, news: News::Everything }
    }

    /// Starts again, on another network. Answers to older queries are ignored from now on.
    pub(super) fn restart(&mut self, setup: &Setup, now: Duration) {
        self.resolution.restart(&setup.network, now);
        self.news = News::Everything;
    }

    /// Plans again even if DNS says nothing new.
    pub(super) fn invalidate_plan(&mut self) {
        self.news = News::Everything;
    }

    pub(super) fn poll_query(&mut self) -> Option<Query> {
        self.resolution.poll_query()
    }

    pub(super) fn handle_answer(&mut self, now: Duration, answer: Answer) {
        self.resolution.handle_answer(now, answer);
        if let News::None(planned) = &mut self.news {
            self.news = News::Since(core::mem::take(planned));
        }
    }

    /// A new plan, if the rule for moving on allows one and the facts have changed.
    pub(super) fn plan(&mut self, setup: &Setup, now: Duration) -> Option<Plan> {
        let planned = match &self.news {
            News::None(_) => return None,
            News::Since(services) => Some(services),
            News::Everything => None,
        };
        if !self.resolution.may_move_on(now) && !self.resolution.is_complete() {
            return None;
        }
        let services = self.resolution.services();
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

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.resolution.next_timeout()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.resolution.is_complete()
    }

    pub(super) fn failures(&self) -> Vec<(RecordType, DnsFailure)> {
        self.resolution.failures()
    }
}
