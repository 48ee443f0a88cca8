//! Connects models while the server runs, and tries them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::in_force::{InForce, State};
use crate::actors::companion::trial;
use crate::actors::membership::memberships::CompanionSet;
use crate::actors::runtime::context::ActorContext;
use crate::adapters::llm;
use crate::adapters::llm::openai::{Dialects, OpenAi};
use crate::adapters::system::SystemClock;
use crate::domain::answer::Verdict;
use crate::domain::priority::Priority;
use crate::domain::raw_answer::{self, Nothing, Speakers};
use crate::domain::vote;
use crate::ports::backend::{Detail, Refused};
use crate::ports::clock::Clock as _;
use crate::ports::language_model::{Answer, LanguageModel, ModelRole, NoAnswer, READS_NO_PICTURES, Request};
use crate::ports::model_setup::{
    ModelServer, ModelSetup, ModelTrouble, ModelView, ModelsView, NewConnection, NewValues, Source, Trial, Tried,
};
use crate::settings::companion::{Companion, ModelChoice};
use crate::settings::connection::{ConnectedModel, Connection, TIMEOUT_SECS};
use crate::settings::models::extra::{ExtraValue, ExtraValues};
use crate::settings::models::{Endpoint, Models, names_a_secret};
use crate::settings::{Problem, Settings};

/// The longest base URL and the longest name of a model, in bytes.
const MAX_TEXT_BYTES: usize = 2_048;
/// The most concurrent trials of connections, and the most concurrent requests for lists of models. Each needs its own connections and buffers.
pub(super) const MOST_AT_A_TIME: usize = 2;
/// The delay after which a caller over this limit should try again. A trial takes seconds.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The code of [`NoAnswer::TimedOut`].
const TIMEOUT: &str = NoAnswer::TimedOut { after: Duration::ZERO }.code();

/// The models of a running server.
pub(super) struct Setup {
    context: ActorContext,
    dialects: Dialects,
    in_force: Arc<InForce>,
    trials: Semaphore,
    lists: Semaphore,
}

impl Setup {
    pub(super) fn new(context: ActorContext, dialects: Dialects, in_force: Arc<InForce>) -> Self {
        let [trials, lists] = [(); 2].map(|()| Semaphore::new(MOST_AT_A_TIME));
        Self { context, dialects, in_force, trials, lists }
    }

    /// Tries the models in force once, so that their failures are shown before a person waits for an answer. `rehearsal` needs no trial.
    pub(super) async fn try_at_start(&self) {
        let models = self.context.pool.settings();
        if models.check_at_start
            && let Some(moderation) = &self.context.moderation
            && let Err(error) = moderation.try_out().await
        {
            let meanwhile = self.context.in_force().safety.moderation_fails.meanwhile();
            tracing::error!(%error, "the moderation service does not work; {meanwhile}");
        }
        if !models.check_at_start || models.served(ModelRole::Main, &ModelRole::Main.into()).endpoint.is_none() {
            return;
        }
        let Some(companion) = self.context.memberships.companions().values().next().cloned() else { return };
        let pool = &self.context.pool;
        pool.prepare().await;
        let ask = |request: Request| {
            let request = Request { model: request.role.into(), ..request };
            let deadline = pool.deadline(request.role);
            pool.answer(Arc::new(request.into()), Priority::Lull, deadline, None)
        };
        let [decision, statement] = trial::requests(&companion, &self.context.in_force().prompt, None, self.context.clock.now());
        // The requests are sequential, so that neither slows down the other. The pool logs failures, and the page shows them.
        let decision = ask(decision).await;
        let statement = ask(statement).await;
        let words = self.context.settings.prompt.verdict_words();
        let is_unreadable = |answer: &Answer| vote::read(&answer.text(), words).verdict == Verdict::Unreadable;
        if decision.result.as_ref().is_ok_and(is_unreadable) {
            tracing::warn!(
                model = &*decision.facts.identity.model,
                "the model for decisions does not follow their format, so companions stay silent; choose another one for models.side"
            );
        } else if decision.result.is_ok() && statement.result.is_ok() {
            tracing::info!(model = &*statement.facts.identity.model, "the models work");
        }
    }

    /// The requested connection. If the request has no key, the connection gets the spare key if that is requested, else the key that is in use for
    /// the same URL.
    async fn resolved(&self, new: NewConnection) -> Result<Connection, Refused> {
        let NewConnection { base_url, api_key, spare_key, extra_headers, extra_query, main, side, timeout_secs, short_decisions } =
            new;
        if let Some(secs) = timeout_secs.filter(|secs| !TIMEOUT_SECS.contains(secs)) {
            let values = json!({ "value": secs, "least": TIMEOUT_SECS.start(), "most": TIMEOUT_SECS.end() });
            return Err(invalid("timeout_secs", Detail::of("refusals.range", values)));
        }
        for (field, text) in [("base_url", &base_url), ("main.model", &main.model)] {
            if text.trim().is_empty() || text.len() > MAX_TEXT_BYTES {
                return Err(invalid(field, Detail::of("refusals.bytes", json!({ "most": MAX_TEXT_BYTES }))));
            }
        }
        let in_use = self.in_use().await;
        let is_same = in_use.base_url.as_deref() == Some(&*base_url);
        let extra_headers = extra_values("extra_headers", extra_headers, is_same.then_some(&in_use.extra_headers))?;
        let extra_query = extra_values("extra_query", extra_query, is_same.then_some(&in_use.extra_query))?;
        let api_key = match api_key {
            Some(key) => Some(key).filter(|key| !key.expose_secret().is_empty()),
            None if spare_key => match self.spare_key().await {
                Some(key) => Some(key.map_err(refused)?),
                None => return Err(invalid("spare_key", Detail::key("refusals.no_spare_key"))),
            },
            None if is_same => key_of(&in_use).await.map_err(refused)?,
            None if key_of(&in_use).await.map_err(refused)?.is_none() => None,
            None if in_use.base_url.is_none() => {
                return Err(invalid("api_key", Detail::key("refusals.which_key")));
            }
            None => return Err(invalid("api_key", Detail::key("refusals.other_key"))),
        };
        Ok(Connection { base_url, api_key, extra_headers, extra_query, main, side, timeout_secs, short_decisions })
    }

    /// The endpoint of the model that writes statements.
    async fn in_use(&self) -> Endpoint {
        let models = self.in_force.state().await.settings().models;
        let served = models.served(ModelRole::Main, &ModelRole::Main.into());
        served.endpoint.map_or_else(|| models.main.clone(), std::borrow::Cow::into_owned)
    }

    /// The key of the settings, if there is one that belongs to no base URL.
    async fn spare_key(&self) -> Option<Result<SecretString, Problem>> {
        let main = &self.in_force.state().await.configured.models.main;
        if main.base_url.is_some() {
            return None;
        }
        key_of(main).await.transpose()
    }

    async fn use_models(&self, connection: Option<Connection>) -> Result<ModelsView, Refused> {
        self.in_force.use_models(connection).await?;
        tracing::info!(main = &*self.context.pool.identity(ModelRole::Main).model, "other models are used from now on");
        self.models().await
    }
}

#[async_trait]
impl ModelSetup for Setup {
    async fn models(&self) -> Result<ModelsView, Refused> {
        let State { connection, configured, .. } = self.in_force.state().await;
        let settings = self.context.pool.settings();
        let is_connected = connection.is_some();
        let (timeout_secs, short_decisions) =
            connection.as_ref().map(|one| (one.timeout_secs, one.short_decisions)).unwrap_or_default();
        let view = |role: ModelRole| {
            let served = settings.served(role, &role.into());
            let identity = self.context.pool.identity(role);
            let vision = served.endpoint.as_ref().map(|endpoint| endpoint.vision).unwrap_or_default();
            let adaptations = self.context.pool.adaptations(role);
            ModelView {
                provider: identity.provider,
                model: identity.model,
                timeout_secs: served.limits.timeout_secs,
                sees_pictures: !vision.is_off() && !adaptations.iter().any(|one| *one == READS_NO_PICTURES),
                adaptations,
                input_price: served.endpoint.as_ref().and_then(|endpoint| endpoint.input_price),
                output_price: served.endpoint.as_ref().and_then(|endpoint| endpoint.output_price),
                cache_read_price: served.endpoint.as_ref().and_then(|endpoint| endpoint.cache_read_price),
                cache_write_price: served.endpoint.as_ref().and_then(|endpoint| endpoint.cache_write_price),
                extra_body: served.endpoint.as_ref().map(|endpoint| endpoint.extra_body.clone()).unwrap_or_default(),
                vision,
            }
        };
        let main = settings.served(ModelRole::Main, &ModelRole::Main.into()).endpoint;
        let has_key = match &main {
            Some(endpoint) => key_of(endpoint).await.is_ok_and(|key| key.is_some()),
            None => false,
        };
        let report = self.context.pool.report().await;
        let troubles = report.into_iter().flat_map(|report| report.troubles).map(|trouble| ModelTrouble {
            role: trouble.role.as_str(),
            model: trouble.model,
            error: trouble.code,
            detail: trouble.detail,
        });
        Ok(ModelsView {
            source: match (is_connected, &main) {
                (true, _) => Source::Page,
                (false, Some(_)) => Source::Settings,
                (false, None) => Source::Rehearsal,
            },
            currency: settings.currency.clone(),
            base_url: main.as_ref().and_then(|endpoint| endpoint.base_url.clone()),
            has_key,
            has_spare_key: self.spare_key().await.is_some(),
            extra_headers: main.as_ref().map(|endpoint| shown(&endpoint.extra_headers, |_| false)).unwrap_or_default(),
            extra_query: main
                .as_ref()
                .map(|endpoint| shown(&endpoint.extra_query, |name| !names_a_secret(name)))
                .unwrap_or_default(),
            main: view(ModelRole::Main),
            side: view(ModelRole::Side),
            timeout_secs,
            short_decisions,
            set: configured.set.iter().map(|(key, place)| (*key, place.clone())).collect(),
            troubles: troubles.collect(),
        })
    }

    async fn names(&self, server: ModelServer) -> Result<Vec<String>, Refused> {
        let _place = self.lists.try_acquire().map_err(|_| busy())?;
        let main = ConnectedModel { model: "any".to_owned(), ..ConnectedModel::default() };
        let ModelServer { base_url, api_key, spare_key, extra_headers, extra_query } = server;
        let new = NewConnection {
            base_url,
            api_key,
            spare_key,
            extra_headers,
            extra_query,
            main,
            side: None,
            timeout_secs: None,
            short_decisions: false,
        };
        let settings = self.resolved(new).await?.applied_to(&self.in_force.state().await.configured).models;
        let server = settings
            .authorities()
            .and_then(|authorities| OpenAi::new(&settings.main, &settings.main, &authorities))
            .map_err(refused)?;
        server.names().await.map_err(|no_answer| match no_answer {
            NoAnswer::KeyRejected { .. } => {
                let detail = Detail::from(format!("was rejected: {no_answer}"));
                invalid("api_key", detail.coded("refusals.key_rejected", no_models(&no_answer)))
            }
            _ => invalid("base_url", Detail::of("refusals.no_models", no_models(&no_answer))),
        })
    }

    async fn try_out(&self, connection: NewConnection) -> Result<Trial, Refused> {
        let _place = self.trials.try_acquire().map_err(|_| busy())?;
        let settings = self.resolved(connection).await?.applied_to(&self.in_force.state().await.configured);
        settings.models.check().map_err(refused)?;
        let companions = self.context.memberships.companions();
        let Some(companion) = companions.values().next() else {
            return Err(Refused::conflict(Detail::key("refusals.nobody_to_try")));
        };
        let tried = Companion { model: ModelChoice::default(), ..companion.clone() };
        try_models(&settings, &tried, None, &self.dialects).await.map_err(refused)
    }

    async fn connect(&self, connection: NewConnection) -> Result<ModelsView, Refused> {
        let connection = self.resolved(connection).await?;
        self.use_models(Some(connection)).await
    }

    async fn disconnect(&self) -> Result<ModelsView, Refused> {
        self.use_models(None).await
    }
}

/// Tries the models in both roles with the first companion. `None`: there is no companion.
///
/// # Errors
/// Returns an error if the settings name an endpoint that cannot be used.
pub async fn try_configured(settings: &Settings, companions: &CompanionSet) -> Option<Result<Trial, Problem>> {
    let companion = companions.values().next()?;
    let tried = Companion { model: ModelChoice::default(), ..companion.clone() };
    Some(try_models(settings, &tried, None, &Dialects::default()).await)
}

/// Makes one decision and one statement as a companion with its models. The requests are sequential, so that neither slows down the other. `said`
/// is the message to the companion; `None`: the default one. After a decision that took too long, no statement is requested.
///
/// # Errors
/// Returns an error if the settings name an endpoint that cannot be used.
pub(super) async fn try_models(
    settings: &Settings,
    companion: &Companion,
    said: Option<Arc<str>>,
    dialects: &Dialects,
) -> Result<Trial, Problem> {
    let models = &settings.models;
    let [decision, statement] = trial::requests(companion, &settings.prompt, said, SystemClock.now());
    let [side, main] =
        [ModelRole::Side, ModelRole::Main].map(|role| llm::shared(models, role, companion.model.of(role), dialects));
    let (side, main) = (side?, main?);
    let words = settings.prompt.verdict_words();
    let decision = tried(models, &*side, decision, |answer| match vote::read(&answer.text(), words) {
        vote if vote.verdict == Verdict::Unreadable && answer.is_cut() => {
            Err("the answer was cut off at its limit of tokens; raise prompt.max_side_answer_tokens".to_owned())
        }
        vote if vote.verdict == Verdict::Unreadable => {
            Err("the answer does not follow the format of decisions; take another model for decisions".to_owned())
        }
        vote => Ok(format!("{:?}: {}", vote.verdict, vote.why.unwrap_or_default())),
    });
    let decision = decision.await;
    if decision.error == Some(TIMEOUT) {
        let detail = "not asked for, because the decision took too long".to_owned();
        let (model, error) = (main.identity().model.clone(), Some(NoAnswer::Cancelled.code()));
        let (adaptations, input_tokens, output_tokens) = (Vec::new(), 0, 0);
        let statement =
            Tried { model, works: false, adaptations, error, detail, secs: 0.0, input_tokens, output_tokens, cost: None };
        return Ok(Trial { decision, statement });
    }
    let statement = tried(models, &*main, statement, |answer| {
        match raw_answer::statement(&answer.text(), Speakers::new(&companion.name, [])).words {
            Ok(text) if answer.is_cut() => {
                Ok(format!("{text} (cut off at its limit of tokens; prompt.max_main_answer_tokens raises it)"))
            }
            Err(Nothing::Empty | Nothing::Thoughts) if answer.is_cut() => {
                Err("the model used up its limit of tokens before the first word; raise prompt.max_main_answer_tokens".to_owned())
            }
            Err(Nothing::Empty) => Err("the answer is empty".to_owned()),
            Err(Nothing::Thoughts) => Err("the model wrote only what it thinks, and no words".to_owned()),
            Err(_) => Err("the model wrote something else than a statement; take another model for statements".to_owned()),
            Ok(text) => Ok(text),
        }
    });
    let statement = statement.await;
    Ok(Trial { decision, statement })
}

async fn tried(
    models: &Models,
    model: &dyn LanguageModel,
    request: Request,
    read: impl Fn(&Answer) -> Result<String, String>,
) -> Tried {
    model.prepare().await;
    let began = Instant::now();
    let result = model.ask(&request, None).await;
    let secs = (began.elapsed().as_secs_f64() * 100.0).round() / 100.0;
    let usage = result.as_ref().map(|answer| answer.usage).unwrap_or_default();
    let price = models.price(request.role, &request.model);
    let outcome = match &result {
        Ok(answer) => read(answer),
        Err(no_answer) => Err(no_answer.to_string()),
    };
    Tried {
        model: model.identity().model.clone(),
        adaptations: model.adaptations(),
        works: outcome.is_ok(),
        error: result.as_ref().err().map(NoAnswer::code),
        detail: outcome.unwrap_or_else(|detail| detail),
        secs,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cost: price.filter(|_| result.is_ok()).map(|price| price.of(usage).as_units()),
    }
}

/// Why there is no list of models: an error code as in a trial, and the server's response.
fn no_models(no_answer: &NoAnswer) -> Value {
    json!({ "error": no_answer.code(), "problem": no_answer.to_string() })
}

/// The key of an endpoint. A file is read off the runtime's own threads.
async fn key_of(endpoint: &Endpoint) -> Result<Option<SecretString>, Problem> {
    if endpoint.api_key_file.is_none() {
        return endpoint.key();
    }
    let endpoint = endpoint.clone();
    let reading = tokio::task::spawn_blocking(move || endpoint.key()).await;
    reading.unwrap_or_else(|error| Err(Problem::new("api_key_file", format!("cannot be read: {error}"))))
}

/// The values of a request, including the unchanged ones from `in_use`, which has the values for the same base URL.
fn extra_values(table: &str, new: NewValues, in_use: Option<&ExtraValues>) -> Result<ExtraValues, Refused> {
    let kept = |name: &String| in_use.and_then(|values| values.get(name)).cloned();
    let of = |(name, value): (String, Option<SecretString>)| {
        let value = value
            .map(ExtraValue::Text)
            .or_else(|| kept(&name))
            .ok_or_else(|| invalid(&format!("{table}.{name}"), Detail::key("refusals.needs_value")))?;
        Ok((name, value))
    };
    new.into_iter().map(of).collect()
}

/// The names of values, and the values that may be shown.
fn shown(values: &ExtraValues, is_public: impl Fn(&str) -> bool) -> BTreeMap<String, Option<String>> {
    let of = |(name, value): (&String, &ExtraValue)| match value {
        ExtraValue::Text(text) if is_public(name) => (name.clone(), Some(text.expose_secret().to_owned())),
        _ => (name.clone(), None),
    };
    values.iter().map(of).collect()
}

pub(super) fn busy() -> Refused {
    Refused::TooMany {
        detail: Detail::of("refusals.too_many_trials", json!({ "most": MOST_AT_A_TIME })),
        retry_after: RETRY_AFTER,
    }
}

pub(super) fn invalid(field: &str, detail: impl Into<Detail>) -> Refused {
    Refused::invalid(field, detail)
}

/// An error of the settings with this connection, named by the field of the request.
pub(super) fn refused(problem: Problem) -> Refused {
    let key = problem.key.strip_prefix("models.").unwrap_or(&problem.key).to_owned();
    let field = match key.as_str() {
        "main.base_url" | "side.base_url" => "base_url",
        "main.api_key" | "side.api_key" | "api_key" | "api_key_file" => "api_key",
        // Both models have the same values.
        key => match key.split_once('.') {
            Some(("main" | "side", of_server))
                if of_server.starts_with("extra_headers") || of_server.starts_with("extra_query") =>
            {
                of_server
            }
            _ => key,
        },
    };
    invalid(field, Detail::from(problem.message).with(problem.code))
}
