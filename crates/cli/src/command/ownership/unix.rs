//! Owners and modes.

use std::fs;
use std::io;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

/// The permission of the group and of others to write.
const OTHERS_WRITE: u32 = 0o022;
/// How long to wait for somebody to write to a pipe, in seconds.
const PIPE_TIMEOUT_SECONDS: i64 = 10;
/// The sticky bit: users can delete and rename only their own files in such a folder.
const STICKY: u32 = 0o1000;

/// Reads a file that says who may enter. A pipe, as of `<(command)`, is waited for, but not for ever: a server must
/// not hang in it when it loads its files again.
pub(in super::super) fn read_to_string(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.file_type().is_fifo() {
        return fs::read_to_string(path);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut pipe = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let timeout = Timespec { tv_sec: PIPE_TIMEOUT_SECONDS, tv_nsec: 0 };
    let mut text = String::new();
    loop {
        if poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody writes to the pipe"));
        }
        match pipe.read_to_string(&mut text) {
            Ok(_) => return Ok(text),
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
            Err(cause) => return Err(cause),
        }
    }
}

/// Returns why somebody other than root and this user could change the file, or put another one in
/// its place.
pub(super) fn changeable_by_others(path: &Path) -> io::Result<Option<String>> {
    let is_others = |found: &fs::Metadata| found.uid() != 0 && found.uid() != geteuid().as_raw();
    let found = fs::metadata(path)?;
    let path = match fs::canonicalize(path) {
        // A pipe without a name, as of `<(command)`, can only be written to through its descriptors.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound && found.file_type().is_fifo() => {
            let why = || format!("the pipe belongs to another user (id {})", found.uid());
            return Ok(is_others(&found).then(why));
        }
        path => path?,
    };
    for (depth, place) in path.ancestors().enumerate() {
        let found = fs::metadata(place)?;
        let name = place.display();
        if is_others(&found) {
            return Ok(Some(format!("{name} belongs to another user (id {})", found.uid())));
        }
        let is_sticky_folder = depth > 0 && found.mode() & STICKY != 0;
        if found.mode() & OTHERS_WRITE != 0 && !is_sticky_folder {
            let mode = found.mode() & 0o7777;
            return Ok(Some(format!("others can write to {name} (mode {mode:o})")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_and_folders_that_others_can_write_to_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        let file = inner.join("keys");
        fs::create_dir(&inner).expect("a folder");
        fs::write(&file, "").expect("a file");
        let mode = |path: &Path, mode: u32| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
        };
        let cases = [
            (0o755, 0o644, true),
            (0o700, 0o600, true),
            // Nobody can replace another user's file there.
            (0o1777, 0o644, true),
            (0o755, 0o664, false),
            (0o755, 0o646, false),
            (0o755, 0o1646, false),
            (0o775, 0o644, false),
            (0o777, 0o600, false),
        ];
        for (of_folder, of_file, is_safe) in cases {
            mode(&inner, of_folder);
            mode(&file, of_file);
            let found = changeable_by_others(&file).expect("it exists");
            assert_eq!(found.is_none(), is_safe, "{of_folder:o} {of_file:o}: {found:?}");
        }
        mode(&inner, 0o777);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert!(changeable_by_others(&link).expect("it exists").is_some(), "through a link");
    }

    fn make_pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg("-m").arg("600").arg(path).status();
        assert!(made.expect("mkfifo is there").success());
    }

    #[test]
    fn a_pipe_with_a_name_is_where_others_may_put_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("users");
        make_pipe(&pipe);
        assert_eq!(changeable_by_others(&pipe).expect("it exists"), None);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("own folder");
        assert!(changeable_by_others(&pipe).expect("it exists").is_some());
        // A pipe without a name is this process's.
        let (reading, _writing) = io::pipe().expect("a pipe");
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reading));
        assert_eq!(changeable_by_others(Path::new(&path)).expect("it exists"), None);
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("users");
        make_pipe(&pipe);
        let text = "a:b\n".repeat(50_000);
        let writing = std::thread::spawn({
            let (pipe, text) = (pipe.clone(), text.clone());
            move || fs::write(pipe, text)
        });
        assert_eq!(read_to_string(&pipe).expect("it is written"), text);
        writing.join().expect("it ends").expect("it is written");
    }
}
