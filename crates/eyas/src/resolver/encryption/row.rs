//! Designations as rows of the memory. Pure.
//!
//! A row may say anything, as what a name server sends may: it is read with the same care, and what it designates has to
//! prove the same.

use std::time::Duration;

use eyas_race::memory::{DesignatedEndpoint, DesignationEntry, DesignationOutcome};
use rustls_pki_types::ServerName;

use super::designation::{self, PROTOCOLS, ResolverEndpoint};

/// What a row says that still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct RememberedDesignation {
    pub(in super::super) said: RememberedAnswer,
    /// For how long it holds from now on.
    pub(in super::super) holds: Duration,
}

/// What a name server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum RememberedAnswer {
    /// These can be reached so; at least one.
    Resolvers(Vec<ResolverEndpoint>),
    Nothing,
    Silence,
}

/// Returns the row of what was said now and holds for this long.
pub(super) fn written(said: &RememberedAnswer, now: Duration, holds: Duration) -> DesignationEntry {
    let row = |endpoint: &ResolverEndpoint| DesignatedEndpoint {
        name: endpoint.name.clone(),
        alpn: designation::identifier(endpoint.protocol).to_owned(),
        address: endpoint.address,
        path: endpoint.path.clone(),
    };
    let outcome = match said {
        RememberedAnswer::Resolvers(endpoints) => {
            let endpoints = endpoints.iter().take(DesignationEntry::MAX_RESOLVERS);
            DesignationOutcome::Resolvers(endpoints.map(row).collect())
        }
        RememberedAnswer::Nothing => DesignationOutcome::Nothing,
        RememberedAnswer::Silence => DesignationOutcome::Silence,
    };
    let holds = holds.min(DesignationEntry::LONGEST);
    DesignationEntry { at: now, until: now.saturating_add(holds), outcome }
}

/// Reads a row that has not expired; `None` if it says nothing that can be used.
pub(super) fn read(entry: &DesignationEntry, now: Duration) -> Option<RememberedDesignation> {
    let holds = entry.until.saturating_sub(now).min(DesignationEntry::LONGEST);
    let said = match &entry.outcome {
        DesignationOutcome::Nothing => RememberedAnswer::Nothing,
        DesignationOutcome::Silence => RememberedAnswer::Silence,
        DesignationOutcome::Resolvers(_) => {
            let endpoints: Vec<_> = entry.resolvers().iter().filter_map(read_endpoint).collect();
            if endpoints.is_empty() {
                return None;
            }
            RememberedAnswer::Resolvers(endpoints)
        }
    };
    (!holds.is_zero()).then_some(RememberedDesignation { said, holds })
}

fn read_endpoint(row: &DesignatedEndpoint) -> Option<ResolverEndpoint> {
    let is_of_row = |protocol: &_| designation::identifier(*protocol) == row.alpn;
    let protocol = PROTOCOLS.into_iter().find(is_of_row)?;
    let is_usable = ServerName::try_from(row.name.as_str()).is_ok()
        && row.address.port() != 0
        && !row.address.ip().is_unspecified()
        && (designation::is_path(&row.path) || !designation::has_requests(protocol));
    is_usable.then(|| ResolverEndpoint {
        name: row.name.clone(),
        protocol,
        address: row.address,
        path: if designation::has_requests(protocol) { row.path.clone() } else { String::new() },
    })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use proptest::prelude::*;

    use super::super::DnsProtocol;
    use super::*;

    const NOW: Duration = Duration::from_hours(500_000);
    const MIN: Duration = Duration::from_mins(1);

    fn endpoint(protocol: DnsProtocol) -> ResolverEndpoint {
        let path = if designation::has_requests(protocol) { "/dns-query" } else { "" };
        ResolverEndpoint {
            name: "dns.example".to_owned(),
            protocol,
            address: ([192, 0, 2, 1], 853).into(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn what_is_remembered_is_what_was_said() {
        let all: Vec<_> = PROTOCOLS.into_iter().map(endpoint).collect();
        for said in
            [RememberedAnswer::Resolvers(all), RememberedAnswer::Nothing, RememberedAnswer::Silence]
        {
            let row = written(&said, NOW, MIN);
            let later = NOW + Duration::from_secs(20);
            let holds = Duration::from_secs(40);
            assert_eq!(read(&row, later), Some(RememberedDesignation { said, holds }));
            assert_eq!(read(&row, NOW + MIN), None);
        }
    }

    /// Any row: what a writer of ours makes, and what it never would.
    fn any_row() -> impl Strategy<Value = DesignatedEndpoint> {
        let alpn = prop_oneof![
            prop::sample::select(vec!["dot", "doq", "h2", "h3", "", "http/1.1"])
                .prop_map(str::to_owned),
            "\\PC{0,12}",
        ];
        let name = prop_oneof!["[a-z]{1,8}\\.example", "\\PC{0,300}", "[0-9.:]{0,20}"];
        let path = prop_oneof!["/[a-z{}?]{0,30}", "\\PC{0,30}", "/[a-z]{1000,1100}"];
        let address = any::<(IpAddr, u16)>().prop_map(SocketAddr::from);
        (name, alpn, address, path).prop_map(|(name, alpn, address, path)| DesignatedEndpoint {
            name,
            alpn,
            address,
            path,
        })
    }

    proptest! {
        #[test]
        fn of_any_row_only_what_a_server_could_have_said_is_used(
            rows in prop::collection::vec(any_row(), 0..30),
            until in any::<u64>(),
            now in any::<u64>(),
        ) {
            let (until, now) = (Duration::from_secs(until), Duration::from_secs(now));
            let outcome = DesignationOutcome::Resolvers(rows);
            let entry = DesignationEntry { at: now, until, outcome };
            if let Some(RememberedDesignation { said, holds }) = read(&entry, now) {
                let RememberedAnswer::Resolvers(endpoints) = said else {
                    return Err(TestCaseError::fail("it said more than the row"));
                };
                prop_assert!(!endpoints.is_empty());
                prop_assert!(endpoints.len() <= DesignationEntry::MAX_RESOLVERS);
                prop_assert!(now < until && holds <= DesignationEntry::LONGEST);
                for endpoint in endpoints {
                    prop_assert!(endpoint.name.len() <= 253 && endpoint.path.len() <= 1024);
                    prop_assert!(endpoint.address.port() != 0);
                    let has_path = endpoint.path.starts_with('/');
                    prop_assert_eq!(has_path, designation::has_requests(endpoint.protocol));
                }
            }
        }
    }
}
