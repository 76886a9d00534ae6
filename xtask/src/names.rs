//! `cargo xtask names`: how much names say. A name of one word, such as `State`, is understood only with its
//! file, and one that several places define only with its path.
//!
//! Counted is what code defines outside its tests: types and traits by their distinct names, and so functions,
//! without those whose names a trait gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::run::workspace;

/// Words that say how something relates to something else: no function is called so alone.
const RELATIONS: [&str; 21] = [
    "about", "after", "along", "at", "before", "beside", "between", "beyond", "by", "for", "from",
    "in", "inside", "into", "of", "on", "over", "through", "to", "under", "with",
];
/// Verbs that say of anything that something happens to it.
const LIGHT_VERBS: [&str; 8] = ["do", "give", "go", "handle", "make", "place", "put", "take"];
/// The number of repeated names that are shown.
const SHOWN: usize = 40;

/// Prints the shares and the repeated names of the crates here, or of the sources below given folders.
pub(crate) fn main(folders: &[&str]) -> Result<(), String> {
    let folders: Vec<PathBuf> = match folders {
        [] => vec![workspace().join("crates")],
        given => given.iter().map(PathBuf::from).collect(),
    };
    let mut names = Names::default();
    for folder in &folders {
        names.read_folder(folder)?;
    }
    print!("{}", names.report());
    Ok(())
}

/// How many names say little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameCounts {
    /// The share of the types' names that are one word, in percent.
    pub(crate) one_word_types: usize,
    /// The share of the functions' names that are one word, in percent.
    pub(crate) one_word_functions: usize,
    /// The number of functions that are called by a preposition alone.
    pub(crate) prepositions: usize,
    /// The number of functions that are called by a light verb alone.
    pub(crate) light_verbs: usize,
}

/// Counts the names that say little in the code of these sources, which are given with their paths.
pub(crate) fn count<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> NameCounts {
    Names::from_sources(sources).counts()
}

/// The names that some sources define, each with the number of places that define it.
#[derive(Debug, Default)]
struct Names {
    types: BTreeMap<String, usize>,
    functions: BTreeMap<String, usize>,
}

impl Names {
    /// Reads the code among these sources, which are given with their paths.
    fn from_sources<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut names = Self::default();
        for (path, source) in sources.filter(|(path, _)| is_code(path)) {
            // What does not parse fails to compile, too.
            if path.ends_with(".rs")
                && let Ok(source) = source.parse()
            {
                names.read(source, true);
            }
        }
        names
    }

    fn read_folder(&mut self, folder: &Path) -> Result<(), String> {
        let failed = |cause: std::io::Error| format!("{}: {cause}", folder.display());
        let mut entries = fs::read_dir(folder)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::path);
        for path in entries.iter().map(fs::DirEntry::path) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if is_code(&name) {
                    self.read_folder(&path)?;
                }
            } else if name.ends_with(".rs") && is_code(&name) {
                let source = fs::read_to_string(&path)
                    .map_err(|cause| format!("{}: {cause}", path.display()))?;
                let source = source
                    .parse::<TokenStream>()
                    .map_err(|cause| format!("{}: {cause}", path.display()))?;
                self.read(source, true);
            }
        }
        Ok(())
    }

    /// Reads items. `names_functions` is false where a trait names the functions.
    fn read(&mut self, stream: TokenStream, names_functions: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut index = 0;
        while let Some(tree) = trees.get(index) {
            let rest = &trees[index + 1..];
            index += 1;
            match tree {
                TokenTree::Punct(hash) if hash.as_char() == '#' => {
                    if rest.first().is_some_and(is_for_tests) {
                        index += item_length(rest);
                    }
                }
                TokenTree::Ident(word) => match (word.to_string().as_str(), rest.first()) {
                    ("impl", _) => {
                        if let Some((length, body)) = implementation(rest) {
                            let is_of_trait =
                                rest[..length].iter().any(|tree| is_word(tree, "for"));
                            self.read(body.stream(), !is_of_trait);
                            index += length + 1;
                        }
                    }
                    ("fn", Some(TokenTree::Ident(name))) if names_functions => {
                        *self.functions.entry(plain(name)).or_default() += 1;
                    }
                    (
                        "struct" | "enum" | "union" | "trait" | "type",
                        Some(TokenTree::Ident(name)),
                    ) if names_functions => {
                        *self.types.entry(plain(name)).or_default() += 1;
                    }
                    _ => {}
                },
                TokenTree::Group(group) => self.read(group.stream(), names_functions),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn counts(&self) -> NameCounts {
        let one_word = self.types.keys().filter(|name| words_of_type(name) == 1).count();
        let one_word_functions = self.functions.keys().filter(|name| is_one_word(name)).count();
        NameCounts {
            one_word_types: percent(one_word, self.types.len()).round() as usize,
            one_word_functions: percent(one_word_functions, self.functions.len()).round() as usize,
            prepositions: self.among(&RELATIONS).values().sum(),
            light_verbs: self.among(&LIGHT_VERBS).values().sum(),
        }
    }

    fn report(&self) -> String {
        let mut text = String::new();
        for (kind, names, is_one_word) in [
            ("types", &self.types, (|name| words_of_type(name) == 1) as fn(&str) -> bool),
            ("functions", &self.functions, is_one_word),
        ] {
            let one_word = names.keys().filter(|name| is_one_word(name)).count();
            let defined =
                names.iter().filter(|(name, _)| is_one_word(name)).map(|(_, count)| count);
            let defined: usize = defined.sum();
            let repeated = names.values().filter(|count| **count > 1).count();
            text.push_str(&format!(
                "{kind}: {} names, {:.0} % of one word ({:.0} % of the definitions), {repeated} defined more than once\n",
                names.len(),
                percent(one_word, names.len()),
                percent(defined, names.values().sum()),
            ));
        }
        text.push_str(&format!("\ntypes defined most often: {}\n", most_often(&self.types)));
        text.push_str(&format!("functions defined most often: {}\n", most_often(&self.functions)));
        let relations = self.among(&RELATIONS);
        text.push_str(&format!(
            "\nfunctions called by a preposition: {}\n",
            most_often(&relations)
        ));
        let light = self.among(&LIGHT_VERBS);
        text.push_str(&format!("functions called by a light verb: {}\n", most_often(&light)));
        text
    }

    /// Returns the functions that have one of these names, with or without an underscore at the end.
    fn among(&self, words: &[&str]) -> BTreeMap<String, usize> {
        let is_among = |name: &str| words.contains(&name.trim_end_matches('_'));
        let found = self.functions.iter().filter(|(name, _)| is_among(name));
        found.map(|(name, count)| (name.clone(), *count)).collect()
    }
}

/// Returns whether a path, relative or just a name, is of code outside tests.
fn is_code(path: &str) -> bool {
    let is_of_tests = |name: &str| {
        ["tests", "benches", "examples", "target", "fuzz"].contains(&name)
            || name.starts_with('.')
            || name.ends_with("tests.rs")
    };
    !path.split('/').any(is_of_tests)
}

/// Returns whether a function's name is one word.
fn is_one_word(name: &str) -> bool {
    !name.trim_matches('_').contains('_')
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Returns the first names in the order of how often they are defined, with these numbers.
fn most_often(names: &BTreeMap<String, usize>) -> String {
    let mut names: Vec<(&String, &usize)> = names.iter().collect();
    names.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|(name, count)| format!("{name} {count}")).collect();
    match shown.is_empty() {
        true => "none".to_owned(),
        false => shown.join(", "),
    }
}

/// Returns the number of words of a type's name: `SackPath` has two, `DNSName` and `Ipv6` one.
fn words_of_type(name: &str) -> usize {
    let mut previous = false;
    let mut words = 0;
    for letter in name.chars() {
        let is_capital = letter.is_ascii_uppercase();
        words += usize::from(is_capital && !previous);
        previous = is_capital;
    }
    words
}

fn plain(name: &proc_macro2::Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn is_word(tree: &TokenTree, wanted: &str) -> bool {
    matches!(tree, TokenTree::Ident(word) if word == wanted)
}

/// Returns whether these are the brackets of `#[cfg(test)]`, `#[test]` or the like.
fn is_for_tests(brackets: &TokenTree) -> bool {
    let TokenTree::Group(group) = brackets else { return false };
    let text: String = group.stream().to_string().split_whitespace().collect();
    text.starts_with("cfg(test)")
        || text.starts_with("cfg(all(test")
        || text == "test"
        || text.ends_with("::test")
}

/// Returns the number of tokens up to the end of the item that begins here: its braces or its semicolon.
fn item_length(trees: &[TokenTree]) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    trees.iter().position(ends).map_or(trees.len(), |at| at + 1)
}

/// Returns the braces of an `impl` block, and the number of tokens before them; `None` if it is not a block but
/// a type, as in `-> impl Future`.
fn implementation(rest: &[TokenTree]) -> Option<(usize, &Group)> {
    for (index, tree) in rest.iter().enumerate() {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let is_type = rest[..index].iter().any(|tree| is_word(tree, "fn"));
                return (!is_type).then_some((index, group));
            }
            TokenTree::Punct(punct) if matches!(punct.as_char(), ';' | '=') => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Names {
        let mut names = Names::default();
        names.read(source.parse().expect("Rust"), true);
        names
    }

    #[test]
    fn what_a_trait_names_and_what_tests_define_does_not_count() {
        let names = names(
            "pub struct SackPath; struct State; type Alias = u8;
            impl SackPath { fn of() {} pub(crate) fn lowest_delay(&self) -> impl Iterator<Item = u8> { fn inner() {} } }
            impl Display for SackPath { fn fmt() {} }
            mod other { pub enum State {} }
            #[cfg(test)] mod tests { struct Fixture; fn check() {} }
            #[test] fn works() {}
            fn after_tests() -> impl Sized { 1 }",
        );
        let types: Vec<_> =
            names.types.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(types, [("Alias", 1), ("SackPath", 1), ("State", 2)]);
        let functions: Vec<_> = names.functions.keys().map(String::as_str).collect();
        assert_eq!(functions, ["after_tests", "inner", "lowest_delay", "of"]);
    }

    #[test]
    fn the_report_has_shares_and_what_to_rename() {
        let report =
            names("struct State; struct SackPath; fn of() {} fn put() {} fn sack_path() {}")
                .report();
        for line in [
            "types: 2 names, 50 % of one word (50 % of the definitions), 0 defined more than once",
            "functions: 3 names, 67 % of one word (67 % of the definitions), 0 defined more than once",
            "functions called by a preposition: of 1",
            "functions called by a light verb: put 1",
        ] {
            assert!(report.contains(line), "{report}");
        }
    }

    #[test]
    fn counts_are_of_code_outside_tests() {
        let sources = [
            ("crates/a/src/lib.rs", "struct State; struct SackPath; fn of() {} fn put() {}"),
            ("crates/a/src/tests/mod.rs", "struct Fixture; fn at() {}"),
            ("crates/a/src/lib/tests.rs", "struct Fixture; fn at() {}"),
            ("crates/a/README.md", "struct Page;"),
        ];
        let expected = NameCounts {
            one_word_types: 50,
            one_word_functions: 100,
            prepositions: 1,
            light_verbs: 1,
        };
        assert_eq!(count(sources.into_iter()), expected);
    }

    #[test]
    fn words_begin_with_capitals() {
        let counts = ["State", "SackPath", "DNSName", "Ipv6", "MtuProbeState"].map(words_of_type);
        assert_eq!(counts, [1, 2, 1, 1, 3]);
    }
}
