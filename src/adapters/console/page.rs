//! The page's files, embedded in the binary. To add a file, put it into `page/`.
//!
//! Each page gets its style sheets as one file, and its modules with the texts of one language as another. The addresses of these files contain a
//! hash of their contents, so that browsers can cache them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Shared;
use super::bundle::{self, Kind};
use super::guard::Caller;
use super::language::language;
use super::problem::Problem;
use crate::ports::backend::Detail;
use crate::ports::nodes::NodesView;
use crate::texts::Language;

/// Every file of the page. `index.html` is served at `/` to operators, `guest.html` at `/` to guests, `standby.html` at `/` by a standby node,
/// `join.html` at `/join`, `signin.html` at `/signin`, and each other file at `/page/<name>`.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// The pages with modules: the name of each page, and the name of its style sheet and script. Modules that a page loads later are in another
/// script.
const BUNDLED: [(&str, &str); 3] = [("index", "page"), ("guest", "guest-page"), ("join", "join-page")];
/// The service worker. The browser runs it beside the pages, also while no page is open. Each language has its own.
const WORKER: &str = "service-worker";
/// The texts that the modules import. Each language has its own.
const TEXTS: &str = "en.json";

/// The files by name. Pages and their scripts exist once for each language: `index.de.html`.
pub(super) struct Page(HashMap<String, File>);

struct File {
    name: String,
    bytes: Bytes,
    /// The compressed bytes, set when a browser first requests them.
    compressed: OnceLock<Bytes>,
    /// A hash of the contents.
    tag: String,
}

impl File {
    fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let (bytes, mut hasher) = (bytes.into(), DefaultHasher::new());
        hasher.write(&bytes);
        Self { name: name.into(), bytes, compressed: OnceLock::new(), tag: format!("{:016x}", hasher.finish()) }
    }

    fn compressed(&self) -> Bytes {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // Writing to memory does not fail.
            let _ = encoder.write_all(&self.bytes);
            encoder.finish().unwrap_or_default().into()
        };
        self.compressed.get_or_init(compress).clone()
    }
}

/// The text of an embedded file.
fn source(name: &str) -> &'static str {
    let file = FILES.iter().find(|(known, _)| *known == name);
    file.map_or("", |(_, bytes)| std::str::from_utf8(bytes).unwrap_or_default())
}

/// A page in a language. The addresses of `files` get their hashes, and the links to styles and modules lead to those of `bundled`.
fn html(name: &str, language: Language, files: &[File], bundled: &[&File]) -> String {
    let with_hash = |address: &str| {
        let file = address.strip_prefix("/page/").and_then(|name| files.iter().find(|file| file.name == name));
        file.map_or_else(|| address.to_owned(), |file| format!("{address}?v={}", file.tag))
    };
    let mut html = String::new();
    for line in source(name).lines() {
        let file = bundle::linked(line).and_then(|(kind, _)| {
            let suffix = if kind == Kind::Style { ".css" } else { ".js" };
            bundled.iter().find(|file| file.name.ends_with(suffix)).map(|file| (kind, file))
        });
        let link = match file {
            Some((Kind::Style, file)) => format!("<link rel=\"stylesheet\" href=\"/page/{}?v={}\">", file.name, file.tag),
            Some((Kind::Module, file)) => format!("<script type=\"module\" src=\"/page/{}?v={}\"></script>", file.name, file.tag),
            None => line.split('"').map(with_hash).collect::<Vec<_>>().join("\""),
        };
        // All style sheets are linked into one file, so only the first link stays.
        let is_linked = matches!(file, Some((Kind::Style, _))) && html.contains(&link);
        if !is_linked {
            html += &format!("{link}\n");
        }
    }
    language.fill(&html.replace("<html lang=\"en\">", &format!("<html lang=\"{}\">", language.code())))
}

impl Page {
    /// The page in this binary. It is assembled on first use.
    pub(super) fn embedded() -> &'static Self {
        static PAGE: LazyLock<Page> = LazyLock::new(Page::new);
        &PAGE
    }

    fn new() -> Self {
        let mut files: Vec<_> =
            FILES.iter().filter(|(name, _)| !name.ends_with(".html")).map(|&(name, bytes)| File::new(name, bytes)).collect();
        for (page, bundle) in BUNDLED {
            let page_file = format!("{page}.html");
            let linked = || source(&page_file).lines().filter_map(bundle::linked);
            let styles: String =
                linked().filter(|(kind, _)| *kind == Kind::Style).map(|(_, name)| bundle::style(source(name))).collect();
            let styles = File::new(format!("{bundle}.css"), styles.into_bytes());
            let first = linked().find(|(kind, _)| *kind == Kind::Module).map_or("", |(_, name)| name);
            let later = File::new(format!("{bundle}-later.js"), bundle::later(first, source).into_bytes());
            let address = if later.bytes.is_empty() { String::new() } else { format!("/page/{}?v={}", later.name, later.tag) };
            let without_texts = |name: &str| if name == TEXTS { "{}" } else { source(name) };
            let modules = bundle::script(first, &address, without_texts);
            for language in Language::ALL {
                let texts: &str = &language.of_page(&modules);
                let read = |name: &str| if name == TEXTS { texts } else { source(name) };
                let code = language.code();
                let script = File::new(format!("{bundle}.{code}.js"), bundle::script(first, &address, read).into_bytes());
                let html = html(&page_file, language, &files, &[&styles, &script]);
                files.push(File::new(format!("{page}.{code}.html"), html.into_bytes()));
                files.push(script);
            }
            files.push(styles);
            files.extend((!later.bytes.is_empty()).then_some(later));
        }
        for language in Language::ALL {
            let worker = format!("{WORKER}.js");
            let texts: &str = &language.of_page(source(&worker));
            let read = |name: &str| if name == TEXTS { texts } else { source(name) };
            let name = format!("{WORKER}.{}.js", language.code());
            files.push(File::new(name, bundle::script(&worker, "", read).into_bytes()));
        }
        for (page, language) in ["signin", "standby"].into_iter().flat_map(|page| Language::ALL.map(|language| (page, language)))
        {
            let file = html(&format!("{page}.html"), language, &files, &[]);
            files.push(File::new(format!("{page}.{}.html", language.code()), file.into_bytes()));
        }
        files.extend(
            Language::ALL
                .map(|language| File::new(format!("later.{}.json", language.code()), language.of_page_later().into_bytes())),
        );
        Self(files.into_iter().map(|file| (file.name.clone(), file)).collect())
    }

    /// The sign-in page with the reason why the last attempt was refused, in place of the comment `<!--refused-->`. The reason must be our own
    /// text, because it is not escaped.
    pub(super) fn refused_sign_in(&self, reason: &Detail, headers: &HeaderMap) -> String {
        let language = language(headers);
        let page = self.0.get(&format!("signin.{}.html", language.code()));
        let page = page.map(|file| String::from_utf8_lossy(&file.bytes)).unwrap_or_default();
        page.replace("<!--refused-->", &format!("<p role=\"alert\">{}</p>", reason.said_in(language)))
    }

    /// The page of a standby node. It links to the node that runs the channels, if there is one, and reloads itself.
    fn standby(&self, nodes: &NodesView, headers: &HeaderMap) -> Response {
        let language = language(headers);
        let page = self.0.get(&format!("standby.{}.html", language.code()));
        let page = page.map(|file| String::from_utf8_lossy(&file.bytes)).unwrap_or_default();
        let of_owner = nodes.active().map(|partition| (partition.owner.as_deref().unwrap_or_default(), &partition.address));
        // Names and addresses come from the settings of other nodes, so they are escaped.
        let line = match of_owner {
            Some((owner, Some(address))) => {
                let (owner, address) = (escaped(owner), escaped(address));
                format!(
                    "{}<p><a class=\"button\" href=\"{address}\">{address}</a></p>",
                    page_line(language, "standby.owner", &owner)
                )
            }
            Some((owner, None)) => page_line(language, "standby.owner", &escaped(owner)),
            None => page_line(language, "standby.nobody", ""),
        };
        let html = page.replace("<!--owner-->", &line).replace("<!--this-->", &escaped(&nodes.this));
        let headers = [(CONTENT_TYPE, media_type("standby.html")), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
        (StatusCode::SERVICE_UNAVAILABLE, headers, html).into_response()
    }

    /// A page in the language of the request: `index`, `guest`, `join` or `signin`.
    fn html(&self, page: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        self.answer(&format!("{page}.{}.html", language(headers).code()), None, headers)
    }

    /// The response with a file. `version` is the hash in the requested address. If it is the file's hash, browsers may cache the file forever.
    fn answer(&self, name: &str, version: Option<&str>, headers: &HeaderMap) -> Result<Response, Problem> {
        let file = self.0.get(name).ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, format!("there is no /page/{name}")))?;
        let is_compressed = headers.get_all(ACCEPT_ENCODING).iter().any(accepts_gzip);
        let tag = format!("\"{}{}\"", file.tag, if is_compressed { "-gzip" } else { "" });
        let is_fixed = version.is_some_and(|version| version == file.tag);
        let is_known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        let is_known = is_known.is_some_and(|tags| tags.split(',').any(|known| known.trim().trim_start_matches("W/") == tag));
        let headers = [
            // Browsers revalidate other files each time, and get 304 if nothing changed.
            (CACHE_CONTROL, HeaderValue::from_static(if is_fixed { "private, max-age=31536000, immutable" } else { "no-cache" })),
            (ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))),
            (CONTENT_TYPE, media_type(&file.name)),
            (
                VARY,
                HeaderValue::from_static(if file.name.ends_with(".html") {
                    "accept-encoding, accept-language, cookie"
                } else {
                    "accept-encoding"
                }),
            ),
        ];
        Ok(match (is_known, is_compressed) {
            (true, _) => (StatusCode::NOT_MODIFIED, headers).into_response(),
            (false, true) => (headers, [(CONTENT_ENCODING, "gzip")], file.compressed()).into_response(),
            (false, false) => (headers, file.bytes.clone()).into_response(),
        })
    }
}

/// A paragraph of a page. The name must be escaped.
fn page_line(language: Language, key: &str, name: &str) -> String {
    format!("<p>{}</p>", language.fill(&format!("{{{key}}}")).replace("{name}", name))
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `GET /`: guests get another page than operators. A standby node shows a link to the active one.
pub(super) async fn index(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(nodes) = console.stands_by() {
        return Ok(Page::embedded().standby(&nodes, &headers));
    }
    Page::embedded().html(if caller.is_operator() { "index" } else { "guest" }, &headers)
}

/// `GET /signin`
pub(super) async fn sign_in(headers: HeaderMap) -> Result<Response, Problem> {
    Page::embedded().html("signin", &headers)
}

/// `GET /join`: a request changes nothing, because link previews load the page, too.
pub(super) async fn join(headers: HeaderMap) -> Result<Response, Problem> {
    Page::embedded().html("join", &headers)
}

/// `GET /page/{name}`
pub(super) async fn file(Path(name): Path<String>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Problem> {
    if name.ends_with(".html") {
        return Err(Problem::new(StatusCode::NOT_FOUND, "pages have addresses of their own: /, /join, /signin"));
    }
    let version = query.as_deref().and_then(|query| query.strip_prefix("v="));
    let mut answer = Page::embedded().answer(&name, version, &headers)?;
    if name.starts_with(WORKER) {
        // The service worker serves pages that are not below its own address.
        answer.headers_mut().insert("service-worker-allowed", HeaderValue::from_static("/"));
    }
    Ok(answer)
}

/// Whether a list of encodings names gzip, and does not exclude it with `q=0`.
fn accepts_gzip(accepted: &HeaderValue) -> bool {
    let names_gzip = |part: &str| {
        let (name, weight) = part.split_once(';').unwrap_or((part, ""));
        let is_excluded = weight.trim().trim_start_matches("q=").trim_end_matches(['0', '.']).is_empty() && !weight.is_empty();
        name.trim().eq_ignore_ascii_case("gzip") && !is_excluded
    };
    accepted.to_str().is_ok_and(|accepted| accepted.split(',').any(names_gzip))
}

fn media_type(name: &str) -> HeaderValue {
    HeaderValue::from_static(match name.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webmanifest") => "application/manifest+json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::http::header::ACCEPT_LANGUAGE;

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
        ];
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let script = std::str::from_utf8(bytes).unwrap();
            for way in ways {
                assert!(!script.contains(way), "{name} uses {way}");
            }
            assert!(!script.replace("import('./", "").contains("import("), "{name} imports what is not named");
        }
    }

    #[test]
    fn every_linked_file_exists() {
        let served: BTreeSet<&str> = FILES.iter().map(|(name, _)| *name).collect();

        let links = FILES.iter().filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok()).flat_map(linked_files);

        for name in links {
            assert!(served.contains(name), "{name}");
        }
    }

    /// The files that a page links to, and that a script imports or loads for the audio thread.
    fn linked_files(text: &'static str) -> impl Iterator<Item = &'static str> {
        let linked = ["=\"/page/", ": \"/page/"]
            .into_iter()
            .flat_map(move |link| text.split(link).skip(1))
            .filter_map(|rest| rest.split('"').next());
        let imports = ["from './", "import('./"].into_iter().flat_map(move |import| text.split(import).skip(1));
        let imported = imports.filter_map(|rest| rest.split('\'').next()).filter(|name| *name != TEXTS);
        let worklets = text.split("addModule('/page/").skip(1).filter_map(|rest| rest.split('\'').next());
        linked.chain(imported).chain(worklets)
    }

    #[test]
    fn a_page_is_three_files_at_first_and_every_module_is_in_a_script() {
        let page = Page::new();
        let text = |name: &str| String::from_utf8_lossy(&page.0[name].bytes).into_owned();
        let script: String = BUNDLED.iter().map(|(_, bundle)| text(&format!("{bundle}.en.js"))).collect();
        let later = text("page-later.js") + &text("guest-page-later.js");
        // Only the first script can load modules later.
        assert!(!later.contains("later('"));
        let script = script + &later;
        let styles = text("page.css");

        for (name, bundle) in BUNDLED {
            let (html, script) = (text(&format!("{name}.en.html")), format!("{bundle}.en.js"));
            assert_eq!(html.matches("<link rel=\"stylesheet\"").count() + html.matches("<script").count(), 3, "{html}");
            assert!(html.contains(&format!("/page/{script}?v={}", page.0[&script].tag)), "{html}");
        }
        let alone = ["service-worker.js", "theme.js", "standby.js", "loudspeaker-worklet.js", "microphone-worklet.js"];
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".js") && !alone.contains(name)) {
            assert!(script.contains(&format!("modules[\"{name}\"] = ")), "nothing imports {name}");
            let source = std::str::from_utf8(bytes).unwrap();
            let exported = source.matches("export ").count();
            assert_eq!(
                exported,
                source.lines().filter(|line| line.starts_with("export ")).count(),
                "{name} exports within a line"
            );
            assert!(!source.contains("export let") && !source.contains("export default"), "{name} exports what can change");
        }
        assert!(!script.lines().any(|line| line.starts_with("import ") || line.starts_with("export ")));
        assert!(styles.contains(".voice") && !styles.contains("@import"));
    }

    #[test]
    fn a_browser_gets_compressed_files_and_keeps_those_whose_address_names_their_contents() {
        let page = Page::new();
        let accepting = |encodings: &'static str| HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(encodings))]);
        let tag = page.0["page.de.js"].tag.as_str();

        let fixed = page.answer("page.de.js", Some(tag), &accepting("br, gzip;q=0.8")).unwrap();
        let plain = page.answer("page.de.js", Some("other"), &accepting("gzip;q=0, identity")).unwrap();

        assert!(
            fixed.headers()[CONTENT_ENCODING] == "gzip" && fixed.headers()[VARY].to_str().unwrap().contains("accept-encoding")
        );
        assert!(fixed.headers()[CACHE_CONTROL].to_str().unwrap().ends_with("immutable"));
        assert!(!plain.headers().contains_key(CONTENT_ENCODING) && plain.headers()[CACHE_CONTROL] == "no-cache");
        assert_ne!(fixed.headers()[ETAG], plain.headers()[ETAG]);
        for (_, bundle) in BUNDLED {
            let length = page.0[&format!("{bundle}.de.js")].compressed().len();
            assert!(length < 132_000, "{bundle}: {length}");
        }
    }

    #[test]
    fn each_language_has_a_page() {
        let page = Page::new();
        let german = String::from_utf8_lossy(&page.0["index.de.html"].bytes);
        assert!(
            german.contains("<html lang=\"de\">") && german.contains("<h2>Räume</h2>") && !german.contains("{rooms."),
            "{german}"
        );
    }

    #[test]
    fn the_sign_in_page_shows_why_an_attempt_was_refused() {
        let german = HeaderMap::from_iter([(ACCEPT_LANGUAGE, HeaderValue::from_static("de"))]);
        let page = Page::new().refused_sign_in(&Detail::key("refusals.not_the_token"), &german);

        assert!(page.contains("<p role=\"alert\">das ist nicht das Admin-Token</p>"), "{page}");
    }
}
