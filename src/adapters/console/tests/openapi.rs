//! The description of the API is true: it has every route, and what the server answers and what the documents show fit it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use boon::{Compiler, Schemas};

use super::*;

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| routes::api().description());

/// The methods that the description may have.
const METHODS: [Method; 5] = [Method::GET, Method::PUT, Method::POST, Method::PATCH, Method::DELETE];

/// An operation of the description, with its place there.
struct Described {
    operation: &'static Value,
    pointer: String,
}

impl Described {
    /// The operation of a request, if there is one.
    fn of(method: &str, uri: &str) -> Option<Self> {
        let path = uri.split('?').next().unwrap_or_default();
        let fits = |template: &str| {
            let pairs = || template.split('/').zip(path.split('/'));
            template.matches('/').count() == path.matches('/').count()
                && pairs().all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
        };
        let paths = DESCRIPTION["paths"].as_object().unwrap();
        // A path that is written out comes before a template.
        let (template, operations) =
            paths.iter().filter(|(template, _)| fits(template)).min_by_key(|(path, _)| path.contains('{'))?;
        let method = method.to_lowercase();
        let pointer = format!("/paths/{}/{method}", template.replace('/', "~1"));
        Some(Self { operation: operations.get(&method)?, pointer })
    }

    /// Checks a body against its schema.
    fn check_request(&self, body: &Value) {
        check(&format!("{}/requestBody/content/application~1json/schema", self.pointer), body);
    }

    /// Checks that this status is described, and a JSON answer against its schema.
    fn check_answer(&self, status: u16, answer: &Value) {
        let response = &self.operation["responses"][status.to_string()];
        assert!(response.is_object(), "{} answers {status} {answer}, which is not described", self.pointer);
        let (pointer, media_type) = match response["$ref"].as_str() {
            Some(reference) => (reference.trim_start_matches('#').to_owned(), "application/problem+json"),
            None => (format!("{}/responses/{status}", self.pointer), "application/json"),
        };
        let content = &DESCRIPTION.pointer(&pointer).unwrap()["content"];
        if content.get(media_type).is_some() && !answer.is_null() {
            check(&format!("{pointer}/content/{}/schema", media_type.replace('/', "~1")), answer);
        } else {
            assert!(answer.is_null() || !content.is_null(), "{pointer} describes no answer, but there is one: {answer}");
        }
    }
}

/// Checks a value against the schema at this place of the description.
fn check(pointer: &str, value: &Value) {
    const URL: &str = "http://description/openapi.json";
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(URL, DESCRIPTION.clone()).unwrap();
    let schema = compiler.compile(&format!("{URL}#{pointer}"), &mut schemas).unwrap();
    schemas.validate(value, schema).unwrap_or_else(|error| panic!("{value} does not fit {pointer}: {error:#}"));
}

/// Checks an answer of the console as a client got it. Paths and methods that do not exist are not described.
pub(super) fn check_answer(method: &Method, path: &str, status: u16, answer: &Value) {
    if let Some(described) = Described::of(method.as_str(), path) {
        described.check_answer(status, answer);
    }
}

#[tokio::test]
async fn the_description_has_every_route_and_no_other() {
    let world = World::new().await;
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let described: BTreeSet<&str> = paths.keys().map(String::as_str).collect();

    let served = served(Arc::new(FakeBackend::with_lobby()));
    let console = Console::bind(&settings(), served, rng(), clock(), Metrics::local()).await.unwrap();
    let router = format!("{:?}", console.router);
    let routed: BTreeSet<&str> =
        router.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/') && !text.contains("__private")).collect();

    assert_eq!(described, routed);
    for (path, operations) in paths {
        let uri = path.replace("{room}", "lobby").replace("{seq}", "1").replace("{companion}", "aria");
        for method in METHODS {
            let (status, _) = world.ask(method.clone(), &uri).await;
            let is_described = operations.get(method.as_str().to_lowercase()).is_some();
            assert_eq!(status != 405, is_described, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_description_tells_what_needs_a_token() {
    let world = World::with(with_token()).await;

    for (path, operations) in DESCRIPTION["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let uri = path.replace("{name}", "main.js");
            let method: Method = method.to_uppercase().parse().unwrap();
            let (status, _) = world.ask(method.clone(), &uri).await;
            let is_refused = status == 401 || (path == "/" && status == 303);
            assert_eq!(is_refused, operation["security"].is_null(), "{method} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn the_description_is_served_and_can_be_read_by_generators() {
    let (status, served) = World::new().await.get("/api/openapi.json").await;

    assert_eq!((status, &served), (200, &*DESCRIPTION));
    assert!(!served.to_string().contains("[`"), "a link of rustdoc leads nowhere in the description");
    let mut ids = BTreeSet::new();
    for (path, operations) in served["paths"].as_object().unwrap() {
        let templates: BTreeSet<_> = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for operation in operations.as_object().unwrap().values() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{operation}");
            let parameters = operation["parameters"].as_array().unwrap().iter().filter(|parameter| parameter["in"] == "path");
            let named: BTreeSet<_> = parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect();
            assert_eq!(named, templates, "{path}");
        }
    }
}

/// An example begins with the line of its request. Its body may follow. After an empty line come the status and the body of the answer.
#[test]
fn the_examples_of_the_document_fit_the_description() {
    let document = include_str!("../../../../docs/api.md");
    let mut examples = 0;

    for block in document.split("```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap();
        if language == "sh" && !text.contains("-d") {
            continue;
        }
        assert_eq!(language, "http", "an example that no test reads: {text}");
        let (request, answer) = text.split_once("\n\n").unwrap_or((text, ""));
        let (line, body) = request.split_once('\n').unwrap_or((request, ""));
        let (method, uri) = line.split_once(' ').unwrap();
        let described = Described::of(method, uri).unwrap_or_else(|| panic!("{line} is not described"));
        if !body.trim().is_empty() {
            described.check_request(&serde_json::from_str(body).unwrap());
        }
        if !answer.is_empty() {
            let (status, body) = answer.split_once('\n').unwrap();
            let status = status.split(' ').next().unwrap().parse().unwrap();
            described.check_answer(status, &serde_json::from_str(body).unwrap_or_default());
        }
        examples += 1;
    }
    assert!(examples >= 10, "only {examples} examples were found");
}
