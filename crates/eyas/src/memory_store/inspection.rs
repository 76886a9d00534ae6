//! Inspects what is at the path of the memory before anything is changed.
//!
//! The path may be a mistake: a text file, another program's database, a link to either. So a file
//! is used only if its header says that it is a memory, and everything else is left unchanged.
//! Nothing here opens a file that SQLite may have open in this process, because closing any
//! descriptor of it would drop SQLite's locks (fcntl(2)).

use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::platform::{self, FileId};

/// "eyas", so that another program's file is recognised as such.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"eyas");

/// The suffixes of the files that SQLite keeps beside a database.
pub(super) const COMPANION_SUFFIXES: [&str; 3] = ["-journal", "-wal", "-shm"];
/// The first bytes of a rollback journal (<https://sqlite.org/fileformat2.html>, §3).
const JOURNAL: [u8; 4] = [0xd9, 0xd5, 0x05, 0xf9];
/// The first bytes of a write-ahead log, for either byte order of its checksums (§4.1).
const LOGS: [[u8; 4]; 2] = [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]];

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// It is a memory, but damaged; a new one can replace it.
    #[error("{0}")]
    Damaged(String),
    /// It is something else.
    #[error("is not an eyas memory: {0}")]
    NotOurs(String),
    /// It cannot be read or written at the moment, or by this process.
    #[error("{0}")]
    Unusable(String),
}

impl From<rusqlite::Error> for FileError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Unusable(error.to_string()),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// A file that may be opened as a memory.
#[derive(Debug)]
pub(super) struct UsableFile {
    /// The path without symbolic links.
    pub(super) path: PathBuf,
    pub(super) id: FileId,
    /// Whether other users can read the file, which is a browsing history.
    pub(super) is_open_to_others: bool,
}

impl UsableFile {
    /// Describes the file at this path; `None` if it has just been removed.
    fn new(path: PathBuf, metadata: &Metadata) -> Option<Self> {
        let id = FileId::of_file(&path, metadata)?;
        Some(Self { path, id, is_open_to_others: platform::is_open_to_others(metadata) })
    }
}

/// The result of an inspection.
#[derive(Debug)]
pub(super) enum FileInspection {
    /// There is no file; one can be [created](create).
    Missing,
    /// A memory, or an empty file.
    Usable(UsableFile),
}

/// Inspects the path without changing anything.
pub(super) fn inspect(path: &Path) -> Result<FileInspection, FileError> {
    let Some(path) = resolve_directory(path)? else { return Ok(FileInspection::Missing) };
    let metadata = match std::fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match COMPANION_SUFFIXES
                .iter()
                .find(|suffix| FileId::from_path(&companion(&path, suffix)).is_some())
            {
                None => Ok(FileInspection::Missing),
                Some(suffix) => Err(unexpected_companion(&path, suffix)),
            };
        }
        Err(error) => return Err(error.into()),
    };
    let not_ours = |why: &str| Err(FileError::NotOurs(why.into()));
    if metadata.is_symlink() {
        return not_ours(
            "it is a symbolic link, which is not followed; use the path of the file itself",
        );
    }
    if !metadata.is_file() {
        return not_ours("it is not a regular file");
    }
    if platform::is_of_another_user(&metadata) {
        return not_ours("it belongs to another user");
    }
    for suffix in COMPANION_SUFFIXES {
        check_companion(&path, suffix)?;
    }
    if metadata.len() > 0 {
        check_header(&path)?;
    }
    Ok(UsableFile::new(path, &metadata).map_or(FileInspection::Missing, FileInspection::Usable))
}

/// Creates an empty file for its owner only, and its directory. SQLite gives its companion files
/// the same mode.
pub(super) fn create(path: &Path) -> Result<UsableFile, FileError> {
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
        && !parent.exists()
    {
        platform::create_directory(parent)?;
    }
    match platform::create_file(path) {
        Ok(_) => {}
        // Another process was faster: check its file like any other.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    match inspect(path)? {
        FileInspection::Usable(file) => Ok(file),
        FileInspection::Missing => {
            Err(FileError::Unusable("it disappeared right after it was created".into()))
        }
    }
}

/// Returns the name of SQLite's companion file with this suffix.
pub(super) fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Returns a path to the same file with no symbolic link except possibly the file itself; `None` if
/// its directory does not exist.
fn resolve_directory(path: &Path) -> Result<Option<PathBuf>, FileError> {
    let Some(name) = path.file_name() else {
        return Err(FileError::NotOurs("it is a directory".into()));
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match parent.canonicalize() {
        Ok(parent) => Ok(Some(parent.join(name))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Checks a companion file, because SQLite would overwrite or delete what it finds there.
fn check_companion(path: &Path, suffix: &str) -> Result<(), FileError> {
    let name = companion(path, suffix);
    let metadata = match std::fs::symlink_metadata(&name) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let is_from_sqlite = metadata.is_file()
        && match suffix {
            // It holds SQLite's locks, so it must not be opened here.
            "-shm" => true,
            _ => has_header_of(&name, suffix)?,
        };
    if is_from_sqlite { Ok(()) } else { Err(unexpected_companion(path, suffix)) }
}

fn has_header_of(name: &Path, suffix: &str) -> Result<bool, FileError> {
    let mut head = Vec::new();
    match File::open(name) {
        Ok(file) => _ = file.take(4).read_to_end(&mut head)?,
        // Another process has just deleted it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error.into()),
    }
    let is_blank = head.iter().all(|byte| *byte == 0);
    Ok(is_blank
        || match suffix {
            "-wal" => LOGS.iter().any(|log| head == log),
            _ => head == JOURNAL,
        })
}

fn unexpected_companion(path: &Path, suffix: &str) -> FileError {
    let name = companion(path, suffix);
    FileError::NotOurs(format!(
        "{} is in the way, which is something else or left over from another database",
        name.display()
    ))
}

/// Reads the header through SQLite, because SQLite can close a file that is also open elsewhere in
/// this process. `immutable` keeps it from changing the file and its companions.
fn check_header(path: &Path) -> Result<(), FileError> {
    let mut uri = String::from("file:");
    for byte in platform::uri_path(path) {
        // Writing to a string cannot fail.
        let _ = match byte {
            b'/' | b'.' | b'-' | b'_' | b':' => write!(uri, "{}", char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => write!(uri, "{}", char::from(byte)),
            byte => write!(uri, "%{byte:02x}"),
        };
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(uri, flags)?;
    // A file that is shorter than its header says is damaged, but still has an application ID.
    connection.pragma_update(None, "writable_schema", true)?;
    let application = connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i64>(0));
    match application {
        Ok(id) if id == i64::from(APPLICATION_ID) => Ok(()),
        Ok(_) => Err(FileError::NotOurs("it is the database of another program".into())),
        Err(error) => match FileError::from(error) {
            FileError::Damaged(_) => Err(FileError::NotOurs("it is not a database".into())),
            other => Err(other),
        },
    }
}
