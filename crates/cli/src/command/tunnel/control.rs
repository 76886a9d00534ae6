//! The socket with which `eyas tunnel status` finds a tunnel, and its protocol.
//!
//! It is in a directory that belongs to the user, and no one else can use it. The names are
//! numbers. A tunnel takes the first one that no other tunnel serves, so that the name left by a
//! killed tunnel is reused.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyas_supervisor::SocketFile;
use rustix::process::geteuid;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::shape::tunnel::TunnelShape;

/// The prefix of the names; a number follows.
const NAME: &str = "tunnel-";
/// The maximum number of tunnels of a user that are found.
const MAX_TUNNELS: u32 = 256;
/// How long to wait for the other side.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait while another tunnel is starting in the same directory.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum size of an answer: many times that of the largest one.
const MAX_ANSWER: u64 = 64 << 20;
/// The permissions of other users to write.
const OTHERS_WRITE: u32 = 0o022;

/// Makes a tunnel findable until it is dropped.
#[derive(Debug)]
pub(super) struct TunnelControl {
    serving: JoinHandle<()>,
    _file: SocketFile,
}

impl Drop for TunnelControl {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Returns the directory of this user's sockets: `$XDG_RUNTIME_DIR/eyas`, or one among the
/// temporary files.
fn directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("eyas"),
        None => std::env::temp_dir().join(format!("eyas-{}", geteuid().as_raw())),
    }
}

/// Rejects a directory that another user owns or may write to. Root may look at the tunnels of other users, except
/// among the temporary files, where others could have created it for root to find.
fn check(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let may_be_others = geteuid().is_root() && !directory.starts_with(std::env::temp_dir());
    let is_ours = found.uid() == geteuid().as_raw() || may_be_others;
    if found.is_dir() && is_ours && found.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let message =
        format!("{} is not a directory that only this user can write to", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

impl TunnelControl {
    /// Starts to send the result of this function to each client that connects.
    pub(super) async fn listen(
        status: impl Fn() -> TunnelShape + Send + 'static,
    ) -> io::Result<Self> {
        Self::listen_in(&directory(), status).await
    }

    async fn listen_in(
        directory: &Path,
        status: impl Fn() -> TunnelShape + Send + 'static,
    ) -> io::Result<Self> {
        match DirBuilder::new().recursive(true).mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => check(directory)?,
        }
        let (listener, file) = bind(directory).await?;
        let serving = tokio::spawn(async move {
            loop {
                // Clients are few, so they are served one after another.
                match listener.accept().await {
                    Ok((mut client, _)) => {
                        let message = serde_json::to_vec(&status()).unwrap_or_default();
                        // A client that does not read is dropped.
                        let _ = timeout(TIMEOUT, client.write_all(&message)).await;
                    }
                    Err(_) => sleep(PAUSE).await,
                }
            }
        });
        Ok(Self { serving, _file: file })
    }
}

async fn bind(directory: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let deadline = Instant::now() + TIMEOUT;
    let mut number = 0;
    loop {
        let path = directory.join(format!("{NAME}{number}"));
        match SocketFile::listen(&path, 0o600) {
            Ok((listener, file)) => {
                listener.set_nonblocking(true)?;
                return Ok((UnixListener::from_std(listener)?, file));
            }
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(error) if number >= MAX_TUNNELS || Instant::now() > deadline => return Err(error),
            // The name is in use, or is being claimed at this moment.
            Err(_) if UnixStream::connect(&path).is_ok() => number += 1,
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Returns all tunnels of this user.
///
/// # Errors
/// If the directory cannot be read, or is not trustworthy.
pub(super) fn all() -> io::Result<Vec<TunnelShape>> {
    all_in(&directory())
}

fn all_in(directory: &Path) -> io::Result<Vec<TunnelShape>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    check(directory)?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let is_tunnel = entry.file_name().to_str().is_some_and(|name| name.starts_with(NAME));
        // Tunnels that were killed, or are of another version, are skipped.
        if is_tunnel && let Ok(tunnel) = query(&entry.path()) {
            found.push(tunnel);
        }
    }
    found.sort_by_key(|tunnel: &TunnelShape| tunnel.process);
    Ok(found)
}

fn query(path: &Path) -> io::Result<TunnelShape> {
    let mut stream = UnixStream::connect(path)?.take(MAX_ANSWER);
    let deadline = std::time::Instant::now() + TIMEOUT;
    let mut message = Vec::new();
    let mut part = [0; 16 << 10];
    loop {
        // The timeout is one for the whole, not for each part.
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        stream.get_ref().set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut part)? {
            0 => return Ok(serde_json::from_slice(&message)?),
            length => message.extend_from_slice(&part[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn status_of(name: &str) -> impl Fn() -> TunnelShape + Send + 'static {
        let shape = TunnelShape {
            process: 7,
            version: String::new(),
            role: "client".to_owned(),
            name: name.to_owned(),
            forwards: Vec::new(),
            up_ms: 0.0,
            sessions: Vec::new(),
        };
        move || shape.clone()
    }

    async fn names(directory: &Path) -> Vec<String> {
        let directory = directory.to_owned();
        let found =
            tokio::task::spawn_blocking(move || all_in(&directory)).await.expect("task completes");
        found.expect("a folder").into_iter().map(|tunnel| tunnel.name).collect()
    }

    #[tokio::test]
    async fn running_tunnels_are_found_and_stale_names_are_reused() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().join("eyas");
        assert!(names(&directory).await.is_empty());
        // Both start at the same time.
        let both = (status_of("one"), status_of("two"));
        let both = tokio::join!(
            TunnelControl::listen_in(&directory, both.0),
            TunnelControl::listen_in(&directory, both.1)
        );
        let (first, _second) = (both.0.expect("it listens"), both.1.expect("it listens"));
        let mut found = names(&directory).await;
        found.sort();
        assert_eq!(found, ["one", "two"]);
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(
            [0, 1].map(|number| mode(&directory.join(format!("{NAME}{number}")))),
            [0o600; 2]
        );
        drop(first);
        assert_eq!(names(&directory).await, ["two"]);
        // As left by a killed tunnel.
        let stale = directory.join(format!("{NAME}2"));
        drop(std::os::unix::net::UnixListener::bind(&stale).expect("a socket"));
        assert_eq!(names(&directory).await, ["two"]);
        let _three =
            TunnelControl::listen_in(&directory, status_of("three")).await.expect("it listens");
        let _four =
            TunnelControl::listen_in(&directory, status_of("four")).await.expect("it listens");
        assert_eq!(names(&directory).await.len(), 3);
        assert!(!directory.join(format!("{NAME}3")).exists());
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test says what it skips")]
    fn a_directory_of_another_user_among_the_temporary_files_is_not_used() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        assert!(all_in(directory).is_ok());
        if std::os::unix::fs::chown(directory, Some(geteuid().as_raw() + 1), None).is_ok() {
            assert!(all_in(directory).is_err());
        } else {
            eprintln!("SKIPPED: only root can give a directory to another user");
        }
    }

    #[test]
    fn a_tunnel_that_drips_is_given_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(format!("{NAME}0"));
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let dripping = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            while std::io::Write::write_all(&mut client, b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        assert!(all_in(directory.path()).expect("a folder").is_empty());
        dripping.join().expect("it ends");
    }

    #[tokio::test]
    async fn a_directory_that_others_may_write_to_is_not_used() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("chmod");
        let refused = TunnelControl::listen_in(directory.path(), status_of("one")).await;
        assert_eq!(refused.expect_err("not ours").kind(), io::ErrorKind::PermissionDenied);
        assert!(all_in(directory.path()).is_err());
    }
}
