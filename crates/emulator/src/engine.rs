//! The thread that moves packets at their times.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use eyas_netem::link::{LinkChange, LinkConfig};
use eyas_netem::world::LinkDirection;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::capture::PathRecorder;
use super::counters::EmulatorCounters;
use super::device::{DeviceRead, ReadBuffer};
use super::error::EmulatorError;
use super::host::HostRole;
use super::path::{PathContext, PathRun};

/// Packets read from one device before the others, and packets that are due, are served.
const BATCH: usize = 32;
/// How long before a packet is due the thread stays awake: about the wake-up latency. It limits the
/// time spent busy-waiting for each packet.
const BUSY_WAIT: Duration = Duration::from_micros(60);

/// A request to the thread.
pub(super) enum EngineRequest {
    /// Replace the link of this path and direction.
    Reconfigure(usize, LinkDirection, Box<LinkConfig>),
    /// Make one change to the link of this path and direction.
    Change(usize, LinkDirection, LinkChange),
    /// Capture these paths, by number and name, to this file; a running capture is ended.
    Capture(PathBuf, Vec<(usize, String)>),
    /// End the capture.
    EndCapture,
    /// Return the counters.
    Count(SyncSender<EmulatorCounters>),
    /// Stop.
    Stop,
}

/// A request and the channel for its result.
type RequestEnvelope = (EngineRequest, SyncSender<Result<(), EmulatorError>>);

/// The sending side of the request queue.
#[derive(Debug)]
pub(super) struct EngineMailbox {
    requests: Sender<RequestEnvelope>,
    wakeup: Arc<OwnedFd>,
}

impl EngineMailbox {
    /// Sends a request, and waits until it has been carried out.
    pub(super) fn call(&self, request: EngineRequest) -> Result<(), EmulatorError> {
        let ended = || EmulatorError::Ended("its thread does not answer".to_owned());
        let (reply, done) = sync_channel(1);
        self.requests.send((request, reply)).map_err(|_| ended())?;
        rustix::io::write(&self.wakeup, &1_u64.to_ne_bytes()).map_err(|_| ended())?;
        done.recv().map_err(|_| ended())?
    }

    /// Requests the counters.
    pub(super) fn count(&self) -> Result<EmulatorCounters, EmulatorError> {
        let (reply, counted) = sync_channel(1);
        self.call(EngineRequest::Count(reply))?;
        counted.recv().map_err(|_| EmulatorError::Ended("it returned no counters".to_owned()))
    }
}

/// The state of the thread.
pub(super) struct EmulatorEngine {
    paths: Vec<PathRun>,
    requests: Receiver<RequestEnvelope>,
    wakeup: Arc<OwnedFd>,
    started: Instant,
    epoch: Duration,
    busy_wait: Duration,
    recorder: Option<PathRecorder>,
    uncaptured: u64,
}

impl EmulatorEngine {
    /// Creates an engine and its mailbox. `busy_wait` determines whether it busy-waits before a packet
    /// is due.
    pub(super) fn new(
        paths: Vec<PathRun>,
        busy_wait: bool,
    ) -> Result<(Self, EngineMailbox), EmulatorError> {
        let wakeup = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(EmulatorError::system("create an eventfd"))?;
        let (wakeup, (sender, requests)) = (Arc::new(wakeup), channel());
        let mailbox = EngineMailbox { requests: sender, wakeup: wakeup.clone() };
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = Instant::now();
        let busy_wait = if busy_wait { BUSY_WAIT } else { Duration::ZERO };
        let (recorder, uncaptured) = (None, 0);
        Ok((
            Self { paths, requests, wakeup, started, epoch, busy_wait, recorder, uncaptured },
            mailbox,
        ))
    }

    /// Moves packets until it is stopped.
    pub(super) fn run(mut self) -> Result<(), EmulatorError> {
        let mut buffer = ReadBuffer::new();
        let mut ready = vec![false; self.paths.len() * 2];
        let mut closed = ready.clone();
        loop {
            let due = self.deliver();
            let woken = self
                .wait(due, &mut ready, &closed)
                .map_err(EmulatorError::system("wait for packets"))?;
            for number in 0..ready.len() {
                if ready[number] && !self.read(number, &mut buffer) {
                    closed[number] = true;
                }
            }
            if woken && self.handle_requests() {
                return self.recorder.take().map_or(Ok(()), PathRecorder::finish);
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Delivers packets that are due, and returns when the next one is.
    fn deliver(&mut self) -> Option<Duration> {
        let mut next: Option<Duration> = None;
        for path in &mut self.paths {
            let Some(due) = path.next_timeout() else { continue };
            let mut context =
                PathContext { now: self.started.elapsed(), recorder: &mut self.recorder };
            let due = if due <= context.now {
                path.deliver(&mut context);
                path.next_timeout()
            } else {
                Some(due)
            };
            next = next.into_iter().chain(due).min();
        }
        next
    }

    /// Waits until a packet is due, a host has sent something, or a request has arrived, and
    /// returns whether there is a request. Devices are numbered by path, then by host.
    fn wait(&self, due: Option<Duration>, ready: &mut [bool], closed: &[bool]) -> io::Result<bool> {
        let devices = self.paths.iter().flat_map(PathRun::devices);
        let watched = PollFlags::IN;
        let mut polled = Vec::with_capacity(ready.len() + 1);
        polled.push(PollFd::new(&*self.wakeup, watched));
        polled.extend(devices.zip(closed).map(|(device, closed)| {
            PollFd::new(device, if *closed { PollFlags::empty() } else { watched })
        }));
        let timeout = due.map(|due| {
            let left = due.saturating_sub(self.now()).saturating_sub(self.busy_wait);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
        for (number, ready) in ready.iter_mut().enumerate() {
            *ready = !closed[number] && !polled[number + 1].revents().is_empty();
        }
        Ok(!polled[0].revents().is_empty())
    }

    /// Reads what a host has sent, and returns whether the device still exists.
    fn read(&mut self, number: usize, buffer: &mut ReadBuffer) -> bool {
        let path = &mut self.paths[number / 2];
        let host = HostRole::ALL[number % 2];
        for _ in 0..BATCH {
            match path.devices()[host as usize].read(buffer) {
                DeviceRead::Packet(frame) => {
                    let now = self.started.elapsed();
                    let mut context = PathContext { now, recorder: &mut self.recorder };
                    path.arrive(&mut context, host, frame);
                }
                DeviceRead::NotIp => {}
                DeviceRead::WouldBlock => return true,
                DeviceRead::Closed => return false,
            }
        }
        true
    }

    /// Carries out a request, and returns whether it was to stop.
    fn handle_requests(&mut self) -> bool {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wakeup, &mut count);
        while let Ok((request, reply)) = self.requests.try_recv() {
            let stop = matches!(request, EngineRequest::Stop);
            let result = self.handle_request(request);
            // A caller that does not wait for the result does not need it.
            let _ = reply.send(result);
            if stop {
                return true;
            }
        }
        false
    }

    fn handle_request(&mut self, request: EngineRequest) -> Result<(), EmulatorError> {
        let now = self.now();
        match request {
            EngineRequest::Reconfigure(path, direction, config) => {
                self.paths[path].reconfigure(now, direction, *config);
                self.paths[path].update_offload(self.recorder.is_some())
            }
            EngineRequest::Change(path, direction, change) => {
                self.paths[path].change(now, direction, change);
                self.paths[path].update_offload(self.recorder.is_some())
            }
            EngineRequest::Capture(file, paths) => {
                self.end_capture()?;
                self.recorder = Some(PathRecorder::new(&file, &paths, self.epoch)?);
                self.paths.iter().try_for_each(|path| path.update_offload(true))
            }
            EngineRequest::EndCapture => {
                self.end_capture()?;
                self.paths.iter().try_for_each(|path| path.update_offload(false))
            }
            EngineRequest::Count(reply) => {
                let paths = self.paths.iter_mut().map(|path| path.counters(now)).collect();
                let running = self.recorder.as_ref().map_or(0, PathRecorder::uncaptured);
                let uncaptured = self.uncaptured + running;
                let _ = reply.send(EmulatorCounters { time: now, paths, missed: 0, uncaptured });
                Ok(())
            }
            EngineRequest::Stop => Ok(()),
        }
    }

    fn end_capture(&mut self) -> Result<(), EmulatorError> {
        let Some(recorder) = self.recorder.take() else { return Ok(()) };
        self.uncaptured += recorder.uncaptured();
        recorder.finish()
    }
}
