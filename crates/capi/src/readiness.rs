//! A descriptor that becomes readable when a call is worth retrying.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    sync::{Arc, OnceLock},
    task::Wake,
};

use rustix::event::{EventfdFlags, eventfd};

use crate::error::Failure;

/// Readable from its creation until a call returns EYAS_WOULD_BLOCK, and again once that call is
/// worth retrying. Created only on request.
#[derive(Default)]
pub(crate) struct ReadinessDescriptor(OnceLock<OwnedFd>);

impl ReadinessDescriptor {
    /// Returns the descriptor, which we continue to own.
    pub(crate) fn descriptor(&self) -> Result<i32, Failure> {
        if let Some(descriptor) = self.0.get() {
            return Ok(descriptor.as_raw_fd());
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let created = eventfd(1, flags).map_err(std::io::Error::from)?;
        // If another thread was faster, this one is closed.
        Ok(self.0.get_or_init(|| created).as_raw_fd())
    }

    pub(crate) fn raise(&self) {
        if let Some(descriptor) = self.0.get() {
            // Fails only if the counter is full, and then it is readable.
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    pub(crate) fn lower(&self) {
        if let Some(descriptor) = self.0.get() {
            // Fails only if it is not raised.
            let _ = rustix::io::read(descriptor, &mut [0_u8; 8]);
        }
    }
}

impl Wake for ReadinessDescriptor {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}
