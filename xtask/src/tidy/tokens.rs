//! Rules about Rust code as token trees, so that text in strings and comments is ignored and functions
//! inside macros are checked as well.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

use super::Finding;

/// The maximum number of lines of a function, from `fn` to its closing brace.
const MAX_FUNCTION_LINES: usize = 70;
/// Macros for unfinished work.
const BANNED_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Checks one Rust file.
pub(super) fn check(file: &str, content: &str) -> Vec<Finding> {
    match content.parse::<TokenStream>() {
        Ok(stream) => {
            let mut findings = Vec::new();
            walk(file, stream, &mut findings);
            findings
        }
        Err(error) => vec![Finding::error(file, error.span().start().line, "is not valid Rust")],
    }
}

fn walk(file: &str, stream: TokenStream, findings: &mut Vec<Finding>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    for (index, tree) in trees.iter().enumerate() {
        let rest = &trees[index + 1..];
        match tree {
            TokenTree::Ident(ident) if ident == "fn" => findings.extend(function(file, tree, rest)),
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                if is_punct(rest.first(), '!') && BANNED_MACROS.contains(&name.as_str()) {
                    findings.push(Finding::error(file, line(ident.span()), format!("{name}!")));
                }
            }
            TokenTree::Punct(hash) if hash.as_char() == '#' => {
                findings.extend(attribute(file, rest));
            }
            TokenTree::Group(group) => walk(file, group.stream(), findings),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns a finding if a function is defined here (a pointer type has no name) and is too long.
fn function(file: &str, keyword: &TokenTree, rest: &[TokenTree]) -> Option<Finding> {
    let Some(TokenTree::Ident(name)) = rest.first() else { return None };
    let body = rest.iter().find_map(|tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(Some(group)),
        TokenTree::Punct(punct) if punct.as_char() == ';' => Some(None),
        _ => None,
    })??;
    let start = keyword.span().start().line;
    let lines = body.span_close().end().line.saturating_sub(start) + 1;
    (lines > MAX_FUNCTION_LINES).then(|| {
        let message = format!("fn {name} has {lines} lines, at most {MAX_FUNCTION_LINES}");
        Finding::error(file, start, message)
    })
}

/// Items that are public only with this feature are unused without it. With the feature the lint applies.
const WITHOUT_INTERNALS: &str = "cfg_attr(not(feature=\"internals\"),";

/// Returns a finding for `#[ignore]`, which hides a test, and for `allow(dead_code)`, which hides unused code.
fn attribute(file: &str, rest: &[TokenTree]) -> Option<Finding> {
    let rest = if is_punct(rest.first(), '!') { &rest[1..] } else { rest };
    let Some(TokenTree::Group(group)) = rest.first() else { return None };
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let text: String = group.stream().to_string().split_whitespace().collect();
    let banned = text == "ignore"
        || text.starts_with("ignore=")
        || (text.contains("allow(") && text.contains("dead_code"));
    let banned = banned && !text.starts_with("doc=") && !text.starts_with(WITHOUT_INTERNALS);
    banned.then(|| Finding::error(file, line(group.span()), format!("#[{text}]")))
}

fn is_punct(tree: Option<&TokenTree>, wanted: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn line(span: Span) -> usize {
    span.start().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(content: &str) -> Vec<(usize, String)> {
        check("a.rs", content).into_iter().map(|it| (it.line, it.message)).collect()
    }

    fn function_of(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn long_functions_are_found_where_they_start() {
        assert_eq!(found(&function_of(MAX_FUNCTION_LINES)), []);
        let one_more = format!("//! Doc.\n\n{}", function_of(MAX_FUNCTION_LINES + 1));
        let expected = format!("fn long has {} lines, at most 70", MAX_FUNCTION_LINES + 1);
        assert_eq!(found(&one_more), [(3, expected)]);
    }

    #[test]
    fn functions_in_macros_and_modules_count() {
        let inner = function_of(MAX_FUNCTION_LINES + 1);
        assert_eq!(found(&format!("proptest! {{\n{inner}}}\n")).len(), 1);
        assert_eq!(found(&format!("mod a {{ impl B {{\n{inner}}} }}\n")).len(), 1);
    }

    #[test]
    fn declarations_and_pointers_have_no_body() {
        let filler = "// line\n".repeat(100);
        assert_eq!(found(&format!("trait A {{ fn a(); {filler} fn b() {{}} }}\n")), []);
        assert_eq!(found(&format!("type F = fn(u8);\n{filler}struct S {{}}\n")), []);
    }

    #[test]
    fn braces_in_strings_do_not_count() {
        let content = format!("fn a() {{ b(\"}}\"); {} }}\n", "// {\n".repeat(MAX_FUNCTION_LINES));
        assert_eq!(found(&content).len(), 1);
    }

    #[test]
    fn unfinished_work_is_found_only_in_code() {
        for name in BANNED_MACROS {
            assert_eq!(found(&format!("fn a() {{\n{name}!()\n}}\n")), [(2, format!("{name}!"))]);
            assert_eq!(found(&format!("// {name}!()\nfn a() {{ b(\"{name}!()\") }}\n")), []);
        }
    }

    #[test]
    fn hidden_tests_and_dead_code_are_found() {
        assert_eq!(found("#[test]\n#[ignore]\nfn a() {}\n").len(), 1);
        assert_eq!(found("#[test]\n#[ignore = \"slow\"]\nfn a() {}\n").len(), 1);
        assert_eq!(found("#![allow(dead_code)]\n").len(), 1);
        assert_eq!(found("#[allow(unused, dead_code)]\nfn a() {}\n").len(), 1);
        assert_eq!(found("#[cfg_attr(test, allow(dead_code))]\nfn a() {}\n").len(), 1);
        let without = "#![cfg_attr(not(feature = \"internals\"), allow(dead_code))]\n";
        assert_eq!(found(without), []);
        let with = "#![cfg_attr(feature = \"internals\", allow(dead_code))]\n";
        assert_eq!(found(with).len(), 1);
        assert_eq!(found("#[must_use]\nfn ignore() {}\n"), []);
        assert_eq!(found("/// `#[ignore]` and `allow(dead_code)`\nfn a() {}\n"), []);
    }

    #[test]
    fn invalid_rust_is_reported() {
        assert_eq!(found("fn a() {\n").len(), 1);
    }
}
