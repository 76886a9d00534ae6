//! The content of a request: data, a form, or a file.

use std::io::Read;
use std::path::{Path, PathBuf};

use eyas_http::multipart::{Form, Part};
use eyas_http::{Body, RequestBuilder};
use url::Url;

use crate::failure::{Failure, Kind};
use crate::flags::{FieldContent, FormField, RequestFlags};

/// Stands for standard input in place of a file.
const STDIN: &str = "-";

/// The content.
#[derive(Debug)]
pub(super) enum Content {
    /// The pieces of `-d`, joined with `&`.
    Data(Vec<u8>),
    /// The fields of `-F`.
    Form(Form),
    /// The file of `-T`.
    Upload(Body),
}

impl Content {
    /// Reads the flags, and reads or opens the files that they name.
    pub(super) async fn read(request: &RequestFlags) -> Result<Option<Self>, Failure> {
        if let Some(file) = &request.upload_file {
            return upload(file).await.map(|body| Some(Self::Upload(body)));
        }
        if request.form.is_empty() && request.form_string.is_empty() {
            return Ok(data(request).await?.map(Self::Data));
        }
        let mut form = Form::new();
        for field in request.form.iter().chain(&request.form_string) {
            form = form.part(field.name.as_str(), part(field).await?);
        }
        Ok(Some(Self::Form(form)))
    }

    /// Adds it to a request.
    pub(super) fn add_to(self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Data(bytes) => request.body(bytes),
            Self::Form(form) => request.multipart(form),
            Self::Upload(body) => request.body(body),
        }
    }
}

/// Returns the URL that a file is sent to: if it ends with a slash, the file's name is added.
pub(super) fn upload_url(url: &Url, file: Option<&Path>) -> Url {
    let mut to = url.clone();
    let name = file.filter(|file| *file != STDIN).and_then(Path::file_name);
    if let (Some(name), true) = (name, url.path().ends_with('/'))
        && let Ok(mut segments) = to.path_segments_mut()
    {
        segments.pop_if_empty().push(&name.to_string_lossy());
    }
    to
}

async fn upload(file: &Path) -> Result<Body, Failure> {
    if file == STDIN {
        return Ok(Body::from_reader(tokio::io::stdin()));
    }
    Body::from_file(file).await.map_err(|cause| read_failure(file, &cause))
}

async fn part(field: &FormField) -> Result<Part, Failure> {
    let mut part = match &field.content {
        FieldContent::Text(text) => Part::new(text.clone()),
        FieldContent::File(file) if file == STDIN => {
            Part::new(Body::from_reader(tokio::io::stdin())).file_name(STDIN)
        }
        FieldContent::File(file) => {
            Part::file(file).await.map_err(|cause| read_failure(file, &cause))?
        }
        FieldContent::TextOf(file) => Part::new(read_in_background(file.clone()).await?),
    };
    if let Some(name) = &field.file_name {
        part = part.file_name(name.as_str());
    }
    if let Some(content_type) = &field.content_type {
        part = part.content_type(content_type.clone());
    }
    Ok(part)
}

fn read_failure(file: &Path, cause: &std::io::Error) -> Failure {
    Failure::read(&file.display().to_string(), cause)
}

/// Returns the pieces of `-d`, joined with `&`.
async fn data(request: &RequestFlags) -> Result<Option<Vec<u8>>, Failure> {
    let text = request.data.iter().map(|piece| (piece, false));
    let binary = request.data_binary.iter().map(|piece| (piece, true));
    let mut body: Option<Vec<u8>> = None;
    for (piece, binary) in text.chain(binary) {
        let piece = read_piece(piece, binary).await?;
        match &mut body {
            Some(body) => {
                body.push(b'&');
                body.extend(piece);
            }
            None => body = Some(piece),
        }
    }
    Ok(body)
}

/// Reads `@FILE` and `@-`; line breaks are kept only if the piece is binary.
async fn read_piece(piece: &str, binary: bool) -> Result<Vec<u8>, Failure> {
    let Some(file) = piece.strip_prefix('@') else { return Ok(piece.as_bytes().to_vec()) };
    let mut bytes = read_in_background(file.into()).await?;
    if !binary {
        bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
    }
    Ok(bytes)
}

/// Reads a whole file, or standard input for `-`.
async fn read_in_background(file: PathBuf) -> Result<Vec<u8>, Failure> {
    // A terminal or a pipe may block for long, and the run can end meanwhile.
    tokio::task::spawn_blocking(move || read_whole(&file)).await.unwrap_or_else(|cause| {
        Err(Failure::new(Kind::Read, format!("cannot read the data: {cause}")))
    })
}

fn read_whole(file: &Path) -> Result<Vec<u8>, Failure> {
    if file != STDIN {
        return std::fs::read(file).map_err(|cause| read_failure(file, &cause));
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|cause| Failure::read("standard input", &cause))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_ends_with_a_slash_gets_the_file_name() {
        let to = |url: &str, file: &str| {
            upload_url(&url.parse().unwrap(), Some(Path::new(file))).to_string()
        };
        assert_eq!(to("https://a/", "x/b c.txt"), "https://a/b%20c.txt");
        assert_eq!(to("https://a/d/?q", "b.txt"), "https://a/d/b.txt?q");
        assert_eq!(to("https://a/d", "b.txt"), "https://a/d");
        assert_eq!(to("https://a/d/", "-"), "https://a/d/");
    }
}
