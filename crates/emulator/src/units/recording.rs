//! A recorded rate: a trace file of mahimahi.

use std::fmt;
use std::str::FromStr;

use eyas_netem::link::DeliveryTrace;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A recorded rate, and the file that it was read from.
///
/// In plans and on the command line it is the name of the file; in results it is the content as
/// well, so that a run can be repeated without the file.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRecording {
    /// The name of the file.
    pub file: String,
    /// Its content.
    pub trace: DeliveryTrace,
}

/// The file cannot be read, or is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct ReadRecordingError {
    file: String,
    reason: String,
}

impl FromStr for RateRecording {
    type Err = ReadRecordingError;

    fn from_str(file: &str) -> Result<Self, ReadRecordingError> {
        let refused = |cause: &dyn fmt::Display| ReadRecordingError {
            file: file.to_owned(),
            reason: cause.to_string(),
        };
        let text = std::fs::read_to_string(file).map_err(|cause| refused(&cause))?;
        let trace = DeliveryTrace::parse(&text).map_err(|cause| refused(&cause))?;
        Ok(Self { file: file.to_owned(), trace })
    }
}

impl Serialize for RateRecording {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let times: Vec<String> = self.trace.times().map(|time| time.to_string()).collect();
        let mut recording = serializer.serialize_struct("Recording", 2)?;
        recording.serialize_field("file", &self.file)?;
        recording.serialize_field("times", &times.join("\n"))?;
        recording.end()
    }
}

impl<'de> Deserialize<'de> for RateRecording {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RecordingVisitor {
            File(String),
            Content { file: String, times: String },
        }
        match RecordingVisitor::deserialize(deserializer)? {
            RecordingVisitor::File(file) => file.parse().map_err(de::Error::custom),
            RecordingVisitor::Content { file, times } => {
                let trace = DeliveryTrace::parse(&times).map_err(de::Error::custom)?;
                Ok(Self { file, trace })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_stored_with_its_content() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1\n4\n4\n10\n").unwrap();
        let name = file.path().to_str().unwrap().to_owned();
        let recording: RateRecording = name.parse().unwrap();
        let stored = serde_json::to_string(&recording).unwrap();
        drop(file);
        assert_eq!(serde_json::from_str::<RateRecording>(&stored).unwrap(), recording);
        assert!(name.parse::<RateRecording>().unwrap_err().to_string().starts_with(&name));
    }

    #[test]
    fn an_error_names_file_and_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1\n4\n3\n").unwrap();
        let name = file.path().to_str().unwrap();
        let error = name.parse::<RateRecording>().unwrap_err().to_string();
        assert_eq!(error, format!("{name}: line 3: earlier than the line before"));
    }
}
