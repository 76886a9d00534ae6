//! Tests that `include/eyas.h` is what cbindgen generates from the source.
//!
//! `EYAS_WRITE_HEADER=1 cargo test -p eyas-capi --test header` regenerates it.

use std::{fs, path::Path};

/// The source files, in the order of their items in the header.
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

/// The names that cbindgen gives to the types of the source that represent pointers.
const POINTERS: [&str; 4] = ["TextPointer", "DataPointer", "BufferPointer", "OutPointer_"];

fn manifest_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Generates the header with cbindgen, and replaces the types that represent pointers by pointers.
fn generated() -> String {
    let config =
        cbindgen::Config::from_file(manifest_directory().join("cbindgen.toml")).expect("its file");
    let introduction = fs::read_to_string(manifest_directory().join("include/introduction.txt"));
    let introduction = introduction.expect("the introduction");
    let mut builder = cbindgen::Builder::new().with_config(config).with_header(introduction.trim());
    for file in FILES {
        builder =
            builder.with_src(manifest_directory().join("src").join(file).with_extension("rs"));
    }
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    without_typedefs(&String::from_utf8(text).expect("UTF-8"))
}

/// Replaces the typedefs of pointers by what they stand for, and removes them.
fn without_typedefs(header: &str) -> String {
    let mut replacements: Vec<(String, String)> = Vec::new();
    let mut paragraphs = Vec::new();
    for paragraph in header.split("\n\n") {
        let typedef = paragraph.lines().last().and_then(|line| line.strip_prefix("typedef "));
        let named = typedef.and_then(|line| line.strip_suffix(';')?.rsplit_once('*'));
        match named {
            Some((what, name)) if is_pointer(name) => {
                replacements.push((format!("{name} "), format!("{what}*")));
            }
            _ => paragraphs.push(paragraph.to_owned()),
        }
    }
    // Longest first, because one name may end with another.
    replacements.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut text = paragraphs.join("\n\n");
    for (name, what) in &replacements {
        text = text.replace(name.as_str(), what);
    }
    text
}

fn is_pointer(name: &str) -> bool {
    POINTERS.iter().any(|known| name.starts_with(known))
}

#[test]
fn the_header_matches_the_source() {
    let (file, generated) = (manifest_directory().join("include/eyas.h"), generated());
    if std::env::var_os("EYAS_WRITE_HEADER").is_some() {
        fs::write(&file, &generated).expect("the header can be written");
    }
    let kept = fs::read_to_string(&file).expect("the header");
    assert!(
        kept == generated,
        "include/eyas.h does not match the source; regenerate it with \
         EYAS_WRITE_HEADER=1 cargo test -p eyas-capi --test header"
    );
}

#[test]
fn every_function_of_the_source_is_in_the_header() {
    let header =
        fs::read_to_string(manifest_directory().join("include/eyas.h")).expect("the header");
    let mut functions = 0;
    for entry in fs::read_dir(manifest_directory().join("src")).expect("the source") {
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
