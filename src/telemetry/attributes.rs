//! The names of all attributes and spans.
//!
//! The `messaging.*` names are from the OpenTelemetry conventions for messaging, version 1.41; the `gen_ai.*` names are from those for generative AI,
//! <https://github.com/open-telemetry/semantic-conventions-genai> at the commit 6fd0d763a092db245a54104fc1124031eb3c51d2 (2026-10-09). Both are
//! still in development, so they are pinned here. docs/telemetry.md lists the names of version 1.41 that are still written beside newer ones.

/// Converts a number to an attribute value, which is signed.
pub(super) fn whole(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// `YES` or `NO`. Absent if no answer arrived.
pub const DECISION: &str = "decision";
/// Why the companion considered speaking: `event`, `direct_address`, `turn`, `interjection`, `lull` or `silence`.
pub const DECISION_TRIGGER: &str = "decision.trigger";
/// The reason for the decision, from a closed list.
pub const DECISION_REASON: &str = "decision.reason";
/// Number of messages that the gate has counted.
pub const DECISION_MESSAGE_COUNT: &str = "decision.message_count";
/// Interjection checks made since the last reset.
pub const DECISION_CHECK_COUNT: &str = "decision.check_count";
/// The count at which the next interjection is considered.
pub const DECISION_THRESHOLD: &str = "decision.threshold";
/// In rounds, whether the companion got the floor: `won`, `lost` or `none`. `none` if it did not want the floor, or if the round could no longer
/// select a speaker.
pub const DECISION_FLOOR: &str = "decision.floor";
/// In rounds, the vote: `speak` or `listen`.
pub const DECISION_STATE: &str = "decision.state";
/// In rounds, how important speaking is to the companion, from 0 to 10.
pub const DECISION_IMPORTANCE: &str = "decision.importance";
/// In rounds, whether the companion considers itself called upon.
pub const DECISION_SELECTED: &str = "decision.selected";
/// In rounds, the closing stage of the vote.
pub const DECISION_CLOSING: &str = "decision.closing";

/// The `seq` of the newest event at a round's opening.
pub const ROUND_MESSAGE_ID: &str = "round.message_id";
/// Number of companions in a round.
pub const ROUND_STATES: &str = "round.states";
/// Number of companions in a round that could be selected.
pub const ROUND_CANDIDATES: &str = "round.candidates";
/// Number of companions in a round that were asked but did not answer.
pub const ROUND_MISSING: &str = "round.missing";
/// The selected companion. Absent if there is none.
pub const ROUND_SELECTED: &str = "round.selected";
/// The closing stage before a change.
pub const CLOSING_FROM: &str = "closing.from";
/// The closing stage after a change.
pub const CLOSING_TO: &str = "closing.to";
/// Why a closing stage changed.
pub const CLOSING_CAUSE: &str = "closing.cause";
/// How much the last statements repeat each other, from 0 to 1.
pub const REPETITION_SCORE: &str = "repetition.score";
/// Number of consecutive detections.
pub const REPETITION_DETECTIONS: &str = "repetition.detections";
/// The judge of the repetition: `lexical` or `model`.
pub const REPETITION_JUDGE: &str = "repetition.judge";

/// Whether the last statements were found to repeat each other.
pub const REPETITION_FOUND: &str = "repetition.found";
/// `words`, `backchannel`, `noise` or `echo`.
pub const SEGMENT_KIND: &str = "segment.kind";
/// The verdict of an interruption of a spoken reply (docs/live.md).
pub const INTERRUPTION_VERDICT: &str = "interruption.verdict";
/// The random number that was drawn at the start of an interruption, from 0 to 1. Absent if no person interrupted.
pub const INTERRUPTION_DRAW: &str = "interruption.draw";
/// The probability that the companion does not yield at once, from 0 to 0.9.
pub const INTERRUPTION_TOLERANCE: &str = "interruption.tolerance";
/// The position in the reply, in milliseconds.
pub const INTERRUPTION_AT_MS: &str = "interruption.at_ms";
/// How a spoken reply ended: `whole`, `cut`, or `unheard` if it ended before a word was played.
pub const PLAYBACK_OUTCOME: &str = "playback.outcome";
/// The number of sentences that began to play.
pub const PLAYBACK_SENTENCES: &str = "playback.sentences";
/// The number of these whose synthesis stalled, so that the rest was dropped.
pub const PLAYBACK_DROPPED: &str = "playback.dropped";
/// The audio that was played, in milliseconds.
pub const PLAYBACK_PLAYED_MS: &str = "playback.played_ms";
/// The occasion of an AI disclosure: `first`, `day` or `interval`.
pub const NOTICE_OCCASION: &str = "safety.notice.occasion";
/// What became of a note: `made`, `asked`, `used`, or why it was dropped.
pub const NOTE_FATE: &str = "note.fate";
/// The number of people who received an AI disclosure.
pub const NOTICE_PEOPLE: &str = "safety.notice.people";
/// The recognised or synthesised audio, in seconds.
pub const SPEECH_AUDIO_SECS: &str = "speech.audio_secs";
/// The number of synthesised characters.
pub const SPEECH_CHARACTERS: &str = "speech.characters";
/// `speech_recognition` or `speech_synthesis`.
pub const SPEECH_SERVICE: &str = "speech.service";
/// The trouble in a voice call: `recognition_failed`, `recognition_full`, `recognition_used_up`, `synthesis_failed`,
/// `synthesis_used_up`, `not_heard`, `says_already`, `says_too_much` or `call_too_long`.
pub const VOICE_TROUBLE: &str = "voice.trouble";
/// The limit that was reached: `calls` (`voice.max_calls`), `people` (`voice.max_people`) or `channel` (Discord does not let the
/// bot in).
pub const VOICE_LIMIT: &str = "voice.limit";
/// `lull_ended`, `deserted`, `addressed`, `one_to_one`, `follow_up` or `extension`.
pub const HAND_OVER_CAUSE: &str = "hand_over.cause";
/// The outcome of a packet in a call on Discord: `received`, `lost`, `late`, `refused`, `undecodable` or `dropped`.
pub const DISCORD_PACKET_FATE: &str = "discord.packet_fate";
/// The outcome of a frame of companions' speech in a call on Discord: `sent`, `held` or `dropped`.
pub const DISCORD_FRAME_FATE: &str = "discord.frame_fate";
/// `received`, `dropped`, `late` or `undecodable`.
pub const PACKET_FATE: &str = "packet.fate";
/// The number of speech segments in a hand-over.
pub const HAND_OVER_SEGMENTS: &str = "hand_over.segments";
/// The number of messages in a hand-over.
pub const HAND_OVER_MESSAGES: &str = "hand_over.messages";
/// `selected` or `nobody`.
pub const ROUND_OUTCOME: &str = "round.outcome";

pub const CHANNEL_ID: &str = "channel.id";
pub const GUILD_ID: &str = "guild.id";
pub const COMPANION_ID: &str = "companion.id";
/// The turn. A turn that continues after a restart keeps its id, but gets a new trace.
pub const TURN_ID: &str = "turn.id";
/// How a turn ended: `posted`, `silence`, `failed`, `cancelled`.
pub const TURN_OUTCOME: &str = "turn.outcome";
/// The kind of text that was removed from a model's answer: `thought`, `other_speaker`, …
pub const TRIMMED_KIND: &str = "kind";
/// Whether a statement is an interjection.
pub const STATEMENT_UNSOLICITED: &str = "statement.is_unsolicited";
/// How people received a statement: `answered`, `talked_past`, …
pub const STATEMENT_RECEPTION: &str = "statement.reception";

/// The number of a reminder in its channel.
pub const REMINDER: &str = "reminder.number";
/// What becomes of a reminder: `set`, `due`, `posted`, …
pub const REMINDER_FATE: &str = "reminder.fate";

/// The `seq` of a journaled message in its channel.
pub const HISTORY_SEQ: &str = "history.seq";

/// The platform that a statement is sent to: `console`, …
pub const MESSAGING_SYSTEM: &str = "messaging.system";
/// `send`.
pub const MESSAGING_OPERATION_NAME: &str = "messaging.operation.name";
/// `send`.
pub const MESSAGING_OPERATION_TYPE: &str = "messaging.operation.type";
/// The channel's id.
pub const MESSAGING_DESTINATION_NAME: &str = "messaging.destination.name";

/// The platform: `console`, …
pub const PLATFORM: &str = "platform";
/// The author's role: `user`, `companion` or `bot`; or `event` for an event that must be acknowledged.
pub const MESSAGE_ROLE: &str = "message.role";
/// The result of sending a part of a statement: `posted`, `failed` or `unconfirmed`.
pub const SEND_OUTCOME: &str = "send.outcome";
/// The result of an automatic backup: `made`, `skipped` for lack of disk space, or `failed`.
pub const BACKUP_OUTCOME: &str = "backup.outcome";
/// The storage engine: `sled` or `postgres`.
pub const ENGINE: &str = "engine";
/// The number of a partition of the guilds.
pub const PARTITION: &str = "partition";
/// The result of a heartbeat in the database: `ok` or `failed`.
pub const BEAT_OUTCOME: &str = "outcome";
/// Why a node took a partition, or lost it.
pub const TAKEOVER_REASON: &str = "reason";
/// The outcome of a message from Discord.
pub const MESSAGE_FATE: &str = "message.fate";
/// The result of reading a channel after a downtime.
pub const BACKFILL_OUTCOME: &str = "backfill.outcome";
/// Whether Discord currently sends a guild's events: `available` or `unavailable`.
pub const GUILD_STATE: &str = "guild.state";

/// The priority of a question to a model.
pub const POOL_PRIORITY: &str = "pool.priority";
/// The currency of a cost.
pub const COST_CURRENCY: &str = "cost.currency";
/// The outcome of a span: `exported`, `failed` or `dropped`.
pub const SPAN_FATE: &str = "span.fate";
/// The status of an HTTP response.
pub const HTTP_STATUS: &str = "http.response.status_code";
/// The route of an HTTP request, as a path pattern.
pub const HTTP_ROUTE: &str = "http.route";

/// The kind of actor: `channel`, `companion`, …
pub const ACTOR_SORT: &str = "actor.sort";
/// The actor's key.
pub const ACTOR_ADDRESS: &str = "actor.address";
/// How an actor ended.
pub const ACTOR_ENDING: &str = "actor.ending";
/// The delay before an actor is restarted, in seconds.
pub const ACTOR_RESTART_DELAY: &str = "actor.restart.delay_s";

/// A stable error code.
pub const ERROR_TYPE: &str = "error.type";

/// `side` or `main`.
pub const MODEL_ROLE: &str = "model.role";
/// Number of calls for one question: 1, more if the first failed, 0 if the question never left the queue.
pub const MODEL_ATTEMPTS: &str = "model.attempts";
/// How long a question waited in the queue and between its calls, in milliseconds. The span does not include this time.
pub const MODEL_WAITED_MS: &str = "model.waited_ms";
/// The number of companions in one question, if there are several.
pub const MODEL_ASKED_TOGETHER: &str = "model.asked_together";
/// `chat`, `invoke_agent` or `execute_tool`.
pub const GEN_AI_OPERATION_NAME: &str = "gen_ai.operation.name";
/// The provider of the model.
pub const GEN_AI_PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The requested model.
pub const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
/// The requested maximum of output tokens.
pub const GEN_AI_REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
/// The answer's id.
pub const GEN_AI_RESPONSE_ID: &str = "gen_ai.response.id";
/// The model that answered.
pub const GEN_AI_RESPONSE_MODEL: &str = "gen_ai.response.model";
/// Why the model stopped, as a list.
pub const GEN_AI_RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Seconds from the request to the first chunk of a streamed answer.
pub const GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
/// Whether the answer was streamed. Absent if it was not.
pub const GEN_AI_REQUEST_STREAM: &str = "gen_ai.request.stream";
/// Number of input tokens, cached ones included.
pub const GEN_AI_USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Number of input tokens that the endpoint read from its cache.
pub const GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Number of input tokens that the endpoint wrote to its cache.
pub const GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: &str = "gen_ai.usage.cache_write.input_tokens";
/// The name of [`GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS`] in version 1.41.
pub const GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
/// Number of output tokens, those of thoughts included.
pub const GEN_AI_USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Number of output tokens that were spent on thoughts.
pub const GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
/// `text`, or `unknown` if the prompt also held pictures or recordings.
pub const GEN_AI_TOKEN_MODALITY: &str = "gen_ai.token.modality";
/// `input` or `output`. Only of version 1.41.
pub const GEN_AI_TOKEN_TYPE: &str = "gen_ai.token.type";
/// The name of a tool.
pub const GEN_AI_TOOL_NAME: &str = "gen_ai.tool.name";
/// `function` for a built-in tool, `extension` for another one.
pub const GEN_AI_TOOL_TYPE: &str = "gen_ai.tool.type";
/// The id of a call of a tool.
pub const GEN_AI_TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// The size of a tool's whole answer, in bytes.
pub const TOOL_ANSWER_BYTES: &str = "tool.answer_bytes";
/// How a call of a tool ended.
pub const TOOL_OUTCOME: &str = "tool.outcome";
/// The conversation: the channel's id.
pub const GEN_AI_CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The companion's id.
pub const GEN_AI_AGENT_ID: &str = "gen_ai.agent.id";
/// The companion's name.
pub const GEN_AI_AGENT_NAME: &str = "gen_ai.agent.name";
/// The prompt. Only with `telemetry.capture_content`.
pub const GEN_AI_INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The answer. Only with `telemetry.capture_content`.
pub const GEN_AI_OUTPUT_MESSAGES: &str = "gen_ai.output.messages";

/// The class of routes of a request to Discord.
pub const DISCORD_ROUTE: &str = "discord.route";
/// The result of a request to Discord: `2xx`, `4xx`, `429`, `5xx`, `timeout`, `unreachable`, `broken`, or `held_back`.
pub const DISCORD_OUTCOME: &str = "discord.outcome";
/// Why Discord refused a request for good.
pub const DISCORD_REFUSAL: &str = "discord.refusal";
/// A subcommand of `/tertulia`, `typing` for completion of names, or `other`.
pub const DISCORD_COMMAND: &str = "discord.command";
/// The result of a command: `done`, `refused`, `failed`, `busy`, `repeated`, `unanswered`, or `unreadable`.
pub const DISCORD_COMMAND_OUTCOME: &str = "discord.command.outcome";

/// The root span of a turn.
pub const SPAN_TURN: &str = "conversation.turn";
/// The span of journaling a message. (The span of sending a statement is `send {platform}`.)
pub const SPAN_APPEND: &str = "history.append";
/// The span of a hand-over: from the beginning of the first segment until the segments become messages.
pub const SPAN_UTTERANCE: &str = "voice.utterance";
/// The span of a spoken reply: from its first sentence to the end of its playback, pauses included.
pub const SPAN_PLAYBACK: &str = "voice.playback";
/// The span of speech recognition: from the first audio of an utterance to its final transcript.
pub const SPAN_RECOGNISE: &str = "voice.recognise";
/// The span of speech synthesis: from the request for a sentence to its last audio.
pub const SPAN_SYNTHESISE: &str = "voice.synthesise";
/// The span of an interruption of a spoken reply. It has no duration. Its time is that of the verdict.
pub const SPAN_INTERRUPTION: &str = "voice.interruption";
/// The span of an AI disclosure. It has no duration.
pub const SPAN_NOTICE: &str = "safety.notice";
/// The span of one decision, or of an evaluation without an answer.
pub const SPAN_DECISION: &str = "decision.gate";
/// The span of a round.
pub const SPAN_SELECT_SPEAKER: &str = "decision.select_speaker";
/// The span of a change of the closing stage.
pub const SPAN_CLOSING: &str = "decision.closing";
/// The span of a measurement of repetition.
pub const SPAN_REPETITION: &str = "decision.repetition";
/// The span of an actor's restart.
pub const SPAN_RESTART: &str = "actor.restart";
/// The span of a reminder, from the time when it was due until it was announced.
pub const SPAN_REMINDER: &str = "reminder.announce";
/// The span of an exceeded restart limit.
pub const SPAN_ESCALATE: &str = "supervisor.escalate";
/// The span of a connection to Discord that begins a new session.
pub const SPAN_GATEWAY_IDENTIFY: &str = "discord.gateway.identify";
/// The span of a connection to Discord that resumes a session.
pub const SPAN_GATEWAY_RESUME: &str = "discord.gateway.resume";
/// The span from a lost connection to Discord to the next established one.
pub const SPAN_GATEWAY_RECONNECT: &str = "discord.gateway.reconnect";
/// The number of a connection to Discord, from 0.
pub const GATEWAY_SHARD: &str = "discord.gateway.shard";
/// The total number of connections to Discord.
pub const GATEWAY_SHARDS: &str = "discord.gateway.shards";
/// Why a connection to Discord ended.
pub const GATEWAY_CAUSE: &str = "discord.gateway.cause";
/// Number of connection attempts until Discord was connected again.
pub const GATEWAY_ATTEMPTS: &str = "discord.gateway.attempts";
/// The state of a connection to Discord.
pub const GATEWAY_STATE: &str = "discord.gateway.state";
/// The result of a connection attempt: `established` or `failed`.
pub const GATEWAY_OUTCOME: &str = "discord.gateway.outcome";
/// The name of a Discord event.
pub const GATEWAY_EVENT: &str = "discord.gateway.event";
