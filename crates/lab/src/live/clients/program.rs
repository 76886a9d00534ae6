//! The client's process: started with nothing of the user's environment except the path, and ended
//! after the time limit.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use eyas_emulator::NetworkNamespace;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::live::LiveError;
use crate::printable::printable;
use crate::situation::live::ClientProgram;

/// The file with the client's messages, in its home directory.
const MESSAGES: &str = "messages";
/// How often to check whether it has ended.
const CHECK_EVERY: Duration = Duration::from_millis(2);
/// How long a client may take to query a name, unless it specifies this.
const STARTS_WITHIN: Duration = Duration::from_secs(2);
/// The maximum length of an error message that is passed on, in characters.
const MAX_MESSAGE: usize = 200;
/// Runs a client with its own resolver configuration: files of the machine are covered, for this
/// process and its children only. `$0` is the directory of the files, `$1` the command.
const COVER: &str = "for file in resolv.conf nsswitch.conf hosts; do \
    [ -e \"/etc/$file\" ] && { mount --bind \"$0/$file\" \"/etc/$file\" || exit 125; }; done; \
    exec sh -c \"$1\"";

/// A client that is ready to be started.
pub(super) struct ReadyClient<'a> {
    client: &'a ClientProgram,
    /// Everything of the run: resolver files, certificate, home directories.
    directory: &'a Path,
    pub(super) version: String,
}

/// How a fetch ended.
pub(super) struct FetchEnd {
    /// The time since the UNIX epoch; `None` if it was killed from outside.
    pub(super) at: Option<Duration>,
}

impl<'a> ReadyClient<'a> {
    /// Checks whether the client is installed, and runs its preparation.
    ///
    /// # Errors
    /// `Missing` if it is not installed or cannot be prepared.
    pub(super) fn prepare(
        client: &'a ClientProgram,
        directory: &'a Path,
        name_server: &str,
        root: &str,
    ) -> Result<Self, LiveError> {
        let write = |name: &str, text: &str| {
            fs::write(directory.join(name), text)
                .map_err(|cause| LiveError::Inside(format!("{name}: {cause}")))
        };
        write("resolv.conf", &format!("nameserver {name_server}\n"))?;
        write("nsswitch.conf", "hosts: files dns\n")?;
        write("hosts", "127.0.0.1 localhost\n::1 localhost\n")?;
        write("ca.pem", root)?;
        let build = directory.join("build");
        fs::create_dir_all(&build).map_err(|cause| LiveError::Inside(cause.to_string()))?;
        if let Some(source) = &client.source {
            write(&format!("build/{}", source.file), &source.text)?;
        }
        let mut program = Self { client, directory, version: String::new() };
        program.version = program.run_outside(&client.version)?;
        if let Some(prepare) = &client.prepare {
            program.run_outside(prepare)?;
        }
        Ok(program)
    }

    /// Runs a command of the client in the user's own environment, and returns its first line.
    fn run_outside(&self, command: &str) -> Result<String, LiveError> {
        let command = self.fill(command, "", &self.directory.join("build"));
        let missing = |cause: &str| {
            let first = command.lines().next().map(truncate).unwrap_or_default();
            LiveError::Missing(format!("{} ({first})", cause.trim()))
        };
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(self.directory.join("build"))
            .stdin(Stdio::null())
            .output()
            .map_err(|cause| missing(&cause.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let first =
            |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).map(truncate);
        if !output.status.success() {
            let last = err.lines().map(str::trim).rfind(|line| !line.is_empty()).map(truncate);
            return Err(missing(&last.unwrap_or_else(|| output.status.to_string())));
        }
        Ok(first(&out).or_else(|| first(&err)).unwrap_or_default())
    }

    /// Returns the command with its placeholders replaced.
    fn fill(&self, text: &str, url: &str, home: &Path) -> String {
        let build = self.directory.join("build");
        let source = self.client.source.as_ref().map(|source| build.join(&source.file));
        let eyas = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("eyas"));
        let path = |path: &Path| path.display().to_string();
        text.replace("{url}", url)
            .replace("{ca}", &path(&self.directory.join("ca.pem")))
            .replace("{home}", &path(home))
            .replace("{build}", &path(&build))
            .replace("{source}", &source.as_deref().map(path).unwrap_or_default())
            .replace("{eyas}", &path(&eyas))
    }

    /// Describes why there is nothing to measure for clients from which no packet was seen.
    pub(super) fn describe_silence(&self, home: &Path) -> String {
        let message = last_message(&home.join(MESSAGES));
        let message = message.map(|text| format!("; it reported: {text}")).unwrap_or_default();
        format!("the client queried no name and opened no connection{message}")
    }

    /// Runs a fetch in this namespace with this home directory, and waits for its end.
    pub(super) fn fetch(
        &self,
        host: &NetworkNamespace,
        url: &str,
        home: &Path,
        give_up: Duration,
        stop: &AtomicBool,
    ) -> Result<FetchEnd, LiveError> {
        let failed =
            |cause: &dyn std::fmt::Display| LiveError::Inside(format!("the client: {cause}"));
        fs::create_dir_all(home).map_err(|cause| failed(&cause))?;
        let messages = home.join(MESSAGES);
        let log = File::create(&messages).map_err(|cause| failed(&cause))?;
        let mut command = host.command("unshare");
        command
            .args(["--mount", "sh", "-c", COVER])
            .arg(self.directory)
            .arg(self.fill(&self.client.command, url, home))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("HOME", home)
            .env("TMPDIR", home)
            .env("LANG", "C.UTF-8")
            .envs(
                self.client
                    .environment
                    .iter()
                    .map(|(key, value)| (key, self.fill(value, url, home))),
            )
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = ProcessGroup(command.spawn().map_err(|cause| failed(&cause))?);
        let until = Instant::now()
            + give_up
            + self.client.starts_within.map_or(STARTS_WITHIN, |time| time.0);
        while Instant::now() < until {
            if stop.load(Ordering::Relaxed) {
                return Err(LiveError::Stopped);
            }
            if let Some(status) = child.0.try_wait().map_err(|cause| failed(&cause))? {
                let at = SystemTime::now().duration_since(UNIX_EPOCH).ok();
                return check(status, &messages).map(|()| FetchEnd { at });
            }
            std::thread::sleep(CHECK_EVERY);
        }
        Ok(FetchEnd { at: None })
    }
}

/// Checks whether the client could be started at all; its packets show how it fared.
fn check(status: ExitStatus, messages: &Path) -> Result<(), LiveError> {
    // 125 comes from `COVER`, 126 and 127 from the shell: not executable, not found.
    match status.code() {
        Some(code @ 125..=127) => {
            let message = last_message(messages).unwrap_or_else(|| format!("exit code {code}"));
            Err(LiveError::Missing(format!("the client does not start: {message}")))
        }
        _ => Ok(()),
    }
}

fn last_message(messages: &Path) -> Option<String> {
    let output = fs::read(messages).ok()?;
    let output = String::from_utf8_lossy(&output);
    output.lines().rfind(|line| !line.trim().is_empty()).map(truncate)
}

fn truncate(line: &str) -> String {
    printable(&line.chars().take(MAX_MESSAGE).collect::<String>())
}

/// A process and its children, which all end with it.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The group keeps its number as long as any process is in it, even after the first one has
        // ended.
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}
