//! `tertulia models check`: requests a decision, a statement, and a sample from each other service, and reports problems.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tokio::time::Instant;

use super::client::block_on;
use super::command_io::{print, print_json, run_with_settings};
use super::failure::Failure;
use super::visible;
use crate::adapters::llm::openai::OpenAi;
use crate::domain::model_role::ModelRole;
use crate::domain::service::Service;
use crate::ports::language_model::NoAnswer;
use crate::ports::model_setup::{Trial, Tried};
use crate::server::model_setup::try_configured;
use crate::server::moderation;
use crate::server::speech::{Tried as TriedService, try_services};
use crate::settings::connection::Connection;
use crate::settings::models::Models as Settings;
use crate::settings::{Loaded, Sources};

const EXAMPLES: &str = "\
Examples:
  tertulia models check          one decision and one statement, with time, tokens and cost; then each other service
  tertulia models check --json   the same as one JSON object

The models are those of the settings, or those that were connected on the page. Services for speech are tried if they are used: a moment of silence
is recognised, or a word is said. The moderation service examines a word. You can run this while the server runs.

Exit codes:
  0  all work
  1  one does not: its line names what to change
  2  wrong usage or wrong settings";

/// The name of the moderation service.
const MODERATION: &str = "moderation";
/// The maximum number of model names in the output.
const MOST_NAMES: usize = 20;

#[derive(Clone, Debug, Subcommand)]
pub enum Models {
    /// Try the models: one decision and one statement, and the services for speech and moderation
    Check(Check),
}

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the check. The exit code shows whether everything works.
pub fn run(sources: &Sources, command: Models) -> ExitCode {
    let Models::Check(options) = command;
    run_with_settings(sources, |loaded| run_check(&loaded, &options))
}

fn run_check(loaded: &Loaded, options: &Check) -> Result<(), Failure> {
    let usage = |problem: &dyn std::fmt::Display| Failure::Usage(format!("models.{problem}"));
    let connection = Connection::read(&loaded.settings.storage.path).map_err(|problem| Failure::Usage(problem.to_string()))?;
    let settings = connection.map_or_else(|| loaded.settings.clone(), |connection| connection.applied_to(&loaded.settings));
    let models = &settings.models;
    let (trial, names, speech, moderation) = block_on(async {
        let trial = try_configured(&settings, &loaded.companions).await;
        let trial = trial.ok_or_else(|| Failure::Usage("there is no companion to try the models with".to_owned()))?;
        let trial = trial.map_err(|problem| usage(&problem))?;
        let names = if trial.decision.works && trial.statement.works { Ok(Vec::new()) } else { names(models).await };
        let speech = try_services(&loaded.settings, &loaded.companions).await;
        let speech = speech.map_err(|problem| Failure::Usage(problem.to_string()))?;
        let moderation = match moderation(models).map_err(|problem| usage(&problem))? {
            Some(service) => {
                let (began, outcome) = (Instant::now(), service.try_out().await);
                Some(TriedService { name: MODERATION.into(), service: MODERATION, outcome, took: began.elapsed() })
            }
            None => None,
        };
        Ok((trial, names, speech, moderation))
    })?;
    let services: Vec<_> = speech.iter().chain(&moderation).collect();
    if options.json {
        print_json(&format!(
            "{:#}",
            json!({
                "trial": trial,
                "models": names.as_deref().unwrap_or_default(),
                "speech": speech.iter().map(as_json).collect::<Vec<_>>(),
                "moderation": moderation.as_ref().map(as_json),
            })
        ))?;
    } else {
        print(&visible::lines(&as_text(&trial, &names, &models.currency, &services)))?;
    }
    let failed_models = [&trial.decision, &trial.statement].iter().filter(|tried| !tried.works).count();
    match failed_models + services.iter().filter(|tried| tried.outcome.is_err()).count() {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 model or service does not work".to_owned())),
        count => Err(Failure::Failed(format!("{count} models or services do not work"))),
    }
}

/// The models that the endpoint for statements offers, or the error of the request.
async fn names(models: &Settings) -> Result<Vec<String>, NoAnswer> {
    let served = models.served(ModelRole::Main, &ModelRole::Main.into());
    let authorities = models.authorities().unwrap_or_default();
    let Some(Ok(server)) = served.endpoint.map(|endpoint| OpenAi::new(&endpoint, &served.limits, &authorities)) else {
        return Ok(Vec::new());
    };
    server.names().await
}

fn as_json(tried: &TriedService) -> serde_json::Value {
    let error = tried.outcome.as_ref().err();
    json!({
        "service": tried.service,
        "name": tried.name,
        "works": error.is_none(),
        "error": error.map(NoAnswer::code),
        "detail": error.map(ToString::to_string),
        "secs": rounded(tried.took),
    })
}

/// Seconds, rounded to hundredths.
fn rounded(span: Duration) -> f64 {
    (span.as_secs_f64() * 100.0).round() / 100.0
}

fn as_text(trial: &Trial, names: &Result<Vec<String>, NoAnswer>, currency: &str, services: &[&TriedService]) -> String {
    let mut text = String::new();
    for (what, tried) in [("decides", &trial.decision), ("writes", &trial.statement)] {
        let Tried { model, works, adaptations, detail, secs, input_tokens, output_tokens, cost, .. } = tried;
        let verdict = if *works { "works" } else { "does not work" };
        let cost = cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("{cost} {currency}"));
        // Writing to a String does not fail.
        let _ = writeln!(text, "{what:<8} {model}: {verdict}, {secs} s, {input_tokens} and {output_tokens} tokens, {cost}");
        let _ = writeln!(text, "         {detail}");
        for adaptation in adaptations {
            let _ = writeln!(text, "         {adaptation}");
        }
    }
    match names {
        Ok(names) if names.is_empty() => {}
        Ok(names) => {
            let more = names.len().saturating_sub(MOST_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(text, "the server has these models: {}{more}", names[..names.len().min(MOST_NAMES)].join(", "));
        }
        Err(error) => {
            let _ = writeln!(text, "the server gives no list of models: {error}");
        }
    }
    for TriedService { name, service, outcome, took } in services {
        let what = match *service {
            MODERATION => "examines",
            service if service == Service::SpeechRecognition.as_str() => "hears",
            _ => "speaks",
        };
        let verdict = if outcome.is_ok() { "works" } else { "does not work" };
        let _ = writeln!(text, "{what:<8} {name}: {verdict}, {} s", rounded(*took));
        if let Err(error) = outcome {
            let _ = writeln!(text, "         {error}");
        }
    }
    text
}
