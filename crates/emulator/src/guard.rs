//! Cleans up the namespaces, however the emulator has ended.
//!
//! Unnamed namespaces and TUN devices disappear with their last descriptor, so a killed emulator
//! leaves none behind. Its children, however, would continue. The guard is a small process that
//! waits for the end of a pipe whose other end only the emulator holds, and then kills everything
//! that runs in the two namespaces. It holds the namespaces itself, so that their numbers cannot be
//! reused meanwhile. It is inside itself, so that the guard of an emulator in which this one runs does
//! not end it, but only what it waits for.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::kernel;

/// The script of the shell. Its standard output and error are the namespaces; it writes nothing.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM PIPE
read -r _
rounds=0
while [ $rounds -lt 100 ]; do
    found=
    for process in /proc/[0-9]*; do
        [ $process != /proc/$$ ] || continue
        if [ $process/ns/net -ef /proc/$$/fd/1 ] || [ $process/ns/net -ef /proc/$$/fd/2 ]; then
            kill -KILL ${process#/proc/} && found=1
        fi
    done
    [ -n "$found" ] || exit 0
    rounds=$((rounds + 1))
    sleep 0.05
done
"#;

/// The guard of one emulator.
#[derive(Debug)]
pub(super) struct EmulatorGuard {
    process: Child,
}

impl EmulatorGuard {
    /// Starts the guard.
    pub(super) fn start(namespaces: [&File; 2]) -> io::Result<Self> {
        let [first, second] = namespaces;
        let mut command = Command::new("sh");
        kernel::start_in_namespace(&mut command, Arc::new(first.try_clone()?));
        let process = command
            .args(["-c", SCRIPT, "eyas-netem-guard"])
            .current_dir("/")
            .env("PATH", super::machine::search_path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::from(first.try_clone()?))
            .stderr(Stdio::from(second.try_clone()?))
            .spawn()?;
        Ok(Self { process })
    }
}

impl Drop for EmulatorGuard {
    fn drop(&mut self) {
        // Closing the pipe triggers it; it then ends by itself.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
