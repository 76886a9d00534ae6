//! Connecting: a race, to wait for or to poll.

use std::{
    ffi::{c_char, c_int},
    pin::pin,
    sync::{Arc, Mutex},
    task::{Poll, ready},
};

use eyas::{Initiation, RaceRecording};

use crate::{
    call::{ffi_call, ffi_call_with_code, release},
    code::{Code, EYAS_END, EYAS_OK, EYAS_WOULD_BLOCK},
    connection::Connection,
    endpoint::Endpoint,
    endpoint_runtime::{EndpointRuntime, RuntimeOwned},
    error::Failure,
    json,
    pointer::{OutPointer, required_handle, return_handle},
    target::Target,
    wait::{CallTurn, HandleClosed, WaitLimit, lock, store_descriptor, wait},
};

/// A race to a target, in progress or over. May be used from any thread, with one waiting call at a
/// time.
pub struct Race {
    state: RuntimeOwned<Mutex<RaceState>>,
    recording: RuntimeOwned<RaceRecording>,
    turn: CallTurn,
    over: HandleClosed,
}

struct RaceState {
    /// `None` once it was cancelled.
    initiation: Option<Initiation>,
    /// Whether the result has been returned.
    is_decided: bool,
    is_won: bool,
}

impl Race {
    fn start(endpoint: &Endpoint, target: &Target) -> Result<Self, Failure> {
        let endpoint_runtime = endpoint.endpoint_runtime();
        let preconnection = target.preconnection(endpoint)?;
        let _inside = endpoint_runtime.enter()?;
        let initiation = preconnection.initiate();
        let recording = RuntimeOwned::new(initiation.recording(), endpoint_runtime);
        let state = RaceState { initiation: Some(initiation), is_decided: false, is_won: false };
        let state = RuntimeOwned::new(Mutex::new(state), endpoint_runtime);
        Ok(Self { state, recording, turn: CallTurn::default(), over: HandleClosed::default() })
    }

    fn endpoint_runtime(&self) -> &Arc<EndpointRuntime> {
        self.state.endpoint_runtime()
    }

    fn connection(&self, connection: eyas::Connection) -> Connection {
        Connection::new(connection, Some((*self.recording).clone()), self.endpoint_runtime())
    }

    /// Returns the winning connection.
    fn finish(&self, limit: WaitLimit) -> Result<Option<Connection>, Failure> {
        let _turn = self.turn.acquire("waiting")?;
        let won = wait(self.endpoint_runtime(), &self.turn, &self.over, limit, |cx| {
            let mut state = lock(&self.state);
            if state.is_decided {
                return Poll::Ready(Err(Failure::misuse(
                    "the result of the race was already returned; eyas_race_better returns what follows",
                )));
            }
            let Some(initiation) = &mut state.initiation else { return Poll::Pending };
            let outcome = ready!(pin!(initiation.usable()).poll(cx));
            (state.is_decided, state.is_won) = (true, outcome.is_ok());
            Poll::Ready(outcome.map_err(Failure::from))
        })?;
        Ok(won.map(|connection| self.connection(connection)))
    }

    /// Returns a connection over a more preferred transport; `Some(None)` if there will be none.
    fn better(&self, limit: WaitLimit) -> Result<Option<Option<Connection>>, Failure> {
        let _turn = self.turn.acquire("waiting")?;
        let better = wait(self.endpoint_runtime(), &self.turn, &self.over, limit, |cx| {
            let mut state = lock(&self.state);
            if !state.is_won {
                return Poll::Ready(Err(Failure::misuse(
                    "a better connection follows one that was returned by eyas_race_finish",
                )));
            }
            let Some(initiation) = &mut state.initiation else { return Poll::Pending };
            pin!(initiation.better()).poll(cx).map(Ok)
        })?;
        Ok(better.map(|better| better.map(|connection| self.connection(connection))))
    }

    fn cancel(&self) -> Result<(), Failure> {
        let _inside = self.endpoint_runtime().enter()?;
        self.over.end();
        drop(lock(&self.state).initiation.take());
        self.turn.readiness.raise();
        Ok(())
    }
}

impl Drop for Race {
    fn drop(&mut self) {
        let Ok(_inside) = self.endpoint_runtime().enter() else { return };
        let mut state = lock(&self.state);
        match state.initiation.take() {
            // Its remaining attempts still feed the memory.
            Some(initiation) if state.is_won => initiation.detach(),
            unfinished => drop(unfinished),
        }
    }
}

/// Races to the target, and waits for a working connection. The caller must free it with
/// eyas_connection_free. `timeout_ms` is as for eyas_connection_read, but 0 is not useful here; the
/// target's deadline ends the race in any case. Blocks; may be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_connect(
    endpoint: Option<&Endpoint>,
    target: Option<&Target>,
    timeout_ms: i32,
    connection: OutPointer<'_, *mut Connection>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = connection.null_place("connection")?;
        let limit = WaitLimit::from_milliseconds(timeout_ms);
        if limit == WaitLimit::Now {
            return Err(Failure::invalid(
                "a timeout of 0 leaves no time to connect; give milliseconds, -1 for the target's \
                 deadline alone, or start with eyas_race_start",
            ));
        }
        let race = Race::start(
            required_handle(endpoint, "endpoint")?,
            required_handle(target, "target")?,
        )?;
        let won = race.finish(limit)?;
        return_handle(
            place,
            won.ok_or_else(|| Failure::misuse("the race has not been waited for"))?,
        );
        Ok(())
    })
}

/// Starts a race and returns at once. The caller must free the race with eyas_race_free; the target
/// is copied.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_race_start(
    endpoint: Option<&Endpoint>,
    target: Option<&Target>,
    race: OutPointer<'_, *mut Race>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let place = race.null_place("race")?;
        let (endpoint, target) =
            (required_handle(endpoint, "endpoint")?, required_handle(target, "target")?);
        return_handle(place, Race::start(endpoint, target)?);
        Ok(())
    })
}

/// Stores a descriptor in `fd` that becomes readable (POLLIN) when eyas_race_finish or
/// eyas_race_better is worth a try. It belongs to the race: neither read nor close it.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_race_fd(
    race: Option<&Race>,
    fd: OutPointer<'_, c_int>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || store_descriptor(fd, required_handle(race, "race").map(|one| &one.turn)))
}

/// Returns the winning connection, once, or why there is none. The caller must free the connection
/// with eyas_connection_free. A timeout of 0 does not wait: EYAS_WOULD_BLOCK. EYAS_TIMEOUT ends the
/// call, not the race.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_race_finish(
    race: Option<&Race>,
    timeout_ms: i32,
    connection: OutPointer<'_, *mut Connection>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let place = connection.null_place("connection")?;
        let Some(won) =
            required_handle(race, "race")?.finish(WaitLimit::from_milliseconds(timeout_ms))?
        else {
            return Ok(EYAS_WOULD_BLOCK);
        };
        return_handle(place, won);
        Ok(EYAS_OK)
    })
}

/// Returns a connection over a more preferred transport than that of the last one, once it is
/// ready; EYAS_END: there will be none. Use it for new work; work in progress stays on the old
/// connection.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_race_better(
    race: Option<&Race>,
    timeout_ms: i32,
    connection: OutPointer<'_, *mut Connection>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call_with_code(error, || {
        let place = connection.null_place("connection")?;
        Ok(
            match required_handle(race, "race")?.better(WaitLimit::from_milliseconds(timeout_ms))? {
                None => EYAS_WOULD_BLOCK,
                Some(None) => EYAS_END,
                Some(Some(better)) => {
                    return_handle(place, better);
                    EYAS_OK
                }
            },
        )
    })
}

/// Cancels the race and closes everything that it has opened, except connections that were
/// returned. A waiting call of another thread returns EYAS_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_race_cancel(
    race: Option<&Race>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || required_handle(race, "race")?.cancel())
}

/// Returns the race so far as JSON (docs/reference/json.md: "A race"), with `plan`. The caller must free the
/// text with eyas_text_free.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_race_json(
    race: Option<&Race>,
    text: OutPointer<'_, *mut c_char>,
    error: OutPointer<'_, *mut Failure>,
) -> Code {
    ffi_call(error, || {
        let (place, race) = (text.required("text")?, required_handle(race, "race")?);
        race.endpoint_runtime().runtime()?;
        json::return_json(place, json::race(&race.recording.trace())?);
        Ok(())
    })
}

/// Frees a race; NULL is allowed. No call on it may be in progress. A race that was won continues
/// for a while to feed the memory; any other is cancelled.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_race_free(race: Option<Box<Race>>) {
    release(race);
}
