//! Captures the packets of the carrier's sockets for Wireshark.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{BufMut as _, Bytes, BytesMut};
use eyas_netem::capture::{CaptureInterface, PacketCapture};
use eyas_netem::packet::{Packet, protocol};
use eyas_sctp_tokio::{Tap, Train};

/// The size of the capture's buffer, in bytes: more than the longest train.
const BUFFER_BYTES: usize = 1 << 20;
/// The number of trains that can be queued for the disk: at most 64 MiB.
const QUEUE_LENGTH: usize = 1024;
/// The size of a UDP header (RFC 768).
const UDP_HEADER: usize = 8;

/// A pcapng file. It is written by a separate thread, so that a slow disk does not delay packets.
#[derive(Debug)]
pub struct CaptureFile {
    recorder: Arc<Recorder>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

/// Records packets to a capture.
pub(crate) struct Recorder {
    inner: Mutex<Inner>,
    dropped: AtomicU64,
}

struct Inner {
    capture: PacketCapture,
    interface: CaptureInterface,
    /// `None` once the file is closed.
    chunks: Option<SyncSender<Vec<u8>>>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("missed", &self.dropped).finish_non_exhaustive()
    }
}

impl CaptureFile {
    /// Creates a file. An existing file at `path` is overwritten; a named pipe is written directly.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        let mut capture = PacketCapture::new(BUFFER_BYTES);
        let interface = capture.interface("eyas sctp");
        let (chunks, queue) = sync_channel(QUEUE_LENGTH);
        // The queue is empty, so this succeeds.
        let _ = chunks.send(capture.drain());
        let writer = thread::Builder::new()
            .name("eyas-capture".to_owned())
            .spawn(move || write(file, &queue))?;
        let inner = Mutex::new(Inner { capture, interface, chunks: Some(chunks) });
        let recorder = Arc::new(Recorder { inner, dropped: AtomicU64::new(0) });
        Ok(Self { recorder, writer: Some(writer) })
    }

    /// Returns the recorder of packets.
    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.recorder)
    }

    /// Writes the rest, closes the file, and returns how many trains of packets were dropped
    /// because the disk was too slow.
    ///
    /// # Errors
    /// If something could not be written, now or earlier.
    pub fn finish(mut self) -> io::Result<u64> {
        self.recorder.lock().chunks = None;
        if let Some(Ok(written)) = self.writer.take().map(JoinHandle::join) {
            written?;
        }
        Ok(self.recorder.dropped.load(Ordering::Relaxed))
    }
}

fn write(mut file: File, chunks: &Receiver<Vec<u8>>) -> io::Result<()> {
    for chunk in chunks {
        file.write_all(&chunk)?;
    }
    file.flush()
}

impl Recorder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Recorder {
    fn passed(&self, train: &Train<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut inner = self.lock();
        let Inner { capture, interface, chunks } = &mut *inner;
        let Some(chunks) = chunks else { return };
        for contents in train.contents.chunks(train.segment_size.max(1)) {
            capture.packet(now, *interface, &packet(train, contents), None);
        }
        // A train is dropped if the queue is full or closed.
        if chunks.try_send(capture.drain()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns a packet of a train as it appears on the wire.
fn packet(train: &Train<'_>, contents: &[u8]) -> Packet {
    let (protocol, payload) = match train.destination.port() {
        0 => (protocol::SCTP, Bytes::copy_from_slice(contents)),
        _ => (protocol::UDP, datagram(train.source, train.destination, contents)),
    };
    Packet {
        source: train.source.ip(),
        destination: train.destination.ip(),
        protocol,
        ecn: train.ecn.bits(),
        dont_fragment: true,
        payload,
    }
}

/// Adds the UDP header, with the checksum that is otherwise computed by the kernel or the network
/// card.
fn datagram(source: SocketAddr, destination: SocketAddr, contents: &[u8]) -> Bytes {
    // The length of a datagram fits into 16 bits.
    let length = (UDP_HEADER + contents.len()) as u16;
    let mut bytes = BytesMut::with_capacity(usize::from(length));
    for field in [source.port(), destination.port(), length, 0] {
        bytes.put_u16(field);
    }
    bytes.put_slice(contents);
    let mut sum = u32::from(protocol::UDP) + u32::from(length) + words(&bytes);
    for ip in [source.ip(), destination.ip()] {
        sum += match ip {
            IpAddr::V4(ip) => words(&ip.octets()),
            IpAddr::V6(ip) => words(&ip.octets()),
        };
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Zero means no checksum (RFC 768).
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    bytes.freeze()
}

/// Returns the sum of 16-bit words (RFC 1071), which fits for 64 KiB.
fn words(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    bytes.chunks(2).map(word).sum()
}

#[cfg(test)]
mod tests {
    use eyas_sctp::io::Ecn;

    use super::*;

    fn train<'a>(source: &str, destination: &str, contents: &'a [u8]) -> Train<'a> {
        Train {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            ecn: Ecn::Capable0,
            contents,
            segment_size: 12,
        }
    }

    #[test]
    fn a_train_is_written_as_separate_packets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.pcapng");
        let file = CaptureFile::create(&path).unwrap();
        let recorder = file.recorder();
        recorder.passed(&train("192.0.2.1:0", "192.0.2.2:0", &[7; 30]));
        recorder.passed(&train("[2001:db8::1]:9899", "[2001:db8::2]:9899", &[8; 12]));
        assert_eq!(file.finish().unwrap(), 0);
        recorder.passed(&train("192.0.2.1:0", "192.0.2.2:0", &[9; 12]));
        let written = std::fs::read(&path).unwrap();
        let count = |part: &[u8]| written.windows(part.len()).filter(|one| *one == part).count();
        assert_eq!(count(&[192, 0, 2, 1, 192, 0, 2, 2, 7, 7]), 3, "each with its header");
        assert_eq!(count(&[8; 12]), 1);
        assert_eq!(count(&[9; 12]), 0, "the file was already closed");
    }

    #[test]
    fn checksums_are_correct() {
        // The sum over header and addresses, including the checksum, is all ones (RFC 1071).
        let (source, destination) = ("127.0.0.1:1000", "127.0.0.1:2000");
        let datagram = datagram(source.parse().unwrap(), destination.parse().unwrap(), b"abc");
        assert_eq!(datagram[..6], [3, 232, 7, 208, 0, 11]);
        let folded = |sum: u32| (sum & 0xffff) + (sum >> 16);
        let pseudo = 2 * words(&[127, 0, 0, 1]) + 17 + 11;
        assert_eq!(folded(folded(words(&datagram) + pseudo)), 0xffff);
        assert_eq!(datagram.len(), 11);
    }
}
