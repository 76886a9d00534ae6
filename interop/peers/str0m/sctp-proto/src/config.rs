//! Configuration.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, CongestionControlKind, EndpointConfig as Ours};
use eyas_sctp::data_channel::{ChannelSettings, DtlsRole};
use eyas_sctp::endpoint::Endpoint;

use crate::names::Error;

/// The overhead of a packet with one chunk: the headers of SCTP and I-DATA, and of IPv4 and UDP, which
/// eyas includes.
const HEADERS: u32 = 12 + 20 + 28;

/// `RTO.Min`.
const RTO_MIN: Duration = Duration::from_millis(1500);

/// The settings of an association.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    max_init_retransmits: Option<usize>,
    max_data_retransmits: Option<usize>,
    pub(crate) max_receive_message_size: u32,
    max_receive_buffer_size: u32,
    pub(crate) max_send_message_size: u32,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            max_init_retransmits: Some(8),
            max_data_retransmits: Some(10),
            max_receive_message_size: 256 << 10,
            max_receive_buffer_size: 1 << 20,
            max_send_message_size: 64 << 10,
        }
    }
}

impl TransportConfig {
    #[must_use]
    pub fn with_max_init_retransmits(mut self, most: Option<usize>) -> Self {
        self.max_init_retransmits = most;
        self
    }

    #[must_use]
    pub fn with_max_data_retransmits(mut self, most: Option<usize>) -> Self {
        self.max_data_retransmits = most;
        self
    }

    #[must_use]
    pub fn with_max_receive_message_size(mut self, bytes: u32) -> Self {
        self.max_receive_message_size = bytes;
        self
    }

    #[must_use]
    pub fn with_max_send_message_size(mut self, bytes: u32) -> Self {
        self.max_send_message_size = bytes;
        self
    }

    #[must_use]
    pub fn with_max_receive_buffer_size(mut self, bytes: u32) -> Self {
        self.max_receive_buffer_size = bytes;
        self
    }

    /// Returns the same settings for eyas, for packets with up to `max_payload` bytes of data.
    pub(crate) fn association(&self, max_payload: u32) -> AssociationConfig {
        let mut settings = ChannelSettings::new(DtlsRole::Client);
        settings.max_message_size = self.max_receive_message_size as usize;
        let mut config = settings.association();
        config.receive_buffer = config.receive_buffer.max(self.max_receive_buffer_size as usize);
        let most = |most: Option<usize>| most.map_or(u32::MAX, |most| most as u32);
        config.max_init_retransmits = most(self.max_init_retransmits);
        config.association_max_retrans = most(self.max_data_retransmits);
        config.path_max_retrans = most(self.max_data_retransmits);
        config.rto_initial = RTO_MIN;
        config.rto_max = Duration::from_secs(10);
        config.mtu = u16::try_from(max_payload + HEADERS).unwrap_or(u16::MAX);
        config.packet_overhead = 0;
        // str0m's tests change the round-trip time from zero to a second, which makes the minimum that BBR
        // uses meaningless.
        config.congestion_control = CongestionControlKind::Cubic.into();
        // With a minimum timeout of a second, such a change would count as a loss.
        config.rto_min = RTO_MIN;
        config
    }
}

/// The settings of all associations.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    pub(crate) max_payload: u32,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self { max_payload: 1132 }
    }
}

impl EndpointConfig {
    pub fn max_payload_size(&mut self, bytes: u32) -> &mut Self {
        self.max_payload = bytes;
        self
    }
}

/// The settings of incoming associations.
#[derive(Clone, Debug, Default)]
pub struct ServerConfig {
    pub transport: Arc<TransportConfig>,
}

/// The settings of an outgoing association.
#[derive(Clone, Debug, Default)]
pub struct ClientConfig {
    pub transport: Arc<TransportConfig>,
    pub(crate) inits: Option<(Bytes, Bytes)>,
}

impl ClientConfig {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets both INITs, so that there is no handshake.
    #[must_use]
    pub fn with_snap(mut self, local: Bytes, remote: Bytes) -> Self {
        self.inits = Some((local, remote));
        self
    }
}

/// Returns an INIT for out-of-band negotiation.
pub fn generate_snap_token(transport: &TransportConfig) -> Result<Bytes, Error> {
    let config = transport.association(EndpointConfig::default().max_payload);
    let mut endpoint = Endpoint::new(Ours::default(), seed(), Duration::ZERO);
    Ok(endpoint.init_out_of_band(&config).to_bytes())
}

pub(crate) fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("the system provides random bytes");
    seed
}
