//! Forms with files (`multipart/form-data`, RFC 7578).
//!
//! ```no_run
//! # async fn example(client: eyas_http::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use eyas_http::multipart::{Form, Part};
//!
//! let form = Form::new().text("title", "A kestrel").part("photo", Part::file("kestrel.jpg").await?);
//! let response = client.post("https://example.com/birds").multipart(form).send().await?;
//! println!("{}", response.status());
//! # Ok(())
//! # }
//! ```

mod encoded;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use eyas::rustls::crypto::ring::default_provider;
use http::HeaderValue;

use crate::Body;
use encoded::Encoded;

/// Random bytes in a boundary: enough that no content contains it by chance.
const RANDOM_BYTES: usize = 16;

/// A form: named parts, in the order in which they were added. Names need not be unique.
#[derive(Debug, Default)]
#[must_use = "a form does nothing until it is sent with a request"]
pub struct Form {
    parts: Vec<(String, Part)>,
}

/// One part of a [`Form`].
#[derive(Debug)]
pub struct Part {
    content: Body,
    file_name: Option<String>,
    content_type: Option<HeaderValue>,
}

impl Form {
    /// Creates an empty form.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text field.
    pub fn text(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.part(name, Part::new(value.into()))
    }

    /// Adds a part.
    pub fn part(mut self, name: impl Into<String>, part: Part) -> Self {
        self.parts.push((name.into(), part));
        self
    }

    /// Returns the content type and the body; `None` if the system provides no randomness for the
    /// boundary.
    pub(crate) fn encode(self) -> Option<(HeaderValue, Body)> {
        let boundary = boundary()?;
        let content_type = format!("multipart/form-data; boundary={boundary}");
        Some((HeaderValue::try_from(content_type).ok()?, self.encode_with(&boundary)))
    }

    fn encode_with(self, boundary: &str) -> Body {
        let mut pieces = Vec::with_capacity(2 * self.parts.len() + 1);
        let mut delimiter = format!("--{boundary}\r\n");
        for (name, part) in self.parts {
            delimiter.push_str(&part.head(&name));
            pieces.push(std::mem::take(&mut delimiter).into());
            pieces.push(part.content);
            delimiter = format!("\r\n--{boundary}\r\n");
        }
        delimiter.truncate(delimiter.len() - "\r\n".len());
        delimiter.push_str("--\r\n");
        pieces.push(delimiter.into());
        Encoded::new(pieces).into_body()
    }
}

impl Part {
    /// Creates a part with this content: text, bytes, or a streaming [`Body`]. A form with a stream
    /// cannot be sent again after a redirect.
    pub fn new(content: impl Into<Body>) -> Self {
        Self { content: content.into(), file_name: None, content_type: None }
    }

    /// Creates a part from a file, as [`Body::from_file`] does, with the file's name without its
    /// directories, and the content type that the name suggests.
    ///
    /// # Errors
    /// The system's error if the file cannot be opened.
    pub async fn file(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let content = Body::from_file(path).await?;
        let content_type = mime_guess::from_path(path).first_or_octet_stream();
        let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let content_type = HeaderValue::try_from(content_type.essence_str()).ok();
        Ok(Self { content, file_name, content_type })
    }

    /// Sets the file name of the content.
    #[must_use]
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// Sets the content type, such as `image/png`. The default is text.
    #[must_use]
    pub fn content_type(mut self, content_type: HeaderValue) -> Self {
        self.content_type = Some(content_type);
        self
    }

    /// Returns the header section of the part, including the empty line at its end (RFC 7578 §4.2
    /// to §4.4).
    fn head(&self, name: &str) -> String {
        let mut head = format!("Content-Disposition: form-data; name=\"{}\"", escaped(name));
        if let Some(file_name) = &self.file_name {
            let _ = write!(head, "; filename=\"{}\"", escaped(file_name));
        }
        if let Some(content_type) = &self.content_type {
            let content_type = String::from_utf8_lossy(content_type.as_bytes());
            let _ = write!(head, "\r\nContent-Type: {content_type}");
        }
        head.push_str("\r\n\r\n");
        head
    }
}

/// Escapes a name as browsers do: characters that would end the name or the line are
/// percent-encoded (HTML, "multipart form data").
fn escaped(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

fn boundary() -> Option<String> {
    let mut random = [0; RANDOM_BYTES];
    default_provider().secure_random.fill(&mut random).ok()?;
    let mut boundary = String::from("----eyas");
    for byte in random {
        let _ = write!(boundary, "{byte:02x}");
    }
    Some(boundary)
}

#[cfg(test)]
mod tests;
