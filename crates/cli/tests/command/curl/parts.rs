//! Incomplete files: kept with `-C -`, and found after a run was killed.

use std::fs;
use std::path::{Path, PathBuf};

use super::server::{self, BEGUN, BYTES};
use crate::stage::{Eyas, Running};

/// Returns what is in a directory of an incomplete file.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "part")).collect()
}

/// Starts a run that has written what the server sends before it stalls.
fn begun(directory: &Path, url: &str, flags: &str) -> Running {
    let run = Eyas::new(&format!("get {flags} -o page {url}")).within(directory).start();
    run.until("writes a part", || {
        let is_begun =
            |part: &PathBuf| fs::read(part).is_ok_and(|part| part == BYTES.as_bytes()[..BEGUN]);
        parts(directory).iter().any(is_begun)
    });
    run
}

#[test]
fn a_download_goes_on_where_a_run_was_stopped() {
    let url = format!("http://{}/stalls", server::start());
    for (flags, signal, code) in
        [("-C -", "KILL", None), ("", "KILL", None), ("-C -", "INT", Some(130))]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let run = begun(directory.path(), &url, flags);
        run.signal(signal);
        let ended = run.end();
        assert_eq!(ended.code, code);
        assert_eq!(
            ended.err.contains("the 10 bytes received so far are kept: -C - continues"),
            code.is_some(),
            "{}",
            ended.err
        );
        assert_eq!(parts(directory.path()).len(), 1, "{flags} {signal}");
        let line = format!("get -C - -o page -w %{{http_code}} {url}");
        let finished = Eyas::new(&line).within(directory.path()).run().exits(0);
        assert_eq!(finished.out, "206", "{flags} {signal}");
        assert_eq!(fs::read_to_string(directory.path().join("page")).expect("it is there"), BYTES);
        assert_eq!(parts(directory.path()), [] as [PathBuf; 0]);
    }
}

#[test]
fn what_a_killed_run_has_left_is_removed_by_the_next() {
    let address = server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let run = begun(directory.path(), &format!("http://{address}/stalls"), "");
    // A run beside it leaves its part alone.
    let line = format!("get -o page http://{address}/bytes");
    Eyas::new(&line).within(directory.path()).run().exits(0);
    assert_eq!(parts(directory.path()).len(), 1);
    run.signal("KILL");
    run.end();
    assert_eq!(parts(directory.path()).len(), 1);
    Eyas::new(&line).within(directory.path()).run().exits(0);
    assert_eq!(parts(directory.path()), [] as [PathBuf; 0]);
}

/// RFC 9110 §15.3.7.3: only a strong validator says that two parts are of the same representation.
#[test]
fn a_part_without_a_strong_validator_is_not_continued() {
    let url = format!("http://{}/stalls/weak", server::start());
    let begun = |signal| {
        let directory = tempfile::tempdir().expect("a directory");
        let run = begun(directory.path(), &url, "-C -");
        run.signal(signal);
        assert!(!run.end().err.contains("are kept"), "{signal}");
        directory
    };
    assert_eq!(parts(begun("INT").path()), [] as [PathBuf; 0]);
    // What a killed run leaves can only be continued if its name says what it is a part of.
    let killed = begun("KILL");
    let [left] = &parts(killed.path())[..] else { panic!("one part") };
    let tag = left.file_name().and_then(|name| name.to_str()?.split('.').nth(2)).expect("a tag");
    assert_eq!(tag.len(), 6, "{left:?}");
}

/// The URL is part of what identifies a file: halves of two files are not put together.
#[test]
fn a_part_of_another_file_is_not_continued() {
    let address = server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let run = begun(directory.path(), &format!("http://{address}/stalls"), "-C -");
    run.signal("KILL");
    run.end();
    let line = format!("get -C - -o page -w %{{http_code}} http://{address}/bytes");
    let finished = Eyas::new(&line).within(directory.path()).run().exits(0);
    assert_eq!(finished.out, "200");
    assert_eq!(fs::read_to_string(directory.path().join("page")).expect("it is there"), BYTES);
    assert_eq!(parts(directory.path()), [] as [PathBuf; 0]);
}
