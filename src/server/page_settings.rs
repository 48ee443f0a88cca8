//! Makes settings on the page: shows, tries and keeps them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::in_force::InForce;
use super::model_setup::{MOST_AT_A_TIME, busy};
use super::reload::Turn;
use super::speech;
use crate::adapters::discord::check::{Line, Report, Servers, State, check};
use crate::adapters::speech::trial::{Heard, wav};
use crate::adapters::system::SystemClock;
use crate::ports::backend::{Detail, Refused};
use crate::ports::language_model::NoAnswer;
use crate::ports::settings_setup::{NewSettings, Services, SettingsSetup, SettingsTrial, SettingsView, TrialLine, TriedSettings};
use crate::settings::kept::{KEYS, Kept};
use crate::settings::memory::Memory;
use crate::settings::{Loaded, Settings};

/// How many of the bot's servers a trial looks at.
const MOST_SERVERS: usize = 10;

pub(super) struct PageSettings {
    in_force: Arc<InForce>,
    trials: Semaphore,
}

impl PageSettings {
    pub(super) fn new(in_force: Arc<InForce>) -> Self {
        Self { in_force, trials: Semaphore::new(MOST_AT_A_TIME) }
    }

    /// The settings as they would be with these of the page.
    async fn with(&self, turn: &Turn, new: BTreeMap<String, Value>) -> Result<(Loaded, Kept), Refused> {
        if let Some(key) = new.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(Refused::invalid(key, Detail::key("refusals.no_setting")));
        }
        let kept = self.in_force.state().await.kept.changed(new);
        let loaded = self.in_force.reloading.read(turn, Some(kept.clone()), |_| ()).await;
        let loaded = loaded.map_err(|problems| refused(&problems))?;
        loaded.serve().map_err(|problems| refused(&problems.0.iter().map(ToString::to_string).collect::<Vec<_>>()))?;
        Ok((loaded, kept))
    }

    async fn view(&self) -> SettingsView {
        let state = self.in_force.state().await;
        let Settings { speech, models, .. } = &*state.configured;
        let failed = self.in_force.failed_reload();
        SettingsView {
            speech_languages: speech.words.keys().map(ToString::to_string).collect(),
            memory_languages: Memory::known_languages(),
            currency: models.currency.clone(),
            fields: state.fields,
            problems: failed.map(|failed| failed.problems).unwrap_or_default(),
        }
    }
}

#[async_trait]
impl SettingsSetup for PageSettings {
    async fn settings(&self) -> Result<SettingsView, Refused> {
        Ok(self.view().await)
    }

    async fn try_out(&self, TriedSettings { values, about }: TriedSettings) -> Result<SettingsTrial, Refused> {
        let _place = self.trials.try_acquire().map_err(|_| busy())?;
        let turn = self.in_force.reloading.turn().await;
        let (loaded, _) = self.with(&turn, values).await?;
        // A trial takes long, and changes nothing.
        drop(turn);
        let settings = &loaded.settings;
        match about {
            Some(Services::Speech) => try_voice(settings).await,
            Some(Services::Discord) => try_discord(settings).await,
            None => Ok(SettingsTrial { works: true, ..SettingsTrial::default() }),
        }
    }

    async fn keep(&self, new: NewSettings) -> Result<SettingsView, Refused> {
        let turn = self.in_force.reloading.turn().await;
        let is_inherited = new.values.keys().any(|key| key.starts_with("companion_defaults."));
        let keys: Vec<_> = new.values.keys().cloned().collect();
        let (loaded, kept) = self.with(&turn, new.values).await?;
        self.in_force.use_settings(&loaded, Some(kept)).await?;
        if is_inherited {
            self.in_force.reloading.reload(&turn).await;
        }
        tracing::info!(keys = keys.join(", "), "settings that were made on the page are in force");
        Ok(self.view().await)
    }

    async fn read_again(&self) -> Result<SettingsView, Refused> {
        let turn = self.in_force.reloading.turn().await;
        self.in_force.read_again(&turn).await;
        Ok(self.view().await)
    }
}

/// The first problem, named by its key, if it is one of the page's.
fn refused(problems: &[String]) -> Refused {
    let first = problems.first().map(String::as_str).unwrap_or_default();
    let of_key = KEYS.iter().filter_map(|key| Some((*key, first.split_once(key)?.1))).max_by_key(|(key, _)| key.len());
    match of_key {
        Some((key, message)) => Refused::invalid(key, message.trim_start_matches([':', ' '])),
        None => Refused::invalid("settings", first),
    }
}

/// Has a sentence said and recognised.
async fn try_voice(settings: &Settings) -> Result<SettingsTrial, Refused> {
    let heard = speech::say_and_hear(settings).await.map_err(|problem| Refused::invalid(problem.key, problem.message))?;
    let Heard { sentence, spoken, understood } = heard;
    let line = |about, outcome: &Result<String, NoAnswer>| match outcome {
        Ok(said) => TrialLine { state: "good", about, said: said.clone(), error: None, click: None },
        Err(error) => TrialLine { state: "problem", about, said: format!("{error}"), error: Some(error.code()), click: None },
    };
    let said = spoken.as_ref().map(|_| sentence.to_string()).map_err(Clone::clone);
    let lines: Vec<_> = [Some(line("voice", &said)), understood.as_ref().map(|understood| line("recognition", understood))]
        .into_iter()
        .flatten()
        .collect();
    Ok(SettingsTrial {
        works: lines.iter().all(|line| line.state == "good"),
        lines,
        audio: spoken.ok().map(|samples| STANDARD.encode(wav(&samples))),
        understood: understood.and_then(Result::ok),
        invitation: None,
    })
}

/// Says what `tertulia discord check` says.
async fn try_discord(settings: &Settings) -> Result<SettingsTrial, Refused> {
    let invalid = |problem: crate::settings::Problem| Refused::invalid(format!("discord.{}", problem.key), problem.message);
    let Some(token) = settings.discord.token().map_err(invalid)? else {
        return Ok(SettingsTrial { works: true, ..SettingsTrial::default() });
    };
    let report = check(&settings.discord, token, &Servers::First(MOST_SERVERS), Arc::new(SystemClock)).await.map_err(invalid)?;
    let works = report.would_work();
    let Report { invitation, lines, .. } = report;
    let line = |Line { state, about, said, click, .. }| {
        let state = match state {
            State::Good => "good",
            State::Warning => "warning",
            State::Problem => "problem",
        };
        TrialLine { state, about, said, error: None, click }
    };
    Ok(SettingsTrial { works, lines: lines.into_iter().map(line).collect(), invitation, ..SettingsTrial::default() })
}
