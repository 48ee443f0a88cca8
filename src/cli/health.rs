//! `tertulia health`: whether the server can be talked to, for whoever watches over it: a container's health check, a script, a person.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::asking::{ask_with, report};
use super::client::{Client, block_on, one_line};
use super::failure::Failure;
use super::whom::{self, Whom};
use crate::settings::{Loaded, Sources};

/// A server that takes longer to say how it is cannot be talked to.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Asks the server for its `/readyz`, and says with the exit code what came of it: 0 ready, 1 not, with the reason on standard error.
pub fn run(sources: &Sources, server: Option<&str>, json: bool) -> ExitCode {
    ask_with(sources, |loaded| tell(&look(&loaded, server)?, json))
}

/// How the server is.
struct Health {
    /// What it said, and where it was asked; or why it was not.
    object: Value,
    /// Why it cannot be talked to.
    trouble: Option<String>,
}

impl Health {
    fn unreachable(server: Option<&str>, trouble: String) -> Self {
        let object = json!({ "server": server, "ready": false, "detail": trouble });
        Self { object, trouble: Some(trouble) }
    }
}

fn look(loaded: &Loaded, named: Option<&str>) -> Result<Health, Failure> {
    match whom::find(loaded, named) {
        Ok(Whom::Server(client)) => block_on(async { Ok(ask(client).await) }),
        Ok(Whom::Store) => Ok(Health::unreachable(None, nobody_at(&loaded.settings.storage.path))),
        // One that does not say yet where it listens is on its way.
        Err(Failure::Store(starting)) => Ok(Health::unreachable(None, starting)),
        Err(failure) => Err(failure),
    }
}

/// Asks as who knows the token, for the details, or else as a stranger: who rotates tokens has no sick server.
async fn ask(client: Client) -> Health {
    match asked(&client).await {
        Ok(answer) if is_refusal(answer.status()) => {
            let client = client.without_token();
            read(&client, asked(&client).await).await
        }
        outcome => read(&client, outcome).await,
    }
}

async fn asked(client: &Client) -> reqwest::Result<Response> {
    client.request(Method::GET, "/readyz", &[]).timeout(ANSWER_DEADLINE).send().await
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS)
}

async fn read(client: &Client, outcome: reqwest::Result<Response>) -> Health {
    let url = client.address();
    let heard = match outcome {
        Ok(answer) => {
            let status = answer.status();
            answer.text().await.map(|said| (status, said))
        }
        Err(error) => Err(error),
    };
    let (status, said) = match heard {
        Ok(heard) => heard,
        Err(error) if error.is_timeout() => {
            let trouble = format!("the server at {url} gave no answer within {} seconds", ANSWER_DEADLINE.as_secs());
            return Health::unreachable(Some(&url), trouble);
        }
        Err(error) => return Health::unreachable(Some(&url), client.broken(&error).to_string()),
    };
    let Some((mut object, ready)) = readiness(&said) else {
        return Health::unreachable(Some(&url), format!("{url} answered {status}, and not as a tertulia server does"));
    };
    object["server"] = url.clone().into();
    if ready && status.is_success() {
        return Health { object, trouble: None };
    }
    let parts = parts_in_trouble(&object);
    let because = if parts.is_empty() { String::new() } else { format!(": {parts}") };
    let trouble = format!("the server at {url} is not ready{because}");
    object["ready"] = false.into();
    object["detail"] = trouble.clone().into();
    Health { object, trouble: Some(trouble) }
}

/// What `/readyz` said, if it is that.
fn readiness(said: &str) -> Option<(Value, bool)> {
    let object: Value = serde_json::from_str(said).ok()?;
    let ready = object.as_object()?.get("ready")?.as_bool()?;
    Some((object, ready))
}

/// `models: …; store: …`, or nothing. A server may be ready all the same.
fn parts_in_trouble(object: &Value) -> String {
    let parts = object["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let trouble = |part: &Value| {
        let (name, detail) = (part["part"].as_str()?, part["detail"].as_str().unwrap_or_default());
        (part["ready"] == false).then(|| format!("{name}: {detail}"))
    };
    let told = parts.iter().filter_map(trouble).collect::<Vec<_>>().join("; ");
    one_line(&told)
}

fn nobody_at(data: &Path) -> String {
    let shown = data.display();
    match fs::File::open(data.join("lock")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            format!("{shown} cannot be looked into by this user: run this as the server's, or name the server with --server")
        }
        _ => format!("no server runs on {shown}: start it, or set storage.path, or --config, as for the server"),
    }
}

fn tell(health: &Health, json: bool) -> Result<(), Failure> {
    match &health.trouble {
        None => {
            let url = health.object["server"].as_str().unwrap_or_default();
            let parts = parts_in_trouble(&health.object);
            let but = if parts.is_empty() { String::new() } else { format!(", but not all of it: {parts}") };
            report(json, &health.object, &format!("{url} is ready{but}"))
        }
        Some(trouble) => {
            if json {
                report(json, &health.object, "")?;
            }
            Err(Failure::Failed(trouble.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());

        let health = ask(Client::new(url.parse().unwrap(), None, false).unwrap()).await;

        assert_eq!(health.trouble, Some(format!("the server at {url} gave no answer within 5 seconds")));
        assert_eq!(health.object["ready"], false);
    }

    #[test]
    fn what_is_in_trouble_is_told_in_one_line() {
        let said = json!({ "ready": true, "parts": [
            { "part": "store", "ready": true, "detail": "" },
            { "part": "models", "ready": false, "detail": "refused:\nwrong\u{1b}[31m key" },
        ] });

        assert_eq!(parts_in_trouble(&said), "models: refused: wrong [31m key");
    }

    #[test]
    fn what_is_no_readiness_is_not_taken_for_one() {
        let read =
            ["ok", "[]", "{}", r#"{"ready":"yes"}"#, r#"{"ready":true}"#].map(|said| readiness(said).map(|(_, ready)| ready));

        assert_eq!(read, [None, None, None, None, Some(true)]);
    }
}
