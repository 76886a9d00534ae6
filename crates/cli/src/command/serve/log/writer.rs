//! Writes lines to something that may fail for a while, such as a full disk.

use std::io::{self, ErrorKind, Write};

/// A change that the operator is told of, once.
#[derive(Debug)]
pub(super) enum WriterChange {
    /// Lines are lost from now on.
    Failed(io::Error),
    /// Lines are written again, after so many were lost.
    Resumed(u64),
}

/// Writes lines, and counts those that it could not write.
#[derive(Debug)]
pub(super) struct LineWriter<W> {
    out: W,
    /// The number of lines that are lost since the last that was written.
    lost: u64,
    /// Whether only a part of a line was written at last.
    is_torn: bool,
    has_failed: bool,
}

impl<W: Write> LineWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, lost: 0, is_torn: false, has_failed: false }
    }

    /// Returns the number of lines that were lost, apart from those reported by [`WriterChange::Resumed`].
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Continues elsewhere.
    pub(super) fn continue_in(&mut self, out: W) {
        self.out = out;
        self.is_torn = false;
    }

    /// Writes as much of these lines as possible.
    pub(super) fn write(&mut self, lines: &[String]) -> Option<WriterChange> {
        if lines.is_empty() {
            return None;
        }
        // The rest of a line that is lost must not be taken for the begin of the next one.
        let mut text = if self.is_torn { "\n".to_owned() } else { String::new() };
        let begin = text.len();
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        let (written, outcome) = self.write_all(text.as_bytes());
        if written > 0 {
            self.is_torn = text.as_bytes()[written - 1] != b'\n';
        }
        let complete = text.as_bytes()[begin.min(written)..written].iter();
        let complete = complete.filter(|byte| **byte == b'\n').count();
        match outcome {
            Ok(()) => {
                self.has_failed = false;
                let lost = std::mem::take(&mut self.lost);
                (lost > 0).then_some(WriterChange::Resumed(lost))
            }
            Err(cause) => {
                self.lost += (lines.len() - complete) as u64;
                let is_new = !std::mem::replace(&mut self.has_failed, true);
                is_new.then_some(WriterChange::Failed(cause))
            }
        }
    }

    /// Returns how much was written, even if there was an error then.
    fn write_all(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.out.write(&bytes[written..]) {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(length) => written += length,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return (written, Err(cause)),
            }
        }
        (written, self.out.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with so many bytes left.
    #[derive(Debug, Default)]
    struct Disk {
        content: Vec<u8>,
        free: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.free == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            let length = bytes.len().min(self.free);
            self.free -= length;
            self.content.extend(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_was_lost_is_said_once() {
        let mut writer = LineWriter::new(Disk { free: 11, ..Disk::default() });
        assert!(writer.write(&lines("one")).is_none());
        let failed = writer.write(&lines("two three four"));
        assert!(matches!(failed, Some(WriterChange::Failed(_))), "{failed:?}");
        assert!(writer.write(&lines("five")).is_none(), "it is known");
        assert_eq!(writer.lost(), 3);
        writer.out.free = 100;
        assert!(matches!(writer.write(&lines("six")), Some(WriterChange::Resumed(3))));
        assert!(writer.write(&lines("seven")).is_none());
        assert_eq!(writer.lost(), 0);
        assert_eq!(String::from_utf8_lossy(&writer.out.content), "one\ntwo\nthr\nsix\nseven\n");
        writer.out.free = 0;
        assert!(
            matches!(writer.write(&lines("eight")), Some(WriterChange::Failed(_))),
            "a new one"
        );
        assert_eq!(writer.lost(), 1);
    }

    #[test]
    fn a_new_file_begins_with_a_whole_line() {
        let mut writer = LineWriter::new(Disk { free: 2, ..Disk::default() });
        assert!(writer.write(&lines("one")).is_some());
        writer.continue_in(Disk { free: 100, ..Disk::default() });
        assert!(matches!(writer.write(&lines("two")), Some(WriterChange::Resumed(1))));
        assert_eq!(writer.out.content, b"two\n");
    }
}
