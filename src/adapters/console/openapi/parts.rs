//! Derives the description of an operation from the types of the handler's arguments and result.

use std::collections::BTreeSet;

use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::{Extension, Json as Answer};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::super::Shared;
use super::super::body::{
    BookPath, CallPath, CompanionPath, EntryPath, FileBody, FilePath, InvitationPath, Json, JsonWithFiles, MemberPath,
    MessagePath, PicturePath, QueryParams, ReminderPath, RoomPath,
};
use super::super::guard::Caller;
use super::super::language::Preferred;
use super::super::problem::Problem;
use super::super::uploads::JsonWithUploads;
use super::super::web_socket::Requested;
use super::PlainId;
use crate::domain::id::Seq;
use crate::ports::backend::room::RoomId;

/// Schemas of received and sent types. One type can have both: a field that is always sent may be optional in the received
/// schema.
pub(in super::super) struct Schemas {
    /// Contains no references, because a type that is also sent would then have two schemas with one name.
    received: SchemaGenerator,
    pub(super) sent: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let received = settings.clone().for_deserialize().with(|settings| settings.inline_subschemas = true);
        Self { received: received.into_generator(), sent: settings.for_serialize().into_generator() }
    }

    /// The schemas of sent types. An optional field is never null in them.
    pub(super) fn into_sent(mut self) -> Map<String, Value> {
        let mut sent = self.sent.take_definitions(true);
        for schema in sent.values_mut() {
            let required = schema["required"].clone();
            for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
                if !has(&required, name) {
                    *property = never_null(property);
                }
            }
        }
        sent
    }
}

/// The parts of an operation that the types of its handler describe.
#[derive(Default)]
pub(in super::super) struct Parts {
    pub(super) parameters: Vec<Value>,
    /// The schema of the request body, by media type.
    pub(super) body: Map<String, Value>,
    pub(super) content: Option<Schema>,
    pub(super) errors: BTreeSet<u16>,
}

impl Parts {
    fn path<T: JsonSchema>(&mut self, name: &str, schemas: &mut Schemas) {
        let schema = schemas.received.subschema_for::<T>();
        self.parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        self.errors.extend([400, 422]);
    }

    fn body(&mut self, media_type: &str, schema: &Schema) {
        self.body.insert(media_type.to_owned(), json!({ "schema": schema }));
        self.errors.extend([400, 408, 413, 415, 422]);
    }

    fn query<T: JsonSchema>(&mut self, schemas: &mut Schemas) {
        let mut object = schemas.received.subschema_for::<T>().to_value();
        let required = object["required"].take();
        for (name, schema) in object["properties"].as_object_mut().into_iter().flatten() {
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let mut parameter =
                json!({ "name": name, "in": "query", "required": has(&required, name), "schema": never_null(schema) });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            self.parameters.push(parameter);
        }
        self.errors.extend([400, 422]);
    }
}

/// Whether a list of names has this one.
fn has(names: &Value, name: &str) -> bool {
    names.as_array().is_some_and(|names| names.iter().any(|other| other == name))
}

/// The schema of an `Option` that may be absent, but is never null.
fn never_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(Value::Array(types)) = schema.get("type") {
        schema["type"] = types[0].clone();
    }
    if let Some(Value::Array(choices)) = schema.as_object_mut().and_then(|schema| schema.remove("anyOf")) {
        // Keeps a description beside a reference.
        let of_choice = choices.into_iter().next().unwrap_or_default();
        schema.as_object_mut().into_iter().for_each(|schema| schema.extend(of_choice.as_object().cloned().unwrap_or_default()));
    }
    schema
}

/// An argument or the result of a handler.
pub(in super::super) trait Part {
    fn describe(_: &mut Parts, _: &mut Schemas) {}
}

/// A handler whose type describes its operation. `T` is the tuple of its argument types.
pub(in super::super) trait Described<T> {
    fn describe(parts: &mut Parts, schemas: &mut Schemas);
}

macro_rules! described {
    ($($($argument:ident)*;)*) => {
        $(impl<F, Fut, R, $($argument,)*> Described<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut,
            Fut: Future<Output = R>,
            R: Part,
            $($argument: Part,)*
        {
            fn describe(parts: &mut Parts, schemas: &mut Schemas) {
                $($argument::describe(parts, schemas);)*
                R::describe(parts, schemas);
            }
        })*
    };
}

described! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
}

impl Part for State<Shared> {}
impl Part for Extension<Caller> {}
impl Part for HeaderMap {}

impl Part for Preferred {
    fn describe(parts: &mut Parts, _: &mut Schemas) {
        let description = "The language of the sentences: English, or German if it is preferred. A cookie `language` (`en` or `de`) goes first.";
        let schema = json!({ "type": "string" });
        parts.parameters.push(json!({ "name": "Accept-Language", "in": "header", "description": description, "schema": schema }));
    }
}

impl Part for RawQuery {}
impl Part for Request {}
impl Part for Requested {}
impl Part for StatusCode {}
impl Part for Response {}
impl Part for &str {}

macro_rules! in_path {
    ($($Extractor:ty: $($name:literal $Type:ty),+;)+) => {
        $(impl Part for $Extractor {
            fn describe(parts: &mut Parts, schemas: &mut Schemas) {
                $(parts.path::<$Type>($name, schemas);)+
            }
        })+
    };
}

in_path! {
    RoomPath: "room" RoomId;
    MessagePath: "room" RoomId, "seq" Seq;
    ReminderPath: "room" RoomId, "id" u64;
    CallPath: "room" RoomId, "call" u64;
    FilePath: "room" RoomId, "seq" Seq, "file" u64;
    MemberPath: "room" RoomId, "companion" PlainId;
    BookPath: "book" String;
    CompanionPath: "companion" PlainId;
    PicturePath: "companion" PlainId, "hash" String;
    EntryPath: "id" String;
    InvitationPath: "room" RoomId, "id" String;
    Path<String>: "name" String;
}

impl<T: JsonSchema> Part for Json<T> {
    fn describe(parts: &mut Parts, schemas: &mut Schemas) {
        parts.body("application/json", &schemas.received.subschema_for::<T>());
    }
}

impl<T: JsonSchema> Part for JsonWithFiles<T> {
    fn describe(parts: &mut Parts, schemas: &mut Schemas) {
        Json::<T>::describe(parts, schemas);
    }
}

impl<T: JsonSchema> Part for JsonWithUploads<T> {
    fn describe(parts: &mut Parts, schemas: &mut Schemas) {
        Json::<T>::describe(parts, schemas);
    }
}

impl Part for FileBody {
    fn describe(parts: &mut Parts, _: &mut Schemas) {
        for media_type in Self::TYPES {
            parts.body(media_type, &json_schema!({}));
        }
    }
}

impl<T: JsonSchema> Part for QueryParams<T> {
    fn describe(parts: &mut Parts, schemas: &mut Schemas) {
        parts.query::<T>(schemas);
    }
}

impl<T: JsonSchema> Part for Answer<T> {
    fn describe(parts: &mut Parts, schemas: &mut Schemas) {
        parts.content = Some(schemas.sent.subschema_for::<T>());
    }
}

impl<T: Part> Part for (StatusCode, T) {
    fn describe(parts: &mut Parts, schemas: &mut Schemas) {
        T::describe(parts, schemas);
    }
}

impl<T: Part> Part for Result<T, Problem> {
    fn describe(parts: &mut Parts, schemas: &mut Schemas) {
        T::describe(parts, schemas);
    }
}
