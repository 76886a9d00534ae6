//! The causes for which a race decides differently than before.

use super::World;

/// The cause shown by the first difference between two races.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// DNS results in other candidates, or in another order of them.
    Plan,
    /// An attempt made room for a candidate that waited, or starts are closer once as many as may
    /// be in flight have been tried.
    Turns,
    /// A decision that follows from another one is made immediately.
    WokenUp,
    /// Nothing happens after the end.
    AfterTheEnd,
    /// Complete attempts below `win_at` are closed at the deadline.
    ClosedAtDeadline,
    /// A second try beside a working connection is marked as one in the background.
    Background,
    /// A second try starts at another time, or not at all.
    SecondTry,
    /// A connected but silent attempt continues beside a peer that has replied, to be remembered as silent.
    Silent,
    /// Something else is tried beside the winner: the last attempt is reserved for a candidate that could
    /// replace it.
    Beside,
    /// None of these.
    Unexplained,
}

impl Cause {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Plan => "DNS results in other candidates or another order",
            Self::Turns => "silent attempts make room for others",
            Self::WokenUp => "a decision that follows from another one is made immediately",
            Self::AfterTheEnd => "nothing happens after the end",
            Self::ClosedAtDeadline => "complete attempts below `win_at` close at the deadline",
            Self::Background => "a second try beside the winner is in the background",
            Self::SecondTry => "second tries start at other times, and end with the win",
            Self::Silent => "a connected but silent peer beside one that replied is remembered",
            Self::Beside => {
                "the last attempt beside a winner is reserved for what could replace it"
            }
            Self::Unexplained => "unexplained",
        }
    }
}

/// Returns the cause, and the first lines that differ; `None` if both decided the same.
pub(super) fn of(old: &World, new: &World) -> Option<(Cause, String)> {
    let index = (0..old.lines.len().max(new.lines.len()))
        .find(|index| old.lines.get(*index) != new.lines.get(*index))?;
    let line = |world: &'_ World| world.lines.get(index).cloned();
    let (was, is) = (line(old), line(new));
    let difference = format!(
        "was `{}`, is `{}`",
        was.as_deref().unwrap_or("nothing"),
        is.as_deref().unwrap_or("nothing")
    );
    Some((classify(old, new, index), difference))
}

fn classify(old: &World, new: &World, index: usize) -> Cause {
    let (was, is) =
        (old.lines.get(index).map(String::as_str), new.lines.get(index).map(String::as_str));
    let before = &new.lines[..index.min(new.lines.len())];
    if before.iter().any(|line| event(line) == "finished") {
        return Cause::AfterTheEnd;
    }
    if is.is_some_and(|is| Some(is.trim_end_matches(" background")) == was) {
        return Cause::Background;
    }
    if is_of_the_plan(old, new, index) {
        return Cause::Plan;
    }
    let at = time(is);
    let same_instant = |world: &World, what: &str| {
        world.lines.iter().any(|line| time(Some(line)) == at && line.contains(what))
    };
    if at == DEADLINE && time(was) == at && same_instant(new, "Deadline") {
        return Cause::ClosedAtDeadline;
    }
    let starts = |what: &str| is.is_some_and(|is| event(is).starts_with(what));
    if starts("failed ") && at == time(was) {
        return Cause::Plan;
    }
    // Either an attempt made room, or the next one starts sooner than it would have: possibly instead of
    // a second try, or before the plan of the same instant was printed.
    if same_instant(new, "MadeRoom") || starts("start ") && is_crowded(new, before) {
        return Cause::Turns;
    }
    if is_second_try(old, index) || is_second_try(new, index) {
        return Cause::SecondTry;
    }
    // Giving up on a refusing host starts with what is learnt.
    let is_verdict = ["usable ", "better ", "proceed ", "close "].iter().any(|what| starts(what))
        || is.is_some_and(|is| is.contains("HostRefused"));
    if is_verdict && at < time(was) {
        return Cause::WokenUp;
    }
    let is_silence = |line: &str| {
        [" deadline Answered ", " silent Answered "].iter().any(|what| line.contains(what))
    };
    if was.is_some_and(|was| was.ends_with(" Lost")) || is.is_some_and(is_silence) {
        return Cause::Silent;
    }
    if [was, is].into_iter().flatten().any(|line| line.ends_with(" background")) {
        return Cause::Beside;
    }
    Cause::Unexplained
}

/// The deadline of every world, in milliseconds.
const DEADLINE: u64 = 30_000;

/// Returns whether the two plans differ up to this instant, inclusive: a plan is printed after its
/// consequences.
fn is_of_the_plan(old: &World, new: &World, index: usize) -> bool {
    let at = time(old.lines.get(index).map(String::as_str))
        .min(time(new.lines.get(index).map(String::as_str)));
    let plans = |world: &World| -> Vec<String> {
        let until = |line: &&String| {
            time(Some(line)) <= at && event(line).split(' ').next() == Some("plan")
        };
        world.lines.iter().filter(until).cloned().collect()
    };
    let queries =
        |world: &World| world.lines.get(index).is_some_and(|line| event(line).starts_with("ask "));
    queries(old) || queries(new) || plans(old) != plans(new)
}

/// Returns whether an attempt starts here whose candidate was started before.
fn is_second_try(world: &World, index: usize) -> bool {
    let started = |line: &String| {
        let mut words = event(line).split(' ');
        (words.next() == Some("start")).then(|| words.nth(1).map(str::to_owned)).flatten()
    };
    let Some(candidate) = world.lines.get(index).and_then(started) else { return false };
    world.lines[..index].iter().filter_map(started).any(|other| other == candidate)
}

/// Returns whether as many attempts had started as may be in flight.
fn is_crowded(world: &World, before: &[String]) -> bool {
    let limit = world.title.split("max_in_flight=").nth(1).and_then(|rest| rest.split(' ').next());
    let started = before.iter().filter(|line| event(line).starts_with("start ")).count();
    limit.and_then(|limit| limit.parse().ok()).is_some_and(|limit: usize| started >= limit)
}

/// Returns the time in milliseconds; a missing time sorts last.
fn time(line: Option<&str>) -> u64 {
    line.and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or(u64::MAX)
}

/// Returns a line without its time.
fn event(line: &str) -> &str {
    line.split_once(' ').map_or("", |(_, event)| event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(lines: &[&str]) -> World {
        let title = "world 1 plain max_in_flight=2 exhaustive=false win_at=Security".into();
        World { title, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
    }

    fn cause(old: &[&str], new: &[&str]) -> Option<Cause> {
        of(&world(old), &world(new)).map(|(cause, _)| cause)
    }

    #[test]
    fn each_cause_is_identified_by_its_first_difference() {
        let start = "0 start 0 tcp@192.0.2.1:443";
        assert_eq!(cause(&[start], &[start]), None);
        let usable = ["1350 usable 0", "30000 usable 0"];
        assert_eq!(cause(&[start, usable[1]], &[start, usable[0]]), Some(Cause::WokenUp));
        assert_eq!(cause(&[start, usable[0]], &[start, usable[1]]), Some(Cause::Unexplained));
        let room = ["500 close 0 MadeRoom", "500 start 1 tcp@192.0.2.2:443"];
        assert_eq!(cause(&[start, usable[1]], &[start, room[0], room[1]]), Some(Cause::Turns));
        let background = "0 start 0 tcp@192.0.2.1:443 background";
        assert_eq!(cause(&[start], &[background]), Some(Cause::Background));
        assert_eq!(cause(&[start, "0 plan a+0"], &[start, "0 plan b+0"]), Some(Cause::Plan));
        let second_try = ["250 start 1 tcp@192.0.2.1:443", "300 start 1 tcp@192.0.2.1:443"];
        assert_eq!(cause(&[start, second_try[0]], &[start, second_try[1]]), Some(Cause::SecondTry));
        let other = "250 start 1 tcp@192.0.2.2:443";
        assert_eq!(cause(&[start, other], &[start, "300 learn x"]), Some(Cause::Unexplained));
        let lost = "550 close 0 Lost";
        assert_eq!(cause(&[start, lost], &[start, "3550 learn x"]), Some(Cause::Silent));
        let beside = "550 start 2 quic@192.0.2.3:443 background";
        assert_eq!(cause(&[start, beside], &[start, "600 learn x"]), Some(Cause::Beside));
        let finished = "9 finished";
        assert_eq!(cause(&[finished, "10 learn x"], &[finished]), Some(Cause::AfterTheEnd));
    }
}
