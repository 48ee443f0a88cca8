//! Finds the noun that a message is about, or none if that is uncertain: a wrong word is worse than no word.
//!
//! No list knows every noun. A word that is not listed counts as a noun only where hardly anything else can stand.

/// Names of the companions that ship with the server: a message may name them before they have said anything.
const SHIPPED: [&str; 7] = ["aria", "ari", "bruno", "bru", "cleo", "cleopatra", "clee"];

/// Words before a noun, perhaps with adjectives in between.
const DETERMINERS: &str = " a an the my your our his their its which another every each some ";

/// Words before which a noun needs no article. After them, only certain nouns are accepted.
const OPENERS: &str = " of about like likes love loves hate hates enjoy adore prefer buy bought eat ate drink cook bake play watch watched \
    read saw see seen got get have need want for with two three four five six seven eight nine ten many few more ";

/// Mass nouns, which need neither an article nor a plural.
const MASS: &str = " art beer bread breakfast butter cheese chess chocolate cinema coffee dinner football fog garlic gardening history honey ice \
    jazz lightning lunch mathematics milk moonlight music opera pasta philosophy physics pizza poetry rain rice salt sand silence \
    sleep snow soup space sugar summer spring autumn winter sunshine tea thunder traffic water weather wine wood ";

/// Words that end a compound of two nouns.
const JOINING: &str =
    " on in at for of from with without is are was were shall should can could will would has have had and or but that which ";

/// Words that are no topic: verbs, adverbs, and nouns without content.
const EMPTY: &str = " about above across after again against ago all almost alone along already also although always am among an and any \
    anybody anyone anything anyway apart are aren around as ask at ate away back be because been before began behind being below best \
    better between beyond bit bite blew both bought broke brought built burnt burst but by came can cannot cares caught chance chose come \
    comes could couple course cut day days did die do does done down draw drew drove dug during each either else enough even evening ever every \
    everybody everyone everything fact far fault feel feels fell felt few first flew for fought found friday from froze gave get gets go goes going \
    gone good got grew guess had half happen happens has hate have having he heard held help her here hers hey hi hid him hit hold how hung hurt i if \
    in instead into is isn it its job's just keep kept kind kinds knew know knows last late lately later least led left less let like likes little look \
    looks lost lot lots love loves made make makes many matter may maybe me meant met might mine minute moment monday month more morning most much must my \
    myself name near need needs neither never next night no nobody none nor not nothing now of off often ok okay on once one ones only \
    or other others our out over own part past people per perhaps person place please point put quite ran rather read really reason \
    right rode rose said same sang sank sat saturday saw say says second see seem seems seen sent set shall she shot should shut side since \
    slept so sold some somebody somehow someone something sometimes somewhere soon sort sorts spent spoke stay still stole stood stop \
    stuck such sunday sure swam take taken taught tell than thank thanks that the their them then there these they thing things think third this \
    those thought threw through thursday time times to today together told tomorrow tonight too took tore toward tried try tuesday type under \
    understood until up upon us used very want wants was wasn way ways we wednesday week well went were what when where whether which while \
    who whole whom whose why will with within without woke won word words work works would wrote yeah year years yes yesterday yet you \
    your yours yourself ";

/// Nouns that say too little to be a topic.
const VAGUE: &str = " day days night nights morning evening afternoon week weeks weekend month months year years time times thing things way ways \
    kind kinds sort sorts type types part parts person people place places word words minute minutes moment moments chance lot lots bit couple \
    fact point reason side end number one ones ";

/// Adjectives, which may be between an article and its noun.
const DESCRIBING: &str = " good better best little next same own afraid amazing ancient annoying average awesome awful bad beautiful big black blue boring brand bright brown busy calm cheap \
    clean clear clever close cold cool crazy cute damn dark dead dear deep different difficult dirty dry early easy electric empty \
    english entire exciting extra fair fast favorite favourite fine first flat fresh full fun funny giant glad golden gray great green grey \
    half happy hard heavy high hot huge important interesting kind large last late lazy light local lonely long loud lovely low lucky mad \
    main mean modern narrow near nearest new nice noisy normal odd old open orange perfect pink plain poor pretty proper proud public pure purple quick quiet random \
    rare real red rich right ripe rotten round sad safe scary second secret serious sharp short shy sick silly simple single slow small \
    smart soft sorry sour special spare stale standard strange strong stupid sudden super sweet tall terrible thick thin third tight tiny \
    tired true ugly used usual very warm weak weird wet white whole wide wild wise wooden worst wrong yellow young ";

/// Common nouns. Those that could be verbs or adjectives by their form are here, too.
const NOUNS: &str = " accident actor address adventure advice airport album alarm album animal answer apartment apple argument army art article assembly attic aunt \
    autumn baby bag bakery ball balcony band bank bar basement bath battery beach bear bed bedroom bee beer bell berry bicycle bike bird birthday \
    biscuit blanket blog boat body book border boss bottle bowl box boy bread breakfast bridge brother bug building bus business butter butterfly cake \
    calendar camera camp candle candy car card career cat cellar century ceremony chair champion cheese cherry chess chicken child chocolate christmas church \
    cinema circle city class cliff climate clinic clock cloud club coat code coffee colour comedy comet comic company computer concert conference \
    contract cook cookie copy corner country course cousin cow crow culture cup curry curtain dad daisy dance daughter deadline deal debt decision degree dentist desert \
    desk diary dictionary diet dinner diploma discovery doctor document dog door dragon drawing dream dress driver drum duck duty earthquake egg election elephant \
    email enemy energy engine essay event exam exercise exhibition experiment factory fairy family fantasy farm father fear festival film fire fish flat flight \
    floor flower fog food football forest fox fridge friend fruit funeral furniture future galaxy gallery game garden garlic gift girl glass goal goat grammar \
    grandfather grandmother gravity grocery guest guitar gym hair hat harbour harbor health heart hike hill history hobby holiday home homework honey horse \
    hospital hotel house husband ice idea illness industry injury insurance internet interview invitation island jacket jazz jelly job joke journal journey jungle \
    jury kettle key kid kitchen kitten knife lady lake lamp landlord language laptop laundry law lawn lawyer leaf lecture leg letter library life light lightning lion \
    list lunch machine magic magazine map marathon market marriage mathematics meal meat medal medicine meeting melody memory menu message metal milk mirror mistake \
    model money monkey monster moon mother mountain mouse movie museum mushroom music mystery neighbour neighbor network newspaper noise noodle novel number nurse \
    ocean octopus office onion opera option orchestra oven owl page pain paint painting pan paper parade parent park party passport password pasta path penny phone photo \
    physics piano picnic picture pie pillow pizza plan plane planet plant plate play poem poet poetry police policy politics pond pony pool possibility potato practice \
    present president price printer prize problem program project promise proposal puppy puzzle quarry question quiz rabbit race radio railway rain recipe relationship \
    rent report restaurant rice ride ring risk river road robot roof room rope rose routine rule salad salary sale salt sand sandwich school science sculpture sea season \
    series shadow sheep ship shirt shoe shop shower sister ski skill skin sky sleep smell snake snow soap sock sofa software soldier solution son song soup sourdough space \
    speech spider spring stadium star station statue story storm strategy strawberry street student study style subject subway sugar suggestion suit summer sun sunset \
    supermarket surgery surprise swimmer table tail tale talent tape task tax tea teacher team technology telescope temple tent tertulia test theatre theater theory \
    therapy thesis thunder ticket tiger title toast toe tomato tool tooth topic tour tower town toy traffic tragedy train training translation tree trick trip trophy \
    trouble truck trumpet umbrella uncle university vacation valley vegetable victory video view village violin visa visit visitor voice volcano wall walk war watch water \
    wave weather website wedding whale wheel wife wind window wine winter wolf wood workshop world writer zoo ";

/// Pairs of words that mean something else than their parts.
const FIXED: [(&str, &str); 3] = [("hot", "dog"), ("black", "hole"), ("black", "holes")];

/// Words that are verbs as often as plural nouns.
const VERBS: &str = " answers cooks dances dreams drums hikes paints plans plants plays promises questions rains rents reports rides rings shops \
    shows showers skis sleeps smells snows songs talks tests trains visits walks watches waves ";

/// Times, which are a topic only together with what they were like: "a rainy day".
const TIMES: &str = " day night morning evening afternoon week weekend ";

/// Words that indicate English, and words that indicate another language with the same letters.
const ENGLISH: &str = " the is are was were am i you my your our we they he she it and to of in on at for with this that have has had what who how why \
    when where which do does did can could should would not there about from just let tell ";
const FOREIGN: &str = " el la los las un una que qué y de del por para con como cómo es está muy mi le les des du et est une je tu vous nous pas \
    qui il lo gli che di della per non sono und der das ein eine ich nicht ist mit wie wir ihr von zu auf het een van ik niet dat o os \
    um uma não é e em och att det som jag inte hej dein deine deiner du dich dir mir mich kann kannst wer wo wann warum welche welches \
    welcher hast habe sind wird im den dem einem einer eines auch noch heute morgen dass aber oder cuál cuáles cuando dónde quién tu te se \
    hay tiene tienes puedes puede hoy mañana algo sobre más sin ";

/// The noun that a text is about, without its article.
pub(super) fn topic(text: &str, names: &[String]) -> Option<String> {
    let tokens = tokens(text);
    let count = |list| tokens.iter().filter(|token| within(list, &token.lower)).count();
    let english = count(ENGLISH);
    // "Pizza?" alone indicates no language, and gives the rules nothing to work with.
    if english == 0 || count(FOREIGN) >= english {
        return None;
    }
    let is_noun = |token: &Token| token.could_be_noun() && !names.contains(&token.lower) && !SHIPPED.contains(&&*token.lower);
    after_determiner(&tokens, is_noun).or_else(|| after_opener(&tokens, is_noun))
}

fn after_determiner(tokens: &[Token<'_>], is_noun: impl Fn(&Token<'_>) -> bool) -> Option<String> {
    let begins = (0..tokens.len()).filter(|&at| within(DETERMINERS, &tokens[at].lower) && !tokens[at].ends);
    let is_inverted = |at: usize| {
        tokens[..at].iter().any(|token| matches!(&*token.lower, "do" | "does" | "did" | "can" | "could" | "will" | "would"))
    };
    begins.filter_map(|at| noun(&tokens[at + 1..], is_inverted(at), &is_noun)).next()
}

/// The first noun after adjectives, perhaps with a noun that it modifies: "board game".
fn noun(phrase: &[Token<'_>], is_inverted: bool, is_noun: &impl Fn(&Token<'_>) -> bool) -> Option<String> {
    let adjectives = phrase.iter().take(4).take_while(|token| token.describes() && !token.ends).count();
    let (adjectives, phrase) = phrase.split_at(adjectives);
    let first = phrase.first()?;
    let is_pair = |adjective: &&Token<'_>| {
        adjective.lower.ends_with('y') && within(TIMES, &first.lower) || FIXED.contains(&(&*adjective.lower, &*first.lower))
    };
    if let Some(adjective) = adjectives.last().filter(is_pair) {
        return Some(format!("{} {}", adjective.lower, first.lower));
    }
    if !is_noun(first) {
        return None;
    }
    let alone = || Some(first.lower.clone());
    let known = || alone().filter(|_| first.is_known());
    let Some(second) = phrase.get(1).filter(|_| !first.ends) else { return alone() };
    if within(VAGUE, &second.lower) {
        // "A rain person": the first word describes a word that says nothing.
        return None;
    }
    if second.is_function_word() || first.is_plural() || second.has_ending(&["ed"]) {
        return alone();
    }
    let is_last = second.ends || phrase.get(2).is_none_or(Token::is_function_word);
    // In "why does the street bend" the second word is a verb, and in "the cat sleeps" it may be one.
    let is_compound = first.is_known() && second.is_known();
    if is_inverted && !is_compound || !is_last || !is_noun(second) || second.has_ending(&["ing"]) {
        return known();
    }
    let both = || Some(format!("{} {}", first.lower, second.lower));
    match (second.is_plural(), first.is_known()) {
        (false, _) => both(),
        (true, true) => known(),
        // "Vegan recipes", but not "gran sleeps".
        (true, false) => second.is_known().then(|| second.lower.clone()).filter(|noun| !within(VERBS, noun)),
    }
}

fn after_opener(tokens: &[Token<'_>], is_noun: impl Fn(&Token<'_>) -> bool) -> Option<String> {
    let opens = |token: &Token<'_>| within(OPENERS, &token.lower) || token.is_number();
    let is_certain =
        |token: &&Token<'_>| is_noun(token) && (within(MASS, &token.lower) || (token.is_plural() && token.lower.len() >= 4));
    let after = (1..tokens.len()).filter(|&at| opens(&tokens[at - 1]) && !tokens[at - 1].ends);
    // "Of night trains": the word before the noun modifies it.
    let is_kind = |token: &Token<'_>| is_noun(token) || token.describes() || within(" night morning evening ", &token.lower);
    let second = |at: usize| tokens.get(at + 1).filter(|_| !tokens[at].ends && is_kind(&tokens[at]));
    after
        .filter_map(|at| Some(&tokens[at]).filter(is_certain).or_else(|| second(at).filter(is_certain)))
        .map(|token| token.lower.clone())
        .next()
}

/// A word and whether it ends a phrase.
struct Token<'a> {
    written: &'a str,
    lower: String,
    /// Something other than a space follows it.
    ends: bool,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '-' | '_' | '@');
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(is_part) {
        let word = &rest[begin..];
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (written, after) = word.split_at(end);
        let ends = !after.trim_start_matches(' ').starts_with(is_part);
        tokens.push(Token { written, lower: written.to_lowercase(), ends });
        rest = after;
    }
    tokens
}

impl Token<'_> {
    /// Capitalised words are excluded: they are names, or begin a sentence, where no noun is expected.
    fn could_be_noun(&self) -> bool {
        (3..=18).contains(&self.written.len())
            && self.written.chars().all(|c| c.is_ascii_lowercase())
            && !within(EMPTY, &self.lower)
            && !self.describes()
            && !within(TIMES, &self.lower)
            && !within(VAGUE, &self.lower)
            && (!self.has_ending(&["ly"]) || self.is_known())
            && !self.has_ending(&["ed"])
    }

    fn describes(&self) -> bool {
        let length = self.lower.len();
        if self.is_known() && !within(DESCRIBING, &self.lower) {
            return false;
        }
        within(DESCRIBING, &self.lower)
            || self.is_number()
            || self.written.contains('-')
            || self.has_ending(&["ful", "ous", "ible", "iest", "ier", "ical", "less", "est"])
                && !within(" forest chest guest nest test quest request ", &self.lower)
            || self.is_comparative()
            // Most of the nouns with this ending are listed, and most adjectives are not.
            || self.has_ending(&["y"]) && length > 3 && !within(EMPTY, &self.lower)
            || (self.has_ending(&["able", "ive", "ish", "ic", "al", "ary", "ese", "ian"]) && length > 6 && self.lower != "vegetable")
    }

    /// Whether it is a listed adjective with -er: "smaller", "larger", "bigger".
    fn is_comparative(&self) -> bool {
        let Some(stem) = self.lower.strip_suffix("er") else { return false };
        let mut letters = stem.chars();
        let shorter = letters.next_back().filter(|last| letters.clone().next_back() == Some(*last)).map(|_| letters.as_str());
        within(DESCRIBING, stem)
            || within(DESCRIBING, &self.lower[..stem.len() + 1])
            || shorter.is_some_and(|stem| within(DESCRIBING, stem))
    }

    /// Whether it is a common noun, perhaps in the plural.
    fn is_known(&self) -> bool {
        let lower = &*self.lower;
        let singular = lower.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let stems = [Some(lower), lower.strip_suffix('s'), lower.strip_suffix("es"), singular.as_deref()];
        stems.into_iter().flatten().any(|stem| within(NOUNS, stem) || within(MASS, stem))
    }

    /// Whether no noun goes on with it.
    fn is_function_word(&self) -> bool {
        within(EMPTY, &self.lower) || within(JOINING, &self.lower) || within(DETERMINERS, &self.lower) || self.has_ending(&["ly"])
    }

    fn is_plural(&self) -> bool {
        self.has_ending(&["s"]) && !self.has_ending(&["ss", "us", "is"])
            || within(" octopuses people children mice geese fish sheep ", &self.lower)
    }

    fn is_number(&self) -> bool {
        self.written.chars().all(|c| c.is_ascii_digit())
    }

    fn has_ending(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.lower.ends_with(ending))
    }
}

fn within(list: &str, word: &str) -> bool {
    // Most words are in no list, and that is found out quickly.
    list.contains(word) && list.split_ascii_whitespace().any(|listed| listed == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[(&str, Option<&str>)] = &[
        ("who knows the old harbour?", Some("harbour")),
        ("I just lost my job and I do not know what to do", Some("job")),
        ("What is a tertulia?", Some("tertulia")),
        ("why do I love the smell of rain?", Some("smell")),
        ("what do you think of rain?", Some("rain")),
        ("my sourdough has failed for the third time", Some("sourdough")),
        ("which board game shall we play on Friday?", Some("board game")),
        ("we saw 17 comets", Some("comets")),
        ("what do you all think of night trains?", Some("trains")),
        ("the lamp fell over", Some("lamp")),
        ("why does the street bend there?", Some("street")),
        ("My tomatoes are growing along the wall", Some("tomatoes")),
        ("which one of you is the funnier?", None),
        ("Cleo, are you the funniest?", None),
        ("aria, what would cleo say about bruno?", None),
        ("do you like the Cleo that I know?", None),
        ("I met my Ana yesterday", None),
        ("is ana like the zoe we know?", None),
        ("Bruno: do you agree with Aria?", None),
        ("Does anybody get along?", None),
        ("ok", None),
        ("lol", None),
        ("help", None),
        ("Hello everyone, how are you all today?", None),
        ("¿Vamos a comer a la playa?", None),
        ("Das ist a problem der Zeit", None),
        ("今日はいい天気ですね", None),
        ("Привет, как дела?", None),
        ("", None),
    ];

    #[test]
    fn the_topic_of_a_message_is_its_noun_or_none() {
        let names = ["ana".to_owned(), "zoe".to_owned()];
        for (text, expected) in TABLE {
            assert_eq!(topic(text, &names).as_deref(), *expected, "{text}");
        }
    }
}
