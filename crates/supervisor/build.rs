//! Builds the preload library, which is embedded so that nothing has to be installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the version of the oldest glibc that the library must work with; cargo-zigbuild then links it.
const OLDEST_GLIBC: &str = "EYAS_PRELOAD_GLIBC";

/// The manifest of the library in a packed crate, which has no workspace.
const PACKED_MANIFEST: &str = r#"
[package]
name = "eyas-preload"
version = "0.0.0"
edition = "2024"
[lib]
name = "eyas_preload"
path = "SOURCE/lib.rs"
crate-type = ["cdylib"]
[dependencies]
libc = "0.2"
[workspace]
"#;

fn main() {
    // A link to the sources of the library, whose files a packed crate contains.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = package.join("preload").canonicalize().expect("a packed crate is complete");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-env-changed={OLDEST_GLIBC}");
    let out = PathBuf::from(variable("OUT_DIR"));
    let manifest = manifest(package, &source, &out);
    println!("cargo::rerun-if-changed={}", manifest.display());
    // It is loaded into programs that are linked with glibc, whatever this one is linked with: those with musl
    // are served through seccomp.
    let (host, target) = (variable("HOST"), variable("TARGET").replace("-musl", "-gnu"));
    let oldest = env::var(OLDEST_GLIBC).ok();
    let directory = out.join("preload");
    let mut cargo = Command::new(variable("CARGO"));
    cargo.arg(if oldest.is_some() { "zigbuild" } else { "build" });
    cargo.args(["--release", "--lib", "--manifest-path"]).arg(&manifest);
    if !manifest.starts_with(&out) {
        cargo.arg("--locked");
    }
    cargo.arg("--target-dir").arg(&directory);
    let mut built = directory;
    if host != target || oldest.is_some() {
        let version = oldest.map(|version| format!(".{version}")).unwrap_or_default();
        cargo.arg("--target").arg(format!("{target}{version}"));
        built.push(&target);
    }
    // These settings of the outer build concern other code: a linter in front of the compiler, a
    // sanitizer, another directory.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_TARGET_DIR"] {
        cargo.env_remove(name);
    }
    // A thread that is cancelled while it waits here is unwound by libc.
    cargo.env("RUSTFLAGS", "-C force-unwind-tables=yes");
    cargo.env("CARGO_PROFILE_RELEASE_PANIC", "abort");
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "fat");
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "the library that is preloaded cannot be built: see above");
    let library = built.join("release/libeyas_preload.so");
    println!("cargo::rustc-env=EYAS_PRELOAD={}", library.display());
}

/// Returns the manifest of the library: that of the workspace, or one made here.
fn manifest(package: &Path, source: &Path, out: &Path) -> PathBuf {
    let of_workspace = package.join("../preload/Cargo.toml");
    if of_workspace.exists() {
        return of_workspace;
    }
    let made = out.join("library/Cargo.toml");
    fs::create_dir_all(out.join("library")).expect("cargo has made OUT_DIR");
    let text = PACKED_MANIFEST.replace("SOURCE", &source.display().to_string());
    fs::write(&made, text).expect("OUT_DIR can be written to");
    made
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
