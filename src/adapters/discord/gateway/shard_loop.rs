//! Runs one shard: a series of connections, each of which resumes the session if possible.

use std::time::Duration;

use tokio::time::sleep;
use twilight_model::gateway::CloseCode;

use super::super::identify::{NextStep, advice, failed_to_connect, identify_pause, pause};
use super::Shared;
use super::connection::{Connection, Lost, Plan};
use super::end::{End, Ended};
use super::intents;
use super::session::{Session, SessionStore};
use super::starts::{Slot, disconnected};
use super::status::ShardStatus;
use crate::ports::backend::Detail;
use crate::ports::gateway::{Disconnected, Shard};

/// The limit of attempts to resume at the session's own address. Later attempts use the default address.
const MOST_OWN_URL_ATTEMPTS: u32 = 2;
/// The limit of attempts to resume that reach Discord without a session. After that, the session is given up.
const MOST_RESUME_ATTEMPTS: u32 = 4;
/// From this number of failed attempts in a row, each is logged as a warning.
const WARN_AFTER: u32 = 3;

pub struct ShardLoop<'a> {
    shared: &'a Shared,
    shard: Shard,
    sessions: SessionStore,
    session: Option<Session>,
    /// Failures in a row: failures to connect, and connections that this server soon closed because of an error.
    failures: u32,
    /// Attempts in a row to resume at the session's own address.
    own_url_attempts: u32,
    /// Attempts in a row to resume that reached Discord.
    resume_attempts: u32,
    /// Identifies in a row whose session did not last.
    failed_identifies: u32,
    /// Whether a session lasted or delivered events, or an earlier process left one that can be resumed.
    has_worked: bool,
    /// The last connection with a session, if it was lost.
    lost: Option<Lost>,
    /// The wait that Discord demands.
    after: Option<Duration>,
}

/// Removes the shard's status when the shard stops running.
struct RemoveStatus<'a>(&'a Shared, Shard);

impl Drop for RemoveStatus<'_> {
    fn drop(&mut self) {
        self.0.statuses.remove(self.1);
    }
}

impl<'a> ShardLoop<'a> {
    pub fn new(shared: &'a Shared, shard: Shard) -> Self {
        let sessions = SessionStore::new(shared.parts.notes.clone(), shard);
        Self {
            shared,
            shard,
            sessions,
            session: None,
            failures: 0,
            own_url_attempts: 0,
            resume_attempts: 0,
            failed_identifies: 0,
            has_worked: false,
            lost: None,
            after: None,
        }
    }

    /// Runs the shard. Returns only if further attempts are useless.
    pub async fn run(mut self) -> Disconnected {
        let _remove_status = RemoveStatus(self.shared, self.shard);
        self.set_status(ShardStatus::Connecting);
        self.session = self.stored_session().await;
        self.has_worked = self.session.is_some();
        loop {
            let ended = match self.plan().await {
                Ok(plan) => Connection::run(self.shared, self.shard, &self.sessions, plan).await,
                Err(Disconnected::Never(why)) => return Disconnected::Never(why),
                Err(why) => Ended::not_attempted(End::NotPermitted(why)),
            };
            if let Some(why) = self.handle_end(ended).await {
                return why;
            }
            self.pause().await;
        }
    }

    /// The stored session of an earlier process, if it can be resumed.
    async fn stored_session(&self) -> Option<Session> {
        let found = self.sessions.load().await;
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(platform = "discord", shard = self.shard.number, %error, "the stored session cannot be read");
            None
        });
        found.filter(|session| self.can_resume(session))
    }

    /// Whether a session can be resumed: it has the same application, number of shards and intents, and at least one accepted event. Without
    /// accepted events, Discord might not repeat READY, and the work that READY causes would be lost.
    fn can_resume(&self, session: &Session) -> bool {
        let requested = &self.shared.intents;
        session.accepted > 0
            && session.shards == self.shard.of.get()
            && requested.application().is_none_or(|application| application == session.application)
            && requested.intents().is_none_or(|intents| intents == session.intents)
    }

    /// Decides how the next connection begins.
    async fn plan(&mut self) -> Result<Plan<'a>, Disconnected> {
        if let Some(why) = self.shared.forbidden() {
            return Err(why);
        }
        let requested = &self.shared.intents;
        if let Some(session) = self.session.clone().filter(|session| self.can_resume(session)) {
            let own = session.resume_url.clone().filter(|_| self.own_url_attempts < MOST_OWN_URL_ATTEMPTS);
            let url = own.unwrap_or_else(|| self.shared.url());
            let intents = requested.intents().unwrap_or(intents::BASE);
            // The session keeps the intents that it began with.
            self.shared.parts.discord.set_reads_all(intents::has_content(session.intents));
            return Ok(Plan { url, intents, session: Some(session), slot: None, lost: self.lost });
        }
        self.session = None;
        // The intents may depend on the application's flags.
        match (self.shared.load_application().await, requested.intents()) {
            (Err(failed), None) => Err(disconnected(failed)),
            (_, Some(intents)) => {
                let slot = self.identify_slot().await?;
                self.shared.parts.discord.set_reads_all(intents::has_content(intents));
                Ok(Plan { url: self.shared.url(), intents, session: None, slot: Some(slot), lost: self.lost })
            }
            (Ok(()), None) => Err(Disconnected::Later { after: None, detail: Detail::key("refusals.discord_no_application") }),
        }
    }

    /// Waits for a slot to identify, and shows the wait in the status.
    async fn identify_slot(&self) -> Result<Slot<'a>, Disconnected> {
        let starts = &self.shared.starts;
        let slot = starts.wait_for_slot(self.shard.number, |why| self.set_status(ShardStatus::Waiting(why)));
        slot.await
    }

    /// Handles the end of a connection. Returns a reason if there must be no further connection.
    async fn handle_end(&mut self, ended: Ended) -> Option<Disconnected> {
        self.update_counters(&ended);
        let mut next = ended.end.next_step();
        if next == NextStep::Stop(CloseCode::DisallowedIntents) && self.shared.intents.fall_back() {
            next = NextStep::Identify;
        }
        if next == NextStep::Resume && self.resume_attempts >= MOST_RESUME_ATTEMPTS {
            tracing::info!(platform = "discord", shard = self.shard.number, "the session cannot be resumed: starting a new one");
            next = NextStep::Identify;
        }
        self.shared.parts.recorder.discord_reconnects.add(1, [ended.end.as_str()]);
        let session = match next {
            NextStep::Resume => ended.session,
            NextStep::Identify => None,
            NextStep::Stop(code) => {
                let why = advice(code);
                tracing::error!(platform = "discord", shard = self.shard.number, "{why}");
                return Some(Disconnected::Never(why));
            }
        };
        let session = session.filter(|session| self.can_resume(session));
        if session.is_none() {
            (self.own_url_attempts, self.resume_attempts) = (0, 0);
        }
        if let Err(error) = self.sessions.save(session.as_ref()).await {
            tracing::warn!(platform = "discord", shard = self.shard.number, %error, "a session cannot be stored");
        }
        self.session = session;
        self.log_end(&ended.end);
        match ended.end {
            End::NotPermitted(Disconnected::Never(why)) => Some(Disconnected::Never(why)),
            End::NotPermitted(Disconnected::Later { after, .. }) => {
                self.after = after;
                None
            }
            _ => None,
        }
    }

    fn update_counters(&mut self, ended: &Ended) {
        let at = self.shared.parts.clock.now();
        if ended.session_lasted.is_some() {
            self.lost = Some(Lost { cause: ended.end.as_str(), at, attempts: 0 });
        }
        if let Some(lost) = &mut self.lost {
            lost.attempts += 1;
        }
        let has_lasted = ended.session_lasted.is_some_and(|lasted| lasted >= self.shared.parts.times.lasting);
        // An error on our side is likely to recur.
        let failed_here = matches!(ended.end, End::Lost | End::Stuck | End::InvalidData);
        if has_lasted || !(failed_here || failed_to_connect(ended.session_lasted, ended.has_received_event)) {
            self.failures = 0;
        } else {
            self.failures = self.failures.saturating_add(1);
        }
        self.has_worked |= has_lasted || ended.has_received_event;
        if has_lasted {
            self.failed_identifies = 0;
        } else {
            self.failed_identifies = self.failed_identifies.saturating_add(u32::from(ended.has_identified));
        }
        if ended.session_lasted.is_some() {
            (self.own_url_attempts, self.resume_attempts) = (0, 0);
        } else if ended.session.is_some() {
            self.own_url_attempts = self.own_url_attempts.saturating_add(1);
            // If Discord is unreachable, that says nothing about the session.
            self.resume_attempts = self.resume_attempts.saturating_add(u32::from(ended.has_hello));
        }
    }

    fn log_end(&self, end: &End) {
        let (shard, cause, why) = (self.shard.number, end.as_str(), end.description());
        if self.failures < WARN_AFTER {
            tracing::info!(platform = "discord", shard, cause, "{why}; connecting again");
        } else {
            tracing::warn!(platform = "discord", shard, cause, failures = self.failures, "{why}; trying again");
        }
        self.set_status(ShardStatus::Waiting(why));
    }

    /// Pauses before the next attempt.
    async fn pause(&mut self) {
        let jitter = self.shared.parts.rng.fraction();
        let mut pause = pause(self.failures, jitter);
        if self.session.is_none() {
            let left = self.shared.starts.left().await;
            pause = pause.max(identify_pause(self.failed_identifies, self.has_worked, left, jitter));
        }
        let pause = pause.mul_f64(self.shared.parts.times.pauses).max(self.after.take().unwrap_or_default());
        sleep(pause).await;
    }

    fn set_status(&self, status: ShardStatus) {
        self.shared.set_status(self.shard, status);
    }
}
