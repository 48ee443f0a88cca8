//! All instruments: name, unit, labels and a one-sentence description. Each name is here and nowhere else.
//!
//! Names follow OpenTelemetry. At `/metrics` dots become underscores, and a unit and `_total` are added by its rules. Counters begin at zero for
//! every possible combination of closed labels, so that `rate()` sees the first event. No label contains a guild, a channel, a person or a text. One
//! instrument has companions; a server has few.

pub mod kinds;
mod values;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use super::attributes as name;
use kinds::{Counter, Declared, Gauge, Histogram, Sum, UpDown};
pub use kinds::{Label, NONE};

/// For the server's own work: from imperceptible times to a few seconds.
const OWN_SECONDS: &[f64] = &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];
/// The same range, with finer steps around the target for a turn: five milliseconds plus a commit.
const OVERHEAD_SECONDS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.006, 0.0075, 0.01, 0.015, 0.025, 0.05,
    0.1, 0.25, 0.5, 1.0, 2.5,
];
/// For work that waits for models: from a quick answer to a timeout.
const MODEL_SECONDS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0];
/// For waits in a queue: from no wait to one that uses up a question's timeout.
const WAIT_SECONDS: &[f64] = &[0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0];
/// The buckets that the conventions for generative AI recommend for calls of models.
const GEN_AI_SECONDS: &[f64] = &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The buckets that the conventions for generative AI recommend for `gen_ai.invoke_agent.duration`.
const GEN_AI_AGENT_SECONDS: &[f64] = &[0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
/// The buckets that the conventions for generative AI recommend for tokens.
const GEN_AI_TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Powers of two.
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];
/// For repetition scores, from no repetition to full repetition.
const SCORES: &[f64] = &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

const TRIGGER: Label = Label { name: name::DECISION_TRIGGER, values: values::TRIGGERS };
const ERROR: Label = Label { name: name::ERROR_TYPE, values: values::ERRORS };
const ROLE: Label = Label { name: name::MODEL_ROLE, values: values::ROLES };
const POOL_PRIORITY: Label = Label { name: name::POOL_PRIORITY, values: values::PRIORITIES };
const PROVIDER: Label = Label { name: name::GEN_AI_PROVIDER_NAME, values: &[] };
const MODEL: Label = Label { name: name::GEN_AI_REQUEST_MODEL, values: &[] };
const OPERATION: Label = Label { name: name::GEN_AI_OPERATION_NAME, values: &["chat"] };
const MODALITY: Label = Label { name: name::GEN_AI_TOKEN_MODALITY, values: &["text", "unknown"] };
const SORT: Label = Label { name: name::ACTOR_SORT, values: values::SORTS };
const DISCORD_ROUTE: Label = Label { name: name::DISCORD_ROUTE, values: values::DISCORD_ROUTES };
const PARTITION: Label = Label { name: name::PARTITION, values: values::PARTITIONS };
const PLATFORM: Label = Label { name: name::PLATFORM, values: values::PLATFORMS };

// The macro counts the labels. The length of an array of labels would need evaluation to know a type, which is a cycle in an optimised build
// of the tests (E0391).
macro_rules! one {
    ($label:expr) => {
        1
    };
}

macro_rules! instruments {
    ($($field:ident: $kind:ident $(($buckets:expr))?, $name:literal, $unit:literal, [$($label:expr),*], $help:literal;)*) => {
        /// All instruments. Without a reader they cost almost nothing.
        #[derive(Debug)]
        pub struct Set {
            $(#[doc = $help] pub $field: $kind<{ 0 $(+ one!($label))* }>,)*
        }

        impl Set {
            fn new(meter: &Meter) -> Self {
                Self { $($field: $kind::new(meter, Declared { name: $name, unit: $unit, help: $help }, [$($label),*] $(, $buckets)?),)* }
            }
        }

        /// All instruments that are updated by events.
        pub const CATALOGUE: &[Entry] = &[$(
            Entry { kind: stringify!($kind), name: $name, unit: $unit, labels: &[$($label),*], help: $help },
        )*];
    };
}

instruments! {
    decisions: Counter, "tertulia.decisions", "{decision}", [TRIGGER, Label { name: name::DECISION, values: values::DECISIONS }, Label { name: name::DECISION_REASON, values: values::REASONS }],
        "Decisions whether a companion speaks, by why it considered to, what was decided and the reason.";
    evaluations: Counter, "tertulia.evaluations", "{evaluation}", [TRIGGER],
        "Questions that a model, or the program that plays a companion, was asked: decisions without one were skipped.";
    unanswered: Counter, "tertulia.evaluations.unanswered", "{evaluation}", [TRIGGER, ERROR],
        "Questions that got no answer and are asked again later; none of them is a NO.";
    decision_duration: Histogram(MODEL_SECONDS), "tertulia.decision.duration", "s", [TRIGGER],
        "Time from asking whether a companion speaks to its answer, waiting included.";

    turns: Counter, "tertulia.turns", "{turn}", [TRIGGER, Label { name: name::TURN_OUTCOME, values: values::OUTCOMES }],
        "Turns that ended, from the messages that led to them to a posted statement, silence or a failure, by the strongest trigger.";
    turn_duration: Histogram(MODEL_SECONDS), "tertulia.turn.duration", "s", [TRIGGER, Label { name: name::TURN_OUTCOME, values: values::OUTCOMES }],
        "Time from the message, or the end of the lull, to the end of the turn: of posted ones, from trigger to words; of spoken ones, to the first of them.";
    turn_overhead: Histogram(OVERHEAD_SECONDS), "tertulia.turn.overhead", "s", [Label { name: name::TURN_OUTCOME, values: values::OUTCOMES }],
        "What the server itself adds to a turn once it is triggered: all but models, waiting for them, programs and platforms, and delays that are meant.";

    messages: Counter, "tertulia.messages", "{message}", [PLATFORM, Label { name: name::MESSAGE_ROLE, values: values::MESSAGE_ROLES }],
        "Messages accepted, by platform and by who said them.";
    notices: Counter, "tertulia.notices", "{person}", [Label { name: name::NOTICE_OCCASION, values: values::OCCASIONS }],
        "People told that companions are AI, by why: for the first time, on another day, or after a while; each counts each time.";
    notes: Counter, "tertulia.notes", "{note}", [Label { name: name::NOTE_FATE, values: values::NOTES }],
        "Notes about people and rooms: made, asked for by a person, used in a prompt, or dropped and why.";
    reminders: Counter, "tertulia.reminders", "{reminder}", [Label { name: name::REMINDER_FATE, values: values::REMINDERS }],
        "Reminders: set, due and announced to a companion, posted by the server because no companion said it, cancelled, or erased.";
    tool_calls: Counter, "tertulia.tool.calls", "{call}", [Label { name: name::GEN_AI_TOOL_NAME, values: values::TOOLS }, Label { name: name::TOOL_OUTCOME, values: values::CALL_OUTCOMES }],
        "Calls of tools that have ended, by tool and how: unknown is whether those without an answer had an effect.";
    tool_call_duration: Histogram(MODEL_SECONDS), "tertulia.tool.call.duration", "s", [Label { name: name::GEN_AI_TOOL_NAME, values: values::TOOLS }],
        "Time that a call of a tool took.";
    statements_failed: Counter, "tertulia.statements.failed", "{statement}", [ERROR],
        "Statements that a companion had the floor for and that were never made.";
    statements_received: Gauge, "tertulia.statements.received", "{statement}", [Label { name: name::COMPANION_ID, values: &[] }, TRIGGER, MODEL, Label { name: name::STATEMENT_RECEPTION, values: values::RECEPTIONS }],
        "Statements of the last 24 hours by how people received them, derived from the record.";
    answers_trimmed: Counter, "tertulia.answers.trimmed", "{answer}", [Label { name: name::TRIMMED_KIND, values: values::TRIMMED }],
        "Answers of models out of which something was cut that is not said, by what it was; many are a sign of a wrong chat template.";
    platform_sends: Counter, "tertulia.platform.sends", "{part}", [PLATFORM, Label { name: name::SEND_OUTCOME, values: values::SENDS }],
        "Parts of statements sent to a platform, by what came of it.";
    platform_send_duration: Histogram(OWN_SECONDS), "tertulia.platform.send.duration", "s", [PLATFORM],
        "Time that posting took: of a part, the request to its platform; where posting is storing, the commit.";

    discord_requests: Counter, "tertulia.discord.requests", "{request}", [DISCORD_ROUTE, Label { name: name::DISCORD_OUTCOME, values: values::DISCORD_OUTCOMES }],
        "Requests to Discord's REST API, by what they are for and what came of them; those held back never left, for Discord's limits.";
    discord_request_duration: Histogram(WAIT_SECONDS), "tertulia.discord.request.duration", "s", [DISCORD_ROUTE],
        "Time from sending a request to Discord to its answer, or to giving it up.";
    discord_waits: Counter, "tertulia.discord.waits", "{request}", [DISCORD_ROUTE],
        "Requests to Discord that had to wait for its limits before they left, or were held back.";
    discord_waited: Sum, "tertulia.discord.waited", "s", [],
        "Seconds that requests to Discord waited for its limits.";
    discord_invalid: Counter, "tertulia.discord.requests.invalid", "{request}", [],
        "Requests that Discord counts as invalid: 401, 403, and 429 but for a limit that all share. At 10,000 in ten minutes it shuts the address out.";
    discord_refusals: Counter, "tertulia.discord.refusals", "{request}", [Label { name: name::DISCORD_REFUSAL, values: values::DISCORD_REFUSALS }],
        "Requests that Discord refused for good, by why: a missing permission, something that is gone, too many webhooks.";
    discord_commands: Counter, "tertulia.discord.commands", "{interaction}", [Label { name: name::DISCORD_COMMAND, values: values::COMMANDS }, Label { name: name::DISCORD_COMMAND_OUTCOME, values: values::COMMAND_OUTCOMES }],
        "Slash commands that people used on Discord, and names that they typed in them, by what came of it.";
    discord_command_duration: Histogram(OWN_SECONDS), "tertulia.discord.command.duration", "s", [Label { name: name::DISCORD_COMMAND, values: values::COMMANDS }],
        "Time from hearing of a slash command to its first answer; Discord waits three seconds for that.";
    discord_unreadable: Counter, "tertulia.discord.events.unreadable", "{event}", [],
        "Events and messages of Discord's that could not be read and were left out.";
    discord_under_way: UpDown, "tertulia.discord.events.under_way", "{event}", [],
        "What follows from events and is not on record yet; when there is too much of it, connections wait.";
    discord_broken: Counter, "tertulia.discord.events.broken", "{event}", [],
        "What was heard on Discord and could not be put on record. A fault of this program.";
    discord_messages: Counter, "tertulia.discord.messages", "{message}", [Label { name: name::MESSAGE_FATE, values: values::MESSAGE_FATES }],
        "Messages heard on Discord, by what became of them; elsewhere is where no companion lives.";
    discord_backfills: Counter, "tertulia.discord.backfills", "{channel}", [Label { name: name::BACKFILL_OUTCOME, values: values::BACKFILLS }],
        "Channels read after a downtime, by what was left out.";
    discord_backfilled: Counter, "tertulia.discord.backfilled", "{message}", [],
        "Messages read after a downtime.";
    discord_guilds: UpDown, "tertulia.discord.guilds", "{guild}", [Label { name: name::GUILD_STATE, values: values::GUILD_STATES }],
        "Guilds that the bot is in, by whether Discord tells of them; of an unavailable one it does not.";

    discord_voice_packets: Counter, "tertulia.discord.voice.packets", "{packet}", [Label { name: name::DISCORD_PACKET_FATE, values: values::DISCORD_PACKET_FATES }],
        "Packets of people in calls on Discord: received, and of these late, refused, undecodable or dropped; and those that were lost on the way.";
    discord_voice_frames: Counter, "tertulia.discord.voice.frames", "{frame}", [Label { name: name::DISCORD_FRAME_FATE, values: values::DISCORD_FRAME_FATES }],
        "Frames of 20 ms of companions' speech in calls on Discord: sent, held because there was no key or no connection, or dropped.";
    discord_voice_encryption_failures: Counter, "tertulia.discord.voice.encryption.failures", "{failure}", [],
        "Messages about the end-to-end encryption of calls on Discord that could not be followed; the server adds the bot to the group again.";
    discord_voice_resumes: Counter, "tertulia.discord.voice.resumes", "{resume}", [],
        "Connections to calls on Discord that were lost and went on where they were.";

    voice_segments: Counter, "tertulia.voice.segments", "{segment}", [Label { name: name::SEGMENT_KIND, values: values::SEGMENT_KINDS }],
        "Final results of speech recognition that have words, by what they count as.";
    voice_segment_delay: Histogram(WAIT_SECONDS), "tertulia.voice.segment.delay", "s", [],
        "Time from the end of what somebody said to its words being accepted.";
    voice_hand_overs: Counter, "tertulia.voice.hand_overs", "{hand_over}", [Label { name: name::HAND_OVER_CAUSE, values: values::HAND_OVERS }],
        "Times that spoken words became messages, by the cause.";
    voice_interruptions: Counter, "tertulia.voice.interruptions", "{interruption}", [Label { name: name::INTERRUPTION_VERDICT, values: values::VERDICTS }],
        "Times that somebody talked into a spoken reply or stopped it, by how it came out.";
    voice_packets: Counter, "tertulia.voice.packets", "{packet}", [Label { name: name::PACKET_FATE, values: values::PACKET_FATES }],
        "Packets of microphones, by what became of them: received, and of these dropped, late or undecodable.";
    voice_frames_unsent: Counter, "tertulia.voice.frames.unsent", "{packet}", [],
        "Packets of companions' speech that were dropped because a page did not take them in time.";
    voice_people: UpDown, "tertulia.voice.people", "{person}", [],
        "People in voice calls.";
    voice_streams: UpDown, "tertulia.voice.streams", "{stream}", [],
        "Open streams of speech recognition.";
    voice_answer_time: Histogram(MODEL_SECONDS), "tertulia.voice.answer.time", "s", [],
        "Time from the end of the last speech to the first packet of the spoken reply after it, waiting for the end of a lull included.";
    voice_duck_delay: Histogram(OWN_SECONDS), "tertulia.voice.duck.delay", "s", [],
        "Time from the detection of speech over a reply to the moment when the reply is ducked.";
    voice_spoken: Sum, "tertulia.voice.spoken", "s", [],
        "Seconds of companions' speech that were sent.";
    speech_recognised: Sum, "tertulia.speech.recognised", "s", [PROVIDER],
        "Seconds of people's speech that were given to speech recognition.";
    speech_synthesised: Counter, "tertulia.speech.synthesised", "{character}", [PROVIDER],
        "Characters of companions' speech of which speech synthesis has made audio.";
    speech_cost: Sum, "tertulia.speech.cost", "", [Label { name: name::SPEECH_SERVICE, values: values::SPEECH_SERVICES }, Label { name: name::COST_CURRENCY, values: &[] }],
        "What speech recognition and synthesis cost by the prices in the settings; without a price nothing counts.";
    voice_troubles: Counter, "tertulia.voice.troubles", "{trouble}", [Label { name: name::VOICE_TROUBLE, values: values::TROUBLES }],
        "Times that people in a call were told what does not work, by what it is.";
    voice_refusals: Counter, "tertulia.voice.refusals", "{refusal}", [Label { name: name::VOICE_LIMIT, values: values::VOICE_LIMITS }],
        "Times that somebody could not enter a call, or companions could not, by what is full.";

    rounds: Counter, "tertulia.rounds", "{round}", [Label { name: name::ROUND_OUTCOME, values: values::ROUNDS }],
        "Rounds in channels with several companions, by whether somebody was selected.";
    round_duration: Histogram(MODEL_SECONDS), "tertulia.round.duration", "s", [],
        "Time from a round's opening to the selection.";
    round_votes: Counter, "tertulia.round.votes", "{vote}", [Label { name: name::DECISION_STATE, values: values::STATES }],
        "Votes in rounds, those without a call included.";
    round_missing_votes: Counter, "tertulia.round.missing_votes", "{vote}", [],
        "Votes that were asked for and did not come in time; they count as listening.";
    round_ties: Counter, "tertulia.round.ties", "{round}", [],
        "Rounds that equal wishes tied, so that who spoke least recently was selected.";
    round_wishes: Counter, "tertulia.round.wishes", "{wish}", [Label { name: name::DECISION_FLOOR, values: values::FLOORS }],
        "Wishes to speak in rounds, by whether they got the floor.";
    loop_guard_trips: Counter, "tertulia.loop_guard.trips", "{round}", [],
        "Rounds that were not held because companions had talked for long enough without a human.";
    closing_transitions: Counter, "tertulia.closing.transitions", "{transition}", [Label { name: name::CLOSING_TO, values: values::STAGES }, Label { name: name::CLOSING_CAUSE, values: values::CAUSES }],
        "Changes of how near its end a companion sees the conversation, by the new stage and the cause.";
    repetition_judgements: Counter, "tertulia.repetition.judgements", "{judgement}", [Label { name: name::REPETITION_JUDGE, values: values::JUDGES }, Label { name: name::REPETITION_FOUND, values: values::FLAGS }],
        "Judgements whether a talk goes in circles, by who judged and whether it does.";
    repetition_score: Histogram(SCORES), "tertulia.repetition.score", "1", [],
        "How much the last messages of a talk repeat each other, from 0 to 1; over 0.7 counts as repetition.";

    model_duration: Histogram(GEN_AI_SECONDS), "gen_ai.client.inference.duration", "s", [OPERATION, PROVIDER, MODEL, ROLE, ERROR],
        "Time that calls of models took, by model; with an error_type those that gave no answer.";
    model_first_chunk: Histogram(GEN_AI_SECONDS), "gen_ai.client.inference.time_to_first_chunk", "s", [OPERATION, PROVIDER, MODEL, ROLE],
        "Time from a request to the first chunk of its answer; of streamed answers only.";
    model_input: Histogram(GEN_AI_TOKENS), "gen_ai.client.inference.operation.input_tokens", "{token}", [OPERATION, PROVIDER, MODEL, ROLE],
        "Tokens that calls of models read, cached ones included, by call.";
    model_output: Histogram(GEN_AI_TOKENS), "gen_ai.client.inference.operation.output_tokens", "{token}", [OPERATION, PROVIDER, MODEL, ROLE],
        "Tokens that calls of models wrote, thoughts included, by call.";
    tokens_input: Counter, "gen_ai.client.inference.usage.input_tokens", "{token}", [OPERATION, PROVIDER, MODEL, ROLE, MODALITY],
        "Tokens that calls of models read, cached ones included.";
    tokens_cache_read: Counter, "gen_ai.client.inference.usage.cache_read.input_tokens", "{token}", [OPERATION, PROVIDER, MODEL, ROLE, MODALITY],
        "Tokens of these that endpoints read from their caches; no series for endpoints that report none.";
    tokens_cache_write: Counter, "gen_ai.client.inference.usage.cache_write.input_tokens", "{token}", [OPERATION, PROVIDER, MODEL, ROLE, MODALITY],
        "Tokens of these that endpoints wrote to their caches; no series for endpoints that report none.";
    tokens_output: Counter, "gen_ai.client.inference.usage.output_tokens", "{token}", [OPERATION, PROVIDER, MODEL, ROLE, MODALITY],
        "Tokens that calls of models wrote, thoughts included.";
    tokens_reasoning: Counter, "gen_ai.client.inference.usage.reasoning.output_tokens", "{token}", [OPERATION, PROVIDER, MODEL, ROLE, MODALITY],
        "Tokens of these that models spent on thoughts; no series for endpoints that report none.";
    agent_duration: Histogram(GEN_AI_AGENT_SECONDS), "gen_ai.invoke_agent.duration", "s", [ERROR],
        "Time that a statement took to be made, from getting the floor to its complete text; with an error_type those that were not made.";
    model_duration_before: Histogram(GEN_AI_SECONDS), "gen_ai.client.operation.duration", "s", [OPERATION, PROVIDER, MODEL, ROLE, ERROR],
        "The name of gen_ai.client.inference.duration in version 1.41 of the conventions; ends with the next version of this program.";
    model_tokens_before: Histogram(GEN_AI_TOKENS), "gen_ai.client.token.usage", "{token}", [OPERATION, PROVIDER, MODEL, ROLE, Label { name: name::GEN_AI_TOKEN_TYPE, values: &["input", "output"] }],
        "The tokens of calls under their name in version 1.41 of the conventions; ends with the next version of this program.";
    answers_cut: Counter, "tertulia.answers.cut", "{answer}", [ROLE],
        "Answers of models that ended at their limit of tokens, those without a word included; the settings prompt.max_…_answer_tokens raise it.";
    model_cost: Sum, "tertulia.model.cost", "", [MODEL, ROLE, Label { name: name::COST_CURRENCY, values: &[] }],
        "What calls of models cost by the prices in the settings; a model without a price does not count.";
    pool_calls: Counter, "tertulia.pool.calls", "{call}", [ROLE],
        "Calls of models begun, every try counted.";
    pool_retries: Counter, "tertulia.pool.retries", "{call}", [ROLE],
        "Calls that failed and are tried again.";
    pool_timeouts: Counter, "tertulia.pool.timeouts", "{question}", [ROLE],
        "Questions whose time was over before there was an answer.";
    pool_shed: Counter, "tertulia.pool.shed", "{question}", [ROLE, POOL_PRIORITY],
        "Questions shed because too many waited: lulls first, direct addresses last.";
    pool_panics: Counter, "tertulia.pool.panics", "{call}", [ROLE],
        "Calls of models that panicked; their questions are answered without one. A fault of this program.";
    pool_no_prompt: Counter, "tertulia.pool.no_prompt", "{question}", [ROLE],
        "Questions whose prompt could not be built, so that no model was asked. A fault of this program.";
    pool_waiting: UpDown, "tertulia.pool.waiting", "{question}", [ROLE, POOL_PRIORITY],
        "Questions that wait for a model, by how urgent they are: pauses between tries included, and summaries that wait to be worded.";
    pool_running: UpDown, "tertulia.pool.running", "{call}", [ROLE],
        "Calls of models under way.";
    pool_wait: Histogram(WAIT_SECONDS), "tertulia.pool.wait", "s", [ROLE],
        "Time that questions waited in the queue and between tries.";
    breakers_opened: Counter, "tertulia.breakers.opened", "{endpoint}", [],
        "Times that the circuit breaker of an endpoint opened, because it failed too often in a row.";
    breakers_open: UpDown, "tertulia.breakers.open", "{endpoint}", [],
        "Endpoints whose circuit breaker is open.";

    actors: UpDown, "tertulia.actors", "{actor}", [SORT],
        "Actors alive, by sort; a channel without an actor is asleep.";
    channels_known: Gauge, "tertulia.channels.known", "{channel}", [],
        "Channels that there are, awake and asleep.";
    channel_restore_duration: Histogram(OWN_SECONDS), "tertulia.channel.restore.duration", "s", [],
        "Time that a channel took to read back its record, at the start, after sleep or after a failure.";
    actor_restarts: Counter, "tertulia.actor.restarts", "{restart}", [SORT],
        "Actors that ended unexpectedly and were started again.";
    escalations: Counter, "tertulia.supervisor.escalations", "{escalation}", [SORT],
        "Actors that failed too often, so that the supervisor above had to decide.";
    actor_hangs: Counter, "tertulia.actor.hangs", "{hang}", [SORT],
        "Actors that were busy beyond their deadline and were replaced: those that did not come up in time.";
    guilds_quarantined: UpDown, "tertulia.guilds.quarantined", "{guild}", [],
        "Guilds in quarantine because they kept failing.";
    quarantines: Counter, "tertulia.guild.quarantines", "{quarantine}", [],
        "Times that a guild was put in quarantine.";
    dead_letters: Counter, "tertulia.dead_letters", "{message}", [],
        "Messages that became dead letters because they killed their handler again and again.";

    append_duration: Histogram(OWN_SECONDS), "tertulia.journal.append.duration", "s", [],
        "Time from handing events to the writer to their being committed: what a channel made at once, or one event from outside.";
    commit_duration: Histogram(OWN_SECONDS), "tertulia.journal.commit.duration", "s", [Label { name: name::ENGINE, values: values::ENGINES }],
        "Time that one group took to be written and synced, by what holds the store.";
    partition_owned: Gauge, "tertulia.partition.owned", "{node}", [PARTITION],
        "Whether this node runs the channels of a partition: 1 or 0; with a store on disk always 1.";
    partition_term: Gauge, "tertulia.partition.term", "{term}", [PARTITION],
        "The newest term of a partition that this node has seen; it grows when the owner changes.";
    partition_takeovers: Counter, "tertulia.partition.takeovers", "{takeover}", [Label { name: name::TAKEOVER_REASON, values: values::TAKEOVERS }],
        "Times that this node took a partition: at the first start, because its owner had given it back, or because its owner was silent.";
    partition_losses: Counter, "tertulia.partition.losses", "{loss}", [Label { name: name::TAKEOVER_REASON, values: values::LOSSES }],
        "Times that this node gave up a partition that it had not given back: its sign of life was late, or another node had taken it.";
    beats: Counter, "tertulia.beats", "{beat}", [Label { name: name::BEAT_OUTCOME, values: values::BEATS }],
        "Signs of life of an owner in the database, by whether they were committed in time.";
    group_size: Histogram(SIZES), "tertulia.journal.group.size", "{batch}", [],
        "Batches that were committed together.";
    journal_events: Counter, "tertulia.journal.events", "{event}", [],
        "Events put on record.";
    backups: Counter, "tertulia.backups", "{backup}", [Label { name: name::BACKUP_OUTCOME, values: values::BACKUPS }],
        "Backups that the server made by itself, or could not make.";
    retention_events: Counter, "tertulia.retention.events", "{event}", [],
        "Events deleted because they were kept for long enough.";
    retention_failures: Counter, "tertulia.retention.failures", "{channel}", [],
        "Channels of which what was kept for long enough could not be deleted; the next pass tries again.";
    retention_passed: Gauge, "tertulia.retention.passed", "s", [],
        "When everything was last looked through for what was kept for long enough, in seconds since 1970; 0: not since the start.";
    store_failures: Counter, "tertulia.store.failures", "{failure}", [],
        "Writes that failed for good; the process ends then, so whoever scrapes hardly sees it; whoever is pushed metrics does.";

    http_requests: Counter, "tertulia.http.requests", "{request}", [Label { name: name::HTTP_STATUS, values: values::STATUSES }],
        "HTTP requests answered, by status.";
    http_duration: Histogram(OWN_SECONDS), "http.server.request.duration", "s", [Label { name: name::HTTP_ROUTE, values: &[] }],
        "Time to answer HTTP requests, by route.";
    http_panics: Counter, "tertulia.http.panics", "{request}", [],
        "HTTP requests whose handler panicked.";
    discord_connections: UpDown, "tertulia.discord.connections", "{connection}", [Label { name: name::GATEWAY_STATE, values: values::GATEWAY_STATES }],
        "Connections to Discord's gateway, by what they are doing; all of them should be connected.";
    discord_dispatches: Counter, "tertulia.discord.dispatches", "{event}", [Label { name: name::GATEWAY_EVENT, values: values::GATEWAY_EVENTS }],
        "Events that Discord told, replayed ones included.";
    discord_frames_unreadable: Counter, "tertulia.discord.frames.unreadable", "{frame}", [Label { name: name::ERROR_TYPE, values: values::FRAME_FAULTS }],
        "Frames of Discord's gateway that could not be read and were left out.";
    discord_identifies: Counter, "tertulia.discord.identifies", "{identify}", [Label { name: name::GATEWAY_OUTCOME, values: values::ATTEMPTS }],
        "Sessions begun anew with Discord, by whether there was one; a thousand a day are allowed.";
    discord_identifies_left: Gauge, "tertulia.discord.identifies.left", "{identify}", [],
        "Sessions that may still be begun anew with Discord today, a reserve taken off.";
    discord_resumes: Counter, "tertulia.discord.resumes", "{resume}", [Label { name: name::GATEWAY_OUTCOME, values: values::ATTEMPTS }],
        "Connections to Discord that were to go on where another was, by whether they did.";
    discord_reconnects: Counter, "tertulia.discord.reconnects", "{connection}", [Label { name: name::GATEWAY_CAUSE, values: values::GATEWAY_CAUSES }],
        "Connections to Discord that ended and are made again, by why they ended.";
    discord_heartbeat_latency: Histogram(OWN_SECONDS), "tertulia.discord.heartbeat.latency", "s", [],
        "Time from a heartbeat to Discord's acknowledgement.";
    discord_receipts_waiting: UpDown, "tertulia.discord.receipts.waiting", "{event}", [],
        "Events from Discord that are not on record yet; a restart would hear them again.";

    http_connections: Counter, "tertulia.http.connections", "{connection}", [],
        "HTTP connections accepted.";
    http_connections_refused: Counter, "tertulia.http.connections.refused", "{connection}", [],
        "HTTP connections refused because too many were open.";
    live_sockets: UpDown, "tertulia.live.sockets", "{socket}", [],
        "WebSockets that watch a room.";
    live_missed: Counter, "tertulia.live.missed", "{event}", [],
        "What slow watchers missed; what of it is on record they read again.";
}

macro_rules! observed {
    ($($entry:ident: $kind:ident, $name:literal, $unit:literal, [$($label:expr),*], $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $entry: Entry =
                Entry { kind: stringify!($kind), name: $name, unit: $unit, labels: &[$($label),*], help: $help };
        )*

        /// All instruments whose values are computed when they are read. Together with [`CATALOGUE`] these are all instruments.
        pub const OBSERVED: &[Entry] = &[$($entry),*];
    };
}

observed! {
    STORE_SIZE: Gauge, "tertulia.store.size", "By", [],
        "Bytes on disk under the data folder's store; at most some seconds old.";
    DISK_FREE: Gauge, "tertulia.disk.free", "By", [],
        "Bytes that this process may still write to the disk that holds the data folder; at most some seconds old.";

    TELEMETRY_SPANS: Counter, "tertulia.telemetry.spans", "{span}", [Label { name: name::SPAN_FATE, values: values::FATES }],
        "Spans that were written, by what became of them; dropped ones found the queue full.";
    TELEMETRY_QUEUE: Gauge, "tertulia.telemetry.queue", "{span}", [],
        "Spans that wait to be exported.";

    PROCESS_UPTIME: Gauge, "process.uptime", "s", [],
        "Seconds since the process began.";
    PROCESS_CPU: Counter, "process.cpu", "s", [],
        "Seconds of processor time used, in user and system mode.";
    PROCESS_RESIDENT: Gauge, "process.resident_memory", "By", [],
        "Bytes of memory that the process really occupies.";
    PROCESS_VIRTUAL: Gauge, "process.virtual_memory", "By", [],
        "Bytes of address space that the process has reserved.";
    PROCESS_OPEN_FILES: Gauge, "process.open_fds", "{file_descriptor}", [],
        "Files, sockets and pipes that are open.";
    PROCESS_MAX_FILES: Gauge, "process.max_fds", "{file_descriptor}", [],
        "Files, sockets and pipes that may be open; no series without a limit.";
    PROCESS_START: Gauge, "process.start_time", "s", [],
        "When the process began, in seconds since 1970.";
    PROCESS_THREADS: Gauge, "process.threads", "{thread}", [],
        "Threads of the process.";
    PROCESS_MEMORY_BEFORE: Gauge, "process.memory.usage", "By", [],
        "The earlier name of process.resident_memory; ends with the next version of this program.";
    PROCESS_CPU_BEFORE: Counter, "process.cpu.time", "s", [],
        "The earlier name of process.cpu; ends with the next version of this program.";
    PROCESS_FILES_BEFORE: Gauge, "process.open_file_descriptors", "{file_descriptor}", [],
        "The earlier name of process.open_fds; ends with the next version of this program.";
    BUILD_INFO: Gauge, "tertulia.build.info", "", [Label { name: "service.version", values: &[env!("CARGO_PKG_VERSION")] }],
        "What was built: the version.";
}

/// The declaration of an instrument.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// `Counter`, `Sum`, `UpDown`, `Gauge` or `Histogram`.
    pub kind: &'static str,
    /// The OpenTelemetry name.
    pub name: &'static str,
    /// The UCUM unit, or an empty text.
    pub unit: &'static str,
    /// The labels, in the order in which values are passed.
    pub labels: &'static [Label],
    /// The description, for people.
    pub help: &'static str,
}

/// All instruments of one server. Clones share them.
#[derive(Clone, Debug)]
pub struct Instruments(Arc<Set>);

impl Instruments {
    /// Instruments that this provider reads.
    pub fn new(provider: &SdkMeterProvider) -> Self {
        Self(Arc::new(Set::new(&provider.meter(super::SCOPE))))
    }

    /// Instruments without a reader.
    pub fn noop() -> Self {
        Self::new(&SdkMeterProvider::default())
    }
}

impl Instruments {
    /// Counts a part of a statement that was sent to a platform.
    pub fn sent(&self, platform: &'static str, outcome: &'static str, took: Duration) {
        self.platform_sends.add(1, [platform, outcome]);
        if outcome == "posted" {
            self.platform_send_duration.record(took.as_secs_f64(), [platform]);
        }
    }
}

impl Default for Instruments {
    fn default() -> Self {
        Self::noop()
    }
}

impl std::ops::Deref for Instruments {
    type Target = Set;

    fn deref(&self) -> &Set {
        &self.0
    }
}

/// The maximum number of series of an instrument, where each label may also be absent. `None` if there is no such instrument, or
/// if a label has no closed list.
pub fn series_at_most(name: &str) -> Option<usize> {
    let entry = CATALOGUE.iter().chain(OBSERVED).find(|entry| entry.name == name)?;
    let closed = entry.labels.iter().map(|label| (!label.values.is_empty()).then_some(label.values.len() + 1));
    closed.product()
}

/// An error code as a label value. Unknown codes become `other`, so that no text from outside creates a series.
pub fn error_label(code: &str) -> &'static str {
    values::ERRORS.iter().find(|known| **known == code).copied().unwrap_or("other")
}

/// A platform's name as a label value. Unknown names become `other`.
pub fn platform_label(platform: &str) -> &'static str {
    values::PLATFORMS.iter().find(|known| **known == platform).copied().unwrap_or("other")
}

/// The name of a Discord event as a label value. Unknown names become `other`.
pub fn gateway_event_label(kind: &str) -> &'static str {
    values::GATEWAY_EVENTS.iter().find(|known| **known == kind).copied().unwrap_or("other")
}

/// An HTTP status as a label value. Unknown ones become `other`.
pub fn status_label(status: u16) -> &'static str {
    values::STATUSES.iter().find(|known| known.parse() == Ok(status)).copied().unwrap_or("other")
}
