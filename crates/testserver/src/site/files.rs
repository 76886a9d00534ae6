//! A directory of files.

mod body;

use std::{
    ffi::OsString,
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use eyas_http::serve::{RequestBody, metered::MeteredBody};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use percent_encoding::percent_decode_str;

use self::body::FileBody;
use super::{
    SiteClient,
    conditions::{ConditionVerdict, FileValidators},
    listing::{ListingBody, RecentListings},
    reply::{self, SiteReply, error, redirect},
};

/// The index file of a directory.
const INDEX: &str = "index.html";

/// What a path refers to.
enum FoundPath {
    File(LocatedFile),
    Directory(PathBuf),
    /// A directory, requested without the trailing slash that relative links need.
    MissingSlash,
}

/// A regular file below the root that could be opened. It is not kept open until its bytes can be
/// sent.
#[derive(Clone, Debug)]
pub(super) struct LocatedFile {
    root: Arc<Path>,
    path: PathBuf,
    identity: FileIdentity,
}

/// Identifies a file, to check that a name still refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    number: (u64, u64),
    length: u64,
    modified: Option<SystemTime>,
}

impl FileIdentity {
    #[cfg(unix)]
    fn from_metadata(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let number = (metadata.dev(), metadata.ino());
        Self { number, length: metadata.len(), modified: metadata.modified().ok() }
    }

    #[cfg(not(unix))]
    fn from_metadata(metadata: &Metadata) -> Self {
        Self { number: (0, 0), length: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl LocatedFile {
    /// Opens the file, if its name still refers to it.
    fn open(&self) -> io::Result<File> {
        let file = open_beneath(&self.root, &self.path)?;
        match FileIdentity::from_metadata(&file.metadata()?) == self.identity {
            true => Ok(file),
            false => Err(io::Error::other("the file was changed while it was sent")),
        }
    }
}

/// Answers a GET or HEAD with a file or a listing.
pub(super) async fn respond(
    listings: &Arc<RecentListings>,
    root: &Arc<Path>,
    client: &SiteClient,
    request: &Request<RequestBody>,
) -> SiteReply {
    let path = request.uri().path();
    let Some(relative) = relative(path) else {
        return error(StatusCode::NOT_FOUND, NO_SUCH_FILE);
    };
    let (root, has_trailing_slash) = (Arc::clone(root), path.ends_with('/'));
    let found =
        tokio::task::spawn_blocking(move || find(&root, &relative, has_trailing_slash)).await;
    match found {
        Ok(Ok(FoundPath::File(file))) => self::file(request.headers(), file, client),
        Ok(Ok(FoundPath::Directory(directory))) => {
            page(ListingBody::new(listings, client.share(), path, directory))
        }
        Ok(Ok(FoundPath::MissingSlash)) => {
            let query = request.uri().query().map(|query| format!("?{query}"));
            // Two leading slashes would name another host.
            let path = format!("/{}/{}", path.trim_start_matches('/'), query.unwrap_or_default());
            redirect(StatusCode::MOVED_PERMANENTLY, &path)
        }
        Ok(Err(cause)) if is_missing(&cause) => error(StatusCode::NOT_FOUND, NO_SUCH_FILE),
        Ok(Err(cause)) if cause.kind() == io::ErrorKind::PermissionDenied => {
            error(StatusCode::FORBIDDEN, "The server may not read this file.")
        }
        Ok(Err(_)) | Err(_) => {
            error(StatusCode::INTERNAL_SERVER_ERROR, "The file could not be read.")
        }
    }
}

/// Returns a listing as a page, if there is room for that of most directories.
fn page(listing: ListingBody) -> SiteReply {
    if !listing.has_room() {
        return reply::busy();
    }
    let mut reply = reply::empty(StatusCode::OK);
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    reply.headers_mut().insert(header::CONTENT_TYPE, html);
    *reply.body_mut() = MeteredBody::from_source(listing);
    reply
}

const NO_SUCH_FILE: &str = "No such file.";

/// Returns whether the error means that there is nothing to serve under this name.
fn is_missing(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// Returns the path below the root that a request path names, or `None` for invalid ones: parent
/// directories, hidden files (except `.well-known`), and bytes that cannot be part of a name.
fn relative(path: &str) -> Option<PathBuf> {
    let mut relative = PathBuf::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let name = percent_decode_str(segment).collect::<Vec<u8>>();
        let is_hidden = name.starts_with(b".") && name != b".well-known";
        if is_hidden || name.iter().any(|byte| matches!(byte, 0 | b'/' | b'\\')) {
            return None;
        }
        relative.push(os_string(name)?);
    }
    Some(relative)
}

#[cfg(unix)]
fn os_string(name: Vec<u8>) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(name))
}

#[cfg(not(unix))]
fn os_string(name: Vec<u8>) -> Option<OsString> {
    // On Windows a colon names a drive or a stream of a file.
    String::from_utf8(name).ok().filter(|name| !name.contains(':')).map(OsString::from)
}

/// Returns the file or directory below `root`, which must be canonical.
fn find(root: &Arc<Path>, relative: &Path, has_trailing_slash: bool) -> io::Result<FoundPath> {
    let path = resolve_inside(root, &root.join(relative))?;
    let metadata = fs::metadata(&path)?;
    if !metadata.is_dir() {
        // `name/` is not the same as `name`.
        return if has_trailing_slash { Err(missing()) } else { open(root, path) };
    }
    if !has_trailing_slash {
        return Ok(FoundPath::MissingSlash);
    }
    match resolve_inside(root, &path.join(INDEX)).and_then(|index| open(root, index)) {
        Err(cause) if is_missing(&cause) => {
            // Checks that it can be read before a listing is promised.
            drop(fs::read_dir(&path)?);
            Ok(FoundPath::Directory(path))
        }
        index => index,
    }
}

/// Returns the path with all symbolic links resolved, if that is still below `root`.
fn resolve_inside(root: &Path, path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(path) if path.starts_with(root) => Ok(path),
        Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => Err(cause),
        // A missing file, a loop of links, a name that is too long: all the same to the peer.
        Ok(_) | Err(_) => Err(missing()),
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// Opens a regular file; a pipe would block, and a device has no end.
fn open(root: &Arc<Path>, path: PathBuf) -> io::Result<FoundPath> {
    if !fs::symlink_metadata(&path)?.is_file() {
        return Err(missing());
    }
    let file = open_beneath(root, &path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(missing());
    }
    let identity = FileIdentity::from_metadata(&metadata);
    Ok(FoundPath::File(LocatedFile { root: Arc::clone(root), path, identity }))
}

/// Opens a file that was found below `root`, if it is still there: the kernel resolves the path
/// again, so that a link created in the meantime cannot lead outside.
#[cfg(target_os = "linux")]
fn open_beneath(root: &Path, path: &Path) -> io::Result<File> {
    use rustix::{
        fs::{Mode, OFlags, ResolveFlags, open, openat2},
        io::Errno,
    };
    let relative = path.strip_prefix(root).map_err(|_| missing())?;
    let directory = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(&directory, relative, flags, Mode::empty(), resolve) {
        Ok(file) => Ok(file.into()),
        Err(Errno::XDEV | Errno::LOOP) => Err(missing()),
        // Kernels before 5.6, and sandboxes that do not support the call.
        Err(Errno::NOSYS | Errno::PERM) => File::open(path),
        Err(cause) => Err(cause.into()),
    }
}

/// Opens a file that was found below `root`.
#[cfg(not(target_os = "linux"))]
fn open_beneath(_: &Path, path: &Path) -> io::Result<File> {
    File::open(path)
}

fn file(headers: &HeaderMap, file: LocatedFile, client: &SiteClient) -> SiteReply {
    let length = file.identity.length;
    let validators = FileValidators::from_metadata(file.identity.modified, length);
    let mut reply = match validators.judge(headers) {
        ConditionVerdict::NotModified => reply::empty(StatusCode::NOT_MODIFIED),
        ConditionVerdict::Failed => {
            error(StatusCode::PRECONDITION_FAILED, "The file is not the one that is meant.")
        }
        ConditionVerdict::Proceed => {
            let no_headers = HeaderMap::new();
            let headers = if validators.allow_part(headers) { headers } else { &no_headers };
            let media_type = mime_guess::from_path(&file.path).first_or_octet_stream();
            let share = Arc::clone(client.share());
            let content =
                |start, end| MeteredBody::from_source(FileBody::new(file, share, start, end));
            let media_type = match media_type.type_() {
                mime_guess::mime::TEXT => format!("{media_type}; charset=utf-8"),
                _ => media_type.to_string(),
            };
            reply::with_type(reply::ranged(headers, length, content), &media_type)
        }
    };
    validators.add_to(reply.headers_mut());
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_root() {
        for path in [
            "/..",
            "/../etc/passwd",
            "/a/../../b",
            "/%2e%2e/etc/passwd",
            "/.%2e/x",
            "/a%2f..%2f..%2fetc",
            "/a\\..\\b",
            "/a%5c..%5cb",
            "/nul%00byte",
            "/.git/config",
            "/.",
        ] {
            assert_eq!(relative(path), None, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_path_leaves_the_root(path in "(/|\\\\|\\.|%2e|%2F|%5c|%00|a|\u{e4}|%){0,12}") {
            if let Some(relative) = relative(&path) {
                let is_plain = |part| matches!(part, std::path::Component::Normal(_));
                proptest::prop_assert!(relative.components().all(is_plain), "{relative:?}");
            }
        }
    }

    #[test]
    fn names_are_decoded_once() {
        assert_eq!(relative("/a%20b/c.txt"), Some(PathBuf::from("a b/c.txt")));
        assert_eq!(relative("/%252e%252e"), Some(PathBuf::from("%2e%2e")));
        assert_eq!(relative("//a///b/"), Some(PathBuf::from("a/b")));
        assert_eq!(relative("/"), Some(PathBuf::new()));
        assert_eq!(relative("/.well-known/x"), Some(PathBuf::from(".well-known/x")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_inserted_into_a_path_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("../secret.txt"), "secret").unwrap();
        fs::write(root.join("note.txt"), "note").unwrap();
        std::os::unix::fs::symlink("../secret.txt", root.join("late")).unwrap();
        std::os::unix::fs::symlink("..", root.join("up")).unwrap();
        assert!(open_beneath(&root, &root.join("note.txt")).is_ok());
        for name in ["late", "up/secret.txt"] {
            let cause = open_beneath(&root, &root.join(name)).unwrap_err();
            assert!(is_missing(&cause), "{name}: {cause}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_directory_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("inner.txt"), "inner").unwrap();
        fs::write(root.join("../secret.txt"), "secret").unwrap();
        std::os::unix::fs::symlink("inner.txt", root.join("good")).unwrap();
        std::os::unix::fs::symlink("../secret.txt", root.join("bad")).unwrap();
        std::os::unix::fs::symlink("..", root.join("up")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        let root = Arc::from(root);
        let find = |name: &str| find(&root, Path::new(name), false);
        assert!(matches!(find("good"), Ok(FoundPath::File(..))));
        for name in ["bad", "up", "up/secret.txt", "loop", "none", "inner.txt/x"] {
            let outcome = find(name);
            assert!(matches!(outcome, Err(cause) if is_missing(&cause)), "{name}");
        }
    }
}
