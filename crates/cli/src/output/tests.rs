//! Tests of bodies on disk: complete or absent.

use std::fs;

use bytes::Bytes;

use super::*;
use crate::failure::FailureKind;

async fn opened(path: &std::path::Path) -> BodySink {
    BodySink::file(path, &UnfinishedBytes::default()).await.expect("opens")
}

async fn refused(path: &std::path::Path) -> Failure {
    let opened = BodySink::file(path, &UnfinishedBytes::default()).await;
    opened.err().expect("refused")
}

fn names(directory: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect()
}

#[tokio::test]
async fn a_complete_body_is_saved_under_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("page");
    let mut sink = opened(&target).await;
    sink.write(Bytes::from_static(b"one ")).await.expect("writes");
    assert!(!target.exists());
    sink.write(Bytes::from_static(b"two")).await.expect("writes");
    assert_eq!(sink.written(), 7);
    sink.finish(None).await.expect("moves");
    assert_eq!(fs::read(&target).expect("reads"), b"one two");
    assert_eq!(names(directory.path()), ["page"]);
}

/// Pieces are written together, and a reader of a pipe still sees a slow body as it arrives.
#[cfg(unix)]
#[tokio::test]
async fn a_flush_makes_gathered_pieces_visible() {
    use tokio::io::AsyncReadExt;
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    let mut reader =
        tokio::net::unix::pipe::OpenOptions::new().open_receiver(&pipe).expect("opens");
    let mut sink = opened(&pipe).await;
    for piece in [&b"one "[..], b"two"] {
        sink.write(Bytes::from_static(piece)).await.expect("is gathered");
    }
    assert!(reader.try_read(&mut [0; 8]).is_err(), "nothing was written yet");
    sink.flush().await.expect("writes");
    let mut read = [0; 7];
    reader.read_exact(&mut read).await.expect("reads");
    assert_eq!(&read, b"one two");
    // More than is gathered is written without a flush.
    let large = Bytes::from(vec![7; 1 << 20]);
    let (written, count) = tokio::join!(sink.write(large), async {
        let mut buffer = vec![0; 1 << 20];
        reader.read(&mut buffer).await
    });
    written.expect("writes");
    assert!(count.expect("reads") > 0);
}

#[tokio::test]
async fn an_incomplete_body_leaves_the_old_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("page");
    fs::write(&target, b"old").expect("writes");
    let mut sink = opened(&target).await;
    sink.write(Bytes::from_static(b"new")).await.expect("writes");
    drop(sink);
    assert_eq!(fs::read(&target).expect("reads"), b"old");
    assert_eq!(names(directory.path()), ["page"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_a_write_error() {
    let mut sink = opened("/dev/full".as_ref()).await;
    let written = sink.write(Bytes::from_static(&[0; 4096])).await;
    let failed = match written {
        Ok(()) => sink.finish(None).await.expect_err("the disk is full"),
        Err(failed) => failed,
    };
    assert_eq!(failed.kind, FailureKind::Write);
}

#[tokio::test]
async fn a_directory_is_refused_before_anything_is_fetched() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(refused(directory.path()).await.kind, FailureKind::Write);
    let nowhere = directory.path().join("no/such/place");
    assert_eq!(refused(&nowhere).await.kind, FailureKind::Write);
}

/// What the server names may replace nothing of the user's, nor be written through a link.
#[cfg(unix)]
#[tokio::test]
async fn a_new_file_replaces_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let [name, other] = ["name", "other"].map(|name| directory.path().join(name));
    let open = || async { BodySink::new_file(&name, &UnfinishedBytes::default()).await };
    for target in ["other", "nothing"] {
        fs::write(&other, b"old").expect("writes");
        std::os::unix::fs::symlink(target, &name).expect("links");
        assert_eq!(open().await.err().expect("refused").kind, FailureKind::Write, "{target}");
        fs::remove_file(&name).expect("removes");
    }
    let mut sink = open().await.expect("opens");
    sink.write(Bytes::from_static(b"new")).await.expect("writes");
    // It appears while the body is received.
    fs::write(&name, b"meanwhile").expect("writes");
    assert_eq!(sink.finish(None).await.expect_err("refused").kind, FailureKind::Write);
    assert_eq!(fs::read(&name).expect("reads"), b"meanwhile");
    assert_eq!(fs::read(&other).expect("reads"), b"old");
    assert_eq!(names(directory.path()).len(), 2, "{:?}", names(directory.path()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_symbolic_link_stays_a_link() {
    let directory = tempfile::tempdir().expect("a directory");
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    fs::write(&real, b"old").expect("writes");
    std::os::unix::fs::symlink(&real, &link).expect("links");
    let mut sink = opened(&link).await;
    sink.write(Bytes::from_static(b"new")).await.expect("writes");
    sink.finish(None).await.expect("moves");
    assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
    assert_eq!(fs::read(&real).expect("reads"), b"new");
}

#[cfg(unix)]
mod existing {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    use super::*;

    /// Creates a file of this mode in a new directory.
    fn file(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("page");
        fs::write(&target, b"old, and longer").expect("writes");
        fs::set_permissions(&target, fs::Permissions::from_mode(mode)).expect("is its owner");
        (directory, target)
    }

    async fn write(path: &std::path::Path) {
        let mut sink = opened(path).await;
        sink.write(Bytes::from_static(b"new")).await.expect("writes");
        sink.finish(None).await.expect("finishes");
    }

    fn mode(path: &std::path::Path) -> u32 {
        fs::metadata(path).expect("exists").mode() & 0o7777
    }

    #[tokio::test]
    async fn its_mode_is_kept_through_a_link_too() {
        for kept in [0o600, 0o640, 0o755, 0o666] {
            let (directory, target) = file(kept);
            write(&target).await;
            assert_eq!((mode(&target), fs::read(&target).expect("reads")), (kept, b"new".into()));
            let (near, far) = (directory.path().join("near"), directory.path().join("far"));
            symlink("page", &near).expect("links");
            symlink(&near, &far).expect("links");
            fs::write(&target, b"old").expect("writes");
            write(&far).await;
            assert_eq!((mode(&target), fs::read(&target).expect("reads")), (kept, b"new".into()));
            assert!(fs::symlink_metadata(&far).expect("exists").is_symlink());
        }
    }

    #[tokio::test]
    async fn a_download_gets_no_setuid_bit() {
        let (_directory, target) = file(0o4755);
        write(&target).await;
        assert_eq!(mode(&target), 0o755);
    }

    #[tokio::test]
    async fn its_owner_is_kept() {
        let (_directory, target) = file(0o600);
        // Only root can give a file away; others keep their own.
        let _ = chown(&target, Some(12_345), Some(12_345));
        let before = fs::metadata(&target).expect("exists");
        write(&target).await;
        let after = fs::metadata(&target).expect("exists");
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(fs::read(&target).expect("reads"), b"new");
    }

    #[tokio::test]
    async fn hard_links_are_kept() {
        let (directory, target) = file(0o600);
        let other = directory.path().join("other");
        fs::hard_link(&target, &other).expect("links");
        write(&target).await;
        assert_eq!(fs::read(&other).expect("reads"), b"new");
        let mut found = names(directory.path());
        found.sort();
        assert_eq!(found, ["other", "page"]);
    }

    //= hostile client
    //# circular symbolic links
    //= bound: the kernel's limit, `MAX_LINKS`
    #[tokio::test]
    async fn a_dangling_link_gets_its_target() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("link");
        symlink("page", &link).expect("links");
        write(&link).await;
        assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
        assert_eq!(fs::read(directory.path().join("page")).expect("reads"), b"new");
        let circle = directory.path().join("circle");
        symlink("circle", &circle).expect("links");
        assert_eq!(refused(&circle).await.kind, FailureKind::Write);
    }
}

#[test]
fn removals_are_reported_only_after_an_interrupt() {
    let unfinished = UnfinishedBytes::default();
    let reported = |kind| unfinished.explain(Failure::new(kind, "ended")).hint;
    assert_eq!(reported(FailureKind::Interrupted), None);
    unfinished.add(1_234_567);
    for kind in [FailureKind::Interrupted, FailureKind::Terminated, FailureKind::HungUp] {
        let hint = reported(kind).expect("a hint");
        assert_eq!(hint, "the 1,234,567 bytes received so far were removed");
    }
    assert_eq!(reported(FailureKind::Partial), None);
    unfinished.set_kept(true);
    assert!(reported(FailureKind::Partial).expect("a hint").contains("are kept: -C - continues"));
    unfinished.completed();
    assert_eq!(reported(FailureKind::Interrupted), None);
}

/// What a killed run leaves is removed by the next run, or continued.
#[tokio::test]
async fn what_a_killed_run_has_left_is_removed_or_continued() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("page");
    let part = directory.path().join(".page.0000000000000007.eyas.part");
    fs::write(&part, b"one ").expect("writes");
    let (mut sink, beginning) =
        BodySink::go_on(&target, &UnfinishedBytes::default()).await.expect("opens");
    assert_eq!(beginning, ExistingPart::Part { length: 4, identity: RepresentationId(7) });
    // It is being written, so that another run leaves it alone.
    drop(opened(&target).await);
    assert!(part.exists());
    sink.identify(RepresentationId(7), true);
    sink.write(Bytes::from_static(b"two")).await.expect("writes");
    sink.flush().await.expect("writes");
    drop(sink);
    assert_eq!(fs::read(&part).expect("it is kept"), b"one two");
    let (mut sink, beginning) =
        BodySink::go_on(&target, &UnfinishedBytes::default()).await.expect("opens");
    assert_eq!(beginning.length(), 7);
    sink.write(Bytes::from_static(b"!")).await.expect("writes");
    sink.finish(None).await.expect("moves");
    assert_eq!(fs::read(&target).expect("reads"), b"one two!");
    assert_eq!(names(directory.path()), ["page"]);
    fs::write(&part, b"one ").expect("writes");
    drop(opened(&target).await);
    assert_eq!(names(directory.path()), ["page"]);
}

/// As curl does: a file that another program has begun is continued in place.
#[tokio::test]
async fn an_incomplete_file_is_continued() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("page");
    fs::write(&target, b"one ").expect("writes");
    let (mut sink, beginning) =
        BodySink::go_on(&target, &UnfinishedBytes::default()).await.expect("opens");
    assert_eq!(beginning, ExistingPart::File { length: 4 });
    sink.write(Bytes::from_static(b"two")).await.expect("writes");
    sink.finish(None).await.expect("writes");
    assert_eq!(fs::read(&target).expect("reads"), b"one two");
}
