//! What the comparisons with a model of the kernel share: random calls, and a look at what they reached.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Range;

use eyas_sockets::Errno;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// What a call came to, in a word.
pub(crate) fn word<T>(outcome: &Result<T, Errno>) -> String {
    match outcome {
        Ok(_) => "done".to_owned(),
        Err(errno) => format!("{errno:?}"),
    }
}

/// So many calls; half of them come after these, which they have something to do with.
pub(crate) fn calls<C: Clone + Debug + 'static>(
    begun: Vec<C>,
    call: impl Strategy<Value = C>,
    count: Range<usize>,
) -> impl Strategy<Value = Vec<C>> {
    let beginning = prop_oneof![Just(Vec::new()), Just(begun)];
    let all = (beginning, prop::collection::vec(call, count));
    all.prop_map(|(beginning, calls)| [beginning, calls].concat())
}

/// Makes some calls, round for round, and fails unless all of this is seen of them: calls that fail all
/// alike would compare nothing.
pub(crate) fn reach<C: Debug>(
    calls: &impl Strategy<Value = Vec<C>>,
    rounds: usize,
    make: impl Fn(&[C]) -> BTreeSet<String>,
    wanted: &[&str],
) {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..rounds {
        seen.extend(make(&calls.new_tree(&mut runner).unwrap().current()));
    }
    let missing: Vec<_> = wanted.iter().filter(|one| !seen.contains(**one)).collect();
    assert!(missing.is_empty(), "{missing:?} of {seen:?}");
}
