use http_body::Body as _;

use super::*;

const BOUNDARY: &str = "limit";

async fn encoded(form: Form) -> String {
    let bytes = form.encode_with(BOUNDARY).bytes().await.expect("readable");
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A body of unknown length.
fn stream(text: &'static str) -> Body {
    Body::from_reader(text.as_bytes())
}

#[tokio::test]
async fn a_form_is_encoded_as_browsers_do() {
    let photo = Part::new("JPEG").file_name("a \"b\".jpg");
    let photo = photo.content_type(HeaderValue::from_static("image/jpeg"));
    let form = Form::new().text("title\r\n", "Gr\u{fc}n").part("photo", photo);
    let expected = "--limit\r\n\
                    Content-Disposition: form-data; name=\"title%0D%0A\"\r\n\r\n\
                    Gr\u{fc}n\r\n\
                    --limit\r\n\
                    Content-Disposition: form-data; name=\"photo\"; filename=\"a %22b%22.jpg\"\r\n\
                    Content-Type: image/jpeg\r\n\r\n\
                    JPEG\r\n\
                    --limit--\r\n";
    assert_eq!(encoded(form).await, expected);
    assert_eq!(encoded(Form::new()).await, "--limit--\r\n");
}

#[tokio::test]
async fn a_form_in_memory_can_be_sent_again() {
    let body = Form::new().text("a", "1").encode_with(BOUNDARY);
    let copy = body.try_clone().expect("a body in memory");
    assert_eq!(body.bytes().await.unwrap(), copy.bytes().await.unwrap());
    let body = Form::new().part("a", Part::new(stream("1"))).encode_with(BOUNDARY);
    assert!(body.try_clone().is_none());
}

#[tokio::test]
async fn a_file_part_has_a_name_a_type_and_a_length() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "one\n").unwrap();
    let form = Form::new().text("a", "1").part("f", Part::file(&path).await.unwrap());
    let body = form.encode_with(BOUNDARY);
    let announced = body.size_hint().exact().expect("all lengths are known");
    let copies = [body.try_clone().expect("files"), body.try_clone().expect("files")];
    let again = copies[0].try_clone().expect("a copy of a copy");
    let bytes = body.bytes().await.unwrap();
    assert_eq!(bytes.len() as u64, announced);
    for copy in copies.into_iter().chain([again]) {
        assert_eq!(copy.size_hint().exact(), Some(announced));
        assert_eq!(copy.bytes().await.unwrap(), bytes);
    }
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let head =
        "name=\"f\"; filename=\"notes.txt\"\r\nContent-Type: text/plain\r\n\r\none\n\r\n--limit--";
    assert!(text.contains(head), "{text}");
}

#[tokio::test]
async fn a_stream_of_unknown_length_makes_the_form_of_unknown_length() {
    let body = Form::new().part("s", Part::new(stream("abc"))).encode_with(BOUNDARY);
    assert_eq!(body.size_hint().exact(), None);
    assert!(String::from_utf8_lossy(&body.bytes().await.unwrap()).contains("\r\n\r\nabc\r\n--"));
}

#[test]
fn boundaries_differ() {
    assert_ne!(boundary(), boundary());
}
