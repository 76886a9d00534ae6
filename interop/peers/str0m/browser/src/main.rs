//! Data channels between a page in a browser and str0m on eyas-sctp: serves the page on loopback, answers its
//! offer, and prints the reports of both sides.
//!
//! | file | purpose |
//! | --- | --- |
//! | `page.html` | the browser's side: offers, opens the channels, checks what arrives |
//! | `session` | str0m: packets, time, channels |
//! | `traffic` | the messages of a channel, sent and received |

mod session;
mod traffic;

use std::error::Error;
use std::time::{Duration, Instant};

use tiny_http::{Header, Method, Request, Response, Server};

use crate::session::Session;

/// The time limit of the page's report.
const LIMIT: Duration = Duration::from_secs(90);
/// The polling interval of the page's requests and the session's packets.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::http("127.0.0.1:0").map_err(|error| error as Box<dyn Error>)?;
    println!("http://{}/", server.server_addr());
    let end = Instant::now() + LIMIT;
    let mut session = None;
    while Instant::now() < end {
        if let Some(request) = server.try_recv()?
            && let Some(report) = answer(request, &mut session)?
        {
            println!("{report}");
            return Ok(());
        }
        match &mut session {
            Some(session) => session.step(POLL_INTERVAL)?,
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }
    let state = session.map_or("the page was not requested".into(), |session| session.report());
    Err(format!("no page has reported within {LIMIT:?}: {state}").into())
}

/// Answers one request of the page; returns the reports of both sides once the page sends its own.
fn answer(
    mut request: Request,
    session: &mut Option<Session>,
) -> Result<Option<String>, Box<dyn Error>> {
    let mut body = String::new();
    request.as_reader().read_to_string(&mut body)?;
    let post = *request.method() == Method::Post;
    match (request.url(), post) {
        ("/", false) => {
            let html = Header::from_bytes("Content-Type", "text/html; charset=utf-8");
            let html = html.map_err(|()| "no header")?;
            let page = include_str!("page.html");
            request.respond(Response::from_string(page).with_header(html))?;
        }
        ("/offer", true) => {
            let (started, answer) = Session::new(&body)?;
            *session = Some(started);
            request.respond(Response::from_string(answer))?;
        }
        ("/report", true) => {
            request.respond(Response::empty(204))?;
            let ours = session.as_ref().map_or("null".into(), Session::report);
            return Ok(Some(format!("{{\"page\":{body},\"program\":{ours}}}")));
        }
        _ => request.respond(Response::empty(404))?,
    }
    Ok(None)
}
