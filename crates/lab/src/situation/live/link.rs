//! The link between two hosts.

use eyas_emulator::units::{LinkSpec, MiddleboxSpec, PercentValue, TimeSpan};
use serde::{Deserialize, Serialize};

use super::error::LiveSetupError;

/// The link between client and server: delay and loss as in the papers, and everything else as in
/// `eyas netem`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSetup {
    /// The round-trip time: half of it is added in each direction.
    #[serde(default)]
    pub delay: TimeSpan,
    /// The loss rate of packets from the server, independent for each packet; packets from the
    /// client are not lost.
    #[serde(default)]
    pub loss: PercentValue,
    /// What the link from the client to the server has instead or in addition.
    #[serde(default, skip_serializing_if = "LinkSpec::is_empty")]
    pub forward: LinkSpec,
    /// What the link from the server to the client has instead or in addition.
    #[serde(default, skip_serializing_if = "LinkSpec::is_empty")]
    pub backward: LinkSpec,
    /// The middleboxes between the client and the link, the one nearest to the client first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub middlebox: Vec<MiddleboxSpec>,
}

impl LinkSetup {
    /// Checks what the keys do not say by themselves.
    pub(super) fn check(&self) -> Result<(), LiveSetupError> {
        if self.forward.up.is_some() || self.backward.up.is_some() {
            return Err(LiveSetupError::LinkState);
        }
        Ok(self.middlebox.iter().try_for_each(MiddleboxSpec::check)?)
    }

    /// Returns the notes for readers.
    pub(super) fn emulated(&self) -> Vec<String> {
        let mut notes = vec![
            "Client and server are network namespaces of one machine, with this kernel's TCP and \
             UDP; their packets pass through eyas-netem in real time. Half of the delay is added in \
             each direction; only packets from the server are lost, independently of one another."
                .to_owned(),
        ];
        let own = [("forward", &self.forward), ("backward", &self.backward)];
        let own = own.into_iter().filter(|(_, spec)| !spec.is_empty());
        let own: Vec<String> = own.map(|(name, spec)| format!("{name}: {spec}")).collect();
        let limits = match own.is_empty() {
            true => "The link has no rate limit and no queue.".to_owned(),
            false => format!("Instead or in addition, {}.", own.join("; ")),
        };
        notes.push(format!(
            "{limits} The machine itself adds about 0.1 ms in each direction, and more when it is \
             busy: client and server have one core each, if there are two, and the link takes its \
             time from both, so differences below a millisecond mean little."
        ));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_what_the_emulator_has() {
        let text = "delay = '50 ms'
            forward = { rate = '1 Mbit/s', queue = '20 packets' }
            backward = { rate = '20 Mbit/s', jitter = '3 ms 25 % normal' }
            middlebox = [{ kind = 'quota', drops = ['udp'], packets = 100 }]";
        let link: LinkSetup = toml::from_str(text).unwrap();
        assert_eq!(link.check(), Ok(()));
        assert!(
            link.emulated()[1].starts_with(
                "Instead or in addition, forward: rate 1 Mbit/s, queue 20 packets; \
                 backward: rate 20 Mbit/s, jitter 3 ms 25 % normal. "
            ),
            "{:?}",
            link.emulated()
        );
        let wrong = |text: &str| toml::from_str::<LinkSetup>(text).unwrap().check().unwrap_err();
        let quota = wrong("middlebox = [{ kind = 'quota' }]").to_string();
        assert_eq!(quota, "live.link: middlebox quota: give one of packets, bytes");
        assert_eq!(wrong("forward.up = false"), LiveSetupError::LinkState);
        assert!(toml::from_str::<LinkSetup>("forward.speed = '1 Mbit/s'").is_err());
    }
}
