//! Connections to a socket of the file system (`AF_UNIX`), as those of Docker and systemd.

use std::{net::Ipv4Addr, sync::Arc};

use eyas::{
    ConnectionFeedback, ConnectionInfo, RaceRecording, host::unix_socket::UnixStream,
    race::candidate::Transport,
};
use tokio::time::Instant;

use super::{
    dial::{Dialled, Dialler},
    route::Route,
};
use crate::{Error, Kind, connection_report::ConnectionReport, protocol::Way};

impl Dialler {
    /// Connects to the socket that all requests of this client go to.
    pub(super) async fn to_unix_socket(&self, route: &Route) -> Result<Dialled, Error> {
        let Some(path) = &self.unix_socket else {
            return Err(Error::new(Kind::Connect, "there is no socket to connect to"));
        };
        let begun = Instant::now();
        let stream = UnixStream::connect(path).await.map_err(|cause| {
            Error::new(Kind::Connect, format!("cannot connect to {}: {cause}", path.display()))
        })?;
        // The closest to it: a stream of bytes of the kernel, without an address.
        let mut info = ConnectionInfo::new(Transport::Tcp, (Ipv4Addr::UNSPECIFIED, 0).into());
        info.timings.transport = Some(begun.elapsed());
        info.reasons.push(format!("everything goes to the socket {}", path.display()));
        let target = route.target(self.versions);
        let sender = match (route.key.https, self.http2_prior_knowledge) {
            (true, _) => self.secured(stream, route).await?,
            (false, known) => {
                let known = known.then(|| "h2".to_owned());
                self.start_on(stream, Way::Direct, known.as_ref()).await?
            }
        };
        let feedback = ConnectionFeedback::new(|_, _| {});
        let report = ConnectionReport::new(Arc::new(info), feedback, RaceRecording::empty(target));
        Ok(Dialled { sender, report, later: None })
    }
}
