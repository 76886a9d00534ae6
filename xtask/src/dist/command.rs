//! The command, linked statically, and what belongs to it: man pages, completions, licences.

use std::fs;
use std::path::{Path, PathBuf};

use super::archive::{compressed, files, name_of, tar_gz};
use super::materials::third_party_licences;
use super::platform::Platform;
use super::{Release, VERSION, copied, created, emptied, file_error, written};
use crate::run::{check, command, output, workspace};

/// The size of the command in bytes that is wanted, and the largest that is handed out: no build is to be larger than
/// they were so far.
const WANTED_COMMAND_BYTES: u64 = 20 * 1000 * 1000;
const MAX_COMMAND_BYTES: u64 = 34 * 1000 * 1000;
/// The shells with completions, and what each calls the file.
pub(super) const SHELLS: [(&str, &str); 4] =
    [("bash", "eyas"), ("zsh", "_eyas"), ("fish", "eyas.fish"), ("powershell", "eyas.ps1")];
/// What every package contains of the repository.
pub(super) const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Returns the command for a platform; builds it unless that is done.
pub(super) fn command_for(release: &Release, platform: &Platform) -> Result<PathBuf, String> {
    checked_command(release.tools.build(release, "eyas-cli", &platform.musl(), "")?.join("eyas"))
}

/// Says how large the command is, and refuses one that is too large.
pub(super) fn checked_command(built: PathBuf) -> Result<PathBuf, String> {
    let bytes = fs::metadata(&built).map_err(|error| file_error(&built, &error))?.len();
    let megabytes = bytes as f64 / 1e6;
    println!("{}: {megabytes:.1} MB", built.display());
    if bytes > WANTED_COMMAND_BYTES {
        println!("MISSED: {} MB is wanted", WANTED_COMMAND_BYTES / 1_000_000);
    }
    if bytes > MAX_COMMAND_BYTES {
        let most = MAX_COMMAND_BYTES / 1_000_000;
        return Err(format!("{} has {bytes} bytes, more than {most} MB", built.display()));
    }
    Ok(built)
}

/// Makes an archive with the command for each platform.
pub(super) fn archives(release: &Release) -> Result<(), String> {
    let pages = pages(release)?;
    for platform in &release.platforms {
        let name = format!("eyas-{VERSION}-{}-linux", platform.arch);
        let directory = emptied(&release.stage.join(name))?;
        copied(&command_for(release, platform)?, &directory.join("eyas"))?;
        for (folder, below) in [("man", "man"), ("completions", "completions")] {
            for file in files(&pages.join(folder))? {
                copied(&file, &directory.join(below).join(name_of(&file)))?;
            }
        }
        copied(&workspace().join("README.md"), &directory.join("README.md"))?;
        licences_into(&directory)?;
        tar_gz(release, &directory)?;
    }
    Ok(())
}

/// Puts our licences, and those of all that is linked, into a directory.
pub(super) fn licences_into(directory: &Path) -> Result<(), String> {
    for licence in LICENCES {
        copied(&workspace().join(licence), &directory.join(licence))?;
    }
    written(&directory.join("THIRD-PARTY-LICENSES"), third_party_licences()?)
}

/// Makes the man pages (compressed, in `man`) and completions (in `completions`), by running the command.
pub(super) fn pages(release: &Release) -> Result<PathBuf, String> {
    let pages = release.stage.join("pages");
    let eyas = command_for(release, release.host()?)?;
    let man = emptied(&pages.join("man"))?;
    let eyas = eyas.to_string_lossy();
    check(command(&eyas, &["man", "--out"]).arg(&man))?;
    compressed(&files(&man)?)?;
    let completions = created(&pages.join("completions"))?;
    for (shell, file) in SHELLS {
        let text = output(&mut command(&eyas, &["completions", shell]))?;
        written(&completions.join(file), text)?;
    }
    Ok(pages)
}
