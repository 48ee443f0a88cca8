//! `tertulia health`: checks whether the server is ready, for a container's health check, a script or a person.

use std::fs;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::access::{self, Access};
use super::client::{Client, block_on};
use super::command_io::{report, run_with_settings};
use super::failure::Failure;
use crate::domain::text::spaced;
use crate::settings::{Loaded, Sources};

/// The timeout for the server's response. A slower server counts as not ready.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Requests the server's `/readyz`. The exit code is 0 if the server is ready or stands by for another node, and 1 if it is not
/// ready. The reason is printed to standard error.
pub fn run(sources: &Sources, server: Option<&str>, json: bool) -> ExitCode {
    run_with_settings(sources, |loaded| show(&check(&loaded, server)?, json))
}

struct Health {
    /// The server's response and URL, or the reason why there is no response.
    object: Value,
    /// The reason why the server is not ready. `None` if it is ready or stands by.
    problem: Option<String>,
}

impl Health {
    fn unreachable(server: Option<&str>, problem: String) -> Self {
        let object = json!({ "server": server, "ready": false, "detail": problem });
        Self { object, problem: Some(problem) }
    }
}

fn check(loaded: &Loaded, named: Option<&str>) -> Result<Health, Failure> {
    match access::find(loaded, named) {
        Ok(Access::Server(client)) => block_on(async { Ok(ask(client).await) }),
        Ok(Access::Store) => match access::listening(loaded) {
            Some(client) => block_on(async { Ok(ask(client).await) }),
            None => Ok(Health::unreachable(None, no_server(loaded))),
        },
        // A server that has not reported its address yet is still starting.
        Err(Failure::Store(starting)) => Ok(Health::unreachable(None, starting)),
        Err(failure) => Err(failure),
    }
}

/// Sends the token to get details. If the server refuses it, asks without the token: a wrong token, for example after a rotation,
/// does not mean that the server is failing.
async fn ask(client: Client) -> Health {
    match request_readyz(&client).await {
        Ok(answer) if is_refusal(answer.status()) => {
            let client = client.without_token();
            read(&client, request_readyz(&client).await).await
        }
        outcome => read(&client, outcome).await,
    }
}

async fn request_readyz(client: &Client) -> reqwest::Result<Response> {
    client.request(Method::GET, "/readyz", &[]).timeout(ANSWER_DEADLINE).send().await
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS)
}

async fn read(client: &Client, outcome: reqwest::Result<Response>) -> Health {
    let url = client.address();
    let received = match outcome {
        Ok(answer) => {
            let status = answer.status();
            answer.text().await.map(|body| (status, body))
        }
        Err(error) => Err(error),
    };
    let (status, body) = match received {
        Ok(received) => received,
        Err(error) if error.is_timeout() => {
            let problem = format!("the server at {url} did not answer within {} seconds", ANSWER_DEADLINE.as_secs());
            return Health::unreachable(Some(&url), problem);
        }
        Err(error) => return Health::unreachable(Some(&url), client.broken(&error).to_string()),
    };
    let Some((mut object, ready)) = readiness(&body) else {
        return Health::unreachable(Some(&url), format!("{url} answered {status}, but not like a tertulia server"));
    };
    object["server"] = url.clone().into();
    if ready && status.is_success() {
        return Health { object, problem: None };
    }
    if object["stands_by"] == true {
        return Health { object, problem: None };
    }
    let parts = failing_parts(&object);
    let because = if parts.is_empty() { String::new() } else { format!(": {parts}") };
    let problem = format!("the server at {url} is not ready{because}");
    object["ready"] = false.into();
    object["detail"] = problem.clone().into();
    Health { object, problem: Some(problem) }
}

/// The response of `/readyz` and its `ready` field. `None` if the body has another form.
fn readiness(body: &str) -> Option<(Value, bool)> {
    let object: Value = serde_json::from_str(body).ok()?;
    let ready = object.as_object()?.get("ready")?.as_bool()?;
    Some((object, ready))
}

/// The failing parts as `models: …; store: …`. Empty if there are none. A server can be ready although a part is not.
fn failing_parts(object: &Value) -> String {
    let parts = object["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let failing = |part: &Value| {
        let (name, detail) = (part["part"].as_str()?, part["detail"].as_str().unwrap_or_default());
        (part["ready"] == false).then(|| format!("{name}: {detail}"))
    };
    let text = parts.iter().filter_map(failing).collect::<Vec<_>>().join("; ");
    spaced(&text)
}

/// The models that the server uses, as `; large of openrouter.ai answers, small of openrouter.ai decides`. Empty without details.
fn models(object: &Value) -> String {
    let name = |role: &str| {
        let model = &object["models"][role];
        let (name, provider) = (model["model"].as_str()?, model["provider"].as_str()?);
        Some(if name == provider { format!("{name} (built in)") } else { format!("{name} of {provider}") })
    };
    let text = match (name("main"), name("side")) {
        (Some(main), Some(side)) if main == side => format!("; {main} answers and decides"),
        (Some(main), Some(side)) => format!("; {main} answers, {side} decides"),
        _ => String::new(),
    };
    spaced(&text)
}

fn no_server(loaded: &Loaded) -> String {
    let data = &loaded.settings.storage.path;
    let (shown, listen) = (data.display(), &loaded.settings.server.listen);
    match fs::File::open(data.join("lock")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            format!("this user may not read {shown}: run this as the server's user, or name the server with --server")
        }
        _ => format!("no server runs on {shown}, and none answers on {listen}: start it, or name the server with --server"),
    }
}

fn show(health: &Health, json: bool) -> Result<(), Failure> {
    match &health.problem {
        None if health.object["stands_by"] == true => {
            let url = health.object["server"].as_str().unwrap_or_default();
            let active = health.object["active"].as_str().map(|active| format!(" for the node at {active}")).unwrap_or_default();
            report(json, &health.object, &spaced(&format!("{url} stands by{active}")))
        }
        None => {
            let url = health.object["server"].as_str().unwrap_or_default();
            let parts = failing_parts(&health.object);
            let except = if parts.is_empty() { String::new() } else { format!(", except for {parts}") };
            report(json, &health.object, &format!("{url} is ready{except}{}", models(&health.object)))
        }
        Some(problem) => {
            if json {
                report(json, &health.object, "")?;
            }
            Err(Failure::Failed(problem.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_not_ready() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());

        let health = ask(Client::new(url.parse().unwrap(), None, false).unwrap()).await;

        assert_eq!(health.problem, Some(format!("the server at {url} did not answer within 5 seconds")));
        assert_eq!(health.object["ready"], false);
    }

    #[tokio::test]
    async fn a_node_that_stands_by_is_well() {
        let answer = axum::http::Response::builder().status(503).body(r#"{"ready":false,"stands_by":true,"active":"http://a"}"#);

        let health = read(&Client::new("http://b".parse().unwrap(), None, false).unwrap(), Ok(answer.unwrap().into())).await;

        assert!(health.problem.is_none() && health.object["active"] == "http://a");
    }

    #[test]
    fn failing_parts_are_listed_in_one_line() {
        let object = json!({ "ready": true, "parts": [
            { "part": "store", "ready": true, "detail": "" },
            { "part": "models", "ready": false, "detail": "refused:\nwrong\u{1b}[31m key" },
        ] });

        assert_eq!(failing_parts(&object), "models: refused: wrong [31m key");
    }

    #[test]
    fn the_models_in_use_are_named() {
        let object = |main: &str, side: &str| json!({ "models": { "main": { "provider": "openrouter.ai", "model": main }, "side": { "provider": "openrouter.ai", "model": side } } });

        assert_eq!(models(&object("large", "small")), "; large of openrouter.ai answers, small of openrouter.ai decides");
        assert_eq!(models(&object("large", "large")), "; large of openrouter.ai answers and decides");
        assert_eq!(models(&json!({ "ready": true })), "");
    }

    #[test]
    fn a_body_of_another_form_is_not_a_readiness_answer() {
        let read =
            ["ok", "[]", "{}", r#"{"ready":"yes"}"#, r#"{"ready":true}"#].map(|body| readiness(body).map(|(_, ready)| ready));

        assert_eq!(read, [None, None, None, None, Some(true)]);
    }
}
