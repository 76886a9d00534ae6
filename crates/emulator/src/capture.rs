//! Writes packets to a file, in a thread of its own so that a slow disk does not delay packets.

mod destination;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use eyas_netem::capture::{CaptureInterface, PacketCapture};

use super::error::EmulatorError;
use super::host::HostRole;
use destination::CaptureDestination;

/// Bytes that are collected before they are passed to the file's thread.
const CHUNK: usize = 64 << 10;
/// The maximum number of bytes collected.
const LIMIT: usize = 2 << 20;
/// Chunks that can wait for the disk: at most 64 MiB, usually much less.
const WAITING: usize = 1024;

/// The interfaces of one path in the file.
struct PathInterfaces {
    path: usize,
    /// Indexed by [`HostRole`].
    endpoints: [CaptureInterface; 2],
}

/// Records the packets of some paths, both where they are sent and where they arrive.
pub(super) struct PathRecorder {
    capture: PacketCapture,
    paths: Vec<PathInterfaces>,
    /// The time at which the emulator was started, since the UNIX epoch.
    epoch: Duration,
    chunks: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    uncaptured: u64,
}

impl PathRecorder {
    /// Starts a file with these paths: numbers and names.
    pub(super) fn new(
        file: &Path,
        paths: &[(usize, String)],
        epoch: Duration,
    ) -> Result<Self, EmulatorError> {
        let file = CaptureDestination::create(file).map_err(EmulatorError::Capture)?;
        let mut capture = PacketCapture::new(LIMIT);
        let interfaces = |(number, name): &(usize, String)| {
            let endpoints =
                HostRole::ALL.map(|host| capture.interface(&format!("{name} at the {host}")));
            PathInterfaces { path: *number, endpoints }
        };
        let paths = paths.iter().map(interfaces).collect();
        let (chunks, waiting) = sync_channel(WAITING);
        let writer = thread::Builder::new()
            .name("eyas-capture".to_owned())
            .spawn(move || write(file, &waiting))
            .map_err(EmulatorError::system("start a thread"))?;
        let (chunks, writer) = (Some(chunks), Some(writer));
        Ok(Self { capture, paths, epoch, chunks, writer, uncaptured: 0 })
    }

    /// Records a packet that is sent by a host or arrives at it.
    pub(super) fn packet(&mut self, now: Duration, path: usize, host: HostRole, ip: &[u8]) {
        let Some(own) = self.paths.iter().find(|own| own.path == path) else { return };
        self.capture.bytes(self.epoch + now, own.endpoints[host as usize], ip, None);
        if self.capture.contents().len() >= CHUNK {
            self.pass_to_writer();
        }
    }

    /// Returns the number of packets left out.
    pub(super) const fn uncaptured(&self) -> u64 {
        self.uncaptured + self.capture.missed()
    }

    fn pass_to_writer(&mut self) {
        let Some(chunks) = &self.chunks else { return };
        // A chunk for which there is no room stays here; at the limit, packets are left out and
        // counted.
        let chunk = self.capture.drain();
        if let Err(refused) = chunks.try_send(chunk) {
            use std::sync::mpsc::TrySendError::{Disconnected, Full};
            let (Full(chunk) | Disconnected(chunk)) = refused;
            self.uncaptured += packets(&chunk);
        }
    }

    /// Writes the rest and closes the file.
    pub(super) fn finish(mut self) -> Result<(), EmulatorError> {
        let (chunks, remainder) = (self.chunks.take(), self.capture.drain());
        if let Some(chunks) = chunks {
            // This fails only if the writer has failed, which is reported below.
            let _ = chunks.send(remainder);
        }
        let ended = self.writer.take().map(JoinHandle::join);
        match ended {
            Some(Ok(result)) => result.map_err(EmulatorError::Capture),
            Some(Err(_)) | None => Ok(()),
        }
    }
}

/// Returns the number of packets in a chunk, which contains only complete blocks.
fn packets(mut chunk: &[u8]) -> u64 {
    let mut number = 0;
    while let Some(length) = chunk.get(4..8).and_then(|bytes| bytes.try_into().ok()) {
        number += 1;
        chunk = chunk.get(u32::from_le_bytes(length) as usize..).unwrap_or(&[]);
    }
    number
}

fn write(mut file: CaptureDestination, chunks: &Receiver<Vec<u8>>) -> io::Result<()> {
    for chunk in chunks {
        file.write_all(&chunk)?;
    }
    file.finish()
}
