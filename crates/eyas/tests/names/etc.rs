//! An `/etc` of the test's own, in its namespace.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::configurations::Configuration;

/// What getent(1) needs besides the files of a configuration: nothing.
pub(crate) struct Etc(());

impl Etc {
    /// Hides the host's `/etc` behind an empty one.
    pub(crate) fn new() -> Self {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/etc"]).status().unwrap();
        assert!(mounted.success());
        fs::create_dir("/etc/elsewhere").unwrap();
        Self(())
    }

    pub(crate) fn write(&self, name: &str, contents: &str) {
        fs::write(format!("/etc/{name}"), contents).unwrap();
        wait_for_another_moment();
    }

    /// Makes a configuration, in one of the ways in which such files change.
    pub(crate) fn set(&mut self, at: usize, configuration: &Configuration) {
        for (name, contents) in [
            ("hosts", configuration.hosts),
            ("resolv.conf", configuration.resolv_conf),
            ("nsswitch.conf", configuration.switch),
            ("host.conf", configuration.host_conf),
        ] {
            let path = format!("/etc/{name}");
            let Some(contents) = contents else {
                // It may never have been there.
                let _ = fs::remove_file(&path);
                continue;
            };
            match at % 3 {
                // In place, through a link if there is one.
                0 => fs::write(&path, contents).unwrap(),
                // Atomically.
                1 => {
                    fs::write("/etc/new", contents).unwrap();
                    fs::rename("/etc/new", &path).unwrap();
                }
                // As a link to where a daemon keeps it.
                _ => {
                    let target = format!("/etc/elsewhere/{name}.{at}");
                    fs::write(&target, contents).unwrap();
                    let _ = fs::remove_file("/etc/link");
                    symlink(&target, "/etc/link").unwrap();
                    fs::rename("/etc/link", &path).unwrap();
                }
            }
        }
        wait_for_another_moment();
    }
}

/// A resolver looks at a file once in a millisecond.
fn wait_for_another_moment() {
    std::thread::sleep(std::time::Duration::from_millis(2));
}
