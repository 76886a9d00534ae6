//! Gives the shared library its name at run time, which changes when programs have to be built anew.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libeyas.so.0");
}
