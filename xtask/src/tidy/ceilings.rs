//! What is not written any more becomes less in each crate, and never more: modules that depend on each
//! other in a circle, and parameters that take a tuple apart.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::modules::Modules;

/// This file, for messages.
const FILE: &str = "xtask/src/tidy/ceilings.rs";

/// The most of each kind that a crate may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    circular_modules: usize,
    tuple_parameters: usize,
}

/// The ceilings of the crates that have any of it: circular modules, tuple parameters.
const CEILINGS: [(&str, Counts); 21] = [
    ("bench/", counts(0, 1)),
    ("bindings/python/", counts(3, 0)),
    ("crates/capi/", counts(4, 1)),
    ("crates/cli/", counts(4, 13)),
    ("crates/eyas/", counts(0, 2)),
    ("crates/gateway/", counts(0, 11)),
    ("crates/http/", counts(0, 11)),
    ("crates/lab/", counts(0, 6)),
    ("crates/load/", counts(0, 1)),
    ("crates/netem/", counts(4, 1)),
    ("crates/perf/", counts(0, 2)),
    ("crates/preload/", counts(2, 3)),
    ("crates/race/", counts(7, 6)),
    ("crates/proxy/", counts(0, 18)),
    ("crates/relay/", counts(0, 6)),
    ("crates/sctp/", counts(20, 11)),
    ("crates/sctp-tokio/", counts(0, 3)),
    ("crates/sockets/", counts(0, 4)),
    ("crates/supervisor/", counts(4, 5)),
    ("crates/tunnel/", counts(0, 4)),
    ("fuzz/", counts(0, 2)),
];

const fn counts(circular_modules: usize, tuple_parameters: usize) -> Counts {
    Counts { circular_modules, tuple_parameters }
}

/// Where the things are that one crate has.
#[derive(Debug, Default)]
struct Places {
    circles: Vec<String>,
    circular_modules: usize,
    tuple_parameters: Vec<String>,
}

/// Checks the sources, which are given with their paths.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<Finding> {
    let ceilings = CEILINGS.into();
    compare(&places(sources), &ceilings)
}

fn compare(places: &BTreeMap<&str, Places>, ceilings: &BTreeMap<&str, Counts>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, places) in places {
        let ceiling = ceilings.get(name).copied().unwrap_or_default();
        let mut compare = |what: &str, count: usize, most: usize, places: &[String]| {
            if count > most {
                let places = places.join("; ");
                let message = format!("{count} {what}, at most {most}: {places}");
                findings.push(Finding::error(name, 0, message));
            } else if count < most {
                let message = format!("{count} {what}: {FILE} allows {most}, lower it");
                findings.push(Finding::warning(name, 0, message));
            }
        };
        let circular = places.circular_modules;
        let Counts { circular_modules, tuple_parameters } = ceiling;
        compare("modules in circles", circular, circular_modules, &places.circles);
        let tuples = &places.tuple_parameters;
        compare("parameters that take a tuple apart", tuples.len(), tuple_parameters, tuples);
    }
    findings
}

fn places(sources: &BTreeMap<String, String>) -> BTreeMap<&str, Places> {
    let mut all: BTreeMap<&str, Places> = BTreeMap::new();
    for (file, text) in sources {
        let places = all.entry(crate_of(file)).or_default();
        // Parsing takes most of the time, and few files have such a parameter.
        if text.contains("): ")
            && let Ok(stream) = text.parse::<TokenStream>()
        {
            collect_tuples(file, stream, &mut places.tuple_parameters);
        }
    }
    for (name, places) in &mut all {
        let modules = Modules::of(&format!("{name}src/"), sources.iter());
        for cycle in modules.cycles() {
            let names: Vec<String> = cycle.iter().map(|module| module.join("::")).collect();
            places.circular_modules += names.len();
            places.circles.push(names.join(", "));
        }
    }
    all
}

/// Returns the directory of the crate that a file belongs to, with a slash at the end.
fn crate_of(file: &str) -> &str {
    let depth = if file.starts_with("crates/") || file.starts_with("bindings/") { 2 } else { 1 };
    file.match_indices('/').nth(depth - 1).map_or(file, |(at, _)| &file[..=at])
}

/// Collects the functions with a parameter such as `(a, b): (A, B)`, also inside macros.
fn collect_tuples(file: &str, stream: TokenStream, places: &mut Vec<String>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    for (index, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Ident(ident) if ident == "fn" => {
                let Some(TokenTree::Ident(name)) = trees.get(index + 1) else { continue };
                let line = ident.span().start().line;
                let count = parameters(&trees[index + 2..]).map_or(0, tuples);
                places.extend((0..count).map(|_| format!("{file}:{line} fn {name}")));
            }
            TokenTree::Group(group) => collect_tuples(file, group.stream(), places),
            _ => {}
        }
    }
}

/// Returns the parameters of a function from what follows its name: the first parentheses that are not
/// inside the angle brackets of its generic parameters.
fn parameters(rest: &[TokenTree]) -> Option<TokenStream> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for tree in rest {
        match tree {
            TokenTree::Punct(punct) => {
                match punct.as_char() {
                    '<' => depth += 1,
                    '>' if before != '-' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                before = punct.as_char();
            }
            TokenTree::Group(group)
                if depth == 0 && group.delimiter() == Delimiter::Parenthesis =>
            {
                return Some(group.stream());
            }
            _ => before = ' ',
        }
    }
    None
}

/// Returns the number of parameters whose pattern is a tuple: parentheses after a comma and before a colon.
fn tuples(parameters: TokenStream) -> usize {
    let trees: Vec<TokenTree> = parameters.into_iter().collect();
    let is = |tree: Option<&TokenTree>, wanted: char| matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
    let is_tuple = |index: &usize| {
        let begins = *index == 0 || is(trees.get(index - 1), ',');
        let in_parentheses = matches!(&trees[*index], TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
        begins && in_parentheses && is(trees.get(index + 1), ':')
    };
    (0..trees.len()).filter(is_tuple).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)], ceiling: Counts) -> Vec<String> {
        let text = |(file, text): &(&str, &str)| (format!("crates/a/{file}"), (*text).to_owned());
        let sources = files.iter().map(text).collect();
        let found = compare(&places(&sources), &[("crates/a/", ceiling)].into());
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_circle_is_found() {
        let files = [
            ("src/lib.rs", "mod x; mod y;"),
            ("src/x.rs", "use crate::y::Y;"),
            ("src/y.rs", "use super::x::X;"),
        ];
        assert_eq!(messages(&files, counts(0, 0)), ["2 modules in circles, at most 0: x, y"]);
        assert_eq!(messages(&files, counts(2, 0)), [""; 0]);
        let lower = [format!("2 modules in circles: {FILE} allows 3, lower it")];
        assert_eq!(messages(&files, counts(3, 0)), lower);
    }

    #[test]
    fn parameters_that_take_a_tuple_apart_are_found() {
        for function in [
            "fn f((a, b): (A, B)) {}",
            "fn f(a: A, (b, c): (B, C)) {}",
            "fn f(&mut self, (mut b, _): &(B, C)) -> D { d() }",
            "fn f<F: Fn(A) -> B>((a, b): F) {}",
            "mod x { impl Y { async fn f(a: A, (b, c): Pair) {} } }",
            "proptest! { fn f((a, b): (A, B)) {} }",
        ] {
            let found = messages(&[("src/lib.rs", function)], counts(0, 0));
            let place = "crates/a/src/lib.rs:1 fn f";
            let message = format!("1 parameters that take a tuple apart, at most 0: {place}");
            assert_eq!(found, [message], "{function}");
        }
    }

    #[test]
    fn types_closures_and_patterns_in_bodies_are_no_such_parameters() {
        for text in [
            "fn f(a: (A, B), b: &[(C, D)]) -> (A, B) { (a, b): (A, B) }",
            "fn f() { let (a, b): (A, B) = g(); let h = |(a, b): (A, B)| a; }",
            "type F = fn((A, B)) -> C;",
            "fn f(a: impl Fn((A, B)) -> C) {}",
            "fn f(State(a): State<A>, Path((b, c)): Path<(B, C)>) {}",
        ] {
            assert_eq!(messages(&[("src/lib.rs", text)], counts(0, 0)), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_crate_is_a_directory() {
        assert_eq!(crate_of("crates/race/src/lib.rs"), "crates/race/");
        assert_eq!(crate_of("xtask/src/tidy.rs"), "xtask/");
    }
}
