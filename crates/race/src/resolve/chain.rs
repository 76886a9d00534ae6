//! Follows AliasMode records to the end (RFC 9460 §3).

use alloc::{string::String, vec::Vec};

use super::filter::FilteredAnswer;
use super::record::{RecordMeaning, ServiceRecord, interpret};
use super::{MAX_ALIASES, is_negative};
use crate::dns::DnsFailure;
use crate::reason::{PlanReason, ReasonKind};

/// The chain of aliases, as far as it is known from the answers.
#[derive(Clone, Debug)]
pub(super) struct AliasChain {
    /// The name whose HTTPS records were queried last.
    pub(super) owner: String,
    /// The targets of the aliases, in order.
    pub(super) aliases: Vec<String>,
    /// How far the end of the chain is known.
    pub(super) end: ChainEnd,
    /// The ServiceMode records at the end, most preferred first.
    pub(super) records: Vec<ServiceRecord>,
    /// What was ignored.
    pub(super) notes: Vec<PlanReason>,
}

/// How far the chain is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainEnd {
    /// The answer for the last name is pending.
    Pending,
    /// The last name has been answered, with records or without.
    Known,
    /// The last name could not be queried.
    Unavailable,
}

impl AliasChain {
    /// Returns the chain of a target for which no HTTPS records are queried.
    pub(super) const fn none() -> Self {
        Self {
            owner: String::new(),
            aliases: Vec::new(),
            end: ChainEnd::Known,
            records: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Follows the aliases from `owner` through the answers so far.
    pub(super) fn follow<'a>(
        owner: String,
        seed: u64,
        answer: impl Fn(&str) -> Option<&'a Result<FilteredAnswer, DnsFailure>>,
    ) -> Self {
        let mut chain = Self { owner, end: ChainEnd::Pending, ..Self::none() };
        let first = chain.owner.clone();
        loop {
            let interpretation = match answer(&chain.owner) {
                None => return chain,
                Some(Err(failure)) => {
                    // A malformed set counts as no set (RFC 9460 §2.2), regardless of its sender.
                    let is_none = is_negative(failure) || *failure == DnsFailure::Malformed;
                    chain.end = if is_none { ChainEnd::Known } else { ChainEnd::Unavailable };
                    return chain;
                }
                Some(Ok(filtered)) => {
                    interpret(&chain.owner, &filtered.records, seed, &mut chain.notes)
                }
            };
            let target = match interpretation {
                RecordMeaning::Services(records) => {
                    chain.records = records;
                    chain.end = ChainEnd::Known;
                    return chain;
                }
                RecordMeaning::Alias(target) => target,
            };
            if target == first || chain.aliases.contains(&target) {
                return chain.broken(PlanReason(ReasonKind::AliasLoop { name: target }));
            }
            if chain.aliases.len() == MAX_ALIASES {
                let name = target;
                return chain
                    .broken(PlanReason(ReasonKind::AliasTooLong { followed: MAX_ALIASES, name }));
            }
            chain.aliases.push(target.clone());
            chain.owner = target;
        }
    }

    /// Falls back to the host's own addresses, as if there were no records (RFC 9460 §3.1).
    fn broken(mut self, note: PlanReason) -> Self {
        self.notes.push(note);
        self.aliases.clear();
        self.end = ChainEnd::Known;
        self
    }
}
