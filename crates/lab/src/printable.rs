//! Text of plans and results as it may be shown: terminals obey control characters.

/// Returns whether a character is shown rather than obeyed: what `eyas::printable` calls that, on which the
/// simulations do not depend, and line ends and tabulators.
fn is_printable(c: char) -> bool {
    let is_hidden = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    !(c.is_control() || is_hidden) || matches!(c, '\n' | '\t')
}

/// Text of a plan that a terminal would obey instead of showing it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} contains the control character U+{code:04X}")]
pub(crate) struct ControlCharacterError {
    text: String,
    /// The number of the character in Unicode.
    code: u32,
}

/// Rejects text of a plan that a terminal would obey instead of showing it.
pub(crate) fn check_printable(value: &toml::Value) -> Result<(), ControlCharacterError> {
    let check = |text: &str| match text.chars().find(|c| !is_printable(*c)) {
        Some(c) => Err(ControlCharacterError { text: text.to_owned(), code: c.into() }),
        None => Ok(()),
    };
    match value {
        toml::Value::String(text) => check(text),
        toml::Value::Array(values) => values.iter().try_for_each(check_printable),
        toml::Value::Table(table) => table.iter().try_for_each(|(key, value)| {
            check(key)?;
            check_printable(value)
        }),
        _ => Ok(()),
    }
}

/// Replaces the characters that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER };
    text.chars().map(shown).collect()
}

/// Replaces them in all text of a JSON value.
pub(crate) fn make_printable(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = printable(text),
        serde_json::Value::Array(values) => values.iter_mut().for_each(make_printable),
        serde_json::Value::Object(members) => members.values_mut().for_each(make_printable),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "live")]
    #[test]
    fn it_is_printable_where_eyas_says_so() {
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let is_layout = matches!(c, '\n' | '\t');
            assert_eq!(is_printable(c), eyas::printable::is_printable(c) || is_layout, "{c:?}");
        }
    }

    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        let check = |text: &str| check_printable(&toml::Value::String(text.to_owned()));
        assert_eq!(check("σ in KiB\n\tand more"), Ok(()));
        assert!(check("a\u{9b}31m").unwrap_err().to_string().contains("U+009B"));
        assert!(check("a\u{202e}b").unwrap_err().to_string().contains("U+202E"));
        assert_eq!(printable("a\u{1b}[31mb\r\u{7f}"), "a\u{fffd}[31mb\u{fffd}\u{fffd}");
        let mut value = serde_json::json!({ "title": "\u{1b}c", "claims": [{ "note": "\u{7}" }] });
        make_printable(&mut value);
        assert_eq!(
            value,
            serde_json::json!({ "title": "\u{fffd}c", "claims": [{ "note": "\u{fffd}" }] })
        );
    }
}
