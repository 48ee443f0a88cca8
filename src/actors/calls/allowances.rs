//! The daily allowance of a guild for speech recognition and synthesis. The built-in provider is free and does not count.

use std::collections::HashMap;
use std::ops::ControlFlow;

use parking_lot::Mutex;

use crate::actors::runtime::context::ActorContext;
use crate::domain::budget::{DAY, OfDay};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::domain::service::Service;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::Used;
use crate::settings::speech::{BUILT_IN, Speech};

/// The usage within a day of each guild that has had calls.
#[derive(Default)]
pub struct Allowances(Mutex<HashMap<GuildId, UsedInDay>>);

struct UsedInDay {
    /// Usage after this moment is counted as it happens. Earlier usage is read from the record.
    since: Moment,
    is_read: bool,
    /// Milliseconds.
    recognised: OfDay,
    /// Characters.
    spoken: OfDay,
}

impl UsedInDay {
    fn since(since: Moment) -> Self {
        Self { since, is_read: false, recognised: OfDay::default(), spoken: OfDay::default() }
    }

    fn of(&mut self, service: Service) -> &mut OfDay {
        match service {
            Service::SpeechSynthesis => &mut self.spoken,
            Service::SpeechRecognition | Service::LanguageModel => &mut self.recognised,
        }
    }

    fn count(&mut self, settings: &Speech, service: Service, amount: u64, at: Moment) {
        if let Some(most) = settings.guild_limit(service) {
            self.of(service).count(amount, at, most);
        }
    }
}

impl Allowances {
    /// Reads a guild's usage, unless it was read before or nothing limits it.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read.
    pub async fn load(&self, context: &ActorContext, guild: &GuildId) -> Result<(), ReadError> {
        let in_force = context.in_force();
        let settings = &in_force.speech;
        let services = [Service::SpeechRecognition, Service::SpeechSynthesis];
        if services.iter().all(|service| settings.guild_limit(*service).is_none()) {
            return Ok(());
        }
        let now = context.clock.now();
        let (since, is_read) = self.of(guild, now, |used| (used.since, used.is_read));
        if is_read {
            return Ok(());
        }
        let mut earlier = Vec::new();
        let reader = Reader::new(&*context.store);
        reader
            .usage(guild, now - DAY, Some(since), |record| {
                if let Used::Speech { service, provider, amount, .. } = &record.used
                    && **provider != *BUILT_IN
                {
                    earlier.push((*service, *amount, record.at));
                }
                ControlFlow::Continue(())
            })
            .await?;
        self.of(guild, now, |used| {
            if !std::mem::replace(&mut used.is_read, true) {
                earlier.into_iter().for_each(|(service, amount, at)| used.count(settings, service, amount, at));
            }
        });
        Ok(())
    }

    fn of<T>(&self, guild: &GuildId, now: Moment, with: impl FnOnce(&mut UsedInDay) -> T) -> T {
        with(self.0.lock().entry(guild.clone()).or_insert_with(|| UsedInDay::since(now)))
    }

    /// Counts recognised milliseconds or spoken characters.
    pub fn count(&self, settings: &Speech, guild: &GuildId, service: Service, amount: u64, at: Moment) {
        if settings.guild_limit(service).is_some() {
            self.of(guild, at, |used| used.count(settings, service, amount, at));
        }
    }

    /// Whether a guild has used up its allowance of a service.
    pub fn is_used_up(&self, settings: &Speech, guild: &GuildId, service: Service, now: Moment) -> bool {
        let Some(most) = settings.guild_limit(service) else { return false };
        self.0.lock().get_mut(guild).is_some_and(|used| used.of(service).full(now, most, 0).is_some())
    }
}
