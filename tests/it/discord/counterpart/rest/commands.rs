//! Application commands over REST.
//!
//! <https://docs.discord.com/developers/interactions/application-commands#bulk-overwrite-global-application-commands>

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::super::commands::check;
use super::super::{Command, Id, Refusal, State, Unknown};
use super::{Call, Reply, done, ok};

/// How many commands of each type an application can have globally, or in one guild.
const MAX_BY_KIND: [(u64, usize); 4] = [(1, 100), (2, 15), (3, 15), (4, 1)];
const DAY: Duration = Duration::from_secs(24 * 3_600);

impl State {
    pub fn commands(&mut self, call: &Call) -> Reply {
        let (application, guild) = (call.id("application"), call.found.id("guild"));
        self.check_scope(application, guild)?;
        ok(self.commands_of(guild).map(|command| command.json(application)).collect())
    }

    pub fn create_command(&mut self, call: &Call) -> Reply {
        let (application, guild) = (call.id("application"), call.found.id("guild"));
        self.check_scope(application, guild)?;
        check(&call.body, &[])?;
        let existing = self.put_command(guild, &call.body)?;
        let command = self.world.commands.iter().rfind(|command| command.guild == guild && is_same(&command.data, &call.body));
        let json = command.map(|command| command.json(application));
        Ok((if existing { 200 } else { 201 }, json))
    }

    /// Replaces all global commands, or all of a guild. Commands that exist already keep their ids.
    pub fn overwrite_commands(&mut self, call: &Call) -> Reply {
        let (application, guild) = (call.id("application"), call.found.id("guild"));
        self.check_scope(application, guild)?;
        let list = call.body.as_array().ok_or_else(|| Refusal::field(&[], "LIST_TYPE_CONVERT", "Only iterables may be used."))?;
        for (number, command) in list.iter().enumerate() {
            check(command, &[&number.to_string()])?;
            if list[..number].iter().any(|other| is_same(other, command)) {
                let path = number.to_string();
                let message = "Application command names must be unique";
                return Err(Refusal::field(&[&path, "name"], "APPLICATION_COMMANDS_DUPLICATE_NAME", message));
            }
        }
        for (kind, most) in MAX_BY_KIND {
            if list.iter().filter(|command| command["type"].as_u64().unwrap_or(1) == kind).count() > most {
                return Err(Refusal::new(400, 30032, "Maximum number of application commands reached"));
            }
        }
        self.world.commands.retain(|command| command.guild != guild || list.iter().any(|kept| is_same(kept, &command.data)));
        for command in list {
            self.put_command(guild, command)?;
        }
        self.commands(call)
    }

    pub fn delete_command(&mut self, call: &Call) -> Reply {
        let (application, guild, command) = (call.id("application"), call.found.id("guild"), call.id("command"));
        self.check_scope(application, guild)?;
        let before = self.world.commands.len();
        self.world.commands.retain(|existing| existing.id != command || existing.guild != guild);
        if self.world.commands.len() == before { Err(Refusal::unknown(Unknown::Command)) } else { done() }
    }

    fn commands_of(&self, guild: Option<Id>) -> impl Iterator<Item = &Command> {
        self.world.commands.iter().filter(move |command| command.guild == guild)
    }

    fn check_scope(&self, application: Id, guild: Option<Id>) -> Result<(), Refusal> {
        if application != self.world.application.id {
            return Err(Refusal::new(403, 20012, "You are not authorized to perform this action on this application"));
        }
        if let Some(guild) = guild {
            // An unknown guild gets the same answer as one that the application is not in.
            self.world.joined_guild(guild).map_err(|_| Refusal::missing_access())?;
            if self.world.without_commands.contains(&guild) {
                return Err(Refusal::missing_access());
            }
        }
        Ok(())
    }

    /// Creates a command, or changes the one of this name and type. Returns whether it existed. Only new ones count towards the daily limit.
    fn put_command(&mut self, guild: Option<Id>, data: &Value) -> Result<bool, Refusal> {
        let version = self.world.new_id();
        let existing = self.world.commands.iter_mut().find(|command| command.guild == guild && is_same(&command.data, data));
        if let Some(existing) = existing {
            if existing.data != *data {
                existing.data = data.clone();
                existing.version = version;
            }
            return Ok(true);
        }
        let creates = self.command_creates.entry(guild).or_default();
        creates.retain(|created| created.elapsed() < DAY);
        if creates.len() >= self.rules.command_creates {
            return Err(Refusal::new(400, 30034, "Max number of daily application command creates has been reached (200)"));
        }
        creates.push(Instant::now());
        let id = self.world.new_id();
        self.world.commands.push(Command { id, guild, version, data: data.clone() });
        Ok(false)
    }
}

/// Whether two commands have the same name and type.
fn is_same(one: &Value, other: &Value) -> bool {
    let kind = |command: &Value| command["type"].as_u64().unwrap_or(1);
    one["name"] == other["name"] && kind(one) == kind(other)
}
