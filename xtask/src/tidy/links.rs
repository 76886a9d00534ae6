//! A relative link of a document leads to a file of the repository, and its fragment to a heading there.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// The fragments that lead into each document, by its path.
pub(super) type Anchors = BTreeMap<String, BTreeSet<String>>;

/// Returns the fragments of the headings, as GitHub makes them, and those of `id` attributes.
pub(super) fn anchors(content: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in unfenced(content) {
        let text = line.trim_start_matches('#');
        let level = line.len() - text.len();
        if (1..=6).contains(&level) && text.starts_with(' ') {
            let slug = slug(text.trim());
            let numbered = (1..).map(|number| format!("{slug}-{number}"));
            let free = std::iter::once(slug.clone()).chain(numbered);
            anchors.extend(free.into_iter().find(|anchor| !anchors.contains(anchor)));
        }
        let ids = line.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        anchors.extend(ids.map(str::to_owned));
    }
    anchors
}

/// Checks the links of one document.
pub(super) fn check(
    file: &str,
    content: &str,
    paths: &BTreeSet<String>,
    anchors: &Anchors,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in unfenced(content) {
        let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let defined = text.split_once("]:").filter(|(label, _)| label.starts_with('['));
        let defined = defined.and_then(|(_, target)| target.split_whitespace().next());
        for target in inline.chain(defined).filter(|target| !is_url(target)) {
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let message = match resolve(file, path) {
                Some(path) if path.is_empty() || paths.contains(&path) => {
                    let known = anchors.get(&path).is_some_and(|known| known.contains(fragment));
                    let message = || format!("the link {target} leads to no heading of {path}");
                    (!fragment.is_empty() && !known).then(message)
                }
                _ => Some(format!("the link {target} leads to no file")),
            };
            findings.extend(message.map(|message| Finding::error(file, number, message)));
        }
    }
    findings
}

fn is_url(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// Returns the path of what a file links to from the root of the repository; `None` if it is outside.
pub(super) fn resolve(file: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(file.to_owned());
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Returns the lines outside fenced blocks, with their numbers.
fn unfenced(content: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    content.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// Returns a heading in lower case, without punctuation, with hyphens for spaces; of a link its text.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let keep = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    text.to_lowercase().chars().filter(keep).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: &str = "# The `eyas` command, at work\n## Twice\n## Twice\n```\n# no heading\n```\n\
                         ### See [a page](x.md#y) first\n<a id=\"own\"></a>\n";

    fn messages(content: &str) -> Vec<String> {
        let file = "docs/guide/a.md";
        let paths = ["docs", "docs/guide/a.md", "docs/other.md", "README.md"];
        let paths = paths.map(str::to_owned).into();
        let contents = [(file, content), ("docs/other.md", OTHER)];
        let anchors = contents.map(|(file, text)| (file.to_owned(), anchors(text))).into();
        let found = check(file, content, &paths, &anchors);
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn links_to_files_and_headings_are_accepted() {
        for link in [
            "../other.md",
            "../../README.md",
            "../",
            "../other.md#the-eyas-command-at-work",
            "../other.md#twice-1",
            "../other.md#see-a-page-first",
            "../other.md#own",
            "https://example.test/x#y",
            "mailto:a@example.test",
            "#here",
        ] {
            assert_eq!(messages(&format!("# Here\n[x]({link})\n")), [""; 0], "{link}");
            assert_eq!(messages(&format!("# Here\n[x]: {link}\n")), [""; 0], "{link}");
        }
        assert_eq!(messages("`[x](nowhere.md)`\n```\n[x](nowhere.md)\n```\n"), [""; 0]);
    }

    #[test]
    fn links_to_nowhere_are_reported() {
        let nowhere = ["the link nowhere.md leads to no file"];
        assert_eq!(messages("a [x](nowhere.md), a [y](../other.md)"), nowhere);
        assert_eq!(messages("[x]: nowhere.md"), nowhere);
        assert_eq!(messages("[x](../../../a)"), ["the link ../../../a leads to no file"]);
        for (link, path) in [
            ("../other.md#no-heading", "docs/other.md"),
            ("../other.md#twice-2", "docs/other.md"),
            ("../../README.md#x", "README.md"),
            ("#there", "docs/guide/a.md"),
        ] {
            let message = format!("the link {link} leads to no heading of {path}");
            assert_eq!(messages(&format!("# Here\n[x]({link})\n")), [message]);
        }
    }
}
