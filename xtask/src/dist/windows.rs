//! The command for Windows, on x86-64, as an archive, which is tried under Wine.

use std::path::PathBuf;

use super::command::{LICENCES, SHELLS, checked_command, licences_into, pages};
use super::{Release, VERSION, copied, emptied};
use crate::ci::emulated::wine_prefix;
use crate::ci::platforms::with_zig;
use crate::run::{check, command, works, workspace};

/// The processor.
pub(super) const ARCH: &str = "x86_64";
/// The target of rustc.
pub(super) const TARGET: &str = "x86_64-pc-windows-gnu";
/// What the command is called there.
const COMMAND: &str = "eyas.exe";
/// Packs a directory as a zip file whose bytes depend on the contents alone: sorted, all from 1980.
const ZIP: &str = "import os, sys, zipfile
directory, into = sys.argv[1:]
parent = os.path.dirname(directory)
names = sorted(os.path.join(root, name) for root, _, names in os.walk(directory) for name in names)
with zipfile.ZipFile(into, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name in names:
        entry = zipfile.ZipInfo(os.path.relpath(name, parent).replace(os.sep, '/'))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        with open(name, 'rb') as file:
            archive.writestr(entry, file.read())";
const UNZIP: &str = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";

/// Returns the command; builds it unless that is done.
pub(super) fn command_for(release: &Release) -> Result<PathBuf, String> {
    checked_command(release.tools.build(release, "eyas-cli", TARGET, "")?.join(COMMAND))
}

/// Makes the archive.
pub(super) fn make(release: &Release) -> Result<(), String> {
    if !release.has_windows() {
        return Ok(());
    }
    let name = name();
    let directory = emptied(&release.stage.join(&name))?;
    copied(&command_for(release)?, &directory.join(COMMAND))?;
    copied(&workspace().join("README.md"), &directory.join("README.md"))?;
    let completions = pages(release)?.join("completions");
    for (_, file) in SHELLS.iter().filter(|(shell, _)| *shell == "powershell") {
        copied(&completions.join(file), &directory.join(file))?;
    }
    licences_into(&directory)?;
    let mut zip = release.tools.run_python(&["-c", ZIP]);
    check(zip.arg(&directory).arg(release.out.join(format!("{name}.zip"))))
}

/// Unpacks the archive, and runs the demo and a race with what is in it.
pub(super) fn attempt(release: &Release) -> Result<(), String> {
    if !release.has_windows() {
        return Ok(());
    }
    if !works("wine", &["--version"]) {
        println!("SKIPPED the archive for Windows: wine is not installed");
        return Ok(());
    }
    let root = emptied(&release.stage.join("root-windows"))?;
    let mut unzip = release.tools.run_python(&["-c", UNZIP]);
    check(unzip.arg(release.out.join(format!("{}.zip", name()))).arg(&root))?;
    let directory = root.join(name());
    for licence in LICENCES {
        if !directory.join(licence).exists() {
            return Err(format!("{licence} is not in the archive"));
        }
    }
    let zig = release.tools.zigbuild();
    let environment = wine_prefix(|arguments| with_zig(&zig, arguments))?;
    let program = directory.join(COMMAND);
    super::trial::in_root(&root, |arguments| {
        let mut wine = command("wine", &[&program]);
        wine.args(arguments).envs(environment.iter().cloned());
        wine
    })
}

fn name() -> String {
    format!("eyas-{VERSION}-{ARCH}-windows")
}
