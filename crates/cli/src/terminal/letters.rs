//! Replacements of characters for locales that only have ASCII.

use std::borrow::Cow;

use super::OutputStyle;

/// Letters that texts of ours have, and how they are written without them.
const SPELT: [(char, &str); 31] = [
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

impl OutputStyle {
    /// Returns the text with characters that the locale has.
    pub(crate) fn spelt(self, text: &str) -> Cow<'_, str> {
        if self.unicode || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut spelt = String::with_capacity(text.len());
        for letter in text.chars() {
            match SPELT.iter().find(|(known, _)| *known == letter) {
                _ if letter.is_ascii() => spelt.push(letter),
                Some((_, how)) => spelt.push_str(how),
                None => spelt.push('?'),
            }
        }
        Cow::Owned(spelt)
    }
}
