//! `include/eyas.h` is what cbindgen makes of the source.
//!
//! `EYAS_WRITE_HEADER=1 cargo test -p eyas-capi --test header` writes it anew.

use std::{fs, path::Path};

/// The files of the source, in the order in which the header has their types and functions.
const FILES: [&str; 16] = [
    "version",
    "code",
    "error",
    "pointer",
    "endpoint_options",
    "endpoint",
    "target",
    "race",
    "connection",
    "association",
    "send_options",
    "message",
    "event",
    "listen_options",
    "listener",
    "memory",
];

/// How cbindgen calls the types of the source that have the form of a pointer.
const POINTERS: [&str; 4] = ["Text", "Data", "Room", "Out_"];

fn place() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header as cbindgen makes it, with pointers where the source has types of its own for them.
fn made() -> String {
    let config = cbindgen::Config::from_file(place().join("cbindgen.toml")).expect("its file");
    let introduction = fs::read_to_string(place().join("include/introduction.txt"));
    let introduction = introduction.expect("the introduction");
    let mut builder = cbindgen::Builder::new().with_config(config).with_header(introduction.trim());
    for file in FILES {
        builder = builder.with_src(place().join("src").join(file).with_extension("rs"));
    }
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    plain(&String::from_utf8(text).expect("UTF-8"))
}

/// Puts what the typedefs of pointers stand for in place of their names, and takes them away.
fn plain(header: &str) -> String {
    let mut stands_for: Vec<(String, String)> = Vec::new();
    let mut paragraphs = Vec::new();
    for paragraph in header.split("\n\n") {
        let typedef = paragraph.lines().last().and_then(|line| line.strip_prefix("typedef "));
        let named = typedef.and_then(|line| line.strip_suffix(';')?.rsplit_once('*'));
        match named {
            Some((what, name)) if is_pointer(name) => {
                stands_for.push((format!("{name} "), format!("{what}*")));
            }
            _ => paragraphs.push(paragraph.to_owned()),
        }
    }
    // The longest first, for one name may end with another.
    stands_for.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut text = paragraphs.join("\n\n");
    for (name, what) in &stands_for {
        text = text.replace(name.as_str(), what);
    }
    text
}

fn is_pointer(name: &str) -> bool {
    POINTERS.iter().any(|known| name.starts_with(known))
}

#[test]
fn the_header_matches_the_source() {
    let (file, made) = (place().join("include/eyas.h"), made());
    if std::env::var_os("EYAS_WRITE_HEADER").is_some() {
        fs::write(&file, &made).expect("the header can be written");
    }
    let kept = fs::read_to_string(&file).expect("the header");
    assert!(
        kept == made,
        "include/eyas.h is not what the source says: \
         EYAS_WRITE_HEADER=1 cargo test -p eyas-capi --test header"
    );
}

#[test]
fn every_function_of_the_source_is_in_the_header() {
    let header = fs::read_to_string(place().join("include/eyas.h")).expect("the header");
    let mut functions = 0;
    for entry in fs::read_dir(place().join("src")).expect("the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(path).expect("a file of the source");
        for rest in text.split("pub extern \"C\" fn ").skip(1) {
            let name = rest.split('(').next().unwrap_or_default();
            assert!(header.contains(&format!("{name}(")), "{name} is not in eyas.h");
            functions += 1;
        }
    }
    assert!(functions > 50, "{functions} functions were found");
}
