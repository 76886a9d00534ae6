//! The files that bodies go to.

use std::fs;
use std::path::{Path, PathBuf};

use eyas_http::without_password;
use http::HeaderMap;
use http::header::CONTENT_DISPOSITION;
use url::Url;

use super::content::STDIN as STDOUT;
use crate::failure::{Failure, FailureKind};
use crate::flags::{BodyFlags, OutputTarget};

/// The name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    pub(super) path: PathBuf,
    /// Whether the server has chosen it, who must not choose which of the user's files is replaced.
    pub(super) is_of_server: bool,
}

/// Where the body of a URL goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BodyPlace {
    /// To standard output.
    Stdout,
    /// To this file, or to standard output for `-`.
    File(PathBuf),
    /// To a file whose name the response states, otherwise to this one.
    Stated(PathBuf),
}

impl BodyPlace {
    /// Returns where the body of the URL at this index goes.
    pub(super) fn new(flags: &BodyFlags, index: usize, url: &Url) -> Result<Self, Failure> {
        let by_name = flags.remote_name_all.then_some(&OutputTarget::RemoteName);
        let place = match flags.targets.0.get(index).or(by_name) {
            None => Self::Stdout,
            Some(OutputTarget::File(path)) if path == STDOUT => Self::File(path.clone()),
            Some(OutputTarget::File(path)) => Self::File(within(flags, path)),
            Some(OutputTarget::RemoteName) if flags.remote_header_name => {
                Self::Stated(within(flags, &remote_name(url).unwrap_or_default()))
            }
            Some(OutputTarget::RemoteName) => Self::File(within(flags, &remote_name(url)?)),
        };
        Ok(place)
    }

    /// Returns the file, after the response has stated a name. `url` is that of the user: a redirect
    /// would let the server choose the name.
    pub(super) fn stated(
        &self,
        headers: &HeaderMap,
        url: &Url,
    ) -> Result<Option<FileName>, Failure> {
        let (path, is_of_server) = match self {
            Self::Stdout => return Ok(None),
            Self::File(path) => (path.clone(), false),
            Self::Stated(path) => match stated_name(headers) {
                Some(name) => (path.with_file_name(name), true),
                // The path of a URL without a name is that of the directory.
                None => (path.with_file_name(remote_name(url)?), false),
            },
        };
        Ok(Some(FileName { path, is_of_server }))
    }
}

/// Creates the directory of a file, if that is wanted.
pub(super) fn create_directory(flags: &BodyFlags, path: &Path) -> Result<(), Failure> {
    match path.parent() {
        Some(parent) if flags.create_dirs && path != STDOUT => fs::create_dir_all(parent)
            .map_err(|cause| Failure::write(&parent.display().to_string(), &cause)),
        _ => Ok(()),
    }
}

fn within(flags: &BodyFlags, path: &Path) -> PathBuf {
    match &flags.output_dir {
        // A name that the response states takes the place of the last part.
        Some(directory) if path == Path::new("") => directory.join("-"),
        Some(directory) => directory.join(path),
        None => path.to_owned(),
    }
}

/// Returns the name in `Content-Disposition` (RFC 6266), if it is a plain file name.
fn stated_name(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_DISPOSITION)?.to_str().ok()?;
    let parameters = text.split(';').skip(1).map(str::trim);
    let mut names = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("filename").then_some(value.trim())
    });
    let name = names.next()?.trim_matches(['"', '\'']);
    // As in curl, directories are left out: a server does not choose where it writes.
    let name = name.rsplit(['/', '\\']).next()?;
    (is_plain(name) && !name.starts_with('.')).then(|| name.to_owned())
}

/// Returns the name for curl's `-O`: the last part of the URL's path, which must be a plain file
/// name.
fn remote_name(url: &Url) -> Result<PathBuf, Failure> {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or("");
    match is_plain(last) {
        true => Ok(PathBuf::from(last)),
        false => Err(Failure::new(
            FailureKind::Usage,
            format!("no file name in {}", without_password(url)),
        )
        .hint("name the file with -o FILE")),
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.contains(['\\', ':', '/'])
        && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::OutputTargets;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    #[test]
    fn a_remote_name_is_a_plain_name() {
        let name = |text: &str| remote_name(&url(text));
        assert_eq!(name("https://a/b/c.iso?x=1#y").expect("a name").to_str(), Some("c.iso"));
        for text in ["https://a/", "https://a/b/", "https://a", "https://a/c:x"] {
            assert_eq!(name(text).expect_err(text).kind, FailureKind::Usage, "{text}");
        }
    }

    #[test]
    fn a_stated_name_stays_in_its_directory() {
        let of = |value: &'static str| {
            let headers =
                HeaderMap::from_iter([(CONTENT_DISPOSITION, value.parse().expect("a value"))]);
            stated_name(&headers)
        };
        assert_eq!(of("attachment; filename=\"a b.txt\"").as_deref(), Some("a b.txt"));
        assert_eq!(of("attachment; x=y; FileName=c").as_deref(), Some("c"));
        assert_eq!(of("attachment; filename=\"../../etc/d\"").as_deref(), Some("d"));
        for value in
            ["attachment", "attachment; filename=\"\"", "x; filename=\"..\"", "x; filename=.bashrc"]
        {
            assert_eq!(of(value), None, "{value}");
        }
    }

    #[test]
    fn each_url_has_its_place() {
        let targets = vec![OutputTarget::RemoteName, OutputTarget::File("x".into())];
        let mut flags = BodyFlags { targets: OutputTargets(targets), ..BodyFlags::default() };
        let place = |flags: &BodyFlags, index| BodyPlace::new(flags, index, &url("https://a/b/c"));
        let file = |path: &str| BodyPlace::File(path.into());
        assert_eq!(place(&flags, 0), Ok(file("c")));
        assert_eq!(place(&flags, 1), Ok(file("x")));
        assert_eq!(place(&flags, 2), Ok(BodyPlace::Stdout));
        flags.output_dir = Some("d".into());
        flags.remote_name_all = true;
        assert_eq!(place(&flags, 1), Ok(file("d/x")));
        assert_eq!(place(&flags, 2), Ok(file("d/c")));
        flags.remote_header_name = true;
        let stated = place(&flags, 0).expect("a place");
        let header = HeaderMap::from_iter([(
            CONTENT_DISPOSITION,
            "a; filename=n".parse().expect("a value"),
        )]);
        let path = |headers| stated.stated(headers, &url("https://a/b/c")).expect("a name");
        assert_eq!(path(&header), Some(FileName { path: "d/n".into(), is_of_server: true }));
        assert_eq!(
            path(&HeaderMap::new()),
            Some(FileName { path: "d/c".into(), is_of_server: false })
        );
    }
}
