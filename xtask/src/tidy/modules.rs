//! The dependencies between the modules of a crate, according to their source.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream};

/// A module, by its path from the root of its crate; the path of the root is empty.
pub(super) type Module = Vec<String>;

/// The modules of one crate.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// The file of each module.
    pub(super) files: BTreeMap<Module, String>,
    /// The modules of its own crate that each module names, with the first line. Tests are ignored.
    pub(super) names: BTreeMap<Module, BTreeMap<Module, usize>>,
}

impl Modules {
    /// Parses the modules of a crate from its files: pairs of path and text. `source` is its directory, with
    /// a slash at the end.
    pub(super) fn of<'a>(
        source: &str,
        files: impl Iterator<Item = (&'a String, &'a String)>,
    ) -> Self {
        let texts: BTreeMap<Module, (&str, &str)> = files
            .filter_map(|(file, text)| {
                let module = module_of(file.strip_prefix(source)?)?;
                Some((module, (file.as_str(), text.as_str())))
            })
            .collect();
        let mut modules = Self::default();
        for (module, (file, text)) in &texts {
            modules.files.insert(module.clone(), (*file).to_owned());
            let Ok(stream) = text.parse::<TokenStream>() else { continue };
            let mut paths = Vec::new();
            collect(stream, module, &mut paths);
            let names = modules.names.entry(module.clone()).or_default();
            for (path, line) in paths {
                let mut named = (0..=path.len()).rev().map(|length| path[..length].to_vec());
                let found = named.find(|prefix| texts.contains_key(prefix));
                if let Some(found) = found.filter(|found| found != module) {
                    names.entry(found).or_insert(line);
                }
            }
        }
        modules
    }

    /// Returns groups of modules that all depend on each other, directly or indirectly. Dependencies between
    /// a module and one inside it do not count.
    pub(super) fn cycles(&self) -> Vec<Vec<&Module>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.files.keys().map(|module| (module, self.reach(module))).collect();
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for module in self.files.keys() {
            let both_ways = |other: &&&Module| reached[**other].contains(module);
            let cycle: Vec<&Module> = reached[module].iter().filter(both_ways).copied().collect();
            if cycle.len() > 1 && seen.insert(cycle.clone()) {
                cycles.push(cycle);
            }
        }
        cycles
    }

    fn reach<'a>(&'a self, from: &'a Module) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            let names = self.names.get(module).into_iter().flat_map(BTreeMap::keys);
            let is_unrelated =
                |other: &&Module| !other.starts_with(module) && !module.starts_with(other);
            open.extend(names.filter(is_unrelated).filter(|other| reached.insert(*other)));
        }
        reached
    }
}

/// Returns the module of a file: `a/b.rs` and `a/b/mod.rs` are `a::b`; tests and binaries have none.
fn module_of(file: &str) -> Option<Module> {
    let path = file.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let parts: Module = path.split('/').map(str::to_owned).collect();
    let is_test = parts.iter().any(|part| part == "tests");
    match parts.as_slice() {
        [root] if root == "lib" || root == "main" => Some(Module::new()),
        _ if is_test => None,
        _ => Some(parts),
    }
}

type Tokens = Peekable<token_stream::IntoIter>;

/// Collects every path of the crate that this module names, from the root, with its line.
fn collect(stream: TokenStream, module: &[String], paths: &mut Vec<(Module, usize)>) {
    let mut tokens = stream.into_iter().peekable();
    let mut before_path = false;
    while let Some(tree) = tokens.next() {
        match &tree {
            TokenTree::Punct(hash) if hash.as_char() == '#' && is_for_tests(tokens.peek()) => {
                skip_item(&mut tokens);
            }
            TokenTree::Group(group) => collect(group.stream(), module, paths),
            // An identifier after `a::` does not start a path.
            TokenTree::Ident(ident) if !before_path => {
                let line = ident.span().start().line;
                let start = match ident.to_string().as_str() {
                    "crate" => Some(Vec::new()),
                    "super" => module.split_last().map(|(_, parent)| parent.to_vec()),
                    _ => None,
                };
                if let Some(start) = start {
                    read_path(&mut tokens, start, line, paths);
                }
            }
            _ => {}
        }
        before_path = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ':');
    }
}

/// Reads the rest of a path after `crate` or `super`, including braces.
fn read_path(tokens: &mut Tokens, mut path: Module, line: usize, paths: &mut Vec<(Module, usize)>) {
    while take_colons(tokens) {
        match tokens.peek() {
            Some(TokenTree::Ident(ident)) => {
                match ident.to_string().as_str() {
                    "super" => {
                        path.pop();
                    }
                    "self" => {}
                    name => path.push(name.to_owned()),
                }
                tokens.next();
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let mut inner = group.stream().into_iter().peekable();
                tokens.next();
                while let Some(tree) = inner.next() {
                    if let TokenTree::Ident(ident) = tree {
                        let mut path = path.clone();
                        if ident != "self" {
                            path.push(ident.to_string());
                        }
                        read_path(&mut inner, path, ident.span().start().line, paths);
                    }
                }
                return;
            }
            _ => break,
        }
    }
    paths.push((path, line));
}

fn take_colons(tokens: &mut Tokens) -> bool {
    let mut colon =
        || tokens.next_if(|tree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ':'));
    colon().is_some() && colon().is_some()
}

/// Returns whether this is `[cfg(test)]`, or has more conditions as well.
fn is_for_tests(tree: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = tree else { return false };
    let text: String = group.stream().to_string().split_whitespace().collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Skips to the end of the item: its braces or its semicolon.
fn skip_item(tokens: &mut Tokens) {
    for tree in tokens.by_ref() {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            TokenTree::Punct(punct) if punct.as_char() == ';' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let files: Vec<(String, String)> =
            files.iter().map(|(file, text)| (format!("src/{file}"), (*text).to_owned())).collect();
        Modules::of("src/", files.iter().map(|(file, text)| (file, text)))
    }

    fn named(modules: &Modules, module: &[&str]) -> Vec<String> {
        let module: Module = module.iter().map(|part| (*part).to_owned()).collect();
        modules.names[&module].keys().map(|path| path.join("::")).collect()
    }

    #[test]
    fn paths_are_followed_through_braces_and_upwards() {
        let found = modules(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::{self, Thing}, c::d::Deep};"),
            ("b.rs", "fn f() -> crate::c::C { std::crate_like::x() }"),
            ("c/mod.rs", "mod d;"),
            ("c/d.rs", "use super::super::a; use super::C;"),
        ]);
        assert_eq!(named(&found, &["a"]), ["b", "c::d"]);
        assert_eq!(named(&found, &["b"]), ["c"]);
        assert_eq!(named(&found, &["c", "d"]), ["a", "c"]);
    }

    #[test]
    fn tests_are_ignored() {
        let found = modules(&[
            ("lib.rs", ""),
            (
                "a.rs",
                "#[cfg(test)]\nmod tests { use crate::b::B; }\n#[cfg(test)]\nuse crate::b::X;",
            ),
            ("b.rs", "// crate::a\nconst T: &str = \"crate::a\";"),
            ("a/tests.rs", "use crate::b::B;"),
        ]);
        assert!(named(&found, &["a"]).is_empty() && named(&found, &["b"]).is_empty());
    }

    #[test]
    fn a_cycle_is_found_but_a_parent_and_its_child_are_not_one() {
        let one = ("a.rs", "use crate::b::B;");
        let found = modules(&[("lib.rs", ""), one, ("b.rs", "use crate::c;"), ("c.rs", "")]);
        assert!(found.cycles().is_empty());
        let back = ("c.rs", "use crate::a::A;");
        let found = modules(&[("lib.rs", ""), one, ("b.rs", "use crate::c;"), back]);
        let names: Vec<String> = found.cycles()[0].iter().map(|module| module.join("::")).collect();
        assert_eq!((found.cycles().len(), names), (1, vec!["a".into(), "b".into(), "c".into()]));
        let family = [("lib.rs", ""), ("a/mod.rs", "use b::B;"), ("a/b.rs", "use super::A;")];
        assert!(modules(&family).cycles().is_empty());
    }
}
