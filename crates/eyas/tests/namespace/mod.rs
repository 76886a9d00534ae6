//! A network namespace for a test whose addresses come and go: the test executes itself again
//! inside it. Where that is not allowed it says so and counts for nothing.

use std::io::Write;
use std::process::{Command, Stdio};

/// Set inside the namespace.
const INSIDE: &str = "EYAS_TEST_INSIDE_NAMESPACE";

/// Runs `body` in a namespace of its own, with rights there and with nothing in it. `test` is the
/// whole name of the test that calls this.
pub(crate) fn in_its_own(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = match namespace() {
        Ok(command) => command,
        Err(why) => {
            // Past the harness, which keeps to itself what a test prints that does not fail.
            let mut stderr = std::io::stderr();
            writeln!(stderr, "SKIPPED {test}: no network namespace here: {why}").unwrap();
            return;
        }
    };
    let output = command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Whether this program can be started in a namespace of its own, and what starts it there.
fn namespace() -> Result<Command, String> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]);
        command
    };
    let output = unshare()
        .args(["ip", "link", "add", "here", "type", "veth", "peer", "name", "there"])
        .output()
        .map_err(|error| format!("unshare: {error}"))?;
    if output.status.success() {
        Ok(unshare())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// Runs `ip` with these words, divided at spaces.
pub(crate) fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}
