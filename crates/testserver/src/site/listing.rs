//! The listing of a directory without an index.

use std::{
    fmt::Write,
    fs,
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use eyas_http::serve::metered::{Held, LEAST_PIECE, Piece, Share, Source};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::BoxError;

/// The maximum number of names in a listing.
const MAX_ITEMS: usize = 10_000;

/// The memory of a name in addition to its bytes.
const ITEM_OVERHEAD: usize = size_of::<ListingItem>() + 16;

/// The number of bytes that a listing must be able to hold before it is promised.
const USUAL_SIZE: usize = MAX_ITEMS * (ITEM_OVERHEAD + 32);

/// For how long the content of a directory is reused for other requests, so that it is read only
/// once.
const FRESH: Duration = Duration::from_secs(1);

/// The maximum number of directories kept for reuse.
const MAX_KEPT: usize = 8;

/// The maximum number of directories read concurrently by the whole server.
const MAX_READING: usize = 2;

/// Characters that need no encoding in a path segment (RFC 3986 §2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An entry of a listing. Directories sort first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ListingItem {
    is_file: bool,
    name: Box<[u8]>,
    length: u64,
}

/// The content of a directory at the time of reading.
#[derive(Debug)]
struct DirectorySnapshot {
    items: Vec<ListingItem>,
    _held: Held,
}

/// The directories read recently.
#[derive(Debug)]
pub(super) struct RecentListings {
    kept: Mutex<Vec<KeptListing>>,
    reading: Semaphore,
}

#[derive(Debug)]
struct KeptListing {
    path: PathBuf,
    since: Instant,
    snapshot: Arc<DirectorySnapshot>,
}

impl Default for RecentListings {
    fn default() -> Self {
        Self { kept: Mutex::default(), reading: Semaphore::new(MAX_READING) }
    }
}

impl RecentListings {
    fn find(&self, path: &Path) -> Option<Arc<DirectorySnapshot>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.since.elapsed() < FRESH);
        kept.iter().find(|kept| kept.path == path).map(|kept| Arc::clone(&kept.snapshot))
    }

    fn keep(&self, path: PathBuf, snapshot: &Arc<DirectorySnapshot>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(KeptListing { path, since: Instant::now(), snapshot: Arc::clone(snapshot) });
    }

    /// Returns the content of a directory.
    async fn read(
        &self,
        path: PathBuf,
        share: Arc<Share>,
    ) -> Result<Arc<DirectorySnapshot>, BoxError> {
        let _turn = self.reading.acquire().await?;
        if let Some(snapshot) = self.find(&path) {
            return Ok(snapshot);
        }
        let read = path.clone();
        let items = tokio::task::spawn_blocking(move || read_items(&read)).await;
        let items = items??;
        let bytes = items.iter().map(|item| item.name.len() + ITEM_OVERHEAD).sum();
        let held = share.bytes(bytes).ok_or("the memory budget of the server is used up")?;
        let snapshot = Arc::new(DirectorySnapshot { items, _held: held });
        self.keep(path, &snapshot);
        Ok(snapshot)
    }
}

/// Returns the files and directories in `path`, except hidden ones.
fn read_items(path: &Path) -> io::Result<Vec<ListingItem>> {
    let mut items = Vec::new();
    for entry in fs::read_dir(path)?.take(MAX_ITEMS) {
        let entry = entry?;
        let name = entry.file_name().into_encoded_bytes();
        // A broken link is left out.
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        if name.starts_with(b".") || !(metadata.is_file() || metadata.is_dir()) {
            continue;
        }
        let name = name.into_boxed_slice();
        items.push(ListingItem { is_file: metadata.is_file(), name, length: metadata.len() });
    }
    items.sort();
    items.shrink_to_fit();
    Ok(items)
}

/// The page of a directory, generated as it is read by the peer. The directory is read when the
/// first byte can be sent.
pub(super) struct ListingBody {
    listings: Arc<RecentListings>,
    share: Arc<Share>,
    /// The requested path.
    request_path: String,
    state: ListingState,
}

enum ListingState {
    Unread(PathBuf),
    Reading(AbortOnDropHandle<Result<Arc<DirectorySnapshot>, BoxError>>),
    Items(Arc<DirectorySnapshot>, usize),
    Done,
}

impl ListingBody {
    pub(super) fn new(
        listings: &Arc<RecentListings>,
        share: &Arc<Share>,
        request_path: &str,
        directory: PathBuf,
    ) -> Self {
        Self {
            listings: Arc::clone(listings),
            share: Arc::clone(share),
            request_path: request_path.to_owned(),
            state: ListingState::Unread(directory),
        }
    }

    /// Returns whether there is room for the listing of most directories.
    pub(super) fn has_room(&self) -> bool {
        self.share.room() >= USUAL_SIZE
    }

    /// Creates a piece from a few KiB of text, which every request may hold.
    fn piece(&self, text: String) -> Piece {
        let held = self.share.piece(text.len());
        Piece::holding(text.into(), Arc::new(held))
    }
}

impl Source for ListingBody {
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Piece, BoxError>>> {
        loop {
            match std::mem::replace(&mut self.state, ListingState::Done) {
                ListingState::Unread(directory) => {
                    let (listings, share) = (Arc::clone(&self.listings), Arc::clone(&self.share));
                    let reading = async move { listings.read(directory, share).await };
                    self.state =
                        ListingState::Reading(AbortOnDropHandle::new(tokio::spawn(reading)));
                }
                ListingState::Reading(mut reading) => match Pin::new(&mut reading).poll(cx) {
                    Poll::Ready(read) => {
                        let snapshot = read??;
                        self.state = ListingState::Items(snapshot, 0);
                        return Poll::Ready(Some(Ok(self.piece(head(&self.request_path)))));
                    }
                    Poll::Pending => {
                        self.state = ListingState::Reading(reading);
                        return Poll::Pending;
                    }
                },
                ListingState::Items(snapshot, next) => {
                    let (text, next) = lines(&snapshot.items, next);
                    if next < snapshot.items.len() {
                        self.state = ListingState::Items(snapshot, next);
                    }
                    return Poll::Ready(Some(Ok(self.piece(text))));
                }
                ListingState::Done => return Poll::Ready(None),
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// Returns the page up to its table.
fn head(path: &str) -> String {
    let title = escaped(&percent_decode_str(path).decode_utf8_lossy());
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>:root{{color-scheme:light dark}}body{{font:1rem/1.6 \
         system-ui,sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}}td+td{{\
         text-align:right;padding-left:2rem}}</style>\n<h1>{title}</h1>\n<table>\n"
    );
    if path != "/" {
        html.push_str("<tr><td><a href=\"../\">../</a></td><td></td></tr>\n");
    }
    html
}

/// Returns some lines of the table from this item on, followed by the end of the page after the
/// last one, and the index of the next item.
fn lines(items: &[ListingItem], mut next: usize) -> (String, usize) {
    let mut html = String::new();
    while let Some(ListingItem { is_file, name, length }) = items.get(next)
        && html.len() < LEAST_PIECE / 2
    {
        let href = percent_encode(name, SEGMENT);
        let text = escaped(&String::from_utf8_lossy(name));
        // Writing to a string cannot fail.
        let _ = match is_file {
            true => {
                writeln!(html, "<tr><td><a href=\"{href}\">{text}</a></td><td>{length}</td></tr>")
            }
            false => writeln!(html, "<tr><td><a href=\"{href}/\">{text}/</a></td><td></td></tr>"),
        };
        next += 1;
    }
    if next == items.len() {
        html.push_str("</table>\n</html>\n");
    }
    (html, next)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let name = b"<b> & \"'%?#.txt".to_vec().into_boxed_slice();
        let item = ListingItem { is_file: true, name, length: 1 };
        let page = head("/%3Cscript%3E/") + &lines(&[item], 0).0;
        assert!(!page.contains("<script>") && !page.contains("<b>"), "{page}");
        assert!(page.contains("href=\"%3Cb%3E%20%26%20%22%27%25%3F%23.txt\""), "{page}");
    }

    #[test]
    fn long_listings_are_sent_in_pieces() {
        let name = |number: usize| format!("{number:04}").into_bytes().into_boxed_slice();
        let items: Vec<ListingItem> = (0..1000)
            .map(|number| ListingItem { is_file: true, name: name(number), length: number as u64 })
            .collect();
        let (mut page, mut next) = (String::new(), 0);
        while next < items.len() {
            let (text, after) = lines(&items, next);
            assert!(text.len() <= LEAST_PIECE && after > next);
            page.push_str(&text);
            next = after;
        }
        assert!(page.lines().count() == 1002 && page.ends_with("</html>\n"), "{page}");
        assert!((0..1000).all(|number| page.contains(&format!("href=\"{number:04}\""))));
    }
}
