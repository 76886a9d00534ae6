//! Packages of Python: a wheel for each platform and libc, which contains the command, and the sources of the module.

use std::path::Path;

use super::archive::clear;
use super::command::command_for;
use super::platform::{OLDEST_GLIBC, Platform};
use super::tools::PROFILE;
use super::{Release, copied, emptied};
use crate::python::{DATA, PACKAGE};
use crate::run::{check, workspace};

/// Makes all wheels.
pub(super) fn make(release: &Release) -> Result<(), String> {
    clear(release, "eyas-", ".whl")?;
    for platform in &release.platforms {
        let program = command_for(release, platform)?;
        copied(&program, &workspace().join(DATA).join("scripts/eyas"))?;
        // PEP 599 and 656: which libc a wheel works with is in its name.
        let manylinux = format!("manylinux_{}", OLDEST_GLIBC.replace('.', "_"));
        wheel(release, platform, &platform.gnu(), &manylinux)?;
        wheel(release, platform, &platform.musl(), "musllinux_1_2")?;
    }
    Ok(())
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

fn wheel(
    release: &Release,
    platform: &Platform,
    triple: &str,
    compatibility: &str,
) -> Result<(), String> {
    println!("the wheel for {} and {compatibility}", platform.arch);
    check(&mut crate::run::command("rustup", &["target", "add", triple]))?;
    let arguments = ["-m", "maturin", "build", "--zig", "--locked", "--profile", PROFILE];
    let mut maturin = release.tools.run_python(&arguments);
    release.tools.lend(&mut maturin, release);
    maturin.args(["--target", triple, "--compatibility", compatibility]);
    maturin.arg("--manifest-path").arg(Path::new(PACKAGE).join("Cargo.toml"));
    check(maturin.arg("--out").arg(&release.out))
}
