//! Tokens of programs. Each has a name and a scope, and is created and revoked separately. A file in the data folder has their hashes, so that a
//! command can create and revoke tokens whether or not the server is running. The file is read whenever a token is presented.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use axum::Json as Answer;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Shared;
use super::body::{EntryPath, Json};
use super::problem::Problem;
use crate::domain::moment::Moment;
use crate::domain::named::named;
use crate::ports::backend::Detail;
use crate::ports::backend::stamp::Stamp;
use crate::ports::rng::Rng;
use crate::settings::private_file;

/// The largest number of tokens, and the most characters of their names.
const MOST: usize = 100;
const MAX_NAME_CHARS: usize = 64;

named! {
    /// What a token is for.
    #[derive(JsonSchema, clap::ValueEnum)]
    pub enum Scope {
        /// `/metrics` alone, for Prometheus.
        Metrics = "metrics",
        /// Whatever can be read, and nothing that changes something.
        Read = "read",
        /// Everything, as with the admin token.
        Admin = "admin",
    }
}

impl Scope {
    /// Whether the scope admits a method of a route. A voice call is a GET request, but the caller can speak in it, so [`Scope::Read`] does not
    /// admit it.
    pub(super) fn allows(self, route: &str, method: &Method) -> bool {
        match self {
            Self::Metrics => route == "/metrics",
            Self::Read => matches!(*method, Method::GET | Method::HEAD) && route != "/api/voice",
            Self::Admin => true,
        }
    }
}

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Token {
    pub name: Arc<str>,
    pub scope: Scope,
    pub made_at: Moment,
    /// The SHA-256 of the secret in hexadecimal digits. The secret has 256 random bits.
    hash: String,
}

/// Why a token was not created or revoked.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("the name has 1 to {MAX_NAME_CHARS} letters A-Z and a-z, digits, _ and -")]
    Name,
    #[error("there is a token {0} already; end it, or choose another name")]
    Taken(Arc<str>),
    #[error("there are {MOST} tokens; end one first")]
    TooMany,
    #[error("there is no token {0}")]
    Unknown(Arc<str>),
    #[error("{}: {error}", .path.display())]
    File { path: PathBuf, error: io::Error },
}

/// The tokens of a data folder.
#[derive(Clone, Debug)]
pub struct Tokens(PathBuf);

impl Tokens {
    pub fn of(data: &Path) -> Self {
        Self(data.join("tokens.json"))
    }

    /// All tokens, by name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn all(&self) -> Result<Vec<Token>, Refused> {
        private_file::read(&self.0).map(Option::unwrap_or_default).map_err(|error| self.failed(error))
    }

    /// Creates a token and returns its secret, which is not stored.
    ///
    /// # Errors
    /// Returns an error if the name is invalid or taken, if there are too many tokens, or if the file cannot be read or written.
    pub fn make(&self, name: &str, scope: Scope, now: Moment, rng: &dyn Rng) -> Result<SecretString, Refused> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.chars().all(is_allowed) {
            return Err(Refused::Name);
        }
        let mut all = self.all()?;
        if all.iter().any(|token| *token.name == *name) {
            return Err(Refused::Taken(name.into()));
        }
        if all.len() >= MOST {
            return Err(Refused::TooMany);
        }
        let secret = SecretString::from(format!("{:032x}{:032x}", rng.id(), rng.id()));
        all.push(Token { name: name.into(), scope, made_at: now, hash: hash(secret.expose_secret()) });
        all.sort_by(|one, other| one.name.cmp(&other.name));
        self.write(&all)?;
        Ok(secret)
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// Returns an error if no token has this name, or if the file cannot be read or written.
    pub fn end(&self, name: &str) -> Result<(), Refused> {
        let mut all = self.all()?;
        let before = all.len();
        all.retain(|token| *token.name != *name);
        if all.len() == before {
            return Err(Refused::Unknown(name.into()));
        }
        self.write(&all)
    }

    /// The token with this secret. If the file cannot be read, no token is valid.
    pub(super) fn with_secret(&self, secret: &str) -> Option<Token> {
        let all = self.all().inspect_err(|error| tracing::warn!(%error, "tokens cannot be read")).unwrap_or_default();
        let hash = hash(secret);
        all.into_iter().find(|token| token.hash == hash)
    }

    /// Whether this token still exists, with the same secret.
    pub(super) fn has(&self, token: &Token) -> bool {
        self.all().is_ok_and(|all| all.iter().any(|known| known.hash == token.hash))
    }

    fn write(&self, all: &[Token]) -> Result<(), Refused> {
        let written = serde_json::to_vec_pretty(all).map_err(Into::into).and_then(|bytes| private_file::write(&self.0, &bytes));
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Refused {
        Refused::File { path: self.0.clone(), error }
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Token {}

fn hash(secret: &str) -> String {
    digest(&SHA256, secret.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let detail = Detail::from(refused.to_string());
        match refused {
            Refused::Name => Self::invalid("name", detail.coded("refusals.token_name", json!({ "most": MAX_NAME_CHARS }))),
            Refused::Taken(name) => {
                Self::new(StatusCode::CONFLICT, detail.coded("refusals.token_taken", json!({ "name": name })))
            }
            Refused::TooMany => {
                Self::new(StatusCode::CONFLICT, detail.coded("refusals.too_many_tokens", json!({ "most": MOST })))
            }
            Refused::Unknown(_) => Self::new(StatusCode::NOT_FOUND, detail),
            Refused::File { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail),
        }
    }
}

/// The tokens of programs.
#[derive(Serialize, JsonSchema)]
pub(super) struct TokenList {
    tokens: Vec<TokenView>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TokenView {
    name: Arc<str>,
    scope: Scope,
    made_at: Stamp,
}

/// A token to create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewToken {
    #[schemars(extend("pattern" = "^[A-Za-z0-9_-]{1,64}$"))]
    name: String,
    scope: Scope,
}

/// A new token.
#[derive(Serialize, JsonSchema)]
pub(super) struct MadeToken {
    name: String,
    scope: Scope,
    /// The secret, for `Authorization: Bearer …`. It is returned only once.
    token: String,
}

/// `GET /api/tokens`
pub(super) async fn list(State(console): State<Shared>) -> Result<Answer<TokenList>, Problem> {
    let view = |token: Token| TokenView { name: token.name, scope: token.scope, made_at: token.made_at.into() };
    // Without a data folder there are no tokens.
    let all = console.auth.tokens().map_or_else(|_| Ok(Vec::new()), Tokens::all)?;
    Ok(Answer(TokenList { tokens: all.into_iter().map(view).collect() }))
}

/// `POST /api/tokens`
pub(super) async fn make(
    State(console): State<Shared>,
    Json(NewToken { name, scope }): Json<NewToken>,
) -> Result<(StatusCode, Answer<MadeToken>), Problem> {
    let token = console.auth.make_program_token(&name, scope)?.expose_secret().to_owned();
    Ok((StatusCode::CREATED, Answer(MadeToken { name, scope, token })))
}

/// `DELETE /api/tokens/{id}`
pub(super) async fn end(State(console): State<Shared>, EntryPath(name): EntryPath) -> Result<StatusCode, Problem> {
    console.auth.tokens()?.end(&name)?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Draws;

    #[test]
    fn a_token_is_known_by_its_secret_until_it_ends_and_only_its_hash_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let (tokens, rng) = (Tokens::of(data.path()), Draws::default());

        let prometheus = tokens.make("prometheus", Scope::Metrics, Moment::ZERO, &rng).unwrap();
        let reader = tokens.make("reader", Scope::Read, Moment::ZERO, &rng).unwrap();

        let scope = |secret: &SecretString| tokens.with_secret(secret.expose_secret()).map(|token| token.scope);
        assert_eq!((scope(&prometheus), scope(&reader)), (Some(Scope::Metrics), Some(Scope::Read)));
        assert!(!std::fs::read_to_string(&tokens.0).unwrap().contains(reader.expose_secret()));
        assert!(matches!(tokens.make("reader", Scope::Admin, Moment::ZERO, &rng), Err(Refused::Taken(_))));
        assert!(matches!(tokens.make("a b", Scope::Admin, Moment::ZERO, &rng), Err(Refused::Name)));
        tokens.end("reader").unwrap();
        assert_eq!((scope(&prometheus), scope(&reader)), (Some(Scope::Metrics), None));
        assert!(matches!(tokens.end("reader"), Err(Refused::Unknown(_))));
    }

    #[test]
    fn a_scope_opens_what_it_is_for() {
        let routes = [
            ("/metrics", Method::GET),
            ("/api/rooms", Method::HEAD),
            ("/api/live", Method::GET),
            ("/api/voice", Method::GET),
            ("/api/rooms", Method::POST),
            ("/api/tokens", Method::POST),
        ];

        let opened = Scope::ALL.map(|scope| routes.each_ref().map(|(route, method)| scope.allows(route, method)));

        assert_eq!(opened, [[true, false, false, false, false, false], [true, true, true, false, false, false], [true; 6]]);
    }
}
