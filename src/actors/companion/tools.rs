//! The tools of a companion: which a reply is offered, what people whose rights count may do, and how calls are made (docs/design/tools.md).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::history;
use super::pictures::hash;
use crate::actors::recall::{Question, Stretch};
use crate::actors::runtime::context::ActorContext;
use crate::domain::conversation::{Offer, ReplyCalls, WantedCall, WantedCalls};
use crate::domain::id::{GuildId, Seq, Ticket};
use crate::domain::message::{Author, Message, Sender};
use crate::domain::prompt::{self, Said};
use crate::domain::text::{escaped, first_bytes, one_line};
use crate::domain::tools::built_in::{self, BuiltIn, Poll, text_argument};
use crate::domain::tools::{
    Allow, CAUSE, CallAnswer, CallOutcome, Confirm, Effect, KnownCall, MOST_ANSWER, Offered, Right, Standing, Who, permission,
};
use crate::journal::channel_key::ChannelKey;
use crate::ports::language_model::{Message as Turn, Part, Request, Role, Tool, ToolCall};
use crate::ports::tools::{Answer, Failure, OfferedTool};
use crate::settings::companion::{Companion as Settings, MAX_TOOLS};
use crate::telemetry::plain::Plain;
use crate::texts::Language;

/// The tokens of the messages that `recall` finds, and the characters of each.
const RECALLED_TOKENS: usize = 600;
const RECALLED_CHARS: usize = 400;

/// The built-in tools, with their versions.
static OWN: LazyLock<Vec<(BuiltIn, Tool, Arc<str>)>> = LazyLock::new(|| {
    let described = |own: BuiltIn| {
        let (name, description) = (own.as_str().to_owned(), own.description().to_owned());
        let tool = Tool { name, description, parameters: own.parameters() };
        let version = version(&tool, "");
        (own, tool, version)
    };
    BuiltIn::ALL.into_iter().map(described).collect()
});

/// A sentence about how a call has ended.
pub fn sentence_about(key: &str, tool: &str, outcome: CallOutcome, language: Language) -> String {
    let outcome = language.say(&format!("calls.{outcome}"), &[]);
    language.say(key, &[("tool", &tool), ("outcome", &outcome)])
}

/// Arguments as they are shown in code, which nothing in them can end.
pub fn as_code(arguments: &str) -> String {
    escaped(arguments, |_| false).replace('`', "\\u0060")
}

/// The tools of a companion in a guild, with the rights in force.
pub fn tools_of(companion: &Settings, guild: &GuildId, context: &ActorContext) -> Vec<(Tool, Offered)> {
    let in_force = context.in_force();
    let with_right = |tool: Tool, version: Arc<str>, effect: Effect, usual: (Allow, Confirm), is_external: bool| {
        let name = Arc::from(&*tool.name);
        let right = in_force.tools.rights.get(&name).cloned().unwrap_or_default().or(usual);
        (tool, Offered { name, effect, is_external, right, version })
    };
    let own = OWN.iter().map(|(own, tool, version)| {
        with_right(tool.clone(), version.clone(), own.effect(), Effect::ReadOnly.usual_right(), false)
    });
    let is_here = |(_, offered): &(Tool, Offered)| offered.right.is_in(guild);
    let own = own.filter(is_here);
    let Some(wanted) = &companion.tools else { return own.collect() };
    let external = context.tools.offered().into_iter().map(|OfferedTool { tool, read_only, place }| {
        let effect = if read_only { Effect::ReadOnly } else { Effect::Outside };
        let version = version(&tool, &place);
        with_right(tool, version, effect, effect.usual_right(), true)
    });
    let all: Vec<_> = own.chain(external.filter(is_here)).collect();
    let known = wanted.iter().filter_map(|name| all.iter().find(|(_, offered)| offered.name == *name));
    known.take(MAX_TOOLS).cloned().collect()
}

/// A hash of what models see of a tool, and of where its calls go.
fn version(tool: &Tool, place: &str) -> Arc<str> {
    hash([&*tool.description, "\n", &tool.parameters.to_string(), "\n", place].concat().as_bytes()).into()
}

/// What people may do, as it stands now.
pub async fn standings<'a>(
    people: BTreeSet<&Who>,
    mut offered: impl Iterator<Item = &'a Offered>,
    channel_key: &ChannelKey,
    context: &ActorContext,
) -> BTreeMap<Who, Standing> {
    let with_roles = offered.any(|Offered { right: Right { allow, approvers, .. }, .. }| {
        *allow == Allow::Roles || approvers.iter().any(|by| **by != *CAUSE)
    });
    let mut standings = BTreeMap::new();
    for who in people {
        let standing = match context.platforms.of(&channel_key.channel) {
            // A repost has no right of the member whose message it looks like.
            Some(_) if who.sender.is_some() => Standing::default(),
            Some(platform) => {
                let id = who.person.as_str().strip_prefix(platform.name()).and_then(|rest| rest.strip_prefix(':'));
                let is_operator = id.is_some_and(|id| context.in_force().tools.operators.contains(id));
                let roles = if with_roles { platform.roles(&channel_key.guild, &who.person).await } else { None };
                Standing { is_operator, roles }
            }
            None => Standing { is_operator: who.sender == Some(Sender::Operator), roles: None },
        };
        standings.insert(who.clone(), standing);
    }
    standings
}

/// Adds the tools that a reply may call now to its request, and its calls so far. `said` is what it said before the calls.
pub async fn add_to(
    mut request: Request,
    calls: &ReplyCalls,
    said: &str,
    (companion, tokens): (&Settings, usize),
    (channel_key, context): (&ChannelKey, &ActorContext),
) -> Request {
    let shown = request.extensions.get::<Shown>().and_then(|shown| shown.0);
    let share = tokens / 4;
    if companion.tools.is_some() {
        context.tools.ready().await;
    }
    let known = tools_of(companion, &channel_key.guild, context);
    let (now, has_external_answer) = (context.clock.now(), calls.has_external_answer());
    let standings = standings(calls.cause.people(), known.iter().map(|(_, offered)| offered), channel_key, context).await;
    let standing = |who: &Who| standings.get(who).cloned().unwrap_or_default();
    let rights = &context.in_force().tools.rights;
    // An answer of a tool is shown only to people who may call it, unless an approver or an operator confirmed the call.
    let may_read = |call: &&KnownCall| {
        let mut of_tool = known.iter().map(|(_, offered)| offered).filter(|offered| offered.name == call.called.tool);
        call.confirmed == Some(true)
            || match of_tool.next() {
                Some(offered) => {
                    offered.right.allow == Allow::Everyone || permission(offered, &calls.cause, false, standing).is_ok()
                }
                // It rests, was removed, or is not for this guild any more.
                None => {
                    let right = rights.get(&call.called.tool).cloned().unwrap_or_default();
                    let right = right.or(call.called.effect.usual_right());
                    right.allow == Allow::Everyone && right.is_in(&channel_key.guild)
                }
            }
    };
    let unreported: Vec<_> = calls.unreported.iter().filter(may_read).collect();
    let earlier = prompt::earlier_calls(&unreported, now, share);
    if !earlier.is_empty() {
        request.sizes.push(("calls", prompt::tokens(&earlier)));
        request = request.ending_with([Part::Text(format!("\n\n{earlier}"))]);
    }
    let mut said = said.trim().to_owned();
    for call in &calls.own {
        let id = format!("call_{}", call.called.call.0);
        // Endpoints refuse prompts with arguments that are no JSON.
        let is_json = serde_json::from_str::<Map<String, Value>>(&call.called.arguments).is_ok();
        let arguments = if is_json { call.called.arguments.to_string() } else { "{}".to_owned() };
        let tool_calls = vec![ToolCall { id: id.clone(), name: call.called.tool.to_string(), arguments }];
        let answer = prompt::call_end(call, now, share / calls.own.len());
        request.sizes.push(("tool", prompt::tokens(&answer)));
        request.messages.push(Turn::text(Role::Assistant { tool_calls }, std::mem::take(&mut said)));
        request.messages.push(Turn::text(Role::Tool { call_id: id }, answer));
    }
    request = request.with(calls.cause.clone());
    let may = |offered: &Offered| permission(offered, &calls.cause, has_external_answer, standing).is_ok();
    if calls.made < context.in_force().tools.calls_per_reply {
        request.tools = known.iter().filter(|(_, offered)| may(offered)).map(|(tool, _)| tool.clone()).collect();
    }
    let tools = known.into_iter().map(|(_, offered)| offered).collect();
    request.with(Offer { tools, shown, cause: calls.cause.clone(), has_external_answer })
}

/// The range of messages in a statement's prompt. An extension of the request.
#[derive(Clone, Copy)]
pub struct Shown(pub Option<(Seq, Seq)>);

impl Shown {
    pub fn of<'a>(said: impl Iterator<Item = &'a Said>) -> Self {
        let numbers: BTreeSet<Seq> = said.map(|said| said.seq).collect();
        Self(numbers.first().copied().zip(numbers.last().copied()))
    }
}

/// The calls that an answer asks for, under the rights in force now. A tool that was changed or taken away since is not offered any more.
pub async fn wanted(
    offer: &Offer,
    (ticket, calls): (Ticket, &[ToolCall]),
    companion: &Settings,
    channel_key: &ChannelKey,
    context: &ActorContext,
) -> WantedCalls {
    let was_offered = |now: &Offered| offer.tools.iter().any(|was| (&was.name, &was.version) == (&now.name, &now.version));
    let in_force = tools_of(companion, &channel_key.guild, context).into_iter().map(|(_, offered)| offered);
    let offer = Offer { tools: in_force.filter(was_offered).collect(), ..offer.clone() };
    let wanted = |call: &ToolCall| WantedCall { tool: call.name.as_str().into(), arguments: call.arguments.as_str().into() };
    WantedCalls {
        ticket,
        calls: calls.iter().map(wanted).collect(),
        most: context.in_force().tools.calls_per_reply,
        most_of_day: context.in_force().tools.most_of_day(),
        standings: standings(offer.cause.people(), offer.tools.iter(), channel_key, context).await,
        offer,
    }
}

/// Makes a call whose effect is not journaled. `stretch` are the events that `recall` searches.
pub async fn make(call: &KnownCall, stretch: Stretch, channel_key: &ChannelKey, context: &ActorContext) -> CallAnswer {
    let (began, called) = (Instant::now(), &call.called);
    let limit = context.in_force().tools.timeout();
    let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(&called.arguments) else {
        return CallAnswer::without_text(CallOutcome::NotMade, 0);
    };
    let made = async {
        match BuiltIn::of(&called.tool).filter(|_| !called.is_external) {
            Some(own) => answered(own_answer(own, &arguments, stretch, channel_key, context).await, None),
            None => {
                // After a restart, calls that may be repeated wait until their server is connected again.
                context.tools.ready().await;
                match context.tools.call(&called.tool, arguments).await {
                    Ok(Answer { text, bytes, is_error }) => answered(if is_error { Err(text) } else { Ok(text) }, Some(bytes)),
                    Err(Failure::NotMade(why)) => ended(CallOutcome::NotMade, &why, None),
                    Err(Failure::Unknown(why)) => ended(CallOutcome::Unknown, &why, None),
                }
            }
        }
    };
    let answer = timeout(limit, made).await.unwrap_or_else(|_| CallAnswer::without_text(CallOutcome::TimedOut, 0));
    CallAnswer { ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX), ..answer }
}

/// The end of a call with this answer, or with what is wrong with its arguments.
pub fn answered(answer: Result<String, String>, bytes: Option<u64>) -> CallAnswer {
    match answer {
        Ok(text) => ended(CallOutcome::Answered, &text, bytes),
        Err(text) => ended(CallOutcome::Failed, &text, bytes),
    }
}

fn ended(outcome: CallOutcome, text: &str, bytes: Option<u64>) -> CallAnswer {
    let kept = first_bytes(text, MOST_ANSWER);
    let (bytes, hash) = (bytes.unwrap_or(text.len() as u64), hash(kept.as_bytes()).into());
    CallAnswer { outcome, ms: 0, bytes, hash, text: kept.into() }
}

/// The answer of a built-in tool, or what is wrong with the arguments.
async fn own_answer(
    tool: BuiltIn,
    arguments: &Map<String, Value>,
    stretch: Stretch,
    channel_key: &ChannelKey,
    context: &ActorContext,
) -> Result<String, String> {
    let fraction = || context.rng.fraction();
    match tool {
        BuiltIn::Roll => built_in::roll(&text_argument(arguments, "dice")?, fraction),
        BuiltIn::Choose => built_in::choose(arguments, fraction),
        BuiltIn::Poll => Poll::read(arguments)
            .map(|_| "it stands below what you say now; people vote with a click, or by replying with an option".to_owned()),
        BuiltIn::Time => built_in::time(&text_argument(arguments, "zone")?, context.clock.now()),
        // The channel makes these calls, because their effect is journaled with their end.
        BuiltIn::Remind => Err("it cannot be called now".to_owned()),
        BuiltIn::Recall => recall(&text_argument(arguments, "words")?, stretch, channel_key, context).await,
    }
}

/// The older messages of the room with these words, each in a line.
async fn recall(words: &str, stretch: Stretch, channel_key: &ChannelKey, context: &ActorContext) -> Result<String, String> {
    let Some(_lock) = history::lock(context, channel_key).await else { return Err("try again later".to_owned()) };
    let in_force = context.in_force();
    let zone = in_force.prompt.zone_of(&channel_key.guild);
    let question = Question {
        messages: &[Arc::new(Message::new(Author::of_name("".into()), words.into()))],
        names: &[],
        recalled: Vec::new(),
        now: context.clock.now().zoned(zone),
        people: BTreeMap::new(),
        elsewhere: Vec::new(),
        stretch,
    };
    let is_heard = |from: &Author| history::is_heard(from, context, &channel_key.guild);
    let found = context.recall.like(question, channel_key, &*context.store, is_heard, |_| false, RECALLED_TOKENS).await;
    let found = found.map_err(|error| {
        tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %error, "older messages cannot be looked up for a tool");
        "the record cannot be read now".to_owned()
    })?;
    let line = |said: &Said| {
        let at = said.at.zoned(zone).strftime("%Y-%m-%d %H:%M").to_string();
        format!("{at} {}: {}", said.message.from.name, one_line(&said.message.text, RECALLED_CHARS))
    };
    let lines: Vec<_> = found.messages.iter().map(line).collect();
    if lines.is_empty() { Ok("nothing was found".to_owned()) } else { Ok(lines.join("\n")) }
}
