//! A network namespace for tests that add and remove addresses: the test executes itself again
//! inside it. If that is not permitted, the test prints a note and checks nothing.

use std::io::Write;
use std::process::{Command, Stdio};

/// Set inside the namespace.
const INSIDE: &str = "EYAS_TEST_INSIDE_NAMESPACE";

/// Runs `body` in its own namespaces of the network, which is empty, and of mounts, with privileges there. `test` is the full name of the
/// calling test.
pub(crate) fn in_its_own(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = match namespace() {
        Ok(command) => command,
        Err(why) => {
            // Written directly, because the harness hides the output of tests that pass.
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
    let stdout = String::from_utf8_lossy(&output.stdout);
    // With a name that no test has, nothing would have run, which is a success to the harness.
    assert!(
        output.status.success() && stdout.contains("running 1 test"),
        "{test}: {stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the command that starts this program in its own namespace, or why that is not possible.
fn namespace() -> Result<Command, String> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--net"]);
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

/// Runs `ip` with these arguments, separated by spaces.
pub(crate) fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Runs a program with these arguments, separated by spaces.
pub(crate) fn run(program: &str, arguments: &str) {
    let output = Command::new(program).args(arguments.split(' ')).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {stderr}");
}
