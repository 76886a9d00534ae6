//! Shared code of the comparisons with a model of the kernel: random calls, and a check of their
//! coverage.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Range;

use eyas_sockets::Errno;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Returns the outcome of a call as a word.
pub(crate) fn outcome_name<T>(outcome: &Result<T, Errno>) -> String {
    match outcome {
        Ok(_) => "done".to_owned(),
        Err(errno) => format!("{errno:?}"),
    }
}

/// Generates calls; half of the sequences start with the given set-up.
pub(crate) fn calls<C: Clone + Debug + 'static>(
    setup: Vec<C>,
    call: impl Strategy<Value = C>,
    count: Range<usize>,
) -> impl Strategy<Value = Vec<C>> {
    let beginning = prop_oneof![Just(Vec::new()), Just(setup)];
    let all = (beginning, prop::collection::vec(call, count));
    all.prop_map(|(beginning, calls)| [beginning, calls].concat())
}

/// Makes random calls, and panics unless all expected outcomes occur: if all calls failed in the
/// same way, the comparison would be useless.
pub(crate) fn check_coverage<C: Debug>(
    calls: &impl Strategy<Value = Vec<C>>,
    rounds: usize,
    make: impl Fn(&[C]) -> BTreeSet<String>,
    expected: &[&str],
) {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..rounds {
        seen.extend(make(&calls.new_tree(&mut runner).unwrap().current()));
    }
    let missing: Vec<_> = expected.iter().filter(|one| !seen.contains(**one)).collect();
    assert!(missing.is_empty(), "{missing:?} of {seen:?}");
}
