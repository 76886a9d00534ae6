//! Archives that are the same bytes whenever and wherever they are packed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Release, file_error};
use crate::run::{check, command};

/// Packs files of a directory into a tar file: sorted, all owned by root, all from the time of the commit.
pub(super) fn tar<S: AsRef<OsStr>>(
    release: &Release,
    directory: &Path,
    entries: &[S],
    into: &Path,
) -> Result<(), String> {
    let arguments = ["--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
    let mut tar = command("tar", &arguments);
    // The permissions of a clone depend on the umask.
    tar.arg(format!("--mtime=@{}", release.time)).arg("--mode=u+rw,go=rX");
    check(tar.arg("-C").arg(directory).arg("-cf").arg(into).args(entries))
}

/// Packs a directory, under its own name, into `NAME.tar.gz` of the release.
pub(super) fn tar_gz(release: &Release, directory: &Path) -> Result<(), String> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(format!("{} cannot be packed", directory.display()));
    };
    let packed = release.out.join(format!("{}.tar", name.to_string_lossy()));
    tar(release, parent, &[name], &packed)?;
    compressed(&[&packed])
}

/// Replaces each file by a compressed one, whose name ends with `.gz`.
pub(super) fn compressed(files: &[impl AsRef<OsStr>]) -> Result<(), String> {
    // Without their names and times.
    check(command("gzip", &["--force", "--no-name", "-9"]).args(files))
}

/// Removes the files of the release whose names begin and end as given: those of an earlier attempt.
pub(super) fn clear(release: &Release, prefix: &str, suffix: &str) -> Result<(), String> {
    for path in files(&release.out)? {
        let name = name_of(&path);
        if name.starts_with(prefix) && name.ends_with(suffix) {
            fs::remove_file(&path).map_err(|error| file_error(&path, &error))?;
        }
    }
    Ok(())
}

/// Returns the files in a directory, sorted.
pub(super) fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(|error| file_error(directory, &error))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    Ok(paths)
}

/// Returns the name of a file without its folder.
pub(super) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(super) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
