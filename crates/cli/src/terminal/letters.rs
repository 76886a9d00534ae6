//! Replacements of characters for locales that only have ASCII.

use std::borrow::Cow;

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

impl OutputStyle {
    /// Returns the text, with characters outside the locale replaced.
    pub(crate) fn transliterate(self, text: &str) -> Cow<'_, str> {
        if self.unicode || text.is_ascii() {
            return Cow::Borrowed(text);
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
