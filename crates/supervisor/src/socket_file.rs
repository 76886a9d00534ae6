//! A local socket with a name in the file system, for as long as the server runs.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::process::{geteuid, umask};

/// The permission of other users to write.
const OTHERS_WRITE: u32 = 0o002;
/// The sticky bit: users can delete only their own files in such a directory.
const STICKY: u32 = 0o1000;

/// The name of a local socket, removed on drop.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode, because the file may have been replaced.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens at `path`, to which users with write permission according to `mode` can connect. A
    /// socket left by a dead process is removed.
    ///
    /// # Errors
    /// `AddrInUse` if another process serves there, or is starting in this directory at the same
    /// time; others if the directory or the existing socket belongs to a user other than this one
    /// and root, or if there is another kind of file.
    pub fn listen(path: &Path, mode: u32) -> io::Result<(UnixListener, Self)> {
        let directory = File::open(folder(path))?;
        check_owner(&directory.metadata()?, "the directory")?;
        // Held until this returns, because two processes that start at the same time would both
        // find no server.
        flock(&directory, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            io::Error::new(
                io::ErrorKind::AddrInUse,
                "another process is starting in this directory",
            )
        })?;
        remove_stale_socket(path)?;
        // Prevents connections before the mode is set.
        let previous = umask(Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        umask(previous);
        let listener = listener?;
        let metadata = fs::symlink_metadata(path)?;
        let file = Self { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()) };
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok((listener, file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
            // It may just have been removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns whether any user may replace the socket.
pub fn is_open_to_all(path: &Path) -> bool {
    fs::metadata(folder(path))
        .is_ok_and(|found| found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0)
}

/// Returns whether any user may put a socket below one of the folders of this absolute path.
pub fn is_in_shared_folder(path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1);
    folders.any(|folder| fs::metadata(folder).is_ok_and(|found| found.mode() & OTHERS_WRITE != 0))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks the owner: files of another user are not trusted, unless that is root.
fn check_owner(found: &fs::Metadata, what: &str) -> io::Result<()> {
    if found.uid() == 0 || found.uid() == geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("{what} belongs to another user (id {})", found.uid());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let message = "a file that is not a socket exists there";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    check_owner(&found, "the existing socket")?;
    match UnixStream::connect(path) {
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, "another process already serves there"))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_socket_file_is_removed_with_its_supervisor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sctp");
        let (_listener, file) = SocketFile::listen(&path, 0o660).unwrap();
        assert_eq!(mode_of(&path), 0o660);
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_running_supervisor_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sctp");
        let (_listener, _file) = SocketFile::listen(&path, 0o600).unwrap();
        let second = SocketFile::listen(&path, 0o600).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        assert!(UnixStream::connect(&path).is_ok(), "the first one is still there");
    }

    #[test]
    fn a_stale_socket_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sctp");
        // Closing a listener leaves its name, as the end of its process does.
        drop(UnixListener::bind(&path).unwrap());
        let (_listener, _file) = SocketFile::listen(&path, 0o600).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
    }

    #[test]
    fn other_files_and_sockets_are_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        fs::write(&path, "mine").unwrap();
        let refused = SocketFile::listen(&path, 0o600).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        let (_listener, file) = SocketFile::listen(&folder.path().join("sctp"), 0o600).unwrap();
        fs::remove_file(&file.path).unwrap();
        let other = UnixListener::bind(&file.path).unwrap();
        let kept = file.path.clone();
        drop(file);
        assert!(kept.exists(), "it belongs to another process now");
        drop(other);
    }

    #[test]
    fn a_world_writable_directory_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sctp");
        assert!(!is_open_to_all(&path));
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(is_open_to_all(&path));
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        assert!(!is_open_to_all(&path), "as in /tmp");
    }
}
