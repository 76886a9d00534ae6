//! A connector for ureq. ureq's traits block, so a separate runtime drives the connections.

use std::{
    fmt, io,
    sync::{Arc, Weak},
};

use ::ureq::{
    Agent, Error as UreqError,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{ResolvedSocketAddrs, Resolver},
        transport::{
            Buffers, ConnectionDetails, Connector as UreqConnector, LazyBuffers, NextTimeout,
            ShutdownHandle, Transport, time::Duration,
        },
    },
};
use eyas::{ByteStream, Security};
use futures_util::{FutureExt, TryFutureExt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::{Builder, Runtime},
};
use tokio_util::sync::CancellationToken;

use super::Connector;
use crate::Versions;

impl Connector {
    /// Returns a ureq agent whose connections are raced. They are driven by one thread, which ends
    /// with the agent's last clone and last response.
    ///
    /// TLS is the endpoint's: the TLS settings, resolver and addresses of `config` are ignored.
    /// Requests that `config` would send through a proxy fail. Like all of ureq, the agent blocks
    /// and must not be used in async code.
    ///
    /// # Errors
    /// If the thread cannot be started.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use eyas_http::connector::Connector;
    ///
    /// let connector = Connector::new(eyas::Endpoint::builder().build()?);
    /// let agent = connector.into_ureq(ureq::Agent::config_builder().build())?;
    /// println!("{}", agent.get("https://example.com/").call()?.body_mut().read_to_string()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_ureq(self, config: Config) -> io::Result<Agent> {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(1).thread_name("eyas-ureq").enable_all();
        let racing_connector = RacingConnector {
            connector: self.versions(Versions::HTTP_1),
            driver: Arc::new(Driver(Some(runtime.build()?))),
        };
        Ok(Agent::with_parts(config, racing_connector, Unresolved))
    }
}

/// A runtime that can be dropped anywhere, even in async code.
struct Driver(Option<Runtime>);

impl Driver {
    /// Drives `io` to completion, unless the timeout expires or the agent is shut down first.
    fn run<T, E: Into<UreqError>>(
        &self,
        timeout: NextTimeout,
        shutdown: &CancellationToken,
        io: impl Future<Output = Result<T, E>>,
    ) -> Result<T, UreqError> {
        let Some(runtime) = &self.0 else { return Err(shut_down()) };
        runtime.block_on(async {
            let limit = async {
                match timeout.after {
                    Duration::Exact(limit) => tokio::time::sleep(limit).await,
                    Duration::NotHappening => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => Err(shut_down()),
                outcome = io => outcome.map_err(Into::into),
                () = limit => Err(UreqError::Timeout(timeout.reason)),
            }
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn shut_down() -> UreqError {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the agent was shut down").into()
}

/// A resolver that resolves nothing, because the race does.
#[derive(Debug)]
struct Unresolved;

impl Resolver for Unresolved {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, UreqError> {
        Ok(self.empty())
    }
}

struct RacingConnector {
    connector: Connector,
    driver: Arc<Driver>,
}

impl UreqConnector for RacingConnector {
    type Out = RacedTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<RacedTransport>, UreqError> {
        let proxy = details.config.proxy();
        if proxy.is_some_and(|proxy| !proxy.is_no_proxy(details.uri)) {
            let what = "races do not go through a proxy; build the configuration with proxy(None)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what).into());
        }
        let shutdown = Arc::new(Shutdown::default());
        let weak = Arc::downgrade(&shutdown);
        (details.register_shutdown)(weak as Weak<dyn ShutdownHandle>)?;
        let raced = self.connector.connect(details.uri);
        let raced = raced.map_err(|error| UreqError::Other(Box::new(error)));
        let stream = self.driver.run(details.timeout, &shutdown.0, raced)?.into_inner();
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(RacedTransport { stream, buffers, shutdown, driver: Arc::clone(&self.driver) }))
    }
}

impl fmt::Debug for RacingConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connector.fmt(f)
    }
}

/// Cancelled when the agent is shut down.
#[derive(Default)]
struct Shutdown(CancellationToken);

impl ShutdownHandle for Shutdown {
    fn shutdown(&self) {
        self.0.cancel();
    }
}

struct RacedTransport {
    stream: ByteStream,
    buffers: LazyBuffers,
    shutdown: Arc<Shutdown>,
    /// Declared last, so that it is dropped after the stream, which needs it.
    driver: Arc<Driver>,
}

impl Transport for RacedTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), UreqError> {
        let Self { stream, buffers, shutdown, driver } = self;
        let output = &buffers.output()[..amount];
        driver.run(timeout.for_write(), &shutdown.0, async {
            stream.write_all(output).await?;
            stream.flush().await
        })
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, UreqError> {
        let Self { stream, buffers, shutdown, driver } = self;
        let read = stream.read(buffers.input_append_buf());
        let amount = driver.run(timeout.for_read(), &shutdown.0, read)?;
        buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        let stream = &mut self.stream;
        // There must be nothing to read between two responses; any input means that the connection
        // is unusable.
        let read = async { Ok::<_, UreqError>(stream.read(&mut [0]).now_or_never()) };
        let now = NextTimeout::default();
        matches!(self.driver.run(now, &self.shutdown.0, read), Ok(None))
    }

    fn is_tls(&self) -> bool {
        self.stream.info().security != Security::None
    }
}

impl fmt::Debug for RacedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}
