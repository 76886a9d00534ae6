//! Bodies on disk: whole or not there.

use std::fs;

use super::*;
use crate::failure::Kind;

fn names(directory: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect()
}

#[tokio::test]
async fn a_whole_body_stands_under_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("page");
    let mut sink = BodySink::file(&target).expect("opens");
    sink.write(b"one ").await.expect("writes");
    assert!(!target.exists());
    sink.write(b"two").await.expect("writes");
    assert_eq!(sink.written(), 7);
    sink.finish().await.expect("moves");
    assert_eq!(fs::read(&target).expect("reads"), b"one two");
    assert_eq!(names(directory.path()), ["page"]);
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_what_was_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("page");
    fs::write(&target, b"old").expect("writes");
    let mut sink = BodySink::file(&target).expect("opens");
    sink.write(b"new").await.expect("writes");
    drop(sink);
    assert_eq!(fs::read(&target).expect("reads"), b"old");
    assert_eq!(names(directory.path()), ["page"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_a_write_error() {
    let mut sink = BodySink::file("/dev/full".as_ref()).expect("opens");
    let written = sink.write(&[0; 4096]).await;
    let failed = match written {
        Ok(()) => sink.finish().await.expect_err("the disk is full"),
        Err(failed) => failed,
    };
    assert_eq!(failed.kind, Kind::Write);
}

#[tokio::test]
async fn a_directory_is_refused_before_anything_is_fetched() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = BodySink::file(directory.path()).err().expect("refused");
    assert_eq!(refused.kind, Kind::Write);
    let nowhere = BodySink::file(&directory.path().join("no/such/place")).err().expect("refused");
    assert_eq!(nowhere.kind, Kind::Write);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_stays_a_link() {
    let directory = tempfile::tempdir().expect("a directory");
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    fs::write(&real, b"old").expect("writes");
    std::os::unix::fs::symlink(&real, &link).expect("links");
    let mut sink = BodySink::file(&link).expect("opens");
    sink.write(b"new").await.expect("writes");
    sink.finish().await.expect("moves");
    assert!(fs::symlink_metadata(&link).expect("exists").is_symlink());
    assert_eq!(fs::read(&real).expect("reads"), b"new");
}

#[test]
fn a_remote_name_is_a_plain_name() {
    let name = |url: &str| remote_name(&url.parse().expect("a URL"));
    assert_eq!(name("https://a/b/c.iso?x=1#y").expect("a name").to_str(), Some("c.iso"));
    for url in ["https://a/", "https://a/b/", "https://a", "https://a/c:x"] {
        assert_eq!(name(url).expect_err(url).kind, Kind::Usage, "{url}");
    }
}
