//! Sends the questions of one setting to its model, through the same pool as in the server, with limits, retries and circuit
//! breaker.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use ractor::Actor;
use tokio::sync::watch;

use super::Evaluate;
use super::cap::Cap;
use super::progress::Progress;
use tertulia::actors::companion::question;
use tertulia::actors::models::{Pool, SideModels};
use tertulia::actors::runtime::directory::Directory;
use tertulia::adapters::llm::openai::Dialects;
use tertulia::adapters::system::SystemRng;
use tertulia::cli::failure::Failure;
use tertulia::domain::id::CompanionId;
use tertulia::domain::price::Price;
use tertulia::domain::priority::Priority;
use tertulia::evaluation::answers::{Answers, Kept, key};
use tertulia::evaluation::decisions::Decision;
use tertulia::evaluation::excerpts::Excerpt;
use tertulia::evaluation::questions::{Judged, Room, judged, neutral};
use tertulia::evaluation::report::Asked;
use tertulia::ports::language_model::{Answer, Identity, ModelRole, NoAnswer, Request, TokenUsage};
use tertulia::server::models;
use tertulia::settings::companion::Companion;
use tertulia::settings::connection::Connection;
use tertulia::settings::models::Models;
use tertulia::settings::{Loaded, Settings};
use tertulia::telemetry::instruments::Instruments;

/// The run stops after this number of consecutive questions without an answer.
const MOST_FAILURES: u64 = 10;
/// The run stops after this number of consecutive unreadable answers, each requested twice.
const MOST_UNREADABLE: u64 = 50;

/// One setting with its companion and model, and the counts of its requests.
pub(super) struct Side {
    /// The name of the setting: first or second.
    which: &'static str,
    pub(super) settings: Settings,
    pub(super) companion: Companion,
    pool: Pool,
    identity: Identity,
    /// The model's settings that are not part of a request.
    sampling: String,
    price: Option<Price>,
    /// The maximum number of concurrent questions.
    pub(super) concurrent: usize,
    answers: Arc<Mutex<Answers>>,
    cap: Arc<Cap>,
    tally: Mutex<Tally>,
    failures_in_row: AtomicU64,
    stop: watch::Sender<Option<Stop>>,
}

#[derive(Default)]
struct Tally {
    asked: Asked,
    took_ms: Vec<u64>,
    /// The newest error of the model itself, not of the circuit breaker.
    error: String,
    unreadable_in_row: u64,
}

/// The excerpts and the decisions about them.
#[derive(Clone, Copy)]
pub(super) struct Chat<'a> {
    pub(super) excerpts: &'a [Excerpt],
    pub(super) decisions: &'a [Decision],
}

/// The reason why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Interrupted,
    CostReached,
    /// The model does not answer.
    Failing(String),
    Unreadable,
    /// An answer could not be written to the cache.
    Unwritten(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("Ctrl-C was pressed"),
            Self::CostReached => f.write_str("the next question could cost more than --most-cost"),
            Self::Failing(error) => write!(f, "the model does not answer: {error}"),
            Self::Unreadable => {
                write!(f, "{MOST_UNREADABLE} answers in a row could not be read as YES or NO, so this model cannot decide")
            }
            Self::Unwritten(error) => f.write_str(error),
        }
    }
}

impl Side {
    /// Starts a pool for the models of the settings, or for the model that was connected on the page.
    pub(super) async fn start(
        which: &'static str,
        loaded: Loaded,
        options: &Evaluate,
        answers: Arc<Mutex<Answers>>,
        cap: Arc<Cap>,
    ) -> Result<Self, Failure> {
        let Loaded { mut settings, companions, .. } = loaded;
        let companion = match &options.companion {
            None => neutral(&settings).map_err(Failure::Usage)?,
            Some(id) => companions.get(&CompanionId::from(id.as_str())).cloned().ok_or_else(|| {
                let known = companions.keys().map(CompanionId::as_str).collect::<Vec<_>>().join(", ");
                Failure::Usage(format!("--companion {id:?} is no companion of the {which} settings; they have: {known}"))
            })?,
        };
        settings.models = in_use(&settings)?;
        let name = &companion.model.side;
        let served = settings.models.served(ModelRole::Side, name);
        let price = settings.models.price(ModelRole::Side, name);
        if cap.is_set() && price.is_none() {
            let why =
                "has no price, so --most-cost cannot hold: set input_price and output_price (0 for a model that costs nothing)";
            return Err(Failure::Usage(format!("models.{}: {why}", served.table)));
        }
        let sampling = match &served.endpoint {
            Some(_) => format!("{:?}", served.limits.temperature),
            None => format!("rehearsal {}", settings.models.rehearsal.seed),
        };
        let concurrent = settings.models.concurrency(ModelRole::Side, name).most;
        let served_by =
            models(&settings.models, &Dialects::default()).map_err(|problem| Failure::Usage(format!("models.{problem}")))?;
        let actor = SideModels {
            settings: settings.models.clone(),
            rng: Arc::new(SystemRng),
            instruments: Instruments::noop(),
            directory: Directory::new(),
        };
        let started = Actor::spawn(None, actor, ()).await;
        let (actor, _) =
            started.map_err(|error| Failure::Failed(format!("the pool of model calls cannot be started: {error}")))?;
        let pool = Pool::new(&settings.models, served_by, move || Some(actor.clone()));
        let identity = pool.identity_of(ModelRole::Side, name);
        let (tally, failures_in_row) = (Mutex::default(), AtomicU64::new(0));
        let stop = watch::Sender::new(None);
        Ok(Self {
            which,
            settings,
            companion,
            pool,
            identity,
            sampling,
            price,
            concurrent,
            answers,
            cap,
            tally,
            failures_in_row,
            stop,
        })
    }

    /// The name of the setting's row in reports. With two settings, it includes which one.
    pub(super) fn title(&self, is_one_of_several: bool) -> String {
        if is_one_of_several { format!("{}: {}", self.which, self.identity.model) } else { self.identity.model.to_string() }
    }

    pub(super) fn about(&self) -> String {
        format!("{} at {}", self.identity.model, self.identity.endpoint)
    }

    /// Asks about the decisions with these indices, and stores the answers at the same indices. After a stop, only cached answers
    /// are used. Returns false after a second Ctrl-C.
    pub(super) async fn ask_about(
        &self,
        about: &[usize],
        chat: &Chat<'_>,
        judged: &mut [Option<Judged>],
        progress: &mut Progress,
    ) -> bool {
        let mut rooms = BTreeMap::new();
        let questions = about.iter().map(|index| {
            let decision = &chat.decisions[*index];
            let room = rooms.entry((decision.excerpt, decision.companion.clone()));
            let new =
                || Room::new(&chat.excerpts[decision.excerpt], &decision.companion, &self.companion, self.settings.names.common);
            (*index, room.or_insert_with(new).request(decision.n, &self.settings))
        });
        let answer = async |(index, request)| (index, self.answer(request, true).await);
        let mut answers = std::pin::pin!(stream::iter(questions).map(answer).buffer_unordered(self.concurrent));
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        loop {
            let next = tokio::select! {
                biased;
                _ = &mut interrupt => {
                    if self.is_stopped() {
                        return false;
                    }
                    self.stop(Stop::Interrupted);
                    interrupt.set(tokio::signal::ctrl_c());
                    continue;
                }
                next = answers.next() => next,
            };
            let Some((index, answer)) = next else { return true };
            if let Some(kept) = answer {
                judged[index] = Some(self.judged(&kept));
                progress.step(self.cap.spent(), &self.settings.models.currency);
            }
        }
    }

    fn judged(&self, kept: &Kept) -> Judged {
        let judged = judged(&kept.answer, &self.settings);
        let mut tally = self.tally.lock();
        tally.asked.unreadable += u64::from(!judged.is_readable);
        tally.unreadable_in_row = if judged.is_readable { 0 } else { tally.unreadable_in_row + 1 };
        if tally.unreadable_in_row >= MOST_UNREADABLE {
            self.stop(Stop::Unreadable);
        }
        judged
    }

    /// The cached answer to a question, or a new one from the model. If `repeats`, an unreadable answer is requested once more.
    /// `None` if there is no answer or the run has stopped.
    pub(super) async fn answer(&self, request: Request, repeats: bool) -> Option<Kept> {
        let question = key(&request, &self.identity, &self.sampling);
        let known = self.answers.lock().of(&question).cloned();
        if let Some(kept) = known {
            self.count(&kept, false);
            return Some(kept);
        }
        let mut stopped = self.stop.subscribe();
        let asked = tokio::select! {
            biased;
            _ = stopped.wait_for(Option::is_some) => None,
            asked = self.ask(question, request, repeats) => asked,
        };
        let kept = asked?;
        self.count(&kept, true);
        if let Err(error) = self.answers.lock().add(kept.clone()) {
            self.stop(Stop::Unwritten(error));
        }
        Some(kept)
    }

    async fn ask(&self, question: String, request: Request, repeats: bool) -> Option<Kept> {
        let mut kept = Kept { question, answer: String::new(), usage: TokenUsage::default(), model_ms: 0, calls: 0 };
        let repeated = repeats.then(|| question::once_more(request.clone()));
        for request in [Some(request), repeated].into_iter().flatten() {
            let Some(mut spending) = self.cap.begin(&request, self.price.as_ref()).await else {
                self.stop(Stop::CostReached);
                return None;
            };
            let deadline = self.pool.deadline(ModelRole::Side);
            let outcome = self.pool.answer(Arc::new(request.into()), Priority::Turn, deadline, None).await;
            kept.calls += outcome.facts.attempts;
            kept.model_ms += outcome.facts.model_ms;
            spending.used(outcome.facts.usage, self.price.as_ref());
            match outcome.result {
                Ok(answer) => self.record_answer(&answer, &mut kept),
                Err(error) => {
                    self.failed(&error);
                    // If only the second call failed, the first answer is kept, as in a room.
                    if kept.answer.is_empty() {
                        return None;
                    }
                }
            }
            if judged(&kept.answer, &self.settings).is_readable {
                break;
            }
        }
        Some(kept)
    }

    fn record_answer(&self, answer: &Answer, kept: &mut Kept) {
        self.failures_in_row.store(0, Ordering::Relaxed);
        kept.answer = answer.text().into_owned();
        kept.usage += answer.usage;
    }

    fn failed(&self, error: &NoAnswer) {
        let mut tally = self.tally.lock();
        tally.asked.failed += 1;
        // An open circuit only indicates earlier errors.
        if !matches!(error, NoAnswer::CircuitOpen { .. }) {
            tally.error = error.to_string();
        }
        let in_row = self.failures_in_row.fetch_add(1, Ordering::Relaxed) + 1;
        let is_for_all =
            matches!(error, NoAnswer::KeyRejected { .. } | NoAnswer::NoCredit { .. } | NoAnswer::UnknownModel { .. });
        if is_for_all || in_row >= MOST_FAILURES {
            self.stop(Stop::Failing(tally.error.clone()));
        }
    }

    fn count(&self, kept: &Kept, is_new: bool) {
        let mut tally = self.tally.lock();
        let asked = &mut tally.asked;
        asked.answered += 1;
        asked.new += u64::from(is_new);
        asked.calls += u64::from(kept.calls);
        asked.usage += kept.usage;
        tally.took_ms.push(kept.model_ms);
    }

    /// Stops the run. Only the first reason is kept.
    pub(super) fn stop(&self, why: Stop) {
        self.stop.send_if_modified(|stop| stop.is_none() && stop.replace(why).is_none());
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.borrow().is_some()
    }

    pub(super) fn stopped(&self) -> Option<Stop> {
        self.stop.borrow().clone()
    }

    pub(super) fn spent(&self) -> f64 {
        self.cap.spent()
    }

    /// The counts and costs of the requests so far.
    pub(super) fn asked(&self, name: &str) -> Asked {
        let mut tally = self.tally.lock();
        tally.took_ms.sort_unstable();
        let took = &tally.took_ms;
        let usage = tally.asked.usage;
        Asked {
            name: name.to_owned(),
            model: self.about(),
            cost: self.price.as_ref().map(|price| price.of(usage).as_units()),
            currency: self.settings.models.currency.clone(),
            mean_ms: (!took.is_empty()).then(|| took.iter().sum::<u64>() as f64 / took.len() as f64),
            p95_ms: took.get((took.len() * 95).div_ceil(100).saturating_sub(1)).copied(),
            ..tally.asked.clone()
        }
    }
}

/// The models in use: the one that was connected on the page, else those of the settings. All questions belong to one guild, so a
/// guild may use all calls. `rehearsal` responds without delay.
fn in_use(settings: &Settings) -> Result<Models, Failure> {
    let connection = Connection::read(&settings.storage.path).map_err(|problem| Failure::Usage(problem.to_string()))?;
    let mut models = connection.map_or_else(|| settings.models.clone(), |connection| connection.applied_to(settings).models);
    models.side.guild_max_concurrent = Some(models.side.max_concurrent);
    models.main.guild_max_concurrent = Some(models.main.max_concurrent);
    for model in models.named.values_mut() {
        model.guild_max_concurrent = model.max_concurrent.or(Some(models.side.max_concurrent));
    }
    models.rehearsal.pace = 0.0;
    Ok(models)
}
