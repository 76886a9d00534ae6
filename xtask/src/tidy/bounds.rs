//! A bound of a claim is not changed without saying why.
//!
//! `crates/lab/plans/bounds.txt` lists the first bounds of every check of every shipped plan:
//! `PLAN | CLAIM | VALUE | BOUNDS`. A check with other bounds says `changed = "BOUNDS: REASON"`, so
//! that nobody moves a bound to where the measurement is without readers seeing it.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::Finding;

/// The list of first bounds.
pub(super) const LIST: &str = "crates/lab/plans/bounds.txt";
/// The keys of a check that are bounds, in the order of the list.
const KEYS: [&str; 4] = ["at_least", "at_most", "above", "below"];
/// The shortest text that can be a reason.
const MIN_REASON: usize = 20;

/// A check of a claim: its plan, claim and value.
type Key = (String, String, String);

/// Compares a plan with the list of first bounds.
pub(super) fn check(file: &str, content: &str, list: &str) -> Vec<Finding> {
    let name = file.strip_prefix("crates/lab/plans/").and_then(|name| name.strip_suffix(".toml"));
    let (Some(name), Ok(plan)) = (name, content.parse::<Table>()) else { return Vec::new() };
    let first: BTreeMap<Key, &str> = list.lines().filter_map(parse).collect();
    let mut findings = Vec::new();
    let mut seen = Vec::new();
    for (claim, check) in checks(&plan) {
        let bounds = bounds(check);
        if bounds.is_empty() {
            continue;
        }
        let value = text(check, "value");
        let key = (name.to_owned(), claim.to_owned(), value.to_owned());
        let mut report = |message: String| {
            let line = content.lines().position(|line| line.contains(value)).unwrap_or(0) + 1;
            findings.push(Finding::error(file, line, message));
        };
        match first.get(&key) {
            None => report(format!(
                "claim {claim} has a check that {LIST} does not list: add \
                 \"{name} | {claim} | {value} | {bounds}\""
            )),
            Some(first) if *first != bounds && !has_reason(text(check, "changed"), first) => {
                report(format!(
                    "claim {claim}: the first bound was {first}, and it is now {bounds}: state why, \
                     changed = \"{first}: REASON\""
                ));
            }
            Some(_) => {}
        }
        seen.push(key);
    }
    let gone = first.keys().filter(|key| key.0 == name && !seen.contains(key));
    findings.extend(gone.map(|(_, claim, value)| {
        Finding::error(LIST, 0, format!("{name} has no check {value} of claim {claim}"))
    }));
    findings
}

fn has_reason(changed: &str, first: &str) -> bool {
    let reason = changed.strip_prefix(first).and_then(|rest| rest.strip_prefix(": "));
    reason.is_some_and(|reason| reason.trim().len() >= MIN_REASON)
}

fn parse(line: &str) -> Option<(Key, &str)> {
    let mut fields = line.split(" | ");
    let mut next = || fields.next();
    let key = (next()?.to_owned(), next()?.to_owned(), next()?.to_owned());
    Some((key, next()?))
}

/// Returns all checks of a plan with the identifier of their claim.
fn checks(plan: &Table) -> impl Iterator<Item = (&str, &Table)> {
    let claims = plan.get("claim").and_then(Value::as_array).into_iter().flatten();
    claims.filter_map(Value::as_table).flat_map(|claim| {
        let checks = claim.get("check").and_then(Value::as_array).into_iter().flatten();
        checks.filter_map(Value::as_table).map(|check| (text(claim, "id"), check))
    })
}

fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the bounds of a check as text; empty if it has none.
fn bounds(check: &Table) -> String {
    let bound = |key: &&str| Some(format!("{key} = {}", number(check.get(*key)?)));
    KEYS.iter().filter_map(bound).collect::<Vec<_>>().join(", ")
}

/// Writes a number: 3 and 3.0 are the same bound.
fn number(value: &Value) -> String {
    match value {
        Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/lab/plans/p.toml";

    fn found(bounds: &str, list: &str) -> Vec<String> {
        let plan = format!(
            "[[claim]]\nid = '1'\n[[claim.check]]\nvalue = 'x'\n{bounds}\n\
             [[claim.check]]\nvalue = 'shown'\n"
        );
        check(FILE, &plan, list).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_bound_that_moved_needs_a_reason() {
        let list = "other | 1 | x | at_most = 1\np | 1 | x | at_most = 40\n";
        assert_eq!(found("at_most = 40", list), [""; 0]);
        assert_eq!(found("at_most = 40.0", list), [""; 0], "the same number");
        let moved = found("at_most = 60", list);
        assert!(moved.len() == 1 && moved[0].contains("at_most = 40: REASON"), "{moved:?}");
        for reason in ["at_most = 40: because", "at_most = 50: the clock has steps of 20 ms", ""] {
            let bounds = format!("at_most = 60\nchanged = '{reason}'");
            assert_eq!(found(&bounds, list).len(), 1, "{reason}");
        }
        let reason = "at_most = 60\nchanged = 'at_most = 40: the clock has steps of 20 ms'";
        assert_eq!(found(reason, list), [""; 0]);
    }

    #[test]
    fn the_list_has_every_check_with_bounds_and_no_other() {
        assert!(found("above = 1\nbelow = 2", "")[0].contains("p | 1 | x | above = 1, below = 2"));
        let two = found("at_most = 1", "p | 1 | x | at_most = 1\np | 2 | y | at_most = 1\n");
        assert!(two.len() == 1 && two[0].contains("no check y of claim 2"), "{two:?}");
        assert!(check("crates/lab/README.md", "x", "").is_empty());
    }
}
