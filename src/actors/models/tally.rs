//! Counts what each guild asked and what it cost, since the pool started.

use std::collections::BTreeMap;

use crate::domain::id::GuildId;
use crate::domain::service::ServiceEndpoint;
use crate::ports::language_model::{ModelRole, Usage};

/// What was asked of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Questions that were answered, with or without a text.
    pub questions: u64,
    /// Questions that got no text.
    pub without_answer: u64,
    /// Calls made, every try counted.
    pub calls: u64,
    /// Tokens of the answers; calls that failed told none.
    pub tokens: Usage,
}

/// What one guild asked, by where it was served and by role.
pub type GuildTally = BTreeMap<(ServiceEndpoint, ModelRole), Tally>;

/// What every guild asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies(BTreeMap<GuildId, GuildTally>);

impl Tallies {
    /// Counts one question that was answered, with its tokens, or without.
    pub fn count(&mut self, guild: &GuildId, at: ServiceEndpoint, role: ModelRole, calls: u32, tokens: Option<Usage>) {
        if !self.0.contains_key(guild) {
            self.0.insert(guild.clone(), GuildTally::new());
        }
        let Some(tally) = self.0.get_mut(guild).map(|guild| guild.entry((at, role)).or_default()) else { return };
        tally.questions += 1;
        tally.calls += u64::from(calls);
        match tokens {
            Some(tokens) => tally.tokens += tokens,
            None => tally.without_answer += 1,
        }
    }

    /// What one guild asked.
    pub fn of(&self, guild: &GuildId) -> GuildTally {
        self.0.get(guild).cloned().unwrap_or_default()
    }

    /// Every guild that asked, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (&GuildId, &GuildTally)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::service::Service;

    fn at(endpoint: &str) -> ServiceEndpoint {
        ServiceEndpoint { service: Service::LanguageModel, endpoint: endpoint.into() }
    }

    #[test]
    fn guilds_endpoints_and_roles_are_counted_apart() {
        let (home, away) = (GuildId::from("home"), GuildId::from("away"));
        let tokens = Usage { input_tokens: 10, output_tokens: 2 };
        let mut tallies = Tallies::default();

        tallies.count(&home, at("http://here"), ModelRole::Side, 2, Some(tokens));
        tallies.count(&home, at("http://here"), ModelRole::Side, 1, None);
        tallies.count(&home, at("http://there"), ModelRole::Side, 1, None);
        tallies.count(&away, at("http://here"), ModelRole::Main, 1, Some(tokens));

        let here = Tally { questions: 2, without_answer: 1, calls: 3, tokens };
        let there = Tally { questions: 1, without_answer: 1, calls: 1, tokens: Usage::default() };
        let of_home = [((at("http://here"), ModelRole::Side), here), ((at("http://there"), ModelRole::Side), there)];
        assert_eq!(tallies.of(&home), GuildTally::from(of_home));
        assert_eq!(tallies.iter().count(), 2);
    }
}
