//! Builds the preload library, which is embedded so that nothing has to be installed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload");
    println!("cargo::rerun-if-changed={}", source.join("src").display());
    println!("cargo::rerun-if-changed={}", source.join("Cargo.toml").display());
    let out = PathBuf::from(variable("OUT_DIR"));
    let (host, target) = (variable("HOST"), variable("TARGET"));
    let directory = out.join("preload");
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--release", "--locked", "--lib", "--manifest-path"]);
    cargo.arg(source.join("Cargo.toml")).arg("--target-dir").arg(&directory);
    let mut built = directory;
    if host != target {
        cargo.args(["--target", &target]);
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

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
