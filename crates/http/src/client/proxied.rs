//! Connections through a proxy: a TCP connection to it, and then a tunnel, or the request itself
//! for `http` URLs and an HTTP proxy.

use eyas::race::{
    candidate::{Security, Transport},
    evidence::AttemptFailure,
    target::{Target, TargetHost},
};

use super::{
    dial::{Dialled, Dialler},
    proxy::{self, ProxyAddress, ProxyProtocol},
    route::Route,
};
use crate::{
    Error, Kind,
    connection_report::ConnectionReport,
    error::connect_error,
    protocol::{Http1, Life, Sender, Way},
};

impl Dialler {
    /// Connects to the route's peer through a proxy.
    pub(super) async fn connect_through(
        &self,
        proxy: &ProxyAddress,
        route: &Route,
    ) -> Result<Dialled, Error> {
        if !self.versions.over_streams() {
            return Err(Error::new(Kind::Proxy, "HTTP/3 does not go through a proxy"));
        }
        let host = TargetHost::parse(&proxy.host)
            .map_err(|error| Error::new(Kind::Proxy, format!("{}: {error}", proxy.name())))?;
        let security =
            if proxy.protocol == ProxyProtocol::Https { Security::Tls } else { Security::None };
        let target = Target::plain(host, proxy.port, vec![Transport::Tcp], security);
        let target = target.named_as(&proxy.host);
        let mut policy = self.race.clone();
        policy.transports = vec![Transport::Tcp];
        // As in curl, whose `--ech` is about the destination.
        let preconnection = self.endpoint.preconnection(target).policy(policy).without_ech();
        let mut initiation = preconnection.initiate();
        let mut connection = initiation
            .usable()
            .await
            .map_err(|error| connect_error(error).with_kind(Kind::Proxy))?;
        let info = connection.shared_info();
        let report = ConnectionReport::new(info, connection.feedback(), initiation.recording())
            .through_proxy(&proxy.name());
        // At the other end of a tunnel is the proxy: if it is silent, nobody is reached through it, and
        // if the peer behind it is, it will end the tunnel.
        let below = Life::of_stream(&mut connection);
        let stream = connection
            .into_stream()
            .map_err(|_| Error::new(Kind::Proxy, "the connection closed before it was used"))?;
        let sender = if route.is_forwarded() {
            Http1::start(stream, true).await.map(Sender::Http1)
        } else {
            self.tunnelled(stream, proxy, route).await
        };
        let sender = sender.map_err(|error| error.with_candidate(&report))?;
        Ok(Dialled { sender: sender.with_life_below(below), report, later: None })
    }

    async fn tunnelled(
        &self,
        stream: eyas::ByteStream,
        proxy: &ProxyAddress,
        route: &Route,
    ) -> Result<Sender, Error> {
        if proxy.protocol != ProxyProtocol::Socks5 {
            let tunnel = proxy::tunnel(stream, &route.authority(), proxy).await?;
            return self.secured(tunnel, route).await.map_err(through_proxy);
        }
        let tunnel = proxy::socks5(stream, &route.authority(), proxy).await?;
        if route.key.https {
            return self.secured(tunnel, route).await.map_err(through_proxy);
        }
        Http1::start(tunnel, false).await.map(Sender::Http1)
    }

    /// Starts TLS and HTTP with the peer at the other end of a stream.
    pub(super) async fn secured<S>(&self, tunnel: S, route: &Route) -> Result<Sender, Error>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let alpn = self.versions.stream_alpn();
        let tls = self.endpoint.secure(tunnel, &route.host, &alpn).await.map_err(tls_error)?;
        let negotiated = tls.get_ref().1.alpn_protocol();
        let negotiated = negotiated.map(|name| String::from_utf8_lossy(name).into_owned());
        self.start_on(tls, Way::Tunnel, negotiated.as_ref()).await
    }
}

fn tls_error(failure: AttemptFailure) -> Error {
    if failure.peer_certificate().is_some() {
        return Error::new(Kind::Certificate, failure.detail);
    }
    let kind = match failure.cause {
        cause if cause.is_of_security() => Kind::Tls,
        _ => Kind::Connect,
    };
    Error::new(kind, format!("{}: {}", failure.cause, failure.detail))
}

/// Says where an error of TLS occurred.
fn through_proxy(error: Error) -> Error {
    let kind = if error.kind() == Kind::Connect { Kind::Proxy } else { error.kind() };
    Error::new(kind, format!("through the proxy: {}", error.detail()))
}

#[cfg(test)]
mod tests {
    use eyas::CertificateFault;
    use eyas::race::evidence::{CertificateFailure, EvidenceLevel, FailureCause};

    use super::*;

    #[test]
    fn the_kind_of_an_error_behind_a_proxy_does_not_depend_on_its_text() {
        let expired = Some(CertificateFailure::PeerCertificate(CertificateFault::Expired));
        let missing = Some(CertificateFailure::OwnCertificate(CertificateFault::Missing));
        for (cause, fault, kind) in [
            (FailureCause::Certificate, expired, Kind::Certificate),
            (FailureCause::Certificate, missing, Kind::Tls),
            (FailureCause::Certificate, None, Kind::Tls),
            (FailureCause::Tls, None, Kind::Tls),
            (FailureCause::Protocol, None, Kind::Connect),
            (FailureCause::Reset, None, Kind::Connect),
        ] {
            for text in [
                "the certificate expired on 2002-01-01, 24 years ago",
                "oga sraey 42 ,10-10-2002 no deripxe etacifitrec eht",
                "the peer ended the handshake: it requires a client certificate",
                "",
            ] {
                let failure = AttemptFailure::new(cause, EvidenceLevel::Transport, text);
                assert_eq!(tls_error(AttemptFailure { fault, ..failure }).kind(), kind, "{text}");
            }
        }
    }
}
