//! Characters as a terminal shows them: escapes for those that it would obey, and replacements for locales that only
//! have ASCII.

use std::borrow::Cow;

use eyas::printable::{is_printable, printable_except};
use serde_json::Value;

use super::OutputStyle;

/// Characters in our texts, and their replacements.
const REPLACEMENTS: [(char, &str); 31] = [
    ('–', "-"),
    ('—', "-"),
    ('‘', "'"),
    ('’', "'"),
    ('“', "\""),
    ('”', "\""),
    ('…', "..."),
    ('×', "x"),
    ('·', "*"),
    ('±', "+/-"),
    ('≤', "<="),
    ('≥', ">="),
    ('≈', "~"),
    ('→', "->"),
    ('←', "<-"),
    ('√', "root "),
    ('²', "^2"),
    ('§', "section "),
    ('µ', "u"),
    ('δ', "delta"),
    ('ν', "nu"),
    ('ρ', "rho"),
    ('σ', "sigma"),
    ('Σ', "sum"),
    ('ä', "ae"),
    ('ö', "oe"),
    ('ü', "ue"),
    ('ß', "ss"),
    ('é', "e"),
    ('\u{a0}', " "),
    ('\u{202f}', " "),
];

/// Returns the text, in which a peer may have put anything, with escapes for characters that a terminal would obey.
/// Line ends and tabulators are ours: they are escaped, or cannot occur, in text of peers.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    printable_except(text, &['\n', '\t'])
}

/// Returns an object in which such characters are escaped as well, where JSON does not require it. It is one line
/// unless `pretty`.
pub(crate) fn shown_json(value: &Value, pretty: bool) -> String {
    let text = if pretty { format!("{value:#}") } else { value.to_string() };
    let is_shown = |letter: char| is_printable(letter) || letter == '\n';
    if text.chars().all(is_shown) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_shown(letter) {
            true => escaped.push(letter),
            // RFC 8259 §7: outside the basic plane as a pair of surrogates.
            false => {
                let units = letter.encode_utf16(&mut [0; 2]).to_vec();
                escaped.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    escaped
}

impl OutputStyle {
    /// Returns the text as it is shown, with characters outside the locale replaced.
    pub(crate) fn transliterate(self, text: &str) -> Cow<'_, str> {
        let text = shown(text);
        if self.unicode || text.is_ascii() {
            return text;
        }
        let mut transliterate = String::with_capacity(text.len());
        for letter in text.chars() {
            match REPLACEMENTS.iter().find(|(known, _)| *known == letter) {
                _ if letter.is_ascii() => transliterate.push(letter),
                Some((_, replacement)) => transliterate.push_str(replacement),
                None => transliterate.push('?'),
            }
        }
        Cow::Owned(transliterate)
    }
}
