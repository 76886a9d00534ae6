//! The names that stand for a name, by the search list (resolv.conf(5)), and which of them counts.
//!
//! All record types of a name come from the same one of them: the first that has an address.

use std::sync::Arc;

use eyas_race::dns::{DnsFailure, DnsRecords, RecordType};
use futures_util::future::{BoxFuture, Either, FutureExt, Shared, select};

use super::super::name_servers::FoundRecords;
use super::resolv_conf::ResolvConf;

/// The answer to one query, for everybody who waits for it.
pub(super) type SharedAnswer = Shared<BoxFuture<'static, FoundRecords>>;

/// Asks DNS for records of a name as it is.
pub(super) trait AskDns {
    fn ask(&self, name: &str, record_type: RecordType) -> SharedAnswer;
}

/// A name to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchCandidate {
    pub(super) name: String,
    /// Whether it is the name as it was given.
    as_it_is: bool,
}

impl SearchCandidate {
    /// Returns its name, unless it is the one that was given.
    pub(super) fn into_searched(self) -> Option<String> {
        (!self.as_it_is).then_some(self.name)
    }
}

/// The name that counts, and its addresses, which may still be on their way.
#[derive(Clone)]
pub(super) struct SearchResult {
    pub(super) name: Arc<str>,
    aaaa: SharedAnswer,
    a: SharedAnswer,
}

impl SearchResult {
    /// Returns its addresses of this family.
    pub(super) fn addresses(self, record_type: RecordType) -> SharedAnswer {
        match record_type {
            RecordType::A => self.a,
            RecordType::Aaaa | RecordType::Https => self.aaaa,
        }
    }
}

/// Returns the names to try, in order. A name with as many dots as `ndots` is tried as it is first,
/// any other one last.
pub(super) fn candidates(conf: &ResolvConf, name: &str, is_absolute: bool) -> Vec<SearchCandidate> {
    let as_it_is = SearchCandidate { name: name.to_owned(), as_it_is: true };
    if is_absolute || conf.search.is_empty() {
        return vec![as_it_is];
    }
    let dots = name.bytes().filter(|octet| *octet == b'.').count();
    let is_first = u32::try_from(dots).unwrap_or(u32::MAX) >= conf.ndots;
    let mut names = Vec::new();
    if is_first {
        names.push(as_it_is.clone());
    }
    let mut has_root = is_first;
    for domain in &conf.search {
        if domain.is_empty() {
            // The root: the name as it is, unless that was tried.
            if !std::mem::replace(&mut has_root, true) {
                names.push(as_it_is.clone());
            }
        } else {
            names.push(SearchCandidate { name: format!("{name}.{domain}"), as_it_is: false });
        }
    }
    if !has_root && (dots > 0 || !conf.no_tld_query) {
        names.push(as_it_is);
    }
    names
}

/// Finds the first of these names that has an address, by the rules of glibc (`res_search`): where a
/// name does not exist, has no address or its server fails, the next is tried; where no server
/// answers, only the name as it is.
pub(super) async fn search(
    dns: impl AskDns,
    candidates: Vec<SearchCandidate>,
) -> Result<SearchResult, DnsFailure> {
    let mut first_as_it_is = None;
    let mut seen = SearchFailures::default();
    let mut is_over = false;
    for (at, candidate) in candidates.iter().enumerate() {
        if is_over && !candidate.as_it_is {
            continue;
        }
        let aaaa = dns.ask(&candidate.name, RecordType::Aaaa);
        let a = dns.ask(&candidate.name, RecordType::A);
        let Some(failure) = without_address(&aaaa, &a).await else {
            return Ok(SearchResult { name: candidate.name.as_str().into(), aaaa, a });
        };
        if candidate.as_it_is && at == 0 {
            is_over = matches!(failure, DnsFailure::Unreachable | DnsFailure::Local(_));
            first_as_it_is = Some(failure);
            continue;
        }
        seen.note(&failure);
        is_over = is_over
            || !matches!(
                failure,
                DnsFailure::NoData | DnsFailure::NoSuchName | DnsFailure::ServerFailure
            );
    }
    Err(first_as_it_is.unwrap_or_else(|| seen.failure()))
}

/// What the failures of the searched names were.
#[derive(Default)]
struct SearchFailures {
    no_data: bool,
    server_failure: bool,
    last: Option<DnsFailure>,
}

impl SearchFailures {
    fn note(&mut self, failure: &DnsFailure) {
        self.no_data |= *failure == DnsFailure::NoData;
        self.server_failure |= *failure == DnsFailure::ServerFailure;
        self.last = Some(failure.clone());
    }

    /// Returns what to say of the name as a whole.
    fn failure(self) -> DnsFailure {
        match self.last {
            _ if self.no_data => DnsFailure::NoData,
            _ if self.server_failure => DnsFailure::ServerFailure,
            last => last.unwrap_or(DnsFailure::NoSuchName),
        }
    }
}

/// Waits until one family has an address, or returns why neither has.
async fn without_address(aaaa: &SharedAnswer, a: &SharedAnswer) -> Option<DnsFailure> {
    let (first, second) = match select(aaaa.clone(), a.clone()).await {
        Either::Left((first, second)) | Either::Right((first, second)) => (first, second),
    };
    let first = first.records.err()?;
    let second = second.await.records.err()?;
    Some(both(first, second))
}

/// Returns what two failures say of their name.
fn both(one: DnsFailure, other: DnsFailure) -> DnsFailure {
    let is_negative =
        |failure: &DnsFailure| matches!(failure, DnsFailure::NoData | DnsFailure::NoSuchName);
    match (is_negative(&one), is_negative(&other)) {
        // One server may know less than another: that the name exists is the stronger statement.
        (true, true) if one == other => one,
        (true, true) => DnsFailure::NoData,
        // What did not answer may have an address.
        (true, false) => other,
        (false, _) => one,
    }
}

/// Returns an answer that is known.
pub(super) fn known(records: Result<DnsRecords, DnsFailure>) -> SharedAnswer {
    std::future::ready(FoundRecords { records, is_authentic: false }).boxed().shared()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;

    fn conf(search: &[&str], ndots: u32) -> ResolvConf {
        let search = search.iter().map(|domain| (*domain).to_owned()).collect();
        ResolvConf { search, ndots, ..ResolvConf::default() }
    }

    fn names(conf: &ResolvConf, name: &str) -> Vec<String> {
        candidates(conf, name, false).into_iter().map(|candidate| candidate.name).collect()
    }

    #[test]
    fn the_dots_decide_when_the_name_is_tried_as_it_is() {
        let cases: &[(&[&str], u32, &str, &[&str])] = &[
            (&[], 1, "a", &["a"]),
            (&["x", "y.z"], 1, "a", &["a.x", "a.y.z", "a"]),
            (&["x"], 1, "a.b", &["a.b", "a.b.x"]),
            (&["x"], 5, "a.b", &["a.b.x", "a.b"]),
            (&["x"], 5, "a.b.c.d.e", &["a.b.c.d.e.x", "a.b.c.d.e"]),
            (&["x"], 5, "a.b.c.d.e.f", &["a.b.c.d.e.f", "a.b.c.d.e.f.x"]),
            (&["x"], 0, "a", &["a", "a.x"]),
            (&[""], 1, "a", &["a"]),
            (&["", "x"], 1, "a", &["a", "a.x"]),
            (&["x", ""], 1, "a", &["a.x", "a"]),
            (&["", "x"], 1, "a.b", &["a.b", "a.b.x"]),
        ];
        for (search, ndots, name, expected) in cases {
            assert_eq!(names(&conf(search, *ndots), name), *expected, "{search:?} {ndots} {name}");
        }
        let no_tld = ResolvConf { no_tld_query: true, ..conf(&["x"], 1) };
        assert_eq!(names(&no_tld, "a"), ["a.x"]);
        assert_eq!(names(&no_tld, "a.b"), ["a.b", "a.b.x"]);
        let absolute = candidates(&conf(&["x"], 5), "a.b", true);
        assert_eq!(absolute, [SearchCandidate { name: "a.b".into(), as_it_is: true }]);
    }

    /// A zone: what is missing does not exist.
    #[derive(Default)]
    struct TestZone {
        answers: BTreeMap<(&'static str, RecordType), Result<DnsRecords, DnsFailure>>,
        asked: Mutex<Vec<String>>,
    }

    impl AskDns for &TestZone {
        fn ask(&self, name: &str, record_type: RecordType) -> SharedAnswer {
            if record_type == RecordType::A {
                self.asked.lock().unwrap().push(name.to_owned());
            }
            let found = self.answers.iter().find(|(key, _)| key.0 == name && key.1 == record_type);
            known(found.map_or(Err(DnsFailure::NoSuchName), |(_, answer)| answer.clone()))
        }
    }

    fn zone(entries: &[(&'static str, &str)]) -> TestZone {
        let mut zone = TestZone::default();
        for (name, what) in entries {
            let failure = match *what {
                "A" | "AAAA" | "NODATA" => DnsFailure::NoData,
                "SERVFAIL" => DnsFailure::ServerFailure,
                "SILENT" => DnsFailure::Timeout,
                "DOWN" => DnsFailure::Unreachable,
                other => panic!("{other}"),
            };
            let a = DnsRecords::A(vec!["192.0.2.1".parse().unwrap()]);
            let aaaa = DnsRecords::Aaaa(vec!["2001:db8::1".parse().unwrap()]);
            let a = if *what == "A" { Ok(a) } else { Err(failure.clone()) };
            let aaaa = if *what == "AAAA" { Ok(aaaa) } else { Err(failure) };
            zone.answers.insert((name, RecordType::A), a);
            zone.answers.insert((name, RecordType::Aaaa), aaaa);
        }
        zone
    }

    /// Asserts which name counts or how the search fails, and which names were asked.
    async fn expect(
        entries: &[(&'static str, &str)],
        names: (&[&str], u32, &str),
        expected: Result<&str, DnsFailure>,
        asked: &[&str],
    ) {
        let zone = zone(entries);
        let (search_list, ndots, name) = names;
        let candidates = candidates(&conf(search_list, ndots), name, false);
        let found = search(&zone, candidates).await.map(|found| found.name.to_string());
        let what = format!("{entries:?} {names:?}");
        assert_eq!(found, expected.map(ToOwned::to_owned), "{what}");
        assert_eq!(*zone.asked.lock().unwrap(), asked, "{what}");
    }

    #[tokio::test]
    async fn the_first_name_with_an_address_counts() {
        let pod: (&[&str], u32, &str) = (&["ns.x", "x"], 5, "s.ns");
        let all = ["s.ns.ns.x", "s.ns.x", "s.ns"];
        expect(&[("s.ns.ns.x", "A"), ("s.ns", "AAAA")], pod, Ok(all[0]), &all[..1]).await;
        expect(&[("s.ns.x", "AAAA"), ("s.ns", "A")], pod, Ok(all[1]), &all[..2]).await;
        expect(&[("s.ns", "A")], pod, Ok(all[2]), &all).await;
        expect(&[], pod, Err(DnsFailure::NoSuchName), &all).await;
        expect(&[(all[0], "NODATA"), (all[1], "A")], pod, Ok(all[1]), &all[..2]).await;
        expect(&[(all[0], "SERVFAIL"), (all[1], "A")], pod, Ok(all[1]), &all[..2]).await;
        expect(&[(all[0], "NODATA")], pod, Err(DnsFailure::NoData), &all).await;
        expect(&[(all[0], "SERVFAIL")], pod, Err(DnsFailure::ServerFailure), &all).await;
    }

    #[tokio::test]
    async fn where_nobody_answers_only_the_name_as_it_is_follows() {
        let pod: (&[&str], u32, &str) = (&["ns.x", "x"], 5, "s.ns");
        let some = ["s.ns.ns.x", "s.ns"];
        for how in ["SILENT", "DOWN"] {
            expect(&[(some[0], how), ("s.ns.x", "A")], pod, Err(DnsFailure::NoSuchName), &some)
                .await;
            expect(&[(some[0], how), (some[1], "A")], pod, Ok(some[1]), &some).await;
        }
    }

    #[tokio::test]
    async fn the_failure_of_the_name_as_it_is_counts_if_it_was_first() {
        let desk: (&[&str], u32, &str) = (&["x"], 1, "a.b");
        let all = ["a.b", "a.b.x"];
        expect(&[(all[0], "A")], desk, Ok(all[0]), &all[..1]).await;
        expect(&[(all[1], "A")], desk, Ok(all[1]), &all).await;
        for (how, failure) in [
            ("NODATA", DnsFailure::NoData),
            ("SERVFAIL", DnsFailure::ServerFailure),
            ("SILENT", DnsFailure::Timeout),
        ] {
            expect(&[(all[0], how)], desk, Err(failure), &all).await;
        }
        expect(&[(all[0], "DOWN")], desk, Err(DnsFailure::Unreachable), &all[..1]).await;
    }

    #[test]
    fn two_failures_say_the_more_careful_thing() {
        use DnsFailure::{NoData, NoSuchName, ServerFailure, Timeout};
        for (one, other, expected) in [
            (NoSuchName, NoSuchName, NoSuchName),
            (NoSuchName, NoData, NoData),
            (NoData, Timeout, Timeout),
            (ServerFailure, NoSuchName, ServerFailure),
            (Timeout, ServerFailure, Timeout),
        ] {
            assert_eq!(both(one.clone(), other.clone()), expected, "{one:?} {other:?}");
        }
    }
}
