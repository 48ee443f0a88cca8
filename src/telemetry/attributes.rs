//! The names of all attributes and spans, once each.
//!
//! The `gen_ai.*` and `messaging.*` names are those of the OpenTelemetry conventions for generative AI and for messaging, as of their
//! version 1.41; both are still in development, so they are pinned here.

/// `YES` or `NO`; absent when no answer arrived.
pub const DECISION: &str = "decision";
/// Why the companion considered speaking: `direct_address`, `turn`, `interjection`, `lull`.
pub const DECISION_TRIGGER: &str = "decision.trigger";
/// Why the decision is what it is: the closed list of reasons.
pub const DECISION_REASON: &str = "decision.reason";
/// Messages that the gate has counted.
pub const DECISION_MESSAGE_COUNT: &str = "decision.message_count";
/// Interjection checks made since the last reset.
pub const DECISION_CHECK_COUNT: &str = "decision.check_count";
/// The count at which the next interjection is considered.
pub const DECISION_THRESHOLD: &str = "decision.threshold";
/// `won`, `lost` or `none`: in rounds, whether a YES got the floor; `none` where it was not wanted, or nobody could get it any more.
pub const DECISION_FLOOR: &str = "decision.floor";
/// `speak` or `listen`: in rounds, the vote.
pub const DECISION_STATE: &str = "decision.state";
/// 0 to 10: in rounds, how much it matters to the companion.
pub const DECISION_IMPORTANCE: &str = "decision.importance";
/// In rounds, whether the companion considers itself chosen.
pub const DECISION_SELECTED: &str = "decision.selected";
/// In rounds, the closing stage of the vote.
pub const DECISION_CLOSING: &str = "decision.closing";

/// The number of the newest event at a round's opening.
pub const ROUND_MESSAGE_ID: &str = "round.message_id";
/// How many took part in a round.
pub const ROUND_STATES: &str = "round.states";
/// How many of them could be selected.
pub const ROUND_CANDIDATES: &str = "round.candidates";
/// How many were asked and gave no answer.
pub const ROUND_MISSING: &str = "round.missing";
/// Who was selected; absent when nobody was.
pub const ROUND_SELECTED: &str = "round.selected";
/// The stage of closing before a change.
pub const CLOSING_FROM: &str = "closing.from";
/// The stage of closing after a change.
pub const CLOSING_TO: &str = "closing.to";
/// Why a stage of closing changed.
pub const CLOSING_CAUSE: &str = "closing.cause";
/// 0 to 1: how much the last messages repeat each other.
pub const REPETITION_SCORE: &str = "repetition.score";
/// Detections in a row.
pub const REPETITION_DETECTIONS: &str = "repetition.detections";
/// `lexical` or `model`: who judged.
pub const REPETITION_JUDGE: &str = "repetition.judge";

/// Whether the last messages were found to repeat each other.
pub const REPETITION_FOUND: &str = "repetition.found";
/// `selected` or `nobody`.
pub const ROUND_OUTCOME: &str = "round.outcome";

/// The channel.
pub const CHANNEL_ID: &str = "channel.id";
/// The guild.
pub const GUILD_ID: &str = "guild.id";
/// The companion.
pub const COMPANION_ID: &str = "companion.id";
/// The trigger group, through restarts.
pub const TURN_ID: &str = "turn.id";
/// How a turn ended: `posted`, `silence`, `failed`, `cancelled`.
pub const TURN_OUTCOME: &str = "turn.outcome";
/// Whether a statement comes unasked.
pub const STATEMENT_UNSOLICITED: &str = "statement.is_unsolicited";

/// The number of a message that was put on record, in its channel.
pub const HISTORY_SEQ: &str = "history.seq";

/// The platform that a statement is sent to: `console`, …
pub const MESSAGING_SYSTEM: &str = "messaging.system";
/// `send`.
pub const MESSAGING_OPERATION_NAME: &str = "messaging.operation.name";
/// `send`.
pub const MESSAGING_OPERATION_TYPE: &str = "messaging.operation.type";
/// The channel's id.
pub const MESSAGING_DESTINATION_NAME: &str = "messaging.destination.name";

/// Where people talk: `console`, …
pub const PLATFORM: &str = "platform";
/// `user`, `companion` or `bot`: who said a message.
pub const MESSAGE_ROLE: &str = "message.role";
/// `posted`, `failed` or `unconfirmed`: what came of sending a part of a statement.
pub const SEND_OUTCOME: &str = "send.outcome";
/// A platform's event, by Discord's name: `MESSAGE_CREATE`.
pub const DISCORD_EVENT: &str = "discord.event";
/// What became of a message that was heard.
pub const MESSAGE_FATE: &str = "message.fate";
/// What reading a channel after a downtime came to.
pub const BACKFILL_OUTCOME: &str = "backfill.outcome";
/// Whether a guild is told of.
pub const GUILD_STATE: &str = "guild.state";

/// How urgent a question to a model is.
pub const POOL_PRIORITY: &str = "pool.priority";
/// In which currency a cost is.
pub const COST_CURRENCY: &str = "cost.currency";
/// `exported`, `failed` or `dropped`: what became of a span.
pub const SPAN_FATE: &str = "span.fate";
/// The status of an HTTP answer.
pub const HTTP_STATUS: &str = "http.response.status_code";
/// The pattern of paths that an HTTP request went to.
pub const HTTP_ROUTE: &str = "http.route";

/// What sort of actor.
pub const ACTOR_SORT: &str = "actor.sort";
/// Which actor.
pub const ACTOR_ADDRESS: &str = "actor.address";
/// How it ended.
pub const ACTOR_ENDING: &str = "actor.ending";
/// After which delay it is started again, in seconds.
pub const ACTOR_RESTART_DELAY: &str = "actor.restart.delay_s";

/// A stable code of what went wrong.
pub const ERROR_TYPE: &str = "error.type";

/// `side` or `main`.
pub const MODEL_ROLE: &str = "model.role";
/// Calls made for one question: 1, more when the first failed, 0 if it never left the queue.
pub const MODEL_ATTEMPTS: &str = "model.attempts";
/// How long a question waited in the queue and between its calls, in milliseconds: before the span.
pub const MODEL_WAITED_MS: &str = "model.waited_ms";
/// `chat` or `invoke_agent`.
pub const GEN_AI_OPERATION_NAME: &str = "gen_ai.operation.name";
/// Who serves the model.
pub const GEN_AI_PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The model asked for.
pub const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
/// The most tokens asked for.
pub const GEN_AI_REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
/// The answer's id.
pub const GEN_AI_RESPONSE_ID: &str = "gen_ai.response.id";
/// The model that answered.
pub const GEN_AI_RESPONSE_MODEL: &str = "gen_ai.response.model";
/// Why it ended: a list.
pub const GEN_AI_RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Tokens read.
pub const GEN_AI_USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens written.
pub const GEN_AI_USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// `input` or `output`: which tokens.
pub const GEN_AI_TOKEN_TYPE: &str = "gen_ai.token.type";
/// The conversation: the channel's id.
pub const GEN_AI_CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The companion's id.
pub const GEN_AI_AGENT_ID: &str = "gen_ai.agent.id";
/// The companion's name.
pub const GEN_AI_AGENT_NAME: &str = "gen_ai.agent.name";
/// What was asked; only with `telemetry.capture_content`.
pub const GEN_AI_INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// What was answered; only with `telemetry.capture_content`.
pub const GEN_AI_OUTPUT_MESSAGES: &str = "gen_ai.output.messages";

/// What a request to Discord is for: a class of routes.
pub const DISCORD_ROUTE: &str = "discord.route";
/// What came of a request to Discord: `2xx`, `4xx`, `429`, `5xx`, `timeout`, `unreachable`, `broken`, or `held_back`.
pub const DISCORD_OUTCOME: &str = "discord.outcome";
/// What Discord refused something for.
pub const DISCORD_REFUSAL: &str = "discord.refusal";
/// A subcommand of `/tertulia`, `typing` for names that are typed in one, or `other`.
pub const DISCORD_COMMAND: &str = "discord.command";
/// What came of it: `done`, `refused`, `failed`, `busy`, `repeated`, `unanswered`, or `unreadable`.
pub const DISCORD_COMMAND_OUTCOME: &str = "discord.command.outcome";

/// The root span of a trigger group.
pub const SPAN_TURN: &str = "conversation.turn";
/// The span of a message that is put on record. That of a statement that is sent is `send {platform}`.
pub const SPAN_APPEND: &str = "history.append";
/// The span of one decision, or of an evaluation without an answer.
pub const SPAN_DECISION: &str = "decision.gate";
/// The span of a round.
pub const SPAN_SELECT_SPEAKER: &str = "decision.select_speaker";
/// The span of a change of stage.
pub const SPAN_CLOSING: &str = "decision.closing";
/// The span of a judgement of repetition.
pub const SPAN_REPETITION: &str = "decision.repetition";
/// The span of a restart.
pub const SPAN_RESTART: &str = "actor.restart";
/// The span of a passed limit.
pub const SPAN_ESCALATE: &str = "supervisor.escalate";
/// The span of a connection to Discord that begins anew.
pub const SPAN_GATEWAY_IDENTIFY: &str = "discord.gateway.identify";
/// The span of a connection to Discord that goes on where another was.
pub const SPAN_GATEWAY_RESUME: &str = "discord.gateway.resume";
/// The span from a lost connection to Discord to the next one that is heard on.
pub const SPAN_GATEWAY_RECONNECT: &str = "discord.gateway.reconnect";
/// The number of a connection to Discord, from 0.
pub const GATEWAY_SHARD: &str = "discord.gateway.shard";
/// How many connections to Discord there are.
pub const GATEWAY_SHARDS: &str = "discord.gateway.shards";
/// Why a connection to Discord ended.
pub const GATEWAY_CAUSE: &str = "discord.gateway.cause";
/// How many connections it took to come back to Discord.
pub const GATEWAY_ATTEMPTS: &str = "discord.gateway.attempts";
/// What a connection to Discord is doing.
pub const GATEWAY_STATE: &str = "discord.gateway.state";
/// What came of it.
pub const GATEWAY_OUTCOME: &str = "discord.gateway.outcome";
/// What Discord told of.
pub const GATEWAY_EVENT: &str = "discord.gateway.event";
