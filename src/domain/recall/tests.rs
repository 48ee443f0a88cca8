//! Questions in other words, in rooms of a thousand messages.

use super::*;
use frostem::Algorithm;

/// A language: what is said all day in it, and ten things that somebody tells, each with a question about it in other words.
struct Language {
    algorithm: Option<Algorithm>,
    daily: &'static [&'static str],
    matters: &'static [&'static str],
    told: [(&'static str, &'static str); 10],
}

const GERMAN: Language = Language {
    algorithm: Some(Algorithm::German),
    daily: &["Heute dachte ich lange über {} nach.", "Kannst du mir etwas zu {} sagen?", "Gestern war {} wieder ganz wie immer."],
    matters: &["den Bus", "das Wetter", "das Mittagessen", "die Arbeit", "den Garten", "den Film", "die Nachbarn"],
    told: [
        ("Meine Katze heißt Mora und fürchtet sich vor Gewittern.", "Wie heißen eigentlich Anas Katzen?"),
        ("Ich bin im Frühling nach Lissabon gezogen.", "In welche Stadt ist Ana gezogen, war das Lissabon?"),
        ("Der Arzt hat mir Walnüsse verboten.", "Welche Nüsse darf Ana nicht essen, Walnuss oder Haselnuss?"),
        ("Mein Bruder repariert Akkordeons in einem Dorf bei Graz.", "Wer repariert in Graz ein Akkordeon?"),
        ("Unser Chor singt am dritten Mai in der alten Brauerei.", "Wann singen die Chöre in der Brauerei?"),
        ("Ich lese gerade einen dicken Roman über einen Leuchtturmwärter.", "Wovon handeln die Romane, die Ana liest?"),
        ("Am liebsten trinke ich Holundertee mit Honig.", "Trinkt Ana ihren Holundertee mit oder ohne Honig?"),
        ("Meine Großmutter hat früher Glocken gegossen.", "Was machte Anas Großmutter mit einer Glocke?"),
        ("Ich habe mein Fahrrad rot angestrichen.", "Welche Farbe haben Anas Fahrräder?"),
        ("Nächstes Jahr möchte ich Finnisch lernen.", "Welche Sprache will Ana lernen, Finnisch?"),
    ],
};

const FRENCH: Language = Language {
    algorithm: Some(Algorithm::French),
    daily: &["Aujourd'hui j'ai longtemps pensé à {}.", "Tu peux me dire quelque chose sur {} ?", "Hier {} était comme toujours."],
    matters: &["le bus", "la pluie", "le déjeuner", "le travail", "le jardin", "le film", "les voisins"],
    told: [
        ("Ma chatte s'appelle Mora et elle a peur de l'orage.", "Comment s'appellent les chattes d'Ana ?"),
        ("J'ai déménagé à Lisbonne au printemps.", "Où est-ce qu'Ana a déménagé ?"),
        ("Le médecin m'a interdit les noix.", "Quelles noix sont interdites à Ana ?"),
        ("Mon frère répare des accordéons dans un village.", "Qui réparait un accordéon au village ?"),
        ("Notre chorale chante le trois mai dans l'ancienne brasserie.", "Quand les chorales chantent-elles à la brasserie ?"),
        ("Je lis un gros roman sur un gardien de phare.", "De quoi parlent les romans qu'Ana lit, d'un phare ?"),
        ("Je préfère la tisane de sureau avec du miel.", "Quelles tisanes Ana préfère-t-elle ?"),
        ("Ma grand-mère fondait des cloches autrefois.", "Que faisait la grand-mère d'Ana avec une cloche ?"),
        ("J'ai peint mon vélo en rouge.", "De quelle couleur sont les vélos peints d'Ana ?"),
        ("L'année prochaine je veux apprendre le finnois.", "Quelle langue Ana apprendra-t-elle, le finnois ?"),
    ],
};

const SPANISH: Language = Language {
    algorithm: Some(Algorithm::Spanish),
    daily: &["Hoy pensé mucho en {}.", "¿Me puedes decir algo sobre {}?", "Ayer {} fue como siempre."],
    matters: &["el autobús", "la lluvia", "la comida", "el trabajo", "el jardín", "la película", "los vecinos"],
    told: [
        ("Mi gata se llama Mora y le asustan los truenos.", "¿Cómo se llaman las gatas de Ana?"),
        ("Me mudé a Lisboa en primavera.", "¿A dónde se mudó Ana en primavera?"),
        ("El médico me prohibió las nueces.", "¿Qué nuez le han prohibido a Ana?"),
        ("Mi hermano repara acordeones en un pueblo.", "¿Quién reparaba un acordeón en el pueblo?"),
        ("Nuestro coro canta el tres de mayo en la vieja cervecería.", "¿Cuándo cantan los coros en la cervecería?"),
        ("Estoy leyendo una novela larga sobre un farero.", "¿De qué tratan las novelas que lee Ana, de fareros?"),
        ("Prefiero el té de saúco con miel.", "¿Qué té prefiere Ana, con miel?"),
        ("Mi abuela fundía campanas antes.", "¿Qué hacía la abuela de Ana con una campana?"),
        ("Pinté mi bicicleta de rojo.", "¿De qué color son las bicicletas de Ana?"),
        ("El año que viene quiero aprender finlandés.", "¿Qué idioma aprenderá Ana, finlandés?"),
    ],
};

const JAPANESE: Language = Language {
    algorithm: None,
    daily: &["今日は{}のことをずっと考えていた。", "{}について何か教えてくれる？", "昨日の{}はいつもと同じだった。"],
    matters: &["バス", "天気", "昼ごはん", "仕事", "庭", "映画", "隣の人"],
    told: [
        ("うちの猫はモラという名前で、雷が怖い。", "アナの猫の名前は何？"),
        ("春にリスボンへ引っ越した。", "アナはいつリスボンに引っ越しましたか。"),
        ("お医者さんにクルミを止められた。", "クルミを食べられないのは誰？"),
        ("兄は村でアコーディオンを直している。", "アコーディオンを直すのは誰？"),
        ("合唱団は五月三日に古い醸造所で歌う。", "合唱団はどこで歌いますか。"),
        ("灯台守の長い小説を読んでいる。", "どんな小説を読んでいるの、灯台の話？"),
        ("蜂蜜を入れたお茶が一番好き。", "蜂蜜入りのお茶が好きなのは誰？"),
        ("祖母は昔、鐘を作っていた。", "おばあさんは鐘を作る仕事だった？祖母のこと。"),
        ("自転車を赤く塗った。", "自転車は何色に塗ったの？"),
        ("来年はフィンランド語を習いたい。", "来年習いたい言葉はフィンランド語？"),
    ],
};

const CHINESE: Language = Language {
    algorithm: None,
    daily: &["今天我想了很久关于{}的事。", "你能跟我说说{}吗？", "昨天的{}还是老样子。"],
    matters: &["公交车", "天气", "午饭", "工作", "花园", "电影", "邻居"],
    told: [
        ("我的猫叫莫拉，她害怕打雷。", "安娜的猫叫什么名字？"),
        ("我春天搬到了里斯本。", "安娜什么时候搬到里斯本的？"),
        ("医生不让我吃核桃。", "谁不能吃核桃？"),
        ("我哥哥在村里修手风琴。", "手风琴是谁修的？"),
        ("我们合唱团五月三号在老酿酒厂唱歌。", "合唱团在哪里唱歌？"),
        ("我正在读一本关于灯塔看守人的长篇小说。", "那本小说是不是讲灯塔的？"),
        ("我最喜欢加蜂蜜的接骨木茶。", "谁喜欢喝加蜂蜜的茶？"),
        ("我奶奶以前是铸钟的。", "奶奶以前做什么，铸钟吗？"),
        ("我把自行车漆成了红色。", "自行车漆成了什么颜色？"),
        ("明年我想学芬兰语。", "明年想学什么语言，芬兰语吗？"),
    ],
};

/// How many of the ten are among the best five, if these languages are known.
fn found(language: &Language, known: &[Algorithm]) -> usize {
    let (words, mut corpus) = (Words::new(known), Corpus::default());
    for at in 0..1_000_u64 {
        let number = at as usize;
        match language.told.get(number / 100).filter(|_| number % 100 == 17) {
            Some((told, _)) => corpus.push(Seq(at), "Ana", told, &mut words.reader()),
            None => {
                let matter = language.matters[number % language.matters.len()];
                let text = language.daily[number % language.daily.len()].replace("{}", matter);
                corpus.push(Seq(at), ["Ana", "Ben"][number % 2], &text, &mut words.reader());
            }
        }
    }
    let is_found = |at: usize| {
        let best = corpus.search(&words.of(language.told[at].1));
        best.iter().take(5).any(|found| found.seq == Seq(at as u64 * 100 + 17))
    };
    (0..10).filter(|at| is_found(*at)).count()
}

#[test]
fn what_was_told_is_among_the_best_five_in_five_languages() {
    for (name, language) in
        [("German", GERMAN), ("French", FRENCH), ("Spanish", SPANISH), ("Japanese", JAPANESE), ("Chinese", CHINESE)]
    {
        let known: Vec<Algorithm> = language.algorithm.into_iter().collect();
        assert_eq!(found(&language, &known), 10, "{name}");
    }
}

#[test]
fn forms_of_words_are_found_by_their_language() {
    let english = Words::new(&[Algorithm::English]);
    let none = Words::new(&[]);

    assert_eq!(english.of("Walking, WALKS"), english.of("walk walked"));
    assert_ne!(none.of("walks"), none.of("walk"));
    assert_eq!(english.of("Ana’s"), english.of("Ana's"), "apostrophes are the same");
    assert_eq!(english.of("ｃａｆｅ\u{301}"), english.of("café"), "as people see them");
    assert_eq!(english.of("灯台守").len(), 2, "pairs of characters");
    assert!(english.of(" …!\u{200b}").is_empty());
}

#[test]
fn the_neighbour_of_a_question_is_found_with_it() {
    let (words, mut corpus) = (Words::new(&[Algorithm::English]), Corpus::default());
    for (at, text) in ["It rains.", "What is the cat called?", "Mora.", "It rains again."].iter().enumerate() {
        corpus.push(Seq(at as u64), "Ana", text, &mut words.reader());
    }

    let best: Vec<u64> = corpus.search(&words.of("cat")).iter().map(|found| found.seq.0).collect();

    assert_eq!(best, [1, 2, 0], "the newer neighbour first, and nothing without a word");
}

#[test]
fn a_corpus_keeps_the_newest_messages() {
    let (words, mut corpus) = (Words::new(&[]), Corpus::default());
    for at in 0..100_u64 {
        corpus.push(Seq(at), "Ana", &format!("w{at}"), &mut words.reader());
        corpus.keep_newest(40);
    }

    let has = |at: u64| corpus.search(&words.of(&format!("w{at}"))).first().is_some_and(|found| found.seq == Seq(at));
    assert!((40..=45).contains(&corpus.len()), "{}", corpus.len());
    assert!(has(99) && has(60) && !has(10));
}
