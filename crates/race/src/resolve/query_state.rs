//! One query and what is known of its answer, which may have expired (optimistic DNS).
//!
//! HEv3 §4.4:
//!
//! > the fact that Happy Eyeballs enables clients to handle updates to the resolved endpoint list
//! > asynchronously enables the use of expired answers "optimistically" while waiting for
//! > non-expired answers. This approach is called "optimistic DNS"
//!
//! An expired answer has its say at once, but the query counts as answered only with the new one,
//! which replaces it. If there is no new one because no server answers, it stays, as in RFC 8767.
//!
//! | what an expired answer must not do | because |
//! | --- | --- |
//! | stand for an absence of records | the records may exist by now, and have ECH |
//! | show records without ECH to a caller that relies on ECH | they may have it by now |
//! | lead to a peer that proves nothing about itself | the address may be somebody else's by now |
//! | replace an answer that holds | |

use alloc::vec::Vec;

use super::filter::FilteredAnswer;
use super::is_negative;
use crate::dns::{DnsAnswer, DnsFailure, DnsQuery};
use crate::race::RaceSetup;
use crate::reason::{PlanReason, ReasonKind};

/// One query and its answer.
#[derive(Clone, Debug)]
pub(super) struct QueryState {
    pub(super) query: DnsQuery,
    pub(super) sent: bool,
    pub(super) answer: Option<Result<FilteredAnswer, DnsFailure>>,
    /// Whether the answer came over protected DNS.
    pub(super) is_protected: bool,
    /// Set if the answer has expired.
    pub(super) expiry: Option<AnswerExpiry>,
}

/// What has become of the query for a new answer.
#[derive(Clone, Debug)]
pub(super) enum AnswerExpiry {
    /// It is under way.
    Awaited,
    /// It failed like this, so the expired answer stays.
    Kept(DnsFailure),
}

impl QueryState {
    pub(super) const fn new(query: DnsQuery) -> Self {
        Self { query, sent: false, answer: None, is_protected: false, expiry: None }
    }

    /// Stores an answer. The result does not depend on the order of an expired answer and a new
    /// one.
    pub(super) fn store(&mut self, setup: &RaceSetup, answer: DnsAnswer) {
        self.sent = true;
        let record_type = self.query.record_type;
        let records = answer.records.and_then(|records| FilteredAnswer::new(record_type, records));
        if answer.expired {
            self.store_expired(setup, records, answer.protected);
            return;
        }
        match records {
            Err(failure) if self.expiry.is_some() && !is_negative(&failure) => {
                self.expiry = Some(AnswerExpiry::Kept(failure));
            }
            records => {
                self.answer = Some(records);
                self.is_protected = answer.protected;
                self.expiry = None;
            }
        }
    }

    fn store_expired(
        &mut self,
        setup: &RaceSetup,
        records: Result<FilteredAnswer, DnsFailure>,
        is_protected: bool,
    ) {
        let Ok(filtered) = records else { return };
        let expiry = match &self.answer {
            None => AnswerExpiry::Awaited,
            Some(Err(failure)) if !is_negative(failure) => AnswerExpiry::Kept(failure.clone()),
            Some(_) => return,
        };
        let lacks_ech = setup.policy.rely_on_ech && !filtered.has_ech();
        if filtered.is_empty() || lacks_ech || !setup.target.authenticates_peer() {
            return;
        }
        self.answer = Some(Ok(filtered));
        self.is_protected = is_protected;
        self.expiry = Some(expiry);
    }

    /// Returns whether no other answer is awaited.
    pub(super) const fn is_final(&self) -> bool {
        self.answer.is_some() && !matches!(self.expiry, Some(AnswerExpiry::Awaited))
    }

    /// Returns the unused parts of the answer, and whether it has expired.
    pub(super) fn notes(&self) -> Vec<PlanReason> {
        let Some(Ok(filtered)) = &self.answer else { return Vec::new() };
        let (name, record_type) = (self.query.name.clone(), self.query.record_type);
        let expiry = self.expiry.as_ref().map(|expiry| match expiry {
            AnswerExpiry::Awaited => ReasonKind::ExpiredAnswer { name, record_type },
            AnswerExpiry::Kept(failure) => {
                ReasonKind::ExpiredAnswerKept { name, record_type, failure: failure.clone() }
            }
        });
        let mut notes = filtered.notes(&self.query);
        notes.extend(expiry.map(PlanReason));
        notes
    }
}

impl FilteredAnswer {
    /// Returns whether each service of these records has ECH; true for addresses, and for aliases,
    /// whose targets have records of their own.
    fn has_ech(&self) -> bool {
        self.records.iter().all(|record| record.priority == 0 || record.ech.is_some())
    }
}
