//! Writes a reply: asks the main model with the companion's prompt, and sends the result to the channel. Killing the actor cancels the call.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use crate::actors::companion::drafts::DraftView;
use crate::actors::companion::elsewhere;
use crate::actors::companion::files::{self, Files};
use crate::actors::companion::history;
use crate::actors::companion::scene::scene;
use crate::actors::companion::speaking::Speaking;
use crate::actors::companion::tools::{self, Shown};
use crate::actors::companion::writing::{View, Writing};
use crate::actors::companion::{asker, character, in_force, repeated, search};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::{self as messages, Begun, HistoryRange, Statement};
use crate::actors::messages::models::{CallFacts, Outcome};
use crate::actors::recall::{Older, Question, Stretch};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Address, Sort};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::runtime::watchdog::at_work;
use crate::domain::answer_end::whole_sentences;
use crate::domain::card_macros::{self, People, User, expanded};
use crate::domain::conversation::Offer;
use crate::domain::event::{Failure, MODERATED};
use crate::domain::filter::{Asked, Search};
use crate::domain::id::{CompanionId, GuildId, Seq, Ticket};
use crate::domain::lore::matching::{Fired, fired};
use crate::domain::memory;
use crate::domain::message::{Author, Message, Modality, Recalled, Role};
use crate::domain::note::Note;
use crate::domain::priority::Priority;
use crate::domain::prompt::{self, PromptInput, Said, Scene, StatementInput};
use crate::domain::question_context::{Answered, Day, Earlier, Line, Purpose, QuestionContext};
use crate::domain::raw_answer::{Known, Nothing, Reading, Speakers};
use crate::domain::tools::{KnownCall, Refusal};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::Written;
use crate::ports::language_model::{self, Answer, LazyRequest, ModelRole, NoAnswer, Request, TokenUsage, ToolCall};
use crate::settings;
use crate::settings::companion::Companion as Settings;
use crate::settings::safety::ModerationFails;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::model_calls;
use crate::telemetry::plain::Plain;
use crate::texts::Language;

/// The timeout of a moderation request.
pub(super) const MODERATION_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Reply;

pub struct Arguments {
    pub channel_key: ChannelKey,
    pub ticket: Ticket,
    pub companion: CompanionId,
    pub priority: Priority,
    /// Whether the reply is spoken in a voice call.
    pub is_spoken: bool,
    /// The source of the prompt's input.
    pub statement: messages::Source<Statement>,
    /// With `answer_or_pass`, the call that is already streaming the answer.
    pub begun: Option<Box<Begun>>,
    /// The statement whose place this one takes.
    pub again: Option<Seq>,
    /// It extends that statement.
    pub continues: bool,
    /// Receives [`ChannelMessage::ReplyEnded`].
    pub channel: ActorRef<ChannelMessage>,
    pub context: ActorContext,
}

/// The source of a statement's prompt.
#[derive(Clone)]
pub struct Source {
    pub channel_key: ChannelKey,
    /// The actor that builds the prompt, for the watchdog.
    pub at_work: Address,
    pub statement: messages::Source<Statement>,
    pub context: Arc<ActorContext>,
}

/// The only message of a reply, which the reply sends to itself.
pub struct Write;

pub struct State {
    reply: Arguments,
    _counted: Counted,
}

impl Actor for Reply {
    type Msg = Write;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<Write>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        myself.cast(Write)?;
        let counted = arguments.context.recorder.instruments().actors.one([Sort::Reply.as_str()]);
        Ok(State { reply: arguments, _counted: counted })
    }

    async fn handle(&self, myself: ActorRef<Write>, _: Write, state: &mut State) -> Result<(), ActorProcessingErr> {
        let begun = state.reply.begun.take();
        let reply = &state.reply;
        let (priority, is_spoken) = (reply.priority, reply.is_spoken);
        let deadline = reply.context.pool.deadline(ModelRole::Main);
        let Some(settings) = reply.context.memberships.companion(&reply.channel_key.channel, &reply.companion) else {
            return lose(reply, &myself);
        };
        let (speakers, mut request) = match &begun {
            Some(begun) => (begun.speakers.clone(), begun.request.clone()),
            None => {
                let speakers = Arc::new(Mutex::new(Speakers::new(&settings.name, [])));
                (speakers.clone(), lazy_request(&Source::of(reply), &settings, speakers, ""))
            }
        };
        // While the journal is being redacted, the reply does not occupy the model.
        drop(history::lock(&reply.context, &reply.channel_key).await);
        let _typing = (!is_spoken).then(|| show_typing(reply));
        let view = if reply.context.moderation.is_some() {
            // No draft is shown and nothing is spoken before moderation.
            View::Unseen
        } else if is_spoken {
            // Spoken text is shown when it is heard.
            View::Spoken(Speaking::new(reply.channel.clone(), reply.ticket))
        } else if reply.context.hub.is_watched(&reply.channel_key) {
            View::Shown(DraftView::new(reply))
        } else {
            View::Unseen
        };
        let pool = &reply.context.pool;
        let mut writing = Writing::new(speakers.clone(), pool.begins_in_thought(request.base()), view);
        let (mut is_repeat, mut begun, mut next_pieces, mut has_called) = (false, begun, None, false);
        let standing = match reply.again.filter(|_| reply.continues) {
            Some(statement) => Reader::new(&*reply.context.store).said(&reply.channel_key, statement).await.ok().flatten(),
            None => None,
        };
        let (outcome, text) = loop {
            let (channel, asked) = (reply.channel.clone(), request.clone());
            // The call of a killed reply has used tokens, too. A channel that has stopped does not count them.
            let unclaimed = move |outcome| drop(channel.cast(ChannelMessage::Unclaimed { asked, outcome: Box::new(outcome) }));
            let outcome = match begun.take() {
                Some(begun) => {
                    let Begun { raw, pieces, outcome, .. } = *begun;
                    writing.begin_with(raw, pieces);
                    writing.until(outcome).await
                }
                None => {
                    let pieces = next_pieces.take().unwrap_or_else(|| writing.begin());
                    let answer = pool.answer_or(request.clone(), priority, deadline, Some(pieces), unclaimed);
                    writing.until(answer).await
                }
            };
            if outcome.is_lost() {
                return lose(reply, &myself);
            }
            let (mut outcome, reading) = writing.read(outcome, &request.newest());
            if let (Some(Reading { is_over: true, .. }), Ok(answer)) = (&reading, &mut outcome.result)
                && answer.is_cut()
            {
                // The token limit was reached only after the statement.
                answer.finish_reason = Some("stop".to_owned());
            }
            let is_cut = outcome.result.as_ref().is_ok_and(Answer::is_cut);
            // The thought that the endpoint begins itself did not end before the limit.
            let is_in_thought =
                is_cut && writing.begins_in_thought() && reading.as_ref().is_some_and(|reading| !reading.began_in_thought);
            if let Some(reading) = &reading {
                let (instruments, identity) = (reply.context.recorder.instruments(), &outcome.facts.identity);
                if !is_in_thought {
                    pool.note_beginning(identity, reading.began_in_thought);
                }
                model_calls::record_trimmed(instruments, identity, &request.newest(), &reading.trimmed);
            }
            let calls = outcome.result.as_ref().map(|answer| answer.tool_calls.clone()).unwrap_or_default();
            if !calls.is_empty()
                && let Some(offer) = request.newest().extensions.get::<Offer>()
                && !request.newest().tools.is_empty()
            {
                let words = reading.and_then(|reading| reading.words.ok());
                if call_tools(offer, &calls, &settings, reply, request.clone(), outcome.clone()).await.is_none() {
                    return lose(reply, &myself);
                }
                has_called = true;
                if proposals(reply).await.is_some() {
                    // The usage is on record with the calls.
                    outcome.facts = CallFacts { attempts: 0, usage: TokenUsage::default(), ..outcome.facts };
                    break (outcome, words.ok_or(Nothing::Empty.code()));
                }
                next_pieces = Some(writing.go_on());
                request = lazy_request(&Source::of(reply), &settings, speakers.clone(), writing.said());
                continue;
            }
            let words = reading.map(|reading| match reading.words {
                // A continuation that only repeats what stands.
                Ok(words) if standing.as_ref().is_some_and(|standing| standing.text.contains(words.trim())) => {
                    Err(Nothing::Other)
                }
                words => words,
            });
            // The room is told of calls that were made, whether or not the model writes about them.
            let has_failed = matches!(&outcome.result, Err(error) if *error != NoAnswer::Cancelled);
            let is_silent = is_in_thought || has_failed || matches!(words, Some(Err(_)));
            let ended = if is_silent && writing.has_said_nothing() { ends_of_calls(reply).await } else { None };
            let text = match (words, &outcome.result) {
                // Calls without an offered tool are no statement, either.
                (Some(Err(nothing)), _)
                    if (nothing.is_to_repeat() || !calls.is_empty() || ended.is_some())
                        && !is_repeat
                        && writing.has_said_nothing() =>
                {
                    let (asked, outcome) = (request.clone(), Box::new(outcome));
                    reply.channel.cast(ChannelMessage::Repeated { ticket: reply.ticket, asked, outcome })?;
                    (request, is_repeat) = (repeated(request, prompt::REPEAT_WORDS), true);
                    continue;
                }
                (Some(_), _) if is_in_thought => Err("out_of_tokens"),
                (Some(Err(Nothing::Empty | Nothing::Thoughts)), _) if is_cut => Err("out_of_tokens"),
                (Some(Ok(words)), _) if is_cut => Ok(whole_sentences(&words)),
                (Some(words), _) => words.map_err(Nothing::code),
                // The rest was cancelled because the beginning of the answer was lost.
                (None, Err(NoAnswer::Cancelled)) if writing.has_lost() => Err("unreachable"),
                (None, Err(error)) => Err(error.code()),
                (None, Ok(_)) => Err(Nothing::Empty.code()),
            };
            break (outcome, text.or_else(|code| ended.ok_or(code)));
        };
        // A reply that was interrupted may have called tools before.
        has_called |= request.newest().messages.iter().any(|message| matches!(message.role, language_model::Role::Tool { .. }));
        let proposals = if has_called { proposals(reply).await } else { None };
        let text = match proposals {
            Some(proposals) => Ok(with_proposals(text.ok(), &proposals)),
            None => text,
        };
        let said = writing.said().to_owned();
        if let Ok(text) = &text {
            writing.finish(text, outcome.result.as_ref().is_ok_and(Answer::is_cut));
        }
        let text = match text.map(|text| said + &text) {
            Ok(words) => moderated(words, &reply.companion, &reply.channel_key, &reply.context).await,
            Err(code) => Err(code.into()),
        };
        if text.is_ok() {
            let now = reply.context.clock.now();
            reply.context.sent_prompts.keep(&reply.channel_key, reply.ticket, &request.newest(), now);
        }
        let placed = match text {
            Ok(words) => in_place(words, reply).await.map_err(|_| "unreachable".into()),
            Err(failure) => Err(failure),
        };
        let (text, written) =
            placed.map_or_else(|failure| (Err(failure), Written::default()), |(text, written)| (Ok(text), written));
        let (outcome, written) = (Box::new(outcome), Box::new(written));
        let ended = ChannelMessage::ReplyEnded { ticket: reply.ticket, text, written, asked: request, outcome };
        reply.channel.cast(ended)?;
        myself.stop(None);
        Ok(())
    }
}

/// The text of a statement and the data that it takes over from the statement that it replaces. A continuation is appended to the earlier text.
async fn in_place(words: Arc<str>, reply: &Arguments) -> Result<(Arc<str>, Written), ReadError> {
    let Some(statement) = reply.again else { return Ok((words, Written::default())) };
    // A deletion in progress may erase that statement or its versions.
    drop(history::lock(&reply.context, &reply.channel_key).await);
    let reader = Reader::new(&*reply.context.store);
    let Some(former) = reader.said(&reply.channel_key, statement).await? else { return Ok((words, Written::default())) };
    let whole = if reply.continues { continued(&former.text, &words).into() } else { words };
    let posted = match reply.context.platforms.of(&reply.channel_key.channel) {
        Some(_) => reader.ids_of(&reply.channel_key, statement).await?,
        None => Vec::new(),
    };
    let told = reader.notice(&reply.channel_key, statement).await?.map(|notice| notice.owed.occasion);
    let (edited, versions) = (reply.continues && former.edited, former.versions_with(&whole, reply.continues));
    Ok((whole, Written { again: Some(statement), told, edited, versions, former: posted, ..Written::default() }))
}

/// A text and its continuation. Models may repeat the text before they continue it.
fn continued(text: &str, more: &str) -> String {
    let more = more.strip_prefix(text).unwrap_or(more);
    // Chinese and Japanese have no spaces.
    let is_wide = |c: char| ('\u{3000}'..='\u{9fff}').contains(&c) || ('\u{ff00}'..='\u{ffef}').contains(&c);
    let follows = |c: char| c.is_whitespace() || is_wide(c) || ",.;:!?)…'’”".contains(c);
    let is_joined = text.ends_with(|c: char| c.is_whitespace() || is_wide(c)) || more.starts_with(follows);
    [text, if is_joined { "" } else { " " }, more].concat()
}

/// Sends a statement to the moderation service. Returns its text, or why it is not posted.
pub async fn moderated(
    words: String,
    companion: &CompanionId,
    channel_key: &ChannelKey,
    context: &ActorContext,
) -> Result<Arc<str>, Failure> {
    let Some(moderation) = &context.moderation else { return Ok(words.into()) };
    let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
    let companion = Plain(companion.as_str());
    match moderation.refusal_of(&words, MODERATION_TIMEOUT).await {
        Ok(None) => Ok(words.into()),
        Ok(Some(category)) => {
            tracing::warn!(%guild, %channel, %companion, %category, "the moderation service refused what a companion wrote, and it is not posted");
            Err(Failure { category: Some(category), ..MODERATED.into() })
        }
        Err(error) => {
            let fails = context.in_force().safety.moderation_fails;
            // The full error may quote the statement.
            let error = error.code();
            tracing::warn!(%guild, %channel, %companion, error, ?fails, "the moderation request failed");
            match fails {
                ModerationFails::Open => Ok(words.into()),
                ModerationFails::Closed => Err("moderation_failed".into()),
            }
        }
    }
}

/// Has the channel record and make the calls that an answer asks for, and waits for their ends. `None`: they are not wanted any more.
async fn call_tools(
    offer: &Offer,
    calls: &[ToolCall],
    settings: &Settings,
    reply: &Arguments,
    asked: Arc<LazyRequest>,
    outcome: Outcome,
) -> Option<()> {
    let settings = in_force(&reply.context, &reply.channel_key, &settings.id, &settings.model)?;
    let wanted = tools::wanted(offer, (reply.ticket, calls), &settings, &reply.channel_key, &reply.context).await;
    let (sender, ended) = oneshot::channel();
    reply
        .channel
        .cast(ChannelMessage::CallsWanted { wanted: Box::new(wanted), asked, outcome: Box::new(outcome), reply: sender })
        .ok()?;
    ended.await.ok()
}

/// The language of the server's own sentences in a statement.
fn language_of(reply: &Arguments) -> Language {
    let spoken = reply.context.memberships.language(&reply.channel_key.channel);
    Language::of_code(spoken.as_deref().unwrap_or(&reply.context.in_force().speech.language)).unwrap_or_default()
}

/// Sentences of the server about the calls of a reply, each in a line. `None`: there are none.
async fn about_calls(reply: &Arguments, sentence: impl Fn(&KnownCall, Language) -> Option<String>) -> Option<String> {
    let (Statement { calls, .. }, language) = ((reply.statement)().await?, language_of(reply));
    let own = calls?.own.into_iter().filter(|call| call.called.ticket == reply.ticket);
    let sentences: Vec<_> = own.filter_map(|call| sentence(&call, language)).collect();
    (!sentences.is_empty()).then(|| sentences.join("\n"))
}

/// The outcomes of the calls that a reply made, for a model that writes nothing about them.
async fn ends_of_calls(reply: &Arguments) -> Option<String> {
    let sentence = |KnownCall { called, answer, .. }: &KnownCall, language: Language| match answer {
        _ if called.refused == Some(Refusal::UsedUp) => Some(language.say("calls.used_up", &[("tool", &called.tool)])),
        _ if called.refused.is_some() => Some(language.say("calls.refused", &[("tool", &called.tool)])),
        Some(answer) => Some(tools::sentence_about("calls.made", &called.tool, answer.outcome, language)),
        None => None,
    };
    about_calls(reply, sentence).await
}

/// What would be done by the calls of a reply that wait for a confirmation, all of it.
async fn proposals(reply: &Arguments) -> Option<String> {
    let now = reply.context.clock.now();
    let sentence = |call: &KnownCall, language: Language| {
        let (tool, arguments) = (&call.called.tool, tools::as_code(&call.called.arguments));
        call.is_open(now).then(|| language.say("calls.proposed", &[("tool", tool), ("arguments", &arguments)]))
    };
    about_calls(reply, sentence).await
}

fn with_proposals(words: Option<String>, proposals: &str) -> String {
    let Some(words) = words else { return proposals.to_owned() };
    // A block of code that the model did not end.
    let end = if words.matches("```").count() % 2 == 1 { "\n```" } else { "" };
    [&words, end, "\n\n", proposals].concat()
}

/// Ends an attempt without a result. The channel starts another one, if the reply is still owed.
fn lose(reply: &Arguments, myself: &ActorRef<Write>) -> Result<(), ActorProcessingErr> {
    reply.channel.cast(ChannelMessage::Lost { ticket: reply.ticket })?;
    myself.stop(None);
    Ok(())
}

impl Source {
    fn of(reply: &Arguments) -> Self {
        Self {
            channel_key: reply.channel_key.clone(),
            at_work: Address::Reply(reply.channel_key.channel.clone(), reply.ticket),
            statement: reply.statement.clone(),
            context: Arc::new(reply.context.clone()),
        }
    }
}

/// The request for the statement, whose prompt is built when the pool starts it.
///
/// `speakers` then receives the names of all known speakers in the room. `said` is what a spoken reply said before its calls of tools.
pub fn lazy_request(source: &Source, settings: &Settings, speakers: Arc<Mutex<Speakers>>, said: &str) -> Arc<LazyRequest> {
    let Source { channel_key, at_work: address, statement: source, context } = source.clone();
    let base = Arc::new(base_request(settings, channel_key.guild.clone(), &context.settings.prompt));
    let asked = (settings.id.clone(), settings.model.clone());
    let search = search(Asked::Statement, &base, &context);
    let (read_files, said) = (files::Read::default(), Arc::<str>::from(said));
    LazyRequest::searching((*base).clone(), Some(search.clone()), move || {
        let (channel_key, (companion, model), base) = (channel_key.clone(), asked.clone(), base.clone());
        let (search, read_files, said) = (search.clone(), read_files.clone(), said.clone());
        let (context, source, speakers) = (context.clone(), source.clone(), speakers.clone());
        let address = address.clone();
        async move {
            let forgotten = context.recall.forgotten();
            let mut elsewhere = elsewhere::notes(&channel_key, &companion, &context).await;
            // While the lock is held, messages that were already read cannot be erased.
            let lock = history::lock(&context, &channel_key).await;
            let edition = lock.is_some().then(|| context.sent_prompts.edition());
            let Statement { input: mut statement, history: range, cleared, calls } = source().await?;
            let settings = in_force(&context, &channel_key, &companion, &model)?;
            let is_call = statement.is_spoken || statement.input.modality == Modality::Voice;
            let scene = scene(&context, &channel_key, &[&settings.id], is_call);
            let mut words = context.pool.fitting(&context.settings.prompt, &base, 1);
            let mut files = Files::default();
            if lock.is_some() {
                let of = (&*context, &channel_key);
                let with_pictures = context.pool.is_sent_pictures(&base);
                let shows = |seq| search.lock().shows(seq);
                files = Files::read(&statement.input, &companion, with_pictures, shows, &read_files, of).await;
            }
            let text_files = files.text(words.statement_tokens);
            if !text_files.is_empty() {
                words.to_mut().statement_tokens -= prompt::tokens(&text_files);
            }
            if lock.is_some() {
                elsewhere::check_again(&mut elsewhere, forgotten, &channel_key, &context);
                statement.elsewhere = elsewhere;
                add_history(&mut statement, (&range, cleared), &settings, &scene, &channel_key, &context, &words).await;
            }
            leave_out(&mut statement, &companion, &mut search.lock());
            if lock.is_some() {
                let shows = |seq| search.lock().shows(seq);
                history::add_quotes(&mut statement.input, &companion, shows, &context, &channel_key).await;
            }
            statement.reason = statement.reason.filter(|_| words.show_reason);
            let known = known_texts(&statement, &settings, &scene, &words);
            *speakers.lock() = known_speakers(&statement.input, &settings, &context, &channel_key).knowing(known);
            let _at_work = at_work(address);
            let notes: Vec<Recalled> = statement.notes.iter().chain(&statement.people).map(|(of, _)| of.clone()).collect();
            let request = statement_request(statement, &settings, &scene, channel_key.guild.clone(), &words);
            let request = files.add_to(request, text_files);
            let request = match &calls {
                Some(calls) => {
                    tools::add_to(request, calls, &said, (&settings, words.statement_tokens), (&channel_key, &context)).await
                }
                None => request,
            };
            let request = if let Some(edition) = edition { request.with(edition) } else { request };
            let used = request.recalled.iter().filter(|of| notes.contains(of)).count();
            context.recorder.instruments().notes.add(used as u64, ["used"]);
            Some(request)
        }
    })
}

/// Omits the texts that the filter of the model's endpoint refuses. The messages before the companion's last statement were accepted before.
fn leave_out(statement: &mut StatementInput, companion: &CompanionId, search: &mut Search) {
    let input = &mut statement.input;
    let own = input.recent.iter().chain(&input.buffer).rev().find(|said| said.message.is_by(companion)).map(|said| said.seq);
    let is_alone = search.leave_out(input, companion, own.map_or(Seq::NONE, Seq::next));
    let is_shown = |said: &Said| search.shows(said.seq);
    statement.recalled.retain(is_shown);
    for notes in [&mut statement.notes, &mut statement.people] {
        let is_shown =
            |(of, note): &(Recalled, Arc<Note>)| of.here().is_none() || note.sources.iter().all(|source| search.shows(*source));
        notes.retain(is_shown);
    }
    if is_alone {
        (statement.reason, statement.recalled) = (None, Vec::new());
        (statement.notes, statement.people) = (Vec::new(), Vec::new());
        statement.lore = None;
    }
}

/// The known speakers of an answer: the authors of the shown messages, and the companions of the channel.
fn known_speakers(input: &PromptInput, settings: &Settings, context: &ActorContext, channel_key: &ChannelKey) -> Speakers {
    let shown = input.recent.iter().chain(&input.buffer).map(|said| said.message.from.name.clone());
    let (memberships, channel) = (&context.memberships, &channel_key.channel);
    let present = memberships.present(channel).into_keys().filter_map(|id| memberships.companion(channel, &id));
    let speakers = Speakers::new(&settings.name, shown.chain(present.map(|companion| companion.name)));
    speakers.also_called(settings.aliases.iter().cloned())
}

/// The texts that no statement may repeat: the prompt's own texts, and messages of people word for word.
fn known_texts(statement: &StatementInput, settings: &Settings, scene: &Scene, words: &settings::prompt::Prompt) -> Known {
    static FIXED: LazyLock<Known> = LazyLock::new(|| Known::new(prompt::FIXED_TEXTS.into_iter(), None, std::iter::empty()));
    let input = &statement.input;
    let shown = input.recent.iter().chain(&input.buffer).chain(&statement.recalled);
    let people = shown.filter(|said| said.message.from.role == Role::Person).map(|said| said.message.text.clone());
    let texts = prompt::statement_texts(character(settings, None), scene, statement, words);
    Known::new(texts.iter().map(String::as_str), statement.reason.as_deref(), people).with(&FIXED)
}

/// Adds earlier messages for which the prompt has room. From the others, adds those that share words with the messages that the statement answers. If
/// the journal cannot be read, the prompt has only the most recent messages. The caller holds the lock of the history.
async fn add_history(
    statement: &mut StatementInput,
    (range, cleared): (&HistoryRange, Seq),
    settings: &Settings,
    scene: &Scene,
    channel_key: &ChannelKey,
    context: &ActorContext,
    words: &settings::prompt::Prompt,
) {
    let read = history::read(context, channel_key, range, statement.summary_upto, words.statement_tokens).await;
    let Some(read) = read else { return };
    (statement.input.recent, statement.left_out) = (read.messages, read.left_out);
    let takes_notes = context.takes_notes(channel_key);
    statement.lore = found_lore(&statement.input, settings, channel_key, context, words);
    statement.page_tokens = if takes_notes { context.settings.memory.page_tokens } else { 0 };
    let Some(before) = prompt::recalls_before(character(settings, None), scene, statement, words) else { return };
    // Messages that do not fit into the prompt are not part of the query.
    let shown = statement.input.buffer.iter().filter(|said| said.seq >= before).map(|said| &said.message);
    let answered: Vec<_> = shown.filter(|message| !message.is_by(&settings.id)).cloned().collect();
    let names = settings.names().chain(scene.others.iter().map(|other| &*other.name));
    let own = statement.input.recent.iter().rev().find(|said| said.message.is_by(&settings.id));
    let talk = statement.input.recent.iter().chain(&statement.input.buffer);
    let question = Question {
        messages: &answered,
        names: &names.collect::<Vec<_>>(),
        recalled: own.map(|own| own.message.recalled.iter().filter_map(Recalled::here).collect()).unwrap_or_default(),
        now: scene.now.zoned(&scene.zone),
        people: talk
            .filter(|said| said.seq >= before)
            .map(|said| (said.message.from.id.clone(), said.message.from.name.clone()))
            .collect(),
        elsewhere: statement.elsewhere.clone(),
        stretch: Stretch { after: range.after, before, notes_after: cleared },
    };
    let guild = &channel_key.guild;
    let is_heard = |from: &Author| history::is_heard(from, context, guild);
    let now = context.clock.now();
    let is_allowed = |author: &Author| context.author_may_be_noted(guild, author);
    let authors = statement.input.recent.iter().chain(&statement.input.buffer).map(|said| &said.message.from);
    let unnoted: BTreeSet<_> = authors.filter(|author| !is_allowed(author)).map(|author| author.name.clone()).collect();
    let is_usable = |note: &Note| {
        let has_ended = note.until.is_some_and(|until| until <= now);
        let all_agree = note.about.iter().chain([&note.said_by]).all(is_allowed);
        let names_one = unnoted.iter().any(|name| memory::names(&note.text, name));
        takes_notes && !has_ended && all_agree && !names_one && note.companions.contains(&settings.id)
    };
    // Requests more than fit, so that a long one can be skipped.
    match context.recall.like(question, channel_key, &*context.store, is_heard, is_usable, 2 * words.recall_tokens).await {
        Ok(Older { messages, notes, people }) => {
            (statement.recalled, statement.notes, statement.people) = (messages, notes, people)
        }
        Err(error) => {
            let channel = Plain(channel_key.channel.as_str());
            tracing::warn!(%channel, %error, "older messages cannot be looked up for a statement");
        }
    }
}

/// The entries of lorebooks for the messages that a statement answers and the last ones before. `None`: no book counts here.
fn found_lore(
    input: &PromptInput,
    settings: &Settings,
    channel_key: &ChannelKey,
    context: &ActorContext,
    words: &settings::prompt::Prompt,
) -> Option<Vec<Fired>> {
    let books = context.lore.of(&channel_key.channel, &settings.id, &context.memberships);
    if books.is_empty() || words.lore_tokens == 0 {
        return None;
    }
    let texts: Vec<&str> = input.recent.iter().chain(&input.buffer).map(|said| &*said.message.text).collect();
    let people = People { character: &settings.name, user: User::of(&[&settings.persona])[0] };
    Some(fired(&books, &texts, input.buffer.len(), |text| expanded(text, people, &mut card_macros::Found::default())))
}

/// The request for a statement, with its prompt.
pub(super) fn statement_request(
    mut statement: StatementInput,
    settings: &Settings,
    scene: &Scene,
    guild: GuildId,
    templates: &settings::prompt::Prompt,
) -> Request {
    statement.input.is_repetitive &= settings.repetition;
    let prompt = prompt::statement(character(settings, None), scene, &statement, templates);
    let (input, tries) = (statement.input, statement.tries);
    let recalled = statement.recalled.iter().filter(|said| prompt.recalled.contains(&Recalled::Here(said.seq)));
    let line = |message: &Message| Line { from: message.from.clone(), text: message.text.clone() };
    let earlier = recalled.clone().chain(&input.recent).map(|said| {
        let line = line(&said.message);
        (line, Day::of(said.at, scene.now, &scene.zone))
    });
    let notes = statement.notes.iter().filter(|(of, _)| prompt.recalled.contains(of)).map(|(_, note)| {
        let line = Line { from: note.said_by.clone(), text: note.text.clone() };
        (line, Day::of(note.said_at, scene.now, &scene.zone))
    });
    let earlier = Earlier(earlier.chain(notes).collect());
    let range = Shown::of(recalled.chain(&input.recent).chain(&input.buffer));
    let shown = input.recent.iter().chain(&input.buffer).map(|said| &*said.message);
    let new = |is_wanted: &dyn Fn(&Message) -> bool| {
        input.buffer.iter().filter(|said| is_wanted(&said.message)).map(|said| line(&said.message)).collect()
    };
    let is_asked = |message: &Message| {
        message.from.role == Role::Person && !message.is_event() && !message.address.is_elsewhere(&settings.id)
    };
    let answered = Answered { asked: new(&is_asked), reminders: new(&|message| message.reminder.is_some()) };
    base_request(settings, guild, templates).asking(prompt).with(earlier).with(range).with(answered).with(QuestionContext {
        purpose: Purpose::Statement { trigger: input.trigger, closing: input.stage, tries },
        newest: Line::newest_of(shown),
    })
}

/// The request for a statement without its prompt.
fn base_request(settings: &Settings, guild: GuildId, templates: &settings::prompt::Prompt) -> Request {
    Request {
        model: settings.model.main.clone(),
        companion: Some(asker(settings)),
        ..Request::new(ModelRole::Main, guild, templates.max_main_answer_tokens)
    }
}

/// Shows a typing indicator until the returned value is dropped. None on the console, and if the platform has none.
fn show_typing(reply: &Arguments) -> Option<OwnedTask> {
    let platform = reply.context.platforms.of(&reply.channel_key.channel)?;
    let shows = platform.capabilities().typing_shows?;
    let channel_key = reply.channel_key.clone();
    let signs = tokio::spawn(async move {
        loop {
            platform.typing(&channel_key.guild, &channel_key.channel).await;
            // Renewed a little before the indicator disappears.
            tokio::time::sleep(shows.mul_f64(0.8)).await;
        }
    });
    Some(signs.into())
}

#[cfg(test)]
mod tests {
    use super::continued;

    #[test]
    fn a_continuation_is_joined_as_it_is_written() {
        let cases = [
            ("It is far.", "But nice.", "It is far. But nice."),
            ("It is far.", "It is far. But nice.", "It is far. But nice."),
            ("I think you", "'re right.", "I think you're right."),
            ("It is far", "\n\nBut nice.", "It is far\n\nBut nice."),
            ("遠いです。", "でも美しい。", "遠いです。でも美しい。"),
        ];

        for (text, more, whole) in cases {
            assert_eq!(continued(text, more), whole);
        }
    }
}
