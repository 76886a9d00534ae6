//! Tests of a directory of files.

use std::fs;

use eyas_http::serve::{Running, Server};
use eyas_testserver::site::Site;
use http::{StatusCode, header};

use crate::clients::{Speak, fetch, get, raw, start};

async fn directory() -> (tempfile::TempDir, Running) {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("root");
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    fs::create_dir(root.join("site")).unwrap();
    fs::write(root.join("site/index.html"), "<p>the index</p>").unwrap();
    fs::write(root.join("note.txt"), "0123456789").unwrap();
    fs::write(root.join("page.html"), "<p>hello</p>").unwrap();
    fs::write(root.join("big.bin"), vec![7; 1_000_000]).unwrap();
    fs::write(root.join(".hidden"), "secret").unwrap();
    fs::write(home.path().join("secret.txt"), "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.txt", root.join("link.txt")).unwrap();
    let running =
        start(Server::builder().service(Site::with_directory(root).unwrap()).plain()).await;
    (home, running)
}

#[tokio::test]
async fn files_have_their_type_and_length() {
    let (_home, running) = directory().await;
    let cases = [
        ("/note.txt", "text/plain; charset=utf-8", 10),
        ("/page.html", "text/html; charset=utf-8", 12),
        ("/big.bin", "application/octet-stream", 1_000_000),
        ("/site/", "text/html; charset=utf-8", 16),
    ];
    for (path, media_type, length) in cases {
        for speak in Speak::PLAIN {
            let response = fetch(&running, speak, get(path)).await;
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], media_type, "{path}");
            assert_eq!(response.body().len(), length, "{path}");
        }
    }
}

#[tokio::test]
async fn ranges_of_files_are_served() {
    let (_home, running) = directory().await;
    let with = |range: &str, since: Option<&header::HeaderValue>| {
        let mut request = get("/note.txt");
        request.headers_mut().insert(header::RANGE, range.parse().unwrap());
        if let Some(since) = since {
            request.headers_mut().insert(header::IF_RANGE, since.clone());
        }
        request
    };
    let response = fetch(&running, Speak::PlainHttp1, with("bytes=2-4", None)).await;
    assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(response.body(), "234");
    let date = response.headers()[header::LAST_MODIFIED].clone();
    let response = fetch(&running, Speak::PlainHttp1, with("bytes=-2", Some(&date))).await;
    assert_eq!(response.body(), "89");
    let other = "Thu, 01 Jan 1970 00:00:00 GMT".parse().unwrap();
    let response = fetch(&running, Speak::PlainHttp1, with("bytes=-2", Some(&other))).await;
    assert_eq!((response.status(), response.body().len()), (StatusCode::OK, 10));
    let response = fetch(&running, Speak::PlainHttp1, with("bytes=10-", None)).await;
    assert_eq!(response.status(), StatusCode::RANGE_NOT_SATISFIABLE);
}

#[tokio::test]
async fn cached_files_are_not_sent_again() {
    let (_home, running) = directory().await;
    let response = fetch(&running, Speak::PlainHttp2, get("/note.txt")).await;
    let date = response.headers()[header::LAST_MODIFIED].clone();
    let mut conditional = get("/note.txt");
    conditional.headers_mut().insert(header::IF_MODIFIED_SINCE, date);
    let response = fetch(&running, Speak::PlainHttp2, conditional).await;
    assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
    assert!(response.body().is_empty());
    let mut older = get("/note.txt");
    let epoch = "Thu, 01 Jan 1970 00:00:00 GMT".parse().unwrap();
    older.headers_mut().insert(header::IF_MODIFIED_SINCE, epoch);
    let response = fetch(&running, Speak::PlainHttp2, older).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn entity_tags_tell_contents_apart() {
    let (home, running) = directory().await;
    let ask = async |fields: &[(header::HeaderName, &str)]| {
        let mut request = get("/note.txt");
        for (name, value) in fields {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        fetch(&running, Speak::PlainHttp2, request).await
    };
    let response = ask(&[]).await;
    let tag = response.headers()[header::ETAG].to_str().unwrap().to_owned();
    for condition in [&tag, "*"] {
        let response = ask(&[(header::IF_NONE_MATCH, condition)]).await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{condition}");
        assert_eq!(response.headers()[header::ETAG], tag);
    }
    let part = [(header::RANGE, "bytes=2-4"), (header::IF_RANGE, &tag)];
    assert_eq!(ask(&part).await.body(), "234");
    assert_eq!(ask(&[(header::IF_MATCH, &tag)]).await.status(), StatusCode::OK);
    fs::write(home.path().join("root/note.txt"), "abcdefghijk").unwrap();
    assert_eq!(ask(&[(header::IF_NONE_MATCH, &tag)]).await.body(), "abcdefghijk");
    assert_eq!(ask(&part).await.body(), "abcdefghijk", "not a part of another content");
    assert_eq!(ask(&[(header::IF_MATCH, &tag)]).await.status(), StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn directories_are_listed() {
    let (_home, running) = directory().await;
    let response = fetch(&running, Speak::PlainHttp1, get("/")).await;
    let page = std::str::from_utf8(response.body()).unwrap();
    for name in ["href=\"note.txt\"", "href=\"sub/\"", "1000000"] {
        assert!(page.contains(name), "{page}");
    }
    assert!(!page.contains(".hidden"), "{page}");
    let response = fetch(&running, Speak::PlainHttp1, get("/sub/deep?a=b")).await;
    assert_eq!(response.status(), StatusCode::MOVED_PERMANENTLY);
    assert_eq!(response.headers()[header::LOCATION], "/sub/deep/?a=b");
    let response = fetch(&running, Speak::PlainHttp1, get("/eyas")).await;
    assert!(response.body().starts_with(b"<!doctype html>"));
}

#[tokio::test]
async fn nothing_outside_the_directory_is_served() {
    let (_home, running) = directory().await;
    for path in [
        "/../secret.txt",
        "/sub/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/sub/%2e%2e/%2e%2e/secret.txt",
        "//../secret.txt",
        "/..\\secret.txt",
        "/..%5csecret.txt",
        "/link.txt",
        "/.hidden",
        "/note.txt/",
        "/note.txt%00.html",
        "/none.txt",
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = raw(running.local_addr(), head.as_bytes()).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(["400", "404"].contains(&status), "{path}: {answer}");
        assert!(!answer.contains("secret\n") && !answer.ends_with("secret"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_redirection_never_names_another_host() {
    let (_home, running) = directory().await;
    let head = b"GET //sub HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = raw(running.local_addr(), head).await;
    assert!(answer.contains("location: /sub/\r\n"), "{answer}");
}
