//! What the README shows is what is compiled.

#[test]
fn the_readme_shows_the_examples() {
    let readme = include_str!("../README.md");
    for example in [include_str!("../examples/client.rs"), include_str!("../examples/server.rs")] {
        // What is above is for those who read the file.
        let (_, code) = example.split_once("\nmod over_quinn;\n").expect("the driver");
        assert!(
            readme.contains(&format!("```rust,ignore\nmod over_quinn;\n{code}```\n")),
            "{code}"
        );
    }
}
