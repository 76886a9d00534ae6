//! Packages of Python: a wheel for each platform and libc, which contains the command, and the sources of the module.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::archive::{clear, name_of};
use super::command::command_for;
use super::platform::OLDEST_GLIBC;
use super::tools::PROFILE;
use super::{Release, copied, emptied, windows, written};
use crate::python::{DATA, PACKAGE};
use crate::run::{check, command, file_error, output, workspace};

/// What a Python for Windows looks up in the module. Zig ignores the list of exports that rustc passes, and exports
/// every function of every crate, which is more than a DLL can have.
const EXPORTS: &str = "LIBRARY _native\nEXPORTS\n    PyInit__native\n";

/// Makes all wheels.
pub(super) fn make(release: &Release) -> Result<(), String> {
    clear(release, "eyas-", ".whl")?;
    for platform in &release.platforms {
        put_command(&command_for(release, platform)?)?;
        // PEP 599 and 656: which libc a wheel works with is in its name.
        let manylinux = format!("manylinux_{}", OLDEST_GLIBC.replace('.', "_"));
        for (triple, libc) in [(platform.gnu(), &*manylinux), (platform.musl(), "musllinux_1_2")] {
            println!("the wheel for {} and {libc}", platform.arch);
            let mut maturin = maturin_for(release, &triple)?;
            check(maturin.args(["--zig", "--compatibility", libc]))?;
        }
    }
    if release.has_windows() {
        put_command(&windows::command_for(release)?)?;
        windows_wheel(release)?;
    }
    Ok(())
}

/// Puts a command, and no other one, where maturin takes it from.
fn put_command(program: &Path) -> Result<(), String> {
    let folder = emptied(&workspace().join(DATA).join("scripts"))?;
    copied(program, &folder.join(name_of(program)))
}

/// Maturin's own way to zig fails for Windows: it has the linker export `PyInit_eyas._native`, which is no symbol,
/// from every DLL that is built, and a dependency is one, too. Here maturin calls a cargo that calls cargo-zigbuild.
fn windows_wheel(release: &Release) -> Result<(), String> {
    println!("the wheel for {} and Windows", windows::ARCH);
    let folder = emptied(&release.stage.join("wheel-windows"))?;
    let cargo = output(&mut command("rustup", &["which", "cargo"]))?;
    let through_zig = format!(
        "#!/bin/sh\nexport CARGO='{}'\ncase \"$1\" in rustc) exec '{}' \"$@\" ;; esac\nexec \"$CARGO\" \"$@\"\n",
        cargo.trim(),
        release.tools.zigbuild()
    );
    let program = folder.join("cargo");
    written(&program, through_zig)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .map_err(|error| file_error(&program, &error))?;
    let exports = folder.join("exports.def");
    written(&exports, EXPORTS)?;

    let mut maturin = maturin_for(release, windows::TARGET)?;
    let path = maturin.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
    let path = path.unwrap_or_default().to_string_lossy().into_owned();
    maturin.env("PATH", format!("{}:{path}", folder.display()));
    check(maturin.args(["--", "-C"]).arg(format!("link-arg={}", exports.display())))
}

/// Packs the sources, from which pip builds the module where no wheel fits.
pub(super) fn sources(release: &Release) -> Result<(), String> {
    // The folder for the command has to be in the sources, too, and there is no command in them.
    let folder = emptied(&workspace().join(DATA))?;
    copied(
        &workspace().join(PACKAGE).join("README.md"),
        &folder.join("data/share/doc/eyas/README.md"),
    )?;
    let mut maturin = release.tools.run_python(&["-m", "maturin", "sdist"]);
    release.tools.lend(&mut maturin, release);
    maturin.arg("--manifest-path").arg(Path::new(PACKAGE).join("Cargo.toml"));
    check(maturin.arg("--out").arg(&release.out))
}

/// Returns a call of maturin that builds a wheel for a target.
fn maturin_for(release: &Release, triple: &str) -> Result<Command, String> {
    check(&mut command("rustup", &["target", "add", triple]))?;
    let arguments = ["-m", "maturin", "build", "--locked", "--profile", PROFILE];
    let mut maturin = release.tools.run_python(&arguments);
    release.tools.lend(&mut maturin, release);
    maturin
        .args(["--target", triple, "--manifest-path"])
        .arg(Path::new(PACKAGE).join("Cargo.toml"));
    maturin.arg("--out").arg(&release.out);
    Ok(maturin)
}
