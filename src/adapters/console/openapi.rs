//! The OpenAPI 3.1 description of the HTTP API. It is generated from the argument and result types of handlers, so it does not duplicate them.

mod parts;

use std::any::type_name;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodRouter};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::access::{Access, AccessTable};
use super::{Shared, guard, problem, routes};
use parts::{Described, Part, Parts, Schemas};

const ABOUT: &str = "Rooms in which people and AI companions talk. `docs/api.md` says what no description can: how things belong together, in which \
order, what may be repeated, and the way out of every error.

With an admin token, send it as a bearer token; browsers have the cookie of a session. Without one, no authentication is needed. Guests, who came \
by an invitation, have a cookie of their own; `docs/security.md` lists what they may use.

`/api/live` and `/api/voice` are WebSockets. Only their upgrade is described here: `docs/live.md` has the events of the live view, `docs/api.md` the \
frames and messages of voice calls.

A query parameter with an empty value counts as absent.

Every error is a problem (RFC 9457) except for request heads that are malformed or too large, which are refused without a body.";

/// The id of a companion in a request.
#[derive(JsonSchema)]
#[schemars(inline, extend("pattern" = "^[A-Za-z0-9_-]{1,64}$"))]
pub(super) struct PlainId(#[expect(dead_code, reason = "only its schema is used")] String);

/// `GET /api/openapi.json`
pub(super) async fn served() -> Response {
    static DESCRIPTION: LazyLock<String> = LazyLock::new(|| routes::api().description().to_string());
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION.as_str()).into_response()
}

/// Routes, and the operations that describe them.
#[derive(Default)]
pub(super) struct Api {
    router: Router<Shared>,
    operations: Vec<Operation>,
}

/// A method of a path.
struct Operation {
    method: &'static str,
    path: &'static str,
    /// The path of the handler's function, such as `tertulia_console::rooms::list`.
    handler: &'static str,
    /// A summary of one line.
    does: &'static str,
    answers: &'static [u16],
    /// The errors of this operation, in addition to those of every operation.
    errors: &'static [u16],
    /// The media type and schema of the response, if the handler's type does not describe it.
    produced: Vec<(&'static str, SchemaOf)>,
    describe: fn(&mut Parts, &mut Schemas),
    /// Describes the handler's argument where its type does not.
    taken: Option<fn(&mut Parts, &mut Schemas)>,
    access: Access,
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

macro_rules! methods {
    ($($method:ident)*) => {
        $(pub(super) fn $method<H, T, D>(
            self,
            path: &'static str,
            handler: H,
            does: &'static str,
            answers: &'static [u16],
            errors: &'static [u16],
        ) -> Self
        where
            H: Handler<T, Shared> + Described<D>,
            T: 'static,
        {
            let operation = Operation {
                method: stringify!($method),
                path,
                handler: type_name::<H>(),
                does,
                answers,
                errors,
                produced: Vec::new(),
                describe: H::describe,
                taken: None,
                access: Access::default(),
            };
            self.with(operation, routing::$method(handler))
        })*
    };
}

impl Api {
    methods! { get put post patch delete }

    fn with(mut self, operation: Operation, route: MethodRouter<Shared>) -> Self {
        self.router = self.router.route(operation.path, route);
        self.operations.push(operation);
        self
    }

    /// Sets the response of the last operation, where the handler's type does not describe it.
    pub(super) fn producing<T: JsonSchema>(mut self, media_type: &'static str) -> Self {
        if let Some(operation) = self.operations.last_mut() {
            operation.produced.push((media_type, SchemaGenerator::subschema_for::<T>));
        }
        self
    }

    /// Sets the request body of the last operation, where the handler's type does not describe it.
    pub(super) fn taking<T: Part>(mut self) -> Self {
        if let Some(operation) = self.operations.last_mut() {
            operation.taken = Some(T::describe);
        }
        self
    }

    /// Opens the last operation to guests.
    pub(super) fn for_guests(self) -> Self {
        self.open_to(Access::Guests)
    }

    /// Opens the last operation to everybody, without a token.
    pub(super) fn for_everybody(self) -> Self {
        self.open_to(Access::Everybody)
    }

    fn open_to(mut self, access: Access) -> Self {
        if let Some(operation) = self.operations.last_mut() {
            operation.access = access;
        }
        self
    }

    /// The access of each operation.
    pub(super) fn access(&self) -> AccessTable {
        AccessTable::new(self.operations.iter().map(|operation| (operation.path, operation.method, operation.access)))
    }

    pub(super) fn into_router(self) -> Router<Shared> {
        self.router
    }

    pub(super) fn description(&self) -> Value {
        let mut schemas = Schemas::new();
        let (mut paths, mut statuses) = (Map::new(), BTreeSet::new());
        for operation in &self.operations {
            let described = operation.described(&mut schemas, &mut statuses);
            paths.entry(operation.path).or_insert_with(|| json!({}))[operation.method] = described;
        }
        let problem = schemas.sent.subschema_for::<problem::Body<'_>>();
        let responses: Map<_, _> = statuses.into_iter().map(|status| (name(status), refusal(status, &problem))).collect();
        let mut description = json!({
            "openapi": "3.1.0",
            "info": { "title": "tertulia", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT },
            "servers": [{ "url": "/" }],
            "security": [{ "token": [] }, {}],
            "paths": paths,
            "components": {
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
                "responses": responses,
                "schemas": schemas.into_sent(),
            },
        });
        make_plain(&mut description);
        description
    }
}

impl Operation {
    fn described(&self, schemas: &mut Schemas, statuses: &mut BTreeSet<u16>) -> Value {
        let mut parts = Parts::default();
        for describe in [Some(self.describe), self.taken].into_iter().flatten() {
            describe(&mut parts, schemas);
        }
        let mut content: Map<_, _> =
            parts.content.map(|schema| ("application/json".into(), json!({ "schema": schema }))).into_iter().collect();
        for (media_type, schema) in &self.produced {
            content.insert((*media_type).into(), json!({ "schema": schema(&mut schemas.sent) }));
        }
        let mut responses = Map::new();
        for status in self.answers {
            let mut response = json!({ "description": reason(*status) });
            if !content.is_empty() && !matches!(status, 101 | 204 | 303 | 304) {
                response["content"] = content.clone().into();
            }
            responses.insert(status.to_string(), response);
        }
        let is_public = self.access == Access::Everybody;
        let of_all: &[u16] = if guard::is_probe(self.path) { &[] } else { &[403, 429, 500, 503] };
        let of_token = (!is_public).then_some(401);
        for status in parts.errors.into_iter().chain(self.errors.iter().chain(of_all).copied()).chain(of_token) {
            statuses.insert(status);
            responses.insert(status.to_string(), json!({ "$ref": format!("#/components/responses/{}", name(status)) }));
        }
        let mut names = self.handler.rsplit("::");
        let (function, module) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        let mut described = json!({
            "operationId": format!("{module}_{function}"),
            "tags": [module],
            "summary": self.does,
            "parameters": parts.parameters,
            "responses": responses,
        });
        if !parts.body.is_empty() {
            described["requestBody"] = json!({ "required": true, "content": parts.body });
        }
        if is_public {
            described["security"] = json!([]);
        }
        described
    }
}

fn refusal(status: u16, problem: &Schema) -> Value {
    let mut response = json!({ "description": reason(status), "content": { "application/problem+json": { "schema": problem } } });
    if matches!(status, 429 | 503) {
        let wait = json!({ "description": "The seconds to wait.", "schema": { "type": "integer", "minimum": 1 } });
        response["headers"] = json!({ "Retry-After": wait });
    }
    response
}

fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
}

/// The name of an error's response: its reason without spaces.
fn name(status: u16) -> String {
    reason(status).replace(' ', "")
}

/// Replaces each `oneOf` of constants by an `enum`, and lists their meanings in the description. Some generators of clients cannot handle `oneOf`.
fn make_plain(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.values_mut().for_each(make_plain);
            // Most null defaults do not fit their own schema. Absence is the default anyway.
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(words) = object.get("oneOf").and_then(Value::as_array).and_then(|choices| words(choices)) {
                object.remove("oneOf");
                let about = object.get("description").and_then(Value::as_str).unwrap_or_default();
                let meanings: String = words.iter().map(|(word, meaning)| format!("\n* `{word}`: {meaning}")).collect();
                let about = format!("{about}\n{meanings}").trim().to_owned();
                let words: Vec<_> = words.into_iter().map(|(word, _)| word).collect();
                object.extend([
                    ("type".into(), json!("string")),
                    ("enum".into(), json!(words)),
                    ("description".into(), json!(about)),
                ]);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_plain),
        _ => {}
    }
}

/// The constants of a `oneOf`, each with its meaning.
fn words(choices: &[Value]) -> Option<Vec<(String, String)>> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    choices.iter().map(|choice| Some((text(choice.get("const"))?, text(choice.get("description"))?))).collect()
}
