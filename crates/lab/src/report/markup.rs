//! Escaping for HTML, and formatting of numbers.

use crate::statistics::{ConfidenceInterval, IntervalMethod};

/// Escapes text for use in an element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// Returns a row of a definition list; the value is HTML.
pub(super) fn row(name: &str, value: &str) -> String {
    format!("<div><dt>{}</dt><dd>{value}</dd></div>", escape(name))
}

/// Formats a number with about four digits.
#[must_use]
pub fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size >= 1000.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 0.1 || size == 0.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a number for a large table: as an integer, unless it is small.
#[must_use]
pub fn short(value: f64) -> String {
    if value.is_infinite() {
        return "∞".to_owned();
    }
    let decimals = usize::from(value.abs() < 10.0 && value.fract() != 0.0);
    let text = format!("{value:.decimals$}");
    // Rounding must not yield a negative zero.
    if text.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
}

/// Formats a number with its unit and its interval, rounded to two digits of the uncertainty:
/// `19.27 Mbit/s ± 0.05`, or with both ends of the interval if it is asymmetric.
#[must_use]
pub fn estimate(value: f64, interval: Option<ConfidenceInterval>, unit: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let Some(interval) = interval else { return number(value) + &unit };
    let half = match interval.high.is_finite() {
        true => interval.half_width(),
        false => (value - interval.low).abs().max(value.abs() * 0.01),
    };
    if half <= value.abs() * NEGLIGIBLE {
        return number(value) + &unit;
    }
    let round = |value: f64| {
        if value.is_infinite() {
            return "∞".to_owned();
        }
        let text = format!("{value:.0$}", decimals(half));
        // Rounding must not yield a negative zero.
        if text.trim_start_matches(['-', '0', '.']).is_empty() {
            text.replace('-', "")
        } else {
            text
        }
    };
    if round(half).chars().all(|c| matches!(c, '0' | '.')) {
        // Smaller than the digits shown: an interval of zero would claim too much.
        return number(value) + &unit;
    }
    match interval.method {
        IntervalMethod::StudentT => format!("{}{unit} ± {}", round(value), round(half)),
        IntervalMethod::Wilson | IntervalMethod::Bootstrap | IntervalMethod::OrderStatistics => {
            format!("{}{unit} ({} to {})", round(value), round(interval.low), round(interval.high))
        }
    }
}

/// An interval narrower than this fraction of its number is due to rounding.
const NEGLIGIBLE: f64 = 1e-9;

/// Returns the number of decimals that show two digits of this uncertainty.
fn decimals(uncertainty: f64) -> usize {
    let leading = uncertainty.log10().floor() as i32;
    usize::try_from((1 - leading).clamp(0, 6)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped() {
        assert_eq!(escape("<b class=\"x\">&'"), "&lt;b class=&quot;x&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn numbers_have_about_four_digits() {
        let cases = [
            (1234.5, "1234"),
            (19.27, "19.27"),
            (600.04, "600"),
            (0.0, "0"),
            (0.02, "0.02"),
            (-3.5, "-3.5"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn large_tables_have_short_numbers() {
        let texts = [201.37, 3.26, 2.0, -0.01, f64::INFINITY].map(short);
        assert_eq!(texts, ["201", "3.3", "2", "0", "∞"]);
    }

    #[test]
    fn numbers_are_rounded_to_their_uncertainty() {
        let student =
            |low, high| Some(ConfidenceInterval { low, high, method: IntervalMethod::StudentT });
        assert_eq!(estimate(19.2716, student(19.2216, 19.3216), "Mbit/s"), "19.272 Mbit/s ± 0.050");
        assert_eq!(estimate(1234.5, student(1114.5, 1354.5), "ms"), "1234 ms ± 120");
        assert_eq!(estimate(3.0, student(3.0, 3.0), ""), "3");
        assert_eq!(estimate(0.001432, student(0.0014319, 0.0014321), ""), "0.0014");
        assert_eq!(estimate(0.02, student(-1.0, 1.04), "ms"), "0.0 ms ± 1.0");
        let share = ConfidenceInterval { low: 91.43, high: 94.52, method: IntervalMethod::Wilson };
        assert_eq!(estimate(93.1, Some(share), "%"), "93.1 % (91.4 to 94.5)");
        assert_eq!(estimate(7.25, None, "s"), "7.25 s");
    }
}
