//! What the README shows is what is compiled.

#[test]
fn the_readme_shows_the_client() {
    let readme = include_str!("../README.md");
    let example = include_str!("../examples/client.rs");
    // What is above is for those who read the file.
    let (_, code) = example.split_once("\nmod over_quinn;\n").expect("the driver");
    assert!(readme.contains(&format!("```rust,ignore\nmod over_quinn;\n{code}```\n")), "{code}");
}
