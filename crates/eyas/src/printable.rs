//! Text of a peer, made fit for a terminal.
//!
//! A terminal obeys control characters, and those that set the direction of writing change the order of the
//! text around them, so that a name is read as another one (Unicode Technical Report 36, §2.5).

use std::borrow::Cow;

/// Characters that are not control characters but change how the text around them is read, or are not seen: first
/// and last of each range.
const NOT_SHOWN: [(char, char); 9] = [
    // Soft hyphen.
    ('\u{ad}', '\u{ad}'),
    // Arabic letter mark, which sets the direction.
    ('\u{61c}', '\u{61c}'),
    // Mongolian vowel separator, once a space without a width.
    ('\u{180e}', '\u{180e}'),
    // Spaces and joiners without a width, and marks of direction.
    ('\u{200b}', '\u{200f}'),
    // Separators of lines and paragraphs, embeddings and overrides of the direction.
    ('\u{2028}', '\u{202e}'),
    // Invisible operators, isolates of the direction, and deprecated format characters.
    ('\u{2060}', '\u{206f}'),
    // A space without a width, the byte order mark.
    ('\u{feff}', '\u{feff}'),
    // Annotations.
    ('\u{fff9}', '\u{fffb}'),
    // Tags.
    ('\u{e0000}', '\u{e007f}'),
];

/// Returns whether a terminal shows a character, in its place, instead of obeying it.
pub fn is_printable(letter: char) -> bool {
    !letter.is_control()
        && (letter < NOT_SHOWN[0].0
            || !NOT_SHOWN.iter().any(|(first, last)| (*first..=*last).contains(&letter)))
}

/// Returns a text of a peer with an escape such as `\u{202e}` for each character that is not printable.
pub fn printable(text: &str) -> Cow<'_, str> {
    printable_except(text, &[])
}

/// The same, but these characters remain: line ends and tabulators in text of our own.
pub fn printable_except<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let is_kept = |letter: char| is_printable(letter) || kept.contains(&letter);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_kept(letter) {
            true => escaped.push(letter),
            false => escaped.extend(letter.escape_unicode()),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(printable("a\u{1b}[31mb\r\n\u{7f}"), r"a\u{1b}[31mb\u{d}\u{a}\u{7f}");
        for range in ['\u{80}'..='\u{9f}', '\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}'] {
            for letter in range {
                assert_eq!(printable(&letter.to_string()), letter.escape_unicode().to_string());
            }
        }
        for letter in ['\u{61c}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}', '\u{feff}'] {
            assert!(!is_printable(letter), "{}", letter.escape_unicode());
        }
    }

    #[test]
    fn text_of_any_language_remains() {
        let text = "Grüße, שלום, سلام, 日本語, 10\u{a0}µs\u{202f}≥ 3 – \u{fffd}";
        assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        assert_eq!(printable_except("a\tb\n\u{85}", &['\n', '\t']), "a\tb\n\\u{85}");
    }
}
