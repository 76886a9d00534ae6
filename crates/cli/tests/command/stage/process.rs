//! Runs the binary, to its end or as a server.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The limit of a run; one that takes longer hangs.
const HANGS: Duration = Duration::from_secs(180);

/// A command line of the binary, with its own environment and state directory.
pub(crate) struct Eyas {
    arguments: Vec<OsString>,
    state: Option<PathBuf>,
    directory: Option<PathBuf>,
    stdin: Option<&'static str>,
    keeps_stdin: bool,
    descriptors: Option<u32>,
    variables: Vec<(&'static str, OsString)>,
}

/// A run in progress.
pub(crate) struct Running {
    child: OwnChild,
    /// Its standard input, if it stays open.
    stdin: Option<ChildStdin>,
    started: Instant,
    out: std::thread::JoinHandle<()>,
    printed: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
}

/// A process that ends with its test, such as a server.
struct OwnChild(Child);

impl Drop for OwnChild {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The exit code.
    pub(crate) code: Option<i32>,
    /// Standard output, as text.
    pub(crate) out: String,
    /// Standard output, in bytes.
    pub(crate) length: usize,
    /// Standard error.
    pub(crate) err: String,
}

impl Eyas {
    /// Creates a command line from these arguments, separated by spaces.
    pub(crate) fn new(line: &str) -> Self {
        let arguments = line.split_whitespace().map(OsString::from).collect();
        let (state, directory, stdin, descriptors) = (None, None, None, None);
        let variables = Vec::new();
        Self { arguments, state, directory, stdin, keeps_stdin: false, descriptors, variables }
    }

    /// Appends an argument, without splitting it.
    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets the XDG state directory, which contains the memory.
    pub(crate) fn state(mut self, directory: &Path) -> Self {
        self.state = Some(directory.to_owned());
        self
    }

    /// Sets the working directory, which also contains the sockets of tunnels.
    pub(crate) fn within(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Sets its standard input; empty by default.
    pub(crate) fn stdin(mut self, text: &'static str) -> Self {
        self.stdin = Some(text);
        self
    }

    /// Keeps its standard input open until it ends.
    pub(crate) fn keep_stdin(mut self) -> Self {
        self.keeps_stdin = true;
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Limits the number of descriptors.
    pub(crate) fn descriptors(mut self, limit: u32) -> Self {
        self.descriptors = Some(limit);
        self
    }

    /// Starts it, to be observed while it runs.
    pub(crate) fn start(self) -> Running {
        let started = Instant::now();
        let mut command = self.command();
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the binary starts");
        let mut input = child.stdin.take().expect("a pipe");
        // A run that ended early does not read its input.
        let _ = input.write_all(self.stdin.unwrap_or_default().as_bytes());
        let stdin = self.keeps_stdin.then_some(input);
        let (out, printed) = collect_in_thread(child.stdout.take());
        let err = Arc::new(Mutex::new(String::new()));
        let (lines, output) = (BufReader::new(child.stderr.take().expect("a pipe")), err.clone());
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut output = output.lock().expect("not poisoned");
                output.push_str(&line);
                output.push('\n');
            }
        });
        Running { child: OwnChild(child), stdin, started, out, printed, err, reader }
    }

    /// Returns the command, not yet started.
    pub(crate) fn command(&self) -> Command {
        const BINARY: &str = env!("CARGO_BIN_EXE_eyas");
        let mut command = match self.descriptors {
            None => Command::new(BINARY),
            Some(limit) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\""), BINARY]);
                shell
            }
        };
        command.args(&self.arguments).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        match &self.state {
            Some(state) => command.env("XDG_STATE_HOME", state),
            None => command.env("EYAS_MEMORY", "none"),
        };
        if let Some(directory) = &self.directory {
            command.current_dir(directory).env("XDG_RUNTIME_DIR", directory);
        }
        command
    }

    /// Runs it to the end.
    pub(crate) fn run(self) -> Finished {
        let started = Instant::now();
        let mut command = self.command();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let err = read_in_thread(child.stderr.take());
        let out = read_in_thread(child.stdout.take());
        let code = wait(&mut child, started).code();
        let [out, err] = [out, err].map(|reader| reader.join().expect("reads"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Finished { code, out: text(&out), length: out.len(), err: text(&err) }
    }
}

/// Lowers the limit of descriptors of a running process to this many more than it has.
#[cfg(target_os = "linux")]
pub(crate) fn leave_descriptors(process: u32, more: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").count() as u64;
    let limit = Some(open + more);
    let pid = Pid::from_raw(process as i32);
    prlimit(pid, Resource::Nofile, Rlimit { current: limit, maximum: limit }).expect("a child");
}

impl Running {
    /// Waits until standard error contains this.
    pub(crate) fn wait_for_stderr(&self, word: &str) {
        let has_printed = || self.err.lock().expect("not poisoned").contains(word);
        self.until(&format!("prints {word}"), has_printed);
    }

    /// Waits until standard output contains this.
    pub(crate) fn wait_for_stdout(&self, word: &str) {
        let has_printed =
            || String::from_utf8_lossy(&self.printed.lock().expect("not poisoned")).contains(word);
        self.until(&format!("prints {word}"), has_printed);
    }

    /// Waits until the condition holds; `what` describes it for the panic message.
    pub(crate) fn until(&self, what: &str, condition: impl Fn() -> bool) {
        while !condition() {
            assert!(self.started.elapsed() < HANGS, "it never {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns its process id.
    #[cfg(target_os = "linux")]
    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends it a signal, by name; it may already have ended.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.0.id().to_string();
        // Its process id is not reused before it is waited for.
        Command::new("kill").args(["-s", name, &id]).status().expect("kill is there");
    }

    /// Waits for it to end.
    pub(crate) fn end(mut self) -> Finished {
        let code = wait(&mut self.child.0, self.started).code();
        drop(self.stdin);
        self.out.join().expect("reads");
        let out = std::mem::take(&mut *self.printed.lock().expect("not poisoned"));
        self.reader.join().expect("reads");
        let err = self.err.lock().expect("not poisoned").clone();
        let text = String::from_utf8_lossy(&out).into_owned();
        Finished { code, out: text, length: out.len(), err }
    }
}

/// Reads to the end, and makes what was read so far available.
fn collect_in_thread(
    from: Option<impl Read + Send + 'static>,
) -> (std::thread::JoinHandle<()>, Arc<Mutex<Vec<u8>>>) {
    let mut from = from.expect("a pipe");
    let collected = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&collected);
    let reader = std::thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        loop {
            match from.read(&mut piece).expect("reads") {
                0 => return,
                length => {
                    shared.lock().expect("not poisoned").extend_from_slice(&piece[..length]);
                }
            }
        }
    });
    (reader, collected)
}

fn read_in_thread(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    let mut from = from.expect("a pipe");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("reads");
        bytes
    })
}

fn wait(child: &mut Child, started: Instant) -> std::process::ExitStatus {
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if started.elapsed() > HANGS {
            child.kill().expect("a child");
            panic!("the run hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Finished {
    /// Parses the printed object.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|cause| panic!("{cause}: {}\n{}", self.out, self.err))
    }

    /// Asserts the exit code, and that nothing panicked.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

/// `eyas serve` in a separate process, stopped when dropped.
pub(crate) struct Served {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The object that it printed.
    pub(crate) object: Value,
}

impl Served {
    /// Starts it with these arguments in addition to `--listen 127.0.0.1:0 --json`.
    pub(crate) fn start(eyas: Eyas) -> Self {
        let eyas = eyas.arg("--json").arg("--listen").arg("127.0.0.1:0");
        let mut command = eyas.command();
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut text = String::new();
        let object: Value = loop {
            let line = lines.next().expect("the server prints its address").expect("reads");
            text.push_str(&line);
            if let Ok(object) = serde_json::from_str(&text) {
                break object;
            }
        };
        super::validate("serve", &object);
        let address = object["address"].as_str().expect("an address").parse().expect("parses");
        Self { child, address, object }
    }

    /// Sends SIGINT, as Ctrl-C does, and returns the exit code.
    #[cfg(unix)]
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("kill is there");
        assert!(sent.success());
        wait(&mut self.child, Instant::now()).code()
    }

    /// Returns a URL of the server, by address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
