//! Durations and counts, with as many digits as a person reads.

use std::time::Duration;

/// Formats a duration with about two digits: `0.84 ms`, `4.2 ms`, `58 ms`, `1.25 s`, `5 min`, `2
/// days`.
pub(crate) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let millis = seconds * 1_000.0;
    if duration.is_zero() {
        return "0 ms".to_owned();
    }
    match seconds {
        _ if millis < 0.995 => format!("{millis:.2} ms"),
        _ if millis < 9.95 => format!("{millis:.1} ms"),
        _ if millis < 999.5 => format!("{millis:.0} ms"),
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 119.5 => format!("{s:.0} s"),
        s if s < 2.0 * 3_600.0 => format!("{:.0} min", s / 60.0),
        s if s < 2.0 * 86_400.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

/// Formats a number of things: `no rows`, `1 row`, `1,234 rows`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    match number {
        0 => format!("no {thing}s"),
        1 => format!("1 {thing}"),
        number => format!("{} {thing}s", count(number)),
    }
}

/// Formats a number with commas between thousands: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
