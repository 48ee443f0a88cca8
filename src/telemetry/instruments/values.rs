//! The closed lists of label values.

use crate::domain::closing::{Cause, Stage};
use crate::domain::decision::{Decision, Reason};
use crate::domain::message::HandedOver;
use crate::domain::model_role::ModelRole;
use crate::domain::notice::Occasion;
use crate::domain::priority::Priority;
use crate::domain::raw_answer::Trimmed;
use crate::domain::reception::Reception;
use crate::domain::tools::CallOutcome;
use crate::domain::trigger::Trigger;
use crate::domain::voice::interruption::Verdict;
use crate::domain::voice::segment::Kind;
use crate::domain::vote::Stance;
use crate::ports::call_room::Trouble;

/// Turns a list of values into a list of their names, at compile time.
macro_rules! names {
    ($all:expr) => {{
        const NAMES: [&str; $all.len()] = {
            let mut names = [""; $all.len()];
            let mut index = 0;
            while index < names.len() {
                names[index] = $all[index].as_str();
                index += 1;
            }
            names
        };
        &NAMES
    }};
}

pub(super) const TRIGGERS: &[&str] = names!(STRONGEST_FIRST);
const STRONGEST_FIRST: [Trigger; Trigger::ALL.len()] = {
    let (mut triggers, mut index) = (Trigger::ALL, 0);
    while index < triggers.len() {
        triggers[index] = Trigger::ALL[triggers.len() - 1 - index];
        index += 1;
    }
    triggers
};
pub(super) const DECISIONS: &[&str] = names!(Decision::ALL);
pub(super) const REASONS: &[&str] = names!(Reason::ALL);
pub(super) const STAGES: &[&str] = names!(Stage::ALL);
pub(super) const CAUSES: &[&str] = names!(Cause::ALL);
pub(super) const ROLES: &[&str] = names!(ModelRole::ALL);
/// The codes of `NoAnswer`, those of failed statements, and `other`.
pub(super) const ERRORS: &[&str] = &[
    "timeout",
    "unreachable",
    "circuit_open",
    "overloaded",
    "key_rejected",
    "unknown_model",
    "no_credit",
    "out_of_tokens",
    "too_long",
    "filtered",
    "refused",
    "no_prompt",
    "cancelled",
    "empty",
    "only_thoughts",
    "no_statement",
    "risk",
    "moderated",
    "moderation_failed",
    "post_refused",
    "unpostable",
    "undelivered",
    "absent",
    "deleted",
    "interrupted",
    "unvoiced",
    "replanned",
    "closed",
    "budget",
    "other",
];
/// The built-in tools, and all others.
pub(super) const TOOLS: &[&str] = &["roll", "choose", "time", "recall", "external"];
pub(super) const CALL_OUTCOMES: &[&str] = names!(CallOutcome::ALL);
pub(super) const OCCASIONS: &[&str] = names!(Occasion::ALL);
/// What may become of a note; see `Dropped` in `domain/memory.rs`.
pub(super) const NOTES: &[&str] = &[
    "made",
    "asked",
    "used",
    "length",
    "sources",
    "subject",
    "unsupported",
    "instruction",
    "secret",
    "sensitive",
    "known",
    "too_many",
];
pub(super) const TRIMMED: &[&str] = names!(Trimmed::ALL);
pub(super) const RECEPTIONS: &[&str] = names!(Reception::ALL);
pub(super) const OUTCOMES: &[&str] = &["posted", "silence", "failed", "cancelled"];
pub(super) const MESSAGE_ROLES: &[&str] = &["user", "companion", "bot", "event"];
pub(super) const SEGMENT_KINDS: &[&str] = names!(Kind::ALL);
pub(super) const VERDICTS: &[&str] = names!(Verdict::ALL);
pub(super) const HAND_OVERS: &[&str] = names!(HandedOver::ALL);
pub(super) const PLATFORMS: &[&str] = &["console", "discord", "other"];
pub(super) const SENDS: &[&str] = &["posted", "failed", "unconfirmed"];
/// The routes of requests to Discord; see `adapters/discord/rest/metrics.rs`.
pub(super) const DISCORD_ROUTES: &[&str] =
    &["account", "channel", "commands", "gateway", "guild", "interaction", "messages", "typing", "webhook"];
/// The results of requests to Discord: a class of statuses, no answer in time, no connection, a broken connection, or held back.
pub(super) const DISCORD_OUTCOMES: &[&str] = &["2xx", "4xx", "429", "5xx", "timeout", "unreachable", "broken", "held_back"];
/// See `Refusal::kind` in `adapters/discord/refusals.rs`.
pub(super) const DISCORD_REFUSALS: &[&str] =
    &["permission", "gone", "full", "locked", "blocked", "closed", "token", "invalid", "other"];
/// The subcommands of `/tertulia`, `typing` for completion of names, and `other`.
pub(super) const COMMANDS: &[&str] = &[
    "status",
    "join",
    "leave",
    "talkativeness",
    "pause",
    "why",
    "recall",
    "memory",
    "companion",
    "setup",
    "roles",
    "own",
    "stop",
    "next",
    "again",
    "clear",
    "why_of",
    "forget_message",
    "call",
    "forget_me",
    "ignore_me",
    "pause_for_me",
    "export_me",
    "voice_join",
    "voice_leave",
    "voice_status",
    "voice_notes",
    "say",
    "ask",
    "about",
    "crisis",
    "help",
    "typing",
    "other",
];
pub(super) const COMMAND_OUTCOMES: &[&str] = &["done", "refused", "failed", "busy", "repeated", "unanswered", "unreadable"];
pub(super) const MESSAGE_FATES: &[&str] =
    &["taken", "known", "ours", "not_taken", "no_talk", "not_for_all", "empty", "elsewhere", "broken"];
pub(super) const BACKFILLS: &[&str] = &["whole", "too_many", "too_old", "refused", "nothing_shown", "unreachable"];
pub(super) const BACKUPS: &[&str] = &["made", "skipped", "failed"];
pub(super) const ENGINES: &[&str] = &["sled", "postgres"];
/// So far, all guilds are in one partition.
pub(super) const PARTITIONS: &[&str] = &["0"];
pub(super) const BEATS: &[&str] = &["ok", "failed"];
pub(super) const TAKEOVERS: &[&str] = &["again", "first", "given_back", "silent"];
pub(super) const LOSSES: &[&str] = &["late", "taken", "unwritable"];
pub(super) const GUILD_STATES: &[&str] = &["available", "unavailable"];
pub(super) const ROUNDS: &[&str] = &["selected", "nobody"];
pub(super) const STATES: &[&str] = names!(Stance::ALL);
pub(super) const FLOORS: &[&str] = &["won", "lost", "none"];
pub(super) const JUDGES: &[&str] = &["lexical", "model"];
pub(super) const FLAGS: &[&str] = &["true", "false"];
pub(super) const PRIORITIES: &[&str] = names!(Priority::ALL);
pub(super) const SORTS: &[&str] = &[
    "writer",
    "side_models",
    "switchboard",
    "guilds",
    "guild",
    "companion",
    "channel",
    "turn_taking_manager",
    "reply",
    "delivery",
    "platforms",
    "shard",
    "voice_call",
    "voice_user",
    "recognition",
];
pub(super) const FATES: &[&str] = &["exported", "failed", "dropped"];
pub(super) const GATEWAY_STATES: &[&str] = &["connecting", "waiting", "connected", "stopped"];
/// The Discord events that the adapter uses, and `other`.
pub(super) const GATEWAY_EVENTS: &[&str] = &[
    "READY",
    "RESUMED",
    "CHANNEL_CREATE",
    "CHANNEL_UPDATE",
    "CHANNEL_DELETE",
    "GUILD_CREATE",
    "GUILD_UPDATE",
    "GUILD_DELETE",
    "GUILD_EMOJIS_UPDATE",
    "GUILD_MEMBER_UPDATE",
    "GUILD_ROLE_CREATE",
    "GUILD_ROLE_UPDATE",
    "GUILD_ROLE_DELETE",
    "INTERACTION_CREATE",
    "MESSAGE_CREATE",
    "MESSAGE_UPDATE",
    "MESSAGE_DELETE",
    "MESSAGE_DELETE_BULK",
    "THREAD_CREATE",
    "THREAD_UPDATE",
    "THREAD_DELETE",
    "THREAD_LIST_SYNC",
    "WEBHOOKS_UPDATE",
    "other",
];
pub(super) const GATEWAY_CAUSES: &[&str] = &[
    "unreachable",
    "silent",
    "no_session",
    "closed",
    "cut",
    "zombie",
    "asked",
    "invalid_session",
    "lost",
    "stuck",
    "confused",
    "no_leave",
];
pub(super) const SPEECH_SERVICES: &[&str] = &["speech_recognition", "speech_synthesis"];
pub(super) const TROUBLES: &[&str] = names!(Trouble::ALL);
pub(super) const VOICE_LIMITS: &[&str] = &["calls", "people", "channel"];
pub(super) const PACKET_FATES: &[&str] = &["received", "dropped", "late", "undecodable"];
/// See `adapters/discord/voice/metrics.rs`.
pub(super) const DISCORD_PACKET_FATES: &[&str] = &["received", "lost", "late", "refused", "undecodable", "dropped"];
pub(super) const DISCORD_FRAME_FATES: &[&str] = &["sent", "held", "dropped"];
pub(super) const FRAME_FAULTS: &[&str] = &["malformed", "too_long"];
pub(super) const ATTEMPTS: &[&str] = &["established", "failed"];
pub(super) const STATUSES: &[&str] = &[
    "101", "200", "201", "202", "204", "303", "304", "400", "401", "403", "404", "405", "408", "409", "413", "415", "422", "426",
    "429", "500", "501", "503", "other",
];

/// Whether a combination of label values is possible. Only possible combinations begin at zero.
pub(super) fn is_possible(instrument: &str, values: &[&str]) -> bool {
    match (instrument, values) {
        // A companion that a person chooses speaks without a decision.
        ("tertulia.decisions", ["chosen", ..]) => false,
        // An event is acknowledged without a question.
        ("tertulia.decisions", ["event", "YES", reason]) => *reason == "event",
        ("tertulia.decisions", [_, "YES", reason]) => matches!(*reason, "model_yes" | "external"),
        // An event has no author who could be at risk.
        ("tertulia.decisions", ["event", _, "risk"]) => false,
        // Backchannel settles without a question.
        ("tertulia.decisions", [trigger, _, "backchannel"]) => *trigger == "lull",
        // The pre-gate skips only evaluations that are optional.
        ("tertulia.decisions", [trigger, _, "irrelevant"]) => matches!(*trigger, "lull" | "interjection" | "turn"),
        // A companion that is spoken to always answers.
        ("tertulia.decisions", [trigger, _, "no_initiative"]) => !matches!(*trigger, "direct_address" | "event"),
        ("tertulia.decisions", [_, _, reason]) => !matches!(*reason, "model_yes" | "event"),
        _ => true,
    }
}
