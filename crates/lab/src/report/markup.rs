//! Text that is safe in HTML, and numbers for people.

/// Text for the inside of an element or a quoted attribute.
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

/// A fact and its name; the value is HTML.
pub(super) fn row(name: &str, value: &str) -> String {
    format!("<div><dt>{}</dt><dd>{value}</dd></div>", escape(name))
}

/// A number with as many digits as a reader wants: four or so.
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

/// A mean and the half of its interval.
pub(super) fn with_interval(mean: f64, ci95: Option<f64>) -> String {
    match ci95 {
        Some(ci95) => format!("{} ± {}", number(mean), number(ci95)),
        None => number(mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_texts_stays_text() {
        assert_eq!(escape("<b class=\"x\">&'"), "&lt;b class=&quot;x&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn four_digits_or_so() {
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
        assert_eq!(with_interval(19.0, Some(0.05)), "19 ± 0.05");
    }
}
