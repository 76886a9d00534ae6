//! `eyas pipe`: standard input and output over whatever transport gets through.

mod abort;
pub(super) mod bytes;
mod framed;
mod messages;

use std::pin::pin;
use std::time::Duration;

use eyas::race::candidate::Security;
use eyas::race::policy::SctpSecurity;
use eyas::{ByteStream, Connection, ListenParameters, Listener, ServerIdentity};
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use eyas_sctp_tokio::protocol::endpoint::PathStatus;
use eyas_sctp_tokio::protocol::identifier::StreamId;
use eyas_sctp_tokio::{ENCAPSULATION_PORT, SctpAssociation};
use serde_json::json;

use self::abort::ConnectionAbort;
use super::interruption::exit_if_stuck;
use super::paths::{self, PathReporter};
use super::race::failed_race_lines;
use super::setting::{self, RaceContext};
use super::target;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, PipeFlags};
use crate::output;
use crate::race_report::ReplayedRace;
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// How long the peer may take to acknowledge the last data.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a QUIC peer may take to acknowledge everything and to close.
const QUIC_CLOSE_TIMEOUT: Duration = Duration::from_millis(300);
/// Names in a generated certificate.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The amount of data transferred.
#[derive(Clone, Debug, Default)]
struct TransferredBytes {
    sent: u64,
    received: u64,
    /// The paths at the end.
    paths: Vec<PathStatus>,
}

/// Connects or waits for a peer, and transfers data in both directions until both sides are done. If it is interrupted
/// before that, the peer sees an error and not an end.
pub(crate) async fn run(flags: &PipeFlags, common: &CommonFlags) -> Result<(), Failure> {
    let mut interruption = super::listen()?;
    exit_if_stuck(super::listen()?);
    let interrupted = |kind| Failure::new(kind, "interrupted");
    let connection = tokio::select! {
        connection = establish(flags, common) => connection?,
        kind = interruption.next() => return Err(interrupted(kind)),
    };
    let abort = ConnectionAbort::from_connection(&connection);
    // Not dropped before the abort, since that would end the connection properly.
    let mut transfer = pin!(transfer(connection, flags, common));
    tokio::select! {
        done = &mut transfer => done,
        kind = interruption.next() => {
            abort.run().await;
            Err(interrupted(kind))
        }
    }
}

async fn establish(flags: &PipeFlags, common: &CommonFlags) -> Result<Connection, Failure> {
    match (&flags.target, flags.listen) {
        (Some(target), _) => connect(target, flags, common).await,
        (None, Some(_)) => accept(flags, common).await,
        (None, None) => Err(Failure::new(FailureKind::Usage, "give a target, or --listen")),
    }
}

/// Transfers data until both sides are done, and reports about it.
async fn transfer(
    connection: Connection,
    flags: &PipeFlags,
    common: &CommonFlags,
) -> Result<(), Failure> {
    if flags.verbose && !common.json {
        print_connected(&connection, common);
    }
    let info = connection.info().clone();
    let reporter = PathReporter::new((flags.verbose && !common.json).then(|| plain(common)));
    let transferred = exchange(connection, flags, &reporter).await?;
    reporter.report_all(&transferred.paths);
    if common.json {
        // Standard output is reserved for the peer's data.
        let object = json!({
            "transport": info.transport.name(),
            "security": info.security.name(),
            "address": info.remote.to_string(),
            "sent": transferred.sent,
            "received": transferred.received,
            "paths": paths::shapes(&transferred.paths),
        });
        output::print_to_stderr(
            &[PaintedLine::new().with_span(Paint::Plain, object.to_string())],
            plain(common),
        );
    }
    Ok(())
}

fn plain(common: &CommonFlags) -> OutputStyle {
    OutputStyle::of_stderr(common.color)
}

async fn connect(
    target: &str,
    flags: &PipeFlags,
    common: &CommonFlags,
) -> Result<Connection, Failure> {
    let target = target::for_pipe(target, &flags.service)?;
    let context = (&flags.choice, &flags.reach, &flags.trust);
    let context = RaceContext::with_paths(&flags.paths, context, &target).await?;
    let mut policy = setting::policy(flags.policy, &flags.choice, &flags.reach, &target)?;
    if flags.message.messages && !flags.paths.wants_several() {
        // DTLS preserves messages.
        policy.sctp_security = SctpSecurity::Dtls;
    }
    let mut preconnection = context.endpoint.preconnection(target).policy(policy);
    if let Some(seed) = flags.choice.seed {
        preconnection = preconnection.seed(seed);
    }
    let mut initiation = preconnection.initiate();
    let connected = initiation.usable().await;
    context.warn(common);
    match connected {
        Ok(connection) => {
            initiation.detach();
            Ok(connection)
        }
        Err(error) => {
            let race_report = ReplayedRace::from_trace(initiation.trace())?;
            let failure = race_report.failure();
            let failure =
                failure.unwrap_or_else(|| Failure::new(FailureKind::Connect, error.to_string()));
            Err(match flags.verbose {
                true => failure.with_below(failed_race_lines(&race_report, plain(common))),
                false => failure,
            })
        }
    }
}

/// Waits for one peer.
async fn accept(flags: &PipeFlags, common: &CommonFlags) -> Result<Connection, Failure> {
    let Some(address) = flags.listen else {
        return Err(Failure::new(FailureKind::Usage, "--listen requires an address"));
    };
    let mut parameters = ListenParameters::new(address)
        .transports(setting::served_transports(!flags.service.plain))
        .with_alpn(flags.service.alpn.clone())
        .sctp_addresses(flags.paths.local_address.iter().copied())
        .sctp_association(setting::association(AssociationConfig::default(), &flags.paths))
        .sctp_encapsulation_port(flags.reach.sctp_udp_port)
        .sctp_optional(!flags.message.messages && flags.reach.sctp_udp_port == ENCAPSULATION_PORT);
    if !flags.service.plain {
        parameters = parameters.security(identity(flags)?);
    }
    let listener = Listener::bind(parameters)
        .await
        .map_err(|cause| Failure::new(FailureKind::Listen, cause.to_string()))?;
    if let Some(why) = listener.sctp_missing() {
        let text = format!("no SCTP inside UDP: {why}; choose another with --sctp-udp-port");
        output::notice(common.color, text);
    }
    if flags.verbose && !common.json {
        let text = format!("listening on {}", listener.local_addr());
        output::print_to_stderr(&[PaintedLine::new().with_span(Paint::Dim, text)], plain(common));
    }
    Ok(listener.accept().await)
}

fn identity(flags: &PipeFlags) -> Result<ServerIdentity, Failure> {
    match (&flags.trust.cert, &flags.trust.key) {
        (Some(cert), Some(key)) => super::identity::from_files(cert, key, &flags.trust.passphrase),
        _ => {
            let names = LOCAL_NAMES.iter().copied().chain(flags.names.iter().map(String::as_str));
            super::identity::generated(names, flags.save_cert.as_deref())
        }
    }
}

fn print_connected(connection: &Connection, common: &CommonFlags) {
    let info = connection.info();
    let security = match info.security {
        Security::None => String::new(),
        security => format!(" under {security}"),
    };
    let text = format!("{} with {}{security}", info.transport, info.remote);
    output::print_to_stderr(&[PaintedLine::new().with_span(Paint::Dim, text)], plain(common));
}

async fn exchange(
    connection: Connection,
    flags: &PipeFlags,
    reporter: &PathReporter,
) -> Result<TransferredBytes, Failure> {
    let association = connection.sctp().cloned();
    association.iter().for_each(|association| drop(reporter.paths(association)));
    let transferred = match &association {
        Some(association) if flags.message.messages => {
            exchange_messages(connection, association, flags, reporter).await?
        }
        None if flags.message.messages => {
            let transport = connection.info().transport;
            return Err(Failure::new(
                FailureKind::Connect,
                format!("{transport} has no messages here"),
            )
            .hint("use SCTP as the only transport, as in sctp://host:port"));
        }
        Some(association) => tokio::select! {
            transferred = exchange_bytes(connection, flags) => transferred?,
            () = reporter.watch(association) => TransferredBytes::default(),
        },
        None => exchange_bytes(connection, flags).await?,
    };
    let Some(association) = association else { return Ok(transferred) };
    let paths = reporter.paths(&association);
    shut_down(&association).await;
    Ok(TransferredBytes { paths, ..transferred })
}

/// Transfers messages directly, or with length prefixes over TLS.
async fn exchange_messages(
    connection: Connection,
    association: &SctpAssociation,
    flags: &PipeFlags,
    reporter: &PathReporter,
) -> Result<TransferredBytes, Failure> {
    let connection = match connection.into_sctp() {
        Ok(association) => return messages::exchange(&association, &flags.message, reporter).await,
        Err(connection) => connection,
    };
    let message = &flags.message;
    if message.unordered || message.lifetime.is_some() || message.ppid != 0 {
        return Err(Failure::new(
            FailureKind::Connect,
            "TLS keeps messages in order and whole: no --unordered, --lifetime or --ppid",
        )
        .hint("sctp-udp:// with one path uses DTLS, which supports them; or use --plain"));
    }
    let stream = StreamId(message.stream);
    let whole = async {
        if stream != StreamId(0) {
            // The first stream stays open until this one is done.
            return framed::exchange(open_stream(&connection, stream).await?).await;
        }
        framed::exchange(into_stream(connection)?).await
    };
    tokio::select! {
        transferred = whole => transferred,
        () = reporter.watch(association) => Ok(TransferredBytes::default()),
    }
}

async fn exchange_bytes(
    connection: Connection,
    flags: &PipeFlags,
) -> Result<TransferredBytes, Failure> {
    let stream = StreamId(flags.message.stream);
    Ok(match connection.sctp() {
        Some(_) if stream != StreamId(0) => {
            // The first stream stays open until this one is done.
            bytes::exchange(open_stream(&connection, stream).await?).await?
        }
        _ => {
            let quic = connection.quic().cloned();
            let transferred = bytes::exchange(into_stream(connection)?).await?;
            if let Some(quic) = quic {
                // The last data may be in flight until the peer has closed.
                let _ = tokio::time::timeout(QUIC_CLOSE_TIMEOUT, quic.closed()).await;
            }
            transferred
        }
    })
}

fn into_stream(connection: Connection) -> Result<ByteStream, Failure> {
    let stream = connection.into_stream();
    stream.map_err(|_| Failure::new(FailureKind::Protocol, "the connection has already ended"))
}

/// Shuts down an association gracefully; errors are ignored.
async fn shut_down(association: &SctpAssociation) {
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, association.shutdown()).await;
}

/// Opens a pair of streams other than the first.
async fn open_stream(connection: &Connection, stream: StreamId) -> Result<ByteStream, Failure> {
    match connection.sctp_stream(stream).await {
        Some(Ok(stream)) => Ok(stream),
        Some(Err(failure)) => Err(Failure::new(FailureKind::Protocol, failure.to_string())),
        None => Err(Failure::new(FailureKind::Connect, "this transport has no numbered streams")),
    }
}
