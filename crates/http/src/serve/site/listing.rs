//! The listing of a directory without an index.

use std::{fmt::Write, fs, io, path::Path};

use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::reply::{self, Reply};

/// The most names that a listing shows.
const MAX_ITEMS: usize = 10_000;

/// What need not be encoded in a path segment (RFC 3986 §2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One line of a listing. Directories sort first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    is_file: bool,
    name: Vec<u8>,
    length: u64,
}

/// The files and directories in `path`, hidden ones left out.
pub(super) fn read(path: &Path) -> io::Result<Vec<Item>> {
    let mut items = Vec::new();
    for entry in fs::read_dir(path)?.take(MAX_ITEMS) {
        let entry = entry?;
        let name = entry.file_name().into_encoded_bytes();
        // A link that leads nowhere is nothing to offer.
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        if name.starts_with(b".") || !(metadata.is_file() || metadata.is_dir()) {
            continue;
        }
        items.push(Item { is_file: metadata.is_file(), name, length: metadata.len() });
    }
    items.sort();
    Ok(items)
}

/// The listing as a page.
pub(super) fn respond(path: &str, items: &[Item]) -> Reply {
    let title = escaped(&percent_decode_str(path).decode_utf8_lossy());
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>:root{{color-scheme:light dark}}body{{font:1rem/1.6 \
         system-ui,sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}}td+td{{\
         text-align:right;padding-left:2rem}}</style>\n<h1>{title}</h1>\n<table>\n"
    );
    if path != "/" {
        html.push_str("<tr><td><a href=\"../\">../</a></td><td></td></tr>\n");
    }
    for Item { is_file, name, length } in items {
        let href = percent_encode(name, SEGMENT);
        let text = escaped(&String::from_utf8_lossy(name));
        // Writing to a string cannot fail.
        let _ = match is_file {
            true => {
                writeln!(html, "<tr><td><a href=\"{href}\">{text}</a></td><td>{length}</td></tr>")
            }
            false => writeln!(html, "<tr><td><a href=\"{href}/\">{text}/</a></td><td></td></tr>"),
        };
    }
    html.push_str("</table>\n</html>\n");
    reply::typed(StatusCode::OK, "text/html; charset=utf-8", html)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::body::Content;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let item = Item { is_file: true, name: b"<b> & \"'%?#.txt".to_vec(), length: 1 };
        let reply = respond("/%3Cscript%3E/", &[item]);
        let Content::Full(page) = reply.body() else { panic!("a page") };
        let page = String::from_utf8_lossy(page);
        assert!(!page.contains("<script>") && !page.contains("<b>"), "{page}");
        assert!(page.contains("href=\"%3Cb%3E%20%26%20%22%27%25%3F%23.txt\""), "{page}");
    }
}
