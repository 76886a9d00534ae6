//! The content of a request: data, a form, or a file.

use std::io::Read;
use std::path::{Path, PathBuf};

use eyas_http::multipart::{Form, Part};
use eyas_http::{Body, RequestBuilder};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use url::Url;

use crate::failure::{Failure, FailureKind};
use crate::flags::{
    DataForm, DataPiece, FieldContent, FormField, HeaderLine, HeaderSource, RequestFlags, header,
};

/// Stands for standard input in place of a file.
pub(super) const STDIN: &str = "-";

/// The content.
#[derive(Debug)]
pub(super) enum RequestContent {
    /// The pieces of `-d`, joined with `&`.
    Data(Vec<u8>),
    /// The fields of `-F`.
    Form(Form),
    /// The file of `-T`.
    Upload(Body),
}

impl RequestContent {
    /// Reads the flags, and reads or opens the files that they name. The data of `-d` has been read
    /// before.
    pub(super) async fn read(
        request: &RequestFlags,
        data: Option<&[u8]>,
    ) -> Result<Option<Self>, Failure> {
        if let Some(file) = &request.upload_file {
            return upload(file).await.map(|body| Some(Self::Upload(body)));
        }
        if request.form.is_empty() && request.form_string.is_empty() {
            return Ok(data.map(|data| Self::Data(data.to_vec())));
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

/// Returns the pieces of `-d` and its relatives, joined with `&`.
async fn data(pieces: &[DataPiece]) -> Result<Option<Vec<u8>>, Failure> {
    let mut body: Option<Vec<u8>> = None;
    for piece in pieces {
        let piece = read_piece(piece).await?;
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

/// Reads a piece, and the file that it may name.
async fn read_piece(piece: &DataPiece) -> Result<Vec<u8>, Failure> {
    let text = piece.text.as_str();
    let file = text.strip_prefix('@');
    match (piece.form, file) {
        (DataForm::UrlEncoded, _) => url_encoded(text).await,
        (DataForm::Raw, _) | (_, None) => Ok(text.as_bytes().to_vec()),
        (DataForm::Binary, Some(file)) => read_in_background(file.into()).await,
        (DataForm::Text, Some(file)) => {
            let mut bytes = read_in_background(file.into()).await?;
            bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
            Ok(bytes)
        }
    }
}

/// Encodes `TEXT`, `=TEXT`, `NAME=TEXT`, `@FILE` or `NAME@FILE`. The name is taken as it is.
async fn url_encoded(text: &str) -> Result<Vec<u8>, Failure> {
    let Some(at) = text.find(['=', '@']) else { return Ok(encode(text.as_bytes())) };
    let (name, rest) = (&text[..at], &text[at + 1..]);
    let content = match text.as_bytes()[at] {
        b'=' => rest.as_bytes().to_vec(),
        _ => read_in_background(rest.into()).await?,
    };
    let mut encoded = name.as_bytes().to_vec();
    if !name.is_empty() {
        encoded.push(b'=');
    }
    encoded.extend(encode(&content));
    Ok(encoded)
}

/// Percent-encodes everything but the unreserved characters (RFC 3986 §2.3), with `+` for a space as
/// forms have it.
fn encode(content: &[u8]) -> Vec<u8> {
    const KEPT: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b' ');
    percent_encode(content, KEPT).to_string().replace(' ', "+").into_bytes()
}

/// What all requests of a run send, from the flags and the files that they name, read once: standard
/// input cannot be read again, and all URLs get the same.
#[derive(Debug, Default)]
pub(super) struct RequestInputs {
    /// The data of `-d` and its relatives.
    pub(super) data: Option<Vec<u8>>,
    /// The lines of `-H`.
    pub(super) header_lines: Vec<HeaderLine>,
}

impl RequestInputs {
    pub(super) async fn read(request: &RequestFlags) -> Result<Self, Failure> {
        let mut lines = Vec::new();
        for source in &request.header {
            match source {
                HeaderSource::Line(line) => lines.push(line.clone()),
                HeaderSource::File(file) => lines.extend(header_lines(file).await?),
            }
        }
        Ok(Self { data: data(&request.data.0).await?, header_lines: lines })
    }
}

/// Reads the header lines of a file.
async fn header_lines(file: &Path) -> Result<Vec<HeaderLine>, Failure> {
    let bytes = read_in_background(file.to_owned()).await?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let parsed = lines.map(|(index, line)| {
        header(line).map_err(|why| {
            let place = format!("line {} of {}", index + 1, file.display());
            Failure::new(FailureKind::Usage, format!("{place} is not a header: {why}"))
        })
    });
    parsed.collect()
}

/// Returns the format of `-w`, from the file that it may name.
pub(super) async fn format(given: &str) -> Result<String, Failure> {
    match given.strip_prefix('@') {
        None => Ok(given.to_owned()),
        Some(file) => {
            let bytes = read_in_background(file.into()).await?;
            // As in curl, the lines of a file are one.
            Ok(String::from_utf8_lossy(&bytes).replace(['\r', '\n'], ""))
        }
    }
}

/// Reads a whole file, or standard input for `-`.
async fn read_in_background(file: PathBuf) -> Result<Vec<u8>, Failure> {
    // A terminal or a pipe may block for long, and the run can end meanwhile.
    tokio::task::spawn_blocking(move || read_whole(&file)).await.unwrap_or_else(|cause| {
        Err(Failure::new(FailureKind::Read, format!("cannot read the data: {cause}")))
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
