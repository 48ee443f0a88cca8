//! The page's files, embedded in the binary. To add a file, put it into `page/` and add its name to `FILES`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::problem::Problem;

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_bytes!(concat!("page/", $name)))),*] };
}

/// Every file of the page. `index.html` is served at `/`, `signin.html` at `/signin`, each file at `/page/<name>`.
const FILES: &[(&str, &[u8])] = files![
    "announcements.js",
    "api.js",
    "attention.js",
    "base.css",
    "clock.js",
    "companion-picker.js",
    "companion.js",
    "companions.css",
    "companions.js",
    "compose.css",
    "compose.js",
    "dialogs.css",
    "dialogs.js",
    "dom.js",
    "entries.js",
    "find.js",
    "floor.js",
    "icon.svg",
    "index.html",
    "items.js",
    "live.js",
    "loop-guard.js",
    "loudspeaker-worklet.js",
    "loudspeaker.js",
    "main.js",
    "markdown.css",
    "markdown.js",
    "marked-license.txt",
    "marked.js",
    "mention.js",
    "meters.js",
    "microphone-worklet.js",
    "microphone.js",
    "model-dialog.js",
    "models.css",
    "models.js",
    "no-companions.js",
    "notices.js",
    "outbox.js",
    "people.js",
    "platforms.js",
    "presence.css",
    "presence.js",
    "room-menu.css",
    "room-menu.js",
    "rooms.css",
    "rooms.js",
    "round-state.js",
    "rounds.css",
    "rounds.js",
    "signin.css",
    "signin.html",
    "state.js",
    "storage.js",
    "story.js",
    "talk.css",
    "talk.js",
    "theme.js",
    "timeline.css",
    "timeline.js",
    "tones.js",
    "unavailable.js",
    "unread.js",
    "visit.js",
    "voice-call.js",
    "voice-dialogs.js",
    "voice-protocol.js",
    "voice-room.css",
    "voice-room.js",
    "voice.js",
    "welcome.js",
    "words.js",
];

/// The files with their ETags, by name.
pub(super) struct Page(HashMap<&'static str, File>);

#[derive(Clone, Copy)]
struct File {
    name: &'static str,
    bytes: &'static [u8],
    tag: u64,
}

impl Page {
    pub(super) fn new() -> Self {
        let tagged = |&(name, bytes): &(&'static str, &'static [u8])| {
            let mut hasher = DefaultHasher::new();
            hasher.write(bytes);
            (name, File { name, bytes, tag: hasher.finish() })
        };
        Self(FILES.iter().map(tagged).collect())
    }

    /// The sign-in page with the reason why the last attempt was refused, in place of the comment `<!--refused-->`. The reason must be our own text,
    /// because it is not escaped.
    pub(super) fn refused_sign_in(&self, reason: &str) -> String {
        let page = self.0.get("signin.html").map(|file| String::from_utf8_lossy(file.bytes)).unwrap_or_default();
        page.replace("<!--refused-->", &format!("<p role=\"alert\">{reason}</p>"))
    }

    /// Whether the file may be served without authentication. `name` is the undecoded name from the path, so an escaped one (`index%2ehtml`) is
    /// unknown.
    pub(super) fn is_public(&self, name: &str) -> bool {
        name != "index.html" && self.0.contains_key(name)
    }

    fn answer(&self, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        let file = self.0.get(name).ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, format!("there is no /page/{name}")))?;
        let tag = format!("\"{:016x}\"", file.tag);
        let is_known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        let is_known = is_known.is_some_and(|tags| tags.split(',').any(|known| known.trim().trim_start_matches("W/") == tag));
        let headers = [
            // Browsers revalidate files each time, and get 304 if nothing changed.
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))),
            (CONTENT_TYPE, media_type(file.name)),
        ];
        Ok(if is_known { (StatusCode::NOT_MODIFIED, headers).into_response() } else { (headers, file.bytes).into_response() })
    }
}

/// `GET /`
pub(super) async fn index(State(console): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    console.page.answer("index.html", &headers)
}

/// `GET /signin`
pub(super) async fn sign_in(State(console): State<Shared>, headers: HeaderMap) -> Result<Response, Problem> {
    console.page.answer("signin.html", &headers)
}

/// `GET /page/{name}`
pub(super) async fn file(
    State(console): State<Shared>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    console.page.answer(&name, &headers)
}

fn media_type(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_has_a_known_type_and_no_inline_script_or_style() {
        for (name, bytes) in FILES {
            assert_ne!(media_type(name), "application/octet-stream", "{name}");
            if name.ends_with(".html") {
                let html = String::from_utf8_lossy(bytes).to_lowercase();
                assert!(
                    !html.contains("<script>")
                        && !html.contains("<style")
                        && !html.contains(" style=")
                        && !html.contains(" onclick="),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn no_script_turns_text_into_markup_or_code() {
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "createContextualFragment",
            "DOMParser",
            "setHTML",
            "document.write",
            "srcdoc",
            "eval(",
            "new Function",
            "javascript:",
            "setTimeout('",
            "import(",
        ];
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let script = std::str::from_utf8(bytes).unwrap();
            for way in ways {
                assert!(!script.contains(way), "{name} uses {way}");
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served_and_every_linked_file_exists() {
        let served: BTreeSet<&str> = FILES.iter().map(|(name, _)| *name).collect();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/adapters/console/page");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());

        let names: BTreeSet<String> = names.collect();
        let links = FILES.iter().flat_map(|(_, bytes)| linked_files(std::str::from_utf8(bytes).unwrap()));

        assert!(names.iter().map(String::as_str).eq(served.iter().copied()), "{names:?}");
        for name in links {
            assert!(served.contains(name), "{name}");
        }
    }

    /// The files that a page links to, and that a script imports or loads for the audio thread.
    fn linked_files(text: &'static str) -> impl Iterator<Item = &'static str> {
        let linked = text.split("=\"/page/").skip(1).filter_map(|rest| rest.split('"').next());
        let imported = text.split("from './").skip(1).filter_map(|rest| rest.split('\'').next());
        let worklets = text.split("addModule('/page/").skip(1).filter_map(|rest| rest.split('\'').next());
        linked.chain(imported).chain(worklets)
    }

    #[test]
    fn the_sign_in_page_shows_why_an_attempt_was_refused() {
        let page = Page::new().refused_sign_in("this is not the admin token");

        assert!(page.contains("<p role=\"alert\">this is not the admin token</p>"));
    }
}
