//! Fields of `--form`, with curl's syntax.

use std::path::PathBuf;

use http::HeaderValue;

/// One field of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormField {
    /// The name.
    pub(crate) name: String,
    /// The content.
    pub(crate) content: FieldContent,
    /// `;type=`
    pub(crate) content_type: Option<HeaderValue>,
    /// `;filename=`
    pub(crate) file_name: Option<String>,
}

/// Where the content of a field comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldContent {
    /// From the command line.
    Text(String),
    /// From a file, with its name: `@FILE`.
    File(PathBuf),
    /// From a file, as text: `<FILE`.
    TextOf(PathBuf),
}

/// The error of parsing a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormFieldError {
    #[error("expected 'NAME=TEXT' or 'NAME=@FILE'")]
    Form,
    #[error("a file's name is missing")]
    NoFileName,
    #[error("the type {0:?} cannot be sent")]
    ContentType(String),
}

/// Parses `NAME=TEXT`, `NAME=@FILE` or `NAME=<FILE`, followed by `;type=TYPE` and `;filename=NAME`.
pub(super) fn field(text: &str) -> Result<FormField, FormFieldError> {
    let (name, value) = pair(text)?;
    let (value, attributes) = split(value);
    let mut content_type = None;
    let mut file_name = None;
    for (attribute, value) in attributes {
        match attribute {
            PartAttribute::Type => {
                let parsed = HeaderValue::from_str(&value);
                content_type = Some(parsed.map_err(|_| FormFieldError::ContentType(value))?);
            }
            PartAttribute::FileName => file_name = Some(value),
        }
    }
    let content = match (value.strip_prefix('@'), value.strip_prefix('<')) {
        (Some(""), _) | (_, Some("")) => return Err(FormFieldError::NoFileName),
        (Some(file), _) => FieldContent::File(unquoted(file).into()),
        (_, Some(file)) => FieldContent::TextOf(unquoted(file).into()),
        (None, None) => FieldContent::Text(unquoted(value)),
    };
    Ok(FormField { name: name.to_owned(), content, content_type, file_name })
}

/// Parses `NAME=TEXT`, with any text.
pub(super) fn plain_field(text: &str) -> Result<FormField, FormFieldError> {
    let (name, value) = pair(text)?;
    let content = FieldContent::Text(value.to_owned());
    Ok(FormField { name: name.to_owned(), content, content_type: None, file_name: None })
}

fn pair(text: &str) -> Result<(&str, &str), FormFieldError> {
    text.split_once('=').ok_or(FormFieldError::Form)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartAttribute {
    Type,
    FileName,
}

/// Returns the content and the attributes after it. A semicolon before anything else, or in quotes,
/// is content.
fn split(value: &str) -> (&str, Vec<(PartAttribute, String)>) {
    const KNOWN: [(&str, PartAttribute); 2] =
        [("type=", PartAttribute::Type), ("filename=", PartAttribute::FileName)];
    let parse_attribute = |rest: &str| {
        let rest = rest.trim_start();
        KNOWN.iter().find_map(|(word, kind)| Some((*kind, rest.strip_prefix(word)?.to_owned())))
    };
    let mut attributes: Vec<(PartAttribute, String)> = Vec::new();
    let mut end = value.len();
    // From the end: cut off each attribute at its semicolon.
    for (at, _) in semicolons(value).into_iter().rev() {
        let Some((kind, text)) = parse_attribute(&value[at + 1..end]) else {
            // A parameter such as the `charset` of a type belongs to what precedes it.
            continue;
        };
        attributes.push((kind, unquoted(text.trim_end())));
        end = at;
    }
    (&value[..end], attributes)
}

/// Returns the semicolons of a text that are not in quotes.
fn semicolons(text: &str) -> Vec<(usize, char)> {
    let mut quoted = false;
    let mut escaped = false;
    let outside = text.char_indices().filter(|(_, letter)| {
        let (was_quoted, was_escaped) = (quoted, std::mem::take(&mut escaped));
        match letter {
            '\\' if was_quoted && !was_escaped => escaped = true,
            '"' if !was_escaped => quoted = !was_quoted,
            _ => {}
        }
        *letter == ';' && !was_quoted
    });
    outside.collect()
}

/// Removes the surrounding quotes, inside which `\"` and `\\` are escapes.
fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inner {
        Some(inner) => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, FieldContent, Option<String>, Option<String>) {
        let field = field(text).expect("a field");
        let content_type = field.content_type.map(|it| it.to_str().unwrap().to_owned());
        (field.name, field.content, content_type, field.file_name)
    }

    fn text(content: &str) -> FieldContent {
        FieldContent::Text(content.to_owned())
    }

    #[test]
    fn text_files_and_their_attributes_are_distinguished() {
        let of = |name: &str, content, content_type: &str, file: &str| {
            let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            (name.to_owned(), content, given(content_type), given(file))
        };
        assert_eq!(read("a=1"), of("a", text("1"), "", ""));
        assert_eq!(read("a="), of("a", text(""), "", ""));
        assert_eq!(read("a=b=c;d"), of("a", text("b=c;d"), "", ""));
        assert_eq!(read("a=@x.png"), of("a", FieldContent::File("x.png".into()), "", ""));
        assert_eq!(read("a=<x.txt"), of("a", FieldContent::TextOf("x.txt".into()), "", ""));
        let file = FieldContent::File("x.bin".into());
        let line = "a=@x.bin;type=text/html; charset=utf-8;filename=\"b;c.html\"";
        assert_eq!(read(line), of("a", file, "text/html; charset=utf-8", "b;c.html"));
        assert_eq!(read("a={};type=application/json"), of("a", text("{}"), "application/json", ""));
        assert_eq!(read(r#"a="x;type=\"y\"""#), of("a", text(r#"x;type="y""#), "", ""));
    }

    #[test]
    fn an_invalid_field_is_refused() {
        assert_eq!(field("a"), Err(FormFieldError::Form));
        assert_eq!(field("a=@"), Err(FormFieldError::NoFileName));
        assert_eq!(field("a=1;type=x\ny"), Err(FormFieldError::ContentType("x\ny".to_owned())));
    }

    #[test]
    fn a_plain_field_is_taken_as_it_is() {
        let field = plain_field("a=@x;type=y").expect("a field");
        assert_eq!(field.content, text("@x;type=y"));
        assert_eq!(field.content_type, None);
    }
}
