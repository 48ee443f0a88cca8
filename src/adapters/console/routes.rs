//! All routes: the table of docs/design/interfaces.md I-9, the page, probes and metrics.

use std::any::Any;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use tower_http::catch_panic::CatchPanicLayer;

use super::body::Json;
use super::openapi::{self, Api};
use super::problem::Problem;
use super::signin::{self, SignIn};
use super::{
    Shared, addresses, cards, check, companions, external, guard, health, invitations, keeping, live, lore, memory, messages,
    metrics, models, overview, page, page_settings, polling, records, reminders, rooms, tokens, tools, uploads, usage, voice,
};
use crate::ports::backend::Detail;
use crate::ports::backend::keeping::BackedUp;

pub(super) fn routes(console: Shared) -> Router {
    let counted = console.clone();
    api()
        .into_router()
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(CatchPanicLayer::custom(move |_: Box<dyn Any + Send>| panicked(&counted)))
        .layer(from_fn_with_state(console.clone(), guard::guard))
        .with_state(console)
}

/// Each operation: its path, handler, summary, response statuses, and the errors in addition to those of every operation.
pub(super) fn api() -> Api {
    Api::default()
        .get("/api/openapi.json", openapi::served, "Return this description", &[200], &[])
        .producing::<Map<String, Value>>("application/json")
        .get("/api/overview", overview::get, "Return what a page shows when it is opened", &[200], &[])
        .get("/api/rooms", rooms::list, "List all rooms", &[200], &[])
        .post("/api/rooms", rooms::create, "Create a room with an id that is made from its title", &[201], &[409])
        .get("/api/rooms/{room}", rooms::get, "Return one room", &[200], &[404])
        .put("/api/rooms/{room}", rooms::put, "Create a room, or change its companions", &[200, 201], &[409])
        .patch("/api/rooms/{room}", rooms::patch, "Rename or pause a room, and override settings in it", &[200], &[404, 409])
        .delete("/api/rooms/{room}", rooms::delete, "Hide a room, and delete it with its history after a minute", &[202], &[404])
        .get("/api/rooms/{room}/deletion", rooms::deletion, "Say what deleting a room deletes, and when", &[200], &[404])
        .post("/api/rooms/{room}/undelete", rooms::undelete, "Bring a room back that is not deleted yet", &[200], &[404, 409])
        .post("/api/rooms/{room}/messages", messages::say, "Say something as a person", &[202], &[404, 409])
        .for_guests()
        .patch("/api/rooms/{room}/messages/{seq}", messages::edit, "Replace the text of a message", &[202], &[404, 409])
        .for_guests()
        .delete("/api/rooms/{room}/messages/{seq}", messages::delete, "Delete a message", &[202], &[404, 409])
        .for_guests()
        .get(guard::FILES, uploads::file, "Return a file of a message", &[200], &[404])
        .producing::<String>("image/png")
        .producing::<String>("image/jpeg")
        .producing::<String>("image/webp")
        .producing::<String>("image/gif")
        .producing::<String>("audio/ogg")
        .producing::<String>("text/plain")
        .for_guests()
        .post(
            "/api/rooms/{room}/messages/{seq}/again",
            messages::try_again,
            "Have a companion answer again in the place of the newest message; the former answers stay as versions",
            &[204],
            &[404, 409],
        )
        .get("/api/rooms/{room}/calls/{call}", messages::call, "Return a recent call of a tool", &[200], &[404])
        .for_guests()
        .post(
            "/api/rooms/{room}/calls/{call}",
            messages::decide_call,
            "Confirm or decline a call of a tool, as its cause, an approver or an operator, within two minutes",
            &[204],
            &[404, 409],
        )
        .for_guests()
        .post(
            "/api/rooms/{room}/messages/{seq}/continue",
            messages::extend,
            "Have a companion extend the newest message, which is its own",
            &[204],
            &[404, 409],
        )
        .put(
            "/api/rooms/{room}/messages/{seq}/version",
            messages::stand,
            "Make another version of the newest message stand",
            &[204],
            &[404, 409],
        )
        .post(
            "/api/rooms/{room}/next",
            messages::choose,
            "Have a companion speak next without a vote, or every companion once",
            &[202],
            &[404, 409],
        )
        .post(
            "/api/rooms/{room}/drafts",
            messages::draft,
            "Have a companion draft a message for a person; it is not on record",
            &[200],
            &[404, 409, 503],
        )
        .for_guests()
        .post(
            "/api/rooms/{room}/greeting",
            messages::greet,
            "Have a companion say one of its greetings, in a room where nothing was said, or anyway",
            &[202],
            &[404, 409],
        )
        .post("/api/rooms/{room}/scenes", messages::set_scene, "Write a scene into the history", &[202], &[404, 409])
        .post("/api/rooms/{room}/import", messages::import, "Import a chat as a room's history", &[200], &[404, 409])
        .get(
            "/api/rooms/{room}/messages/{seq}/prompt",
            messages::prompt,
            "Return the prompt of one of the newest statements as it was sent",
            &[200],
            &[404],
        )
        .get("/api/rooms/{room}/me", rooms::description, "Return what a person says of themselves", &[200], &[404])
        .for_guests()
        .put("/api/rooms/{room}/me", rooms::describe, "Replace what a person says of themselves", &[204], &[404, 409])
        .for_guests()
        .post(
            "/api/rooms/{room}/replies/{companion}/stop",
            messages::stop_reply,
            "Stop the reply that this companion is making",
            &[204],
            &[404, 409],
        )
        .post(
            "/api/rooms/{room}/events",
            messages::event,
            "Report an event that a companion must acknowledge",
            &[202],
            &[404, 409],
        )
        .post("/api/rooms/{room}/states", external::vote, "Vote in an open round as an external companion", &[202], &[404, 409])
        .post("/api/rooms/{room}/statements", external::speak, "Speak as a selected external companion", &[202], &[404, 409])
        .post("/api/rooms/{room}/clear", rooms::clear, "Cancel replies and questions in progress", &[204], &[404])
        .post(
            "/api/rooms/{room}/conversations",
            rooms::begin_anew,
            "Begin a new conversation: prompts keep the summary and the notes, and show no earlier messages",
            &[204],
            &[404],
        )
        .get("/api/rooms/{room}/history", messages::history, "Return messages", &[200], &[404])
        .for_guests()
        .get("/api/rooms/{room}/search", messages::search, "Search the messages of a room", &[200], &[404])
        .get("/api/rooms/{room}/notes", memory::notes, "Return the notes of a room", &[200], &[404])
        .patch("/api/rooms/{room}/notes/{seq}", memory::correct, "Correct a note", &[204], &[404])
        .delete("/api/rooms/{room}/notes/{seq}", memory::erase, "Erase a note", &[204], &[404])
        .get("/api/rooms/{room}/reminders", reminders::list, "Return the open reminders of a room", &[200], &[404])
        .for_guests()
        .post("/api/rooms/{room}/reminders", reminders::set, "Set a reminder for a person", &[201], &[404, 409])
        .for_guests()
        .delete("/api/rooms/{room}/reminders/{id}", reminders::cancel, "Cancel a reminder", &[204], &[404])
        .for_guests()
        .put("/api/rooms/{room}/time-zone", reminders::set_zone, "Set the time zone of a person", &[204], &[404, 409])
        .for_guests()
        .get("/api/notes", memory::about, "Return the notes by and about a person", &[200], &[404])
        .put("/api/notes", memory::switch, "Turn notes on or off, for a guild or for a person", &[204], &[404])
        .get("/api/rooms/{room}/state", rooms::state, "Return what is going on in a room", &[200], &[404])
        .get("/api/decisions", records::decisions, "Return decisions", &[200], &[404])
        .get("/api/why", records::why, "Explain a decision, or what happened to a message", &[200], &[404])
        .get("/api/usage", usage::usage, "Return calls, tokens and cost", &[200], &[404])
        .get("/api/usage/receptions", usage::receptions, "Return how people received statements, by day", &[200], &[404])
        .get("/api/usage/safety", usage::safety_figures, "Return the figures that laws ask for, by month", &[200], &[404])
        .get("/api/companions", companions::list, "List the configured companions", &[200], &[])
        .post("/api/companions", companions::create, "Make a companion with an id that is made from its name", &[201], &[409])
        .get("/api/companions/options", companions::options, "Return what a new companion can be given", &[200], &[])
        .post("/api/companions/try", companions::try_out, "Have a companion make one decision and one statement", &[200], &[])
        .get("/api/companions/{companion}", companions::get, "Return a companion as it is configured", &[200], &[404])
        .put("/api/companions/{companion}", companions::change, "Replace what is written about a companion", &[200], &[404, 409])
        .delete("/api/companions/{companion}", companions::delete, "Remove a companion from the server", &[204], &[404, 409])
        .get("/api/companions/{companion}/card", cards::export, "Return a companion as a character card", &[200], &[404, 409])
        .producing::<Map<String, Value>>("application/json")
        .producing::<String>("image/png")
        .post("/api/cards", cards::preview, "Return what importing a character card would write", &[200], &[])
        .get("/api/lorebooks", lore::list, "List the lorebooks", &[200], &[])
        .post("/api/lorebooks", lore::create, "Make a lorebook with an id that is made from its name", &[201], &[409])
        .post("/api/lorebooks/read", lore::read, "Return the lorebook that is in a file, or in a character card", &[200], &[])
        .get("/api/lorebooks/{book}", lore::get, "Return a lorebook", &[200], &[404])
        .put("/api/lorebooks/{book}", lore::change, "Replace a lorebook", &[200], &[404, 409])
        .delete("/api/lorebooks/{book}", lore::delete, "Delete a lorebook", &[204], &[404, 409])
        .get("/api/lorebooks/{book}/file", lore::export, "Return a lorebook as a file of a program", &[200], &[404])
        .producing::<Map<String, Value>>("application/json")
        .get(guard::PICTURES, companions::picture, "Return the picture of a companion", &[200], &[404])
        .producing::<String>("image/png")
        .producing::<String>("image/jpeg")
        .producing::<String>("image/webp")
        .for_everybody()
        .get("/api/nodes", health::nodes, "List the servers that share the store", &[200], &[])
        .get("/api/quarantine", keeping::quarantine, "List what needs an operator", &[200], &[])
        .post("/api/quarantine/{id}/release", keeping::release, "Release a guild, or retry a suspended channel", &[204], &[404])
        .post("/api/quarantine/{id}/retry", keeping::retry, "Handle a dead letter again", &[204], &[404, 409])
        .post("/api/quarantine/{id}/drop", keeping::drop_entry, "Drop a dead letter", &[204], &[404])
        .get("/api/models", models::get, "Return the models in force", &[200], &[])
        .put("/api/models", models::connect, "Use these models from now on and after restarts", &[200], &[])
        .delete("/api/models", models::disconnect, "Use the models of the settings again", &[200], &[])
        .post("/api/models/names", models::names, "Ask a server for its models", &[200], &[])
        .post("/api/models/try", models::try_out, "Have models make one decision and one statement", &[200], &[])
        .get("/api/settings", page_settings::get, "Return what can be set on the page, and what is in force", &[200], &[])
        .patch("/api/settings", page_settings::keep, "Use these settings from now on and after restarts", &[200], &[])
        .post(
            "/api/settings/try",
            page_settings::try_out,
            "Check settings, and try the services that they are about",
            &[200],
            &[],
        )
        .post("/api/settings/read", page_settings::read, "Read the settings files and the companions again", &[200], &[])
        .get("/api/tools", tools::get, "List the servers of tools, with their tools", &[200], &[])
        .post("/api/tools/accept", tools::accept, "Accept tools as they are now", &[200], &[404, 409])
        .get("/api/export", keeping::export, "Return events, one JSON object per line, or a room for people", &[200], &[404, 413])
        .producing::<String>("application/x-ndjson")
        .producing::<String>("text/markdown")
        .producing::<String>("text/html")
        .get("/api/tokens", tokens::list, "List the tokens of programs", &[200], &[])
        .post("/api/tokens", tokens::make, "Make a token for a program", &[201], &[409])
        .delete("/api/tokens/{id}", tokens::end, "End a token of a program, by its name", &[204], &[404, 409])
        .post("/api/backup", keeping::backup, "Write a consistent copy of the store on the server's machine", &[200], &[409])
        .producing::<BackedUp>("application/json")
        .get("/api/forget", keeping::forgettable, "Count what forgetting a person would delete", &[200], &[404])
        .post("/api/forget", keeping::forget, "Remove what a person said in a guild", &[200], &[404])
        .get("/api/live", live::live, "Watch a room or all rooms (WebSocket)", &[101], &[404, 426])
        .for_guests()
        .get("/api/live/poll", polling::poll, "Wait for events of a room, without a WebSocket", &[200], &[404])
        .for_guests()
        .get("/api/rooms/{room}/voice", voice::describe, "Describe the voice of a room", &[200], &[404])
        .for_guests()
        .get("/api/voice", voice::voice, "Take part in the voice call of a room (WebSocket)", &[101], &[404, 409, 426])
        .for_guests()
        .put("/api/rooms/{room}/typing", invitations::typing, "Tell that somebody types, or stopped", &[204], &[404])
        .for_guests()
        .get("/api/rooms/{room}/invitations", invitations::list, "List the invitations to a room", &[200], &[404])
        .post("/api/rooms/{room}/invitations", invitations::invite, "Invite guests to a room", &[201], &[404, 409])
        .producing::<invitations::Invited>("application/json")
        .delete("/api/rooms/{room}/invitations/{id}", invitations::revoke, "End an invitation and its visits", &[204], &[404])
        .delete(
            "/api/rooms/{room}/invitations/{id}/guests",
            invitations::remove_guest,
            "End the visit of a guest, and free the place",
            &[204],
            &[404],
        )
        .get("/api/addresses", addresses::get, "Return the addresses at which guests can reach the server", &[200], &[])
        .put("/api/addresses/tunnel", addresses::open_tunnel, "Start a tunnel for guests", &[200], &[409])
        .delete("/api/addresses/tunnel", addresses::close_tunnel, "End the tunnel", &[200], &[])
        .put("/api/addresses/network", addresses::open_network, "Listen on the machine's address, for guests", &[200], &[409])
        .delete("/api/addresses/network", addresses::close_network, "Listen there no more", &[200], &[])
        .post("/api/addresses/check", addresses::check, "Check whether an address leads to this server", &[200], &[])
        .get("/api/addresses/here", addresses::here, "Answer a check of this server (also as a WebSocket)", &[101, 200], &[404])
        .producing::<check::Here>("application/json")
        .for_everybody()
        .post("/api/addresses/here", addresses::here_large, "Answer a check with a large body", &[204], &[404])
        .for_everybody()
        .post("/api/invitations/look", invitations::look, "Tell what an invitation is for", &[200], &[404])
        .for_everybody()
        .post("/api/invitations/join", invitations::join, "Come in by an invitation", &[204], &[404, 409])
        .for_everybody()
        .get("/api/visit", invitations::visit, "Return the rooms of a guest", &[200], &[])
        .for_guests()
        .get("/", page::index, "Return the page, or lead to the sign-in form", &[200, 303, 304, 503], &[])
        .producing::<String>("text/html")
        .for_guests()
        .get("/join", page::join, "Return the page for somebody who was invited", &[200, 304], &[])
        .producing::<String>("text/html")
        .for_everybody()
        .get("/signin", page::sign_in, "Return the sign-in form", &[200, 304], &[])
        .producing::<String>("text/html")
        .for_everybody()
        .post("/signin", signin::sign_in, "Start a session: 204 for JSON, 303 for a form", &[204, 303], &[401])
        .taking::<Json<SignIn>>()
        .for_everybody()
        .post("/signout", signin::sign_out, "End the session, or the visits of a guest", &[204, 303], &[])
        .for_guests()
        .get("/page/{name}", page::file, "Return a file of the page", &[200, 304], &[404])
        .producing::<String>("*/*")
        .for_everybody()
        .get("/healthz", health::alive, "Tell that the process answers", &[200], &[])
        .producing::<String>("text/plain")
        .for_everybody()
        .get("/readyz", health::ready, "Tell whether messages can be accepted", &[200, 503], &[])
        .for_everybody()
        .get("/metrics", metrics::metrics, "Return all metrics as Prometheus text", &[200], &[])
        .producing::<String>("text/plain")
}

/// The response for a handler that panicked. The panic hook has logged the panic itself.
fn panicked(console: &Shared) -> Response {
    metrics::count_panic(console);
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, Detail::key("refusals.failed")).into_response()
}

async fn not_found(uri: Uri) -> Problem {
    let below =
        if uri.path().starts_with("/api/") { "" } else { "; tertulia needs a host name of its own, and works below no path" };
    Problem::new(StatusCode::NOT_FOUND, format!("there is no {}{below}", uri.path()))
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{method} cannot be used on {}; the Allow header lists the methods that can", uri.path()),
    )
}
