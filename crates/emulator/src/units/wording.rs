//! Errors of files, in the words of their format: the parser's own name the types of this program.

use std::fmt::Display;

/// What the parser says, and what it means to someone who writes TOML or JSON.
const PHRASES: [(&str, &str); 24] = [
    ("unknown variant ", "unknown value "),
    ("unknown field ", "unknown key "),
    ("missing field ", "missing key "),
    ("duplicate field ", "duplicate key "),
    ("unit variant", "a name"),
    ("string only", "a text"),
    ("newtype variant", "a value"),
    ("tuple variant", "a list"),
    ("a tuple of size ", "a list of length "),
    ("struct variant", "a table"),
    ("unit value", "nothing"),
    (" map", " a table"),
    ("a a table", "a table"),
    (" sequence", " a list"),
    ("a a list", "a list"),
    ("string or table", "a text or a table"),
    ("invalid type: string", "invalid type: the text"),
    ("expected a string", "expected a text, in quotes"),
    ("expected a boolean", "expected true or false"),
    ("there are no variants", "there are no values"),
    (" variant identifier", " a name"),
    (" field identifier", " a key"),
    ("i128", "a whole number"),
    ("invalid type: null", "invalid type: nothing"),
];

/// Types of numbers in the parser's text.
const NUMBERS: [(&str, &[&str]); 3] = [
    ("a whole number that is not negative", &["u8", "u16", "u32", "u64", "u128", "usize"]),
    ("a whole number", &["i8", "i16", "i32", "i64", "isize"]),
    ("a number", &["f32", "f64"]),
];

/// Returns the text of a parser's error in the words of TOML and JSON: keys, values, texts, tables and
/// lists in place of fields, variants, strings, structs and sequences.
pub fn in_words_of_the_file(error: &impl Display) -> String {
    let text = error.to_string();
    // An excerpt of the file stays as it is; the message is below it.
    let (excerpt, message) = match text.trim_end().rsplit_once("^\n") {
        Some((excerpt, message)) => (format!("{excerpt}^\n"), message),
        None => (String::new(), text.trim_end()),
    };
    format!("{excerpt}{}", reworded(message))
}

fn reworded(message: &str) -> String {
    if let Some((before, _)) = message.split_once("data did not match any variant of") {
        return format!("{before}the value has none of the forms that are accepted here");
    }
    // Text in quotes or backticks is the user's.
    let mut result = String::with_capacity(message.len());
    for (number, part) in message.split_inclusive(['`', '"']).enumerate() {
        match number % 2 {
            0 => result.push_str(&outside_quotes(part)),
            _ => result.push_str(part),
        }
    }
    result
}

fn outside_quotes(part: &str) -> String {
    let mut text = part.to_owned();
    for (phrase, words) in PHRASES {
        text = text.replace(phrase, words);
    }
    without_type_names(&text)
}

/// Replaces `struct Setup` and the like by what a file has there.
fn without_type_names(text: &str) -> String {
    const KINDS: [(&str, &str); 6] = [
        ("internally tagged enum ", "a table"),
        ("adjacently tagged enum ", "a table"),
        ("tuple struct ", "a list"),
        ("unit struct ", "nothing"),
        ("struct ", "a table"),
        ("enum ", "one of the names that are accepted here"),
    ];
    let mut text = text.to_owned();
    for (kind, words) in KINDS {
        while let Some(at) = text.find(kind) {
            let name = &text[at + kind.len()..];
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            text.replace_range(at..at + kind.len() + end, words);
        }
    }
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let bare = word.trim_end_matches([' ', ',', '\n']);
        let number = NUMBERS.iter().find(|(_, types)| types.contains(&bare));
        number.map_or_else(|| word.to_owned(), |(words, _)| word.replacen(bare, words, 1))
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        inner: Inner,
        number: Option<u32>,
        share: Option<f64>,
        list: Option<Vec<Kind>>,
        form: Option<Form>,
        on: Option<bool>,
        pair: Option<(u8, u8)>,
        text: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {}

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        One,
        Two,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Form {
        A(u8),
        B(String),
    }

    fn text_of(file: &str) -> String {
        in_words_of_the_file(&toml::from_str::<Outer>(file).expect_err(file))
    }

    #[test]
    fn errors_speak_of_keys_and_values() {
        for (file, expected) in [
            ("", "missing key `inner`"),
            ("inner = {}\nspeed = 1", "unknown key `speed`, expected one of `inner`"),
            ("inner = 'struct x'", "the text \"struct x\", expected a table"),
            ("inner = {}\nnumber = -1", "`-1`, expected a whole number that is not negative"),
            ("inner = {}\nnumber = 'x'", "expected a whole number that is not negative"),
            ("inner = {}\nlist = [1]", "wanted a text or a table"),
            ("inner = {}\nshare = 'x'", "expected a number"),
            ("inner = {}\nlist = ['three']", "unknown value `three`, expected `one` or `two`"),
            ("inner = {}\nlist = 1", "expected a list"),
            ("inner = {}\nform = [1]", "none of the forms"),
            ("inner = {}\non = 'yes'", "expected true or false"),
            ("inner = {}\ntext = 1", "expected a text, in quotes"),
            ("inner = {}\npair = 1", "expected"),
        ] {
            let text = text_of(file);
            assert!(text.contains(expected), "{file}: {text}");
            for word in
                ["variant", "field", "struct I", "enum", "u32", "u8", "f64", "tuple", "a a "]
            {
                assert!(!text.lines().last().is_some_and(|line| line.contains(word)), "{text}");
            }
        }
    }

    #[test]
    fn the_excerpt_of_the_file_is_kept() {
        let text = text_of("inner = {}\nfield = 'unknown variant'");
        assert!(text.contains("2 | field = 'unknown variant'") && text.contains("^\n"), "{text}");
        assert!(text.contains("unknown key `field`"), "{text}");
    }
}
