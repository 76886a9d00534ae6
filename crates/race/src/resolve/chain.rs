//! Follows AliasMode records to the end (RFC 9460 §3).

use alloc::{string::String, vec::Vec};

use super::intake::Kept;
use super::record::{Judged, ServiceRecord, judge};
use super::{MAX_ALIASES, is_negative};
use crate::dns::DnsFailure;
use crate::reason::Reason;

/// Where the aliases lead, as far as the answers say.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The name whose HTTPS records were asked last.
    pub(super) owner: String,
    /// The aliases' targets, in order.
    pub(super) aliases: Vec<String>,
    /// What stands at the end.
    pub(super) end: End,
    /// The ServiceMode records there, best first.
    pub(super) records: Vec<ServiceRecord>,
    /// What was ignored.
    pub(super) notes: Vec<Reason>,
}

/// How far the chain is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The answer for the last name is not in.
    Pending,
    /// The last name has answered, with records or without.
    Known,
    /// The last name could not be asked.
    Unavailable,
}

impl Chain {
    /// Returns the chain of a target for which no HTTPS records are queried.
    pub(super) const fn none() -> Self {
        Self {
            owner: String::new(),
            aliases: Vec::new(),
            end: End::Known,
            records: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Follows the aliases from `owner` through the answers so far.
    pub(super) fn follow<'a>(
        owner: String,
        seed: u64,
        answer: impl Fn(&str) -> Option<&'a Result<Kept, DnsFailure>>,
    ) -> Self {
        let mut chain = Self { owner, end: End::Pending, ..Self::none() };
        let first = chain.owner.clone();
        loop {
            let judged = match answer(&chain.owner) {
                None => return chain,
                Some(Err(failure)) => {
                    // A malformed set counts as no set (RFC 9460 §2.2), regardless of its sender.
                    let is_none = is_negative(failure) || *failure == DnsFailure::Malformed;
                    chain.end = if is_none { End::Known } else { End::Unavailable };
                    return chain;
                }
                Some(Ok(kept)) => judge(&chain.owner, &kept.records, seed, &mut chain.notes),
            };
            let target = match judged {
                Judged::Services(records) => {
                    chain.records = records;
                    chain.end = End::Known;
                    return chain;
                }
                Judged::Alias(target) => target,
            };
            if target == first || chain.aliases.contains(&target) {
                return chain.broken(Reason::AliasLoop { name: target });
            }
            if chain.aliases.len() == MAX_ALIASES {
                let name = target;
                return chain.broken(Reason::AliasTooLong { followed: MAX_ALIASES, name });
            }
            chain.aliases.push(target.clone());
            chain.owner = target;
        }
    }

    /// Falls back to the host's own addresses, as if there were no records (RFC 9460 §3.1).
    fn broken(mut self, note: Reason) -> Self {
        self.notes.push(note);
        self.aliases.clear();
        self.end = End::Known;
        self
    }
}
