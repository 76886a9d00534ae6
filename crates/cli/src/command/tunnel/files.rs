//! The locations of key files, and checks that secrets are not readable by others.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use eyas::{KeyFingerprint, ServerIdentity};

use crate::failure::{Failure, FailureKind};
use crate::private_file;

/// The directory below the configuration directory.
const DIRECTORY: [&str; 2] = ["eyas", "tunnel"];
/// The name in the certificate around a key, which is irrelevant: only the key counts.
const PLACEHOLDER_NAME: &str = "tunnel.invalid";

/// Returns the default location of a file, if none was given (XDG base directory specification).
pub(super) fn path_or_default(given: Option<&Path>, name: &str) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let variable = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute())
    };
    let of_windows = || variable("APPDATA").filter(|_| cfg!(windows));
    let base = variable("XDG_CONFIG_HOME")
        .or_else(of_windows)
        .or_else(|| Some(variable("HOME")?.join(".config")));
    base.map(|base| base.join(DIRECTORY.iter().collect::<PathBuf>()).join(name)).ok_or_else(|| {
        Failure::new(
            FailureKind::Identity,
            format!("neither XDG_CONFIG_HOME nor HOME is set: no {name}"),
        )
        .hint("name the file with a flag")
    })
}

/// Returns the key in a file that no one else may read; `None` if there is no such file.
pub(super) fn read_key(path: &Path) -> Result<Option<ServerIdentity>, Failure> {
    let name = path.display();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(unusable(path, &cause)),
    };
    if private_file::is_open_to_others(&found) {
        return Err(Failure::new(
            FailureKind::Identity,
            format!("others can read the key in {name}"),
        )
        .hint(format!("chmod 600 {name}, and generate a new key if that may have happened")));
    }
    let text = fs::read(path).map_err(|cause| unusable(path, &cause))?;
    ServerIdentity::from_pem(&text, &text).map(Some).map_err(|cause| unusable(path, &cause))
}

/// Generates a key, in a file that must not exist yet.
pub(super) fn generate_key(path: &Path) -> Result<ServerIdentity, Failure> {
    let identity =
        ServerIdentity::self_signed([PLACEHOLDER_NAME]).map_err(|cause| unusable(path, &cause))?;
    let pem =
        identity.certificate_pem().and_then(|certificate| Ok(certificate + &identity.key_pem()?));
    let pem = pem.map_err(|cause| unusable(path, &cause))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let written = open_private(path, &mut options).and_then(|mut file| {
        let written = file.write_all(pem.as_bytes()).and_then(|()| file.sync_all());
        // Part of a key is none, and would be in the way of the next one.
        written.inspect_err(|_| drop(fs::remove_file(path)))
    });
    match written {
        Ok(()) => Ok(identity),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            let text = format!("{} already exists", path.display());
            Err(Failure::new(FailureKind::Write, text)
                .hint("name another file with --key, or remove it"))
        }
        Err(cause) => Err(Failure::write(&path.display().to_string(), &cause)),
    }
}

/// Appends a line to a file.
pub(super) fn append(path: &Path, line: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    let written =
        open_private(path, &mut options).and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|cause| Failure::write(&path.display().to_string(), &cause))
}

/// Reads a text file that need not exist.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(cause) => Err(unusable(path, &cause)),
    }
}

/// Returns the fingerprint of an identity's key.
pub(super) fn fingerprint(identity: &ServerIdentity) -> Result<KeyFingerprint, Failure> {
    KeyFingerprint::from_certificate(identity.certificate())
        .ok_or_else(|| Failure::new(FailureKind::Identity, "the certificate cannot be read"))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<fs::File> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        private_file::create_directory(directory)?;
    }
    private_file::set_private(options);
    options.open(path)
}

pub(super) fn unusable(path: &Path, cause: &impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Identity, format!("cannot use {}: {cause}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_read_back_and_readable_only_by_its_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("new/key.pem");
        assert!(read_key(&path).expect("no file").is_none());
        let identity = generate_key(&path).expect("a key");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = read_key(&path).expect("readable").expect("a key");
        assert_eq!(fingerprint(&read).ok(), fingerprint(&identity).ok());
        assert_eq!(generate_key(&path).expect_err("it is there").kind, FailureKind::Write);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("chmod");
        assert_eq!(read_key(&path).expect_err("others can read it").kind, FailureKind::Identity);
    }
}
