//! A page in a browser and str0m on eyas-sctp, over data channels: this serves the page on loopback, answers its
//! offer, and prints what both sides have to say of the messages.
//!
//! | file | job |
//! | --- | --- |
//! | `page.html` | the browser's side: offers, opens the channels, checks what comes |
//! | `session` | str0m: packets, time, channels |
//! | `traffic` | what is sent on a channel, and whether that came |

mod session;
mod traffic;

use std::error::Error;
use std::time::{Duration, Instant};

use tiny_http::{Header, Method, Request, Response, Server};

use crate::session::Session;

/// The page has reported by then.
const LIMIT: Duration = Duration::from_secs(90);
/// How long one side waits before it looks at the other: the page's requests, the session's packets.
const PATIENCE: Duration = Duration::from_millis(10);

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
            Some(session) => session.step(PATIENCE)?,
            None => std::thread::sleep(PATIENCE),
        }
    }
    let told = session.map_or("nobody asked for the page".into(), |session| session.report());
    Err(format!("no page has reported within {LIMIT:?}: {told}").into())
}

/// Answers one request of the page; gives what both sides report, if the page does.
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
            let (begun, answer) = Session::new(&body)?;
            *session = Some(begun);
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
