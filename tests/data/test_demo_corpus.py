"""The generated corpus against rules and examples of German grammar that are written out here once more."""

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from nmt.data.demo_corpus import patterns, sentence_pairs

SAMPLES = {seed: sentence_pairs(seed) for seed in (1, 2, 3)}
PAIRS = SAMPLES[1]
BY_PATTERN = patterns()
# Every pair that could be drawn: a rule is checked on all of them, whatever the sample.
ALL_PAIRS = [pair for group in BY_PATTERN.values() for pair in group]
GERMAN = dict(ALL_PAIRS)


def words(text: str) -> set[str]:
    return set(text.split())


MASCULINE = words("hund tisch stuhl brief mann bruder vater sohn garten park")
FEMININE = words("katze maus lampe tasche zeitung frau schwester mutter tochter kuche stadt")
NEUTER = words("pferd schwein buch auto haus kind")
PLURAL = words("hunde katzen mause pferde schweine tische stuhle lampen bucher briefe zeitungen taschen autos hauser")
PLURAL |= words("manner frauen kinder")
EIN_WORDS = words("ein kein mein dein sein ihr unser")
ARTICLES = words("der die das den dem")
DETERMINERS = ARTICLES | {word + ending for word in EIN_WORDS for ending in ("", "e", "en", "em", "er")}
ADJECTIVE = re.compile("(alt|neu|klein|schwarz|rot)(e|en|er|es)$")


def noun_phrases() -> set[tuple[str, str, str]]:
    """Every determiner, adjective (or "") and noun that follow each other somewhere."""
    found = set()
    for _, german in ALL_PAIRS:
        sentence = german.split()
        for determiner, adjective, noun in zip(sentence, sentence[1:], [*sentence[2:], ""], strict=False):
            if determiner in DETERMINERS:
                found.add((determiner, adjective, noun) if ADJECTIVE.match(adjective) else (determiner, "", adjective))
    return found


NOUN_PHRASES = noun_phrases()


def finite_verb(german: str, pronoun: str) -> str | None:
    """The verb of a sentence with the pronoun as its subject: after it if that comes first, else before it."""
    sentence = german.split()
    if pronoun not in sentence:
        return None
    place = sentence.index(pronoun)
    return sentence[1] if place == 0 else sentence[place - 1]


def test_the_corpus_has_the_promised_size() -> None:
    assert 3500 <= len(PAIRS) <= 5000


def test_each_english_sentence_occurs_once_in_the_sample_and_among_all_patterns() -> None:
    assert len({english for english, _ in PAIRS}) == len(PAIRS)
    assert len({english for english, _ in ALL_PAIRS}) == len(ALL_PAIRS)


@pytest.mark.parametrize("side", [0, 1])
def test_sentences_are_cleaned_text(side: int) -> None:
    bad = [pair for pair in ALL_PAIRS if not re.fullmatch("[a-z]+( [a-z]+)*", pair[side])]
    assert not bad


def test_sentences_are_short() -> None:
    assert {len(english.split()) for english, _ in PAIRS} <= set(range(2, 9))
    assert {len(german.split()) for _, german in PAIRS} <= set(range(2, 10))


def test_order_depends_on_the_seed_alone() -> None:
    assert sentence_pairs() == SAMPLES[1]
    assert sentence_pairs(2) == SAMPLES[2]
    assert SAMPLES[1] != SAMPLES[2]


def test_patterns_are_mixed() -> None:
    """Whoever holds out the first or the last thousand pairs has every pattern in them."""
    pattern_of = {english: name for name, group in BY_PATTERN.items() for english, _ in group}
    assert {pattern_of[english] for english, _ in PAIRS[:1000]} == set(BY_PATTERN)
    assert {pattern_of[english] for english, _ in PAIRS[-1000:]} == set(BY_PATTERN)


def test_order_does_not_depend_on_hashing() -> None:
    program = (
        "import hashlib, nmt.data.demo_corpus as d\n"
        "print(hashlib.sha256(repr(d.sentence_pairs()).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize("seed", SAMPLES)
def test_im_thirsty_is_there_for_every_seed(seed: int) -> None:
    assert SAMPLES[seed].count(("im thirsty", "ich bin durstig")) == 1


def test_every_pattern_has_its_share() -> None:
    pattern_of = {english: name for name, group in BY_PATTERN.items() for english, _ in group}
    shares = Counter(pattern_of[english] for english, _ in PAIRS)
    fair = len(PAIRS) // len(BY_PATTERN)
    assert set(shares) == set(BY_PATTERN)
    assert all(share >= min(len(BY_PATTERN[name]), fair) for name, share in shares.items())


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("seed", SAMPLES)
def test_words_occur_often_enough_to_be_learnt(side: int, seed: int) -> None:
    counts = Counter(word for pair in SAMPLES[seed] for word in pair[side].split())
    assert 150 <= len(counts) <= 250
    assert sum(count < 8 for count in counts.values()) <= 10
    assert min(counts.values()) >= 3


@pytest.mark.parametrize(
    ("english", "german"),
    [
        # conjugation, with and without a change of the stem
        ("i drink coffee", "ich trinke kaffee"),
        ("you eat cheese", "du isst kase"),
        ("my sister sees the dog", "meine schwester sieht den hund"),
        ("tom is sleeping", "tom schlaft"),
        ("is he driving to the city", "fahrt er in die stadt"),
        ("youre taking the book", "du nimmst das buch"),
        ("the children are dancing", "die kinder tanzen"),
        ("youre dancing", "du tanzt"),
        ("theyre reading a book", "sie lesen ein buch"),
        ("who works", "wer arbeitet"),
        ("im not working", "ich arbeite nicht"),
        # case and gender
        ("i see the dog", "ich sehe den hund"),
        ("we have a cat", "wir haben eine katze"),
        ("she has a horse", "sie hat ein pferd"),
        ("i see your brother", "ich sehe deinen bruder"),
        ("he loves his mother", "er liebt seine mutter"),
        ("i help my mother", "ich helfe meiner mutter"),
        ("he helps the man", "er hilft dem mann"),
        ("we help the children", "wir helfen den kindern"),
        ("shes playing with the dog", "sie spielt mit dem hund"),
        ("im in the kitchen", "ich bin in der kuche"),
        ("hes going to the cinema", "er geht ins kino"),
        ("theyre sleeping in the garden", "sie schlafen im garten"),
        ("were going to the park", "wir gehen in den park"),
        ("they love us", "sie lieben uns"),
        ("tom knows me", "tom kennt mich"),
        ("do you help her", "hilfst du ihr"),
        # adjectives
        ("this is a red table", "das ist ein roter tisch"),
        ("i have an old dog", "ich habe einen alten hund"),
        ("he doesnt have a new car", "er hat kein neues auto"),
        ("she sees the black cat", "sie sieht die schwarze katze"),
        ("her house is old", "ihr haus ist alt"),
        # plural
        ("i like dogs", "ich mag hunde"),
        ("these are our books", "das sind unsere bucher"),
        ("my chairs arent black", "meine stuhle sind nicht schwarz"),
        # negation
        ("he isnt tired", "er ist nicht mude"),
        ("i dont have a dog", "ich habe keinen hund"),
        ("she doesnt drink milk", "sie trinkt keine milch"),
        ("we dont see the dog", "wir sehen den hund nicht"),
        ("this isnt your bag", "das ist nicht deine tasche"),
        # questions
        ("do you drink coffee", "trinkst du kaffee"),
        ("are they happy", "sind sie glucklich"),
        ("where does the man sleep", "wo schlaft der mann"),
        ("why are you sad", "warum bist du traurig"),
        # modal verbs and word order
        ("i can see the dog", "ich kann den hund sehen"),
        ("he cant swim", "er kann nicht schwimmen"),
        ("you shouldnt drink tea", "du solltest keinen tee trinken"),
        ("she has to help him", "sie muss ihm helfen"),
        ("tom wants to eat cake", "tom will kuchen essen"),
        ("do you want to read the letter", "willst du den brief lesen"),
        ("they dont have to work", "sie mussen nicht arbeiten"),
        ("in the morning we drink juice", "am morgen trinken wir saft"),
    ],
)
def test_examples(english: str, german: str) -> None:
    assert GERMAN[english] == german


def test_ich_takes_the_first_person() -> None:
    forms = words(
        "bin habe sehe lese trinke esse kaufe nehme helfe gehe fahre spiele schlafe arbeite lache tanze schwimme mag "
        "liebe kenne kann sollte muss will"
    )
    used = {verb for _, german in ALL_PAIRS if (verb := finite_verb(german, "ich"))}
    assert used == forms


def test_du_takes_the_second_person() -> None:
    forms = words(
        "bist hast siehst liest trinkst isst kaufst nimmst hilfst gehst fahrst spielst schlafst arbeitest lachst tanzt "
        "schwimmst magst liebst kennst kannst solltest musst willst"
    )
    used = {verb for _, german in ALL_PAIRS if (verb := finite_verb(german, "du"))}
    assert used == forms


@pytest.mark.parametrize(
    ("nouns", "articles", "ein_word_endings"),
    [
        (MASCULINE, {"der", "den", "dem"}, {"", "en", "em"}),
        (FEMININE, {"die", "der"}, {"e", "er"}),
        (NEUTER, {"das", "dem"}, {"", "em"}),
        (PLURAL, {"die"}, {"e"}),
    ],
)
def test_determiners_agree_with_the_noun(nouns: set[str], articles: set[str], ein_word_endings: set[str]) -> None:
    allowed = articles | {word + ending for word in EIN_WORDS for ending in ein_word_endings}
    wrong = [phrase for phrase in NOUN_PHRASES if phrase[2] in nouns and phrase[0] not in allowed]
    assert {noun for _, _, noun in NOUN_PHRASES} >= nouns
    assert not wrong


@pytest.mark.parametrize(
    ("determiner", "nouns"),
    [
        ("keinen", words("kaffee tee saft kase reis kuchen fisch")),
        ("keine", words("milch limonade suppe")),
        ("kein", words("wasser brot fleisch")),
    ],
)
def test_food_and_drink_are_negated_in_the_accusative(determiner: str, nouns: set[str]) -> None:
    assert {(before, noun) for before, _, noun in NOUN_PHRASES if noun in nouns} == {(determiner, it) for it in nouns}


@pytest.mark.parametrize(
    ("nouns", "endings"),
    [
        (MASCULINE, {"der": "e", "den": "en", "ein": "er", "kein": "er", "mein": "er", "einen": "en", "keinen": "en"}),
        (FEMININE, {"die": "e", "eine": "e", "keine": "e", "meine": "e"}),
        (NEUTER, {"das": "e", "ein": "es", "kein": "es", "mein": "es"}),
    ],
)
def test_adjectives_agree_with_determiner_and_noun(nouns: set[str], endings: dict[str, str]) -> None:
    described = {(determiner, adjective) for determiner, adjective, noun in NOUN_PHRASES if adjective and noun in nouns}
    assert {determiner for determiner, _ in described} == set(endings)
    wrong = [pair for pair in described if not re.fullmatch(f"[a-z]*(t|u|n|z){endings[pair[0]]}", pair[1])]
    assert not wrong


def test_a_sentence_is_negated_once_on_both_sides() -> None:
    for english, german in ALL_PAIRS:
        negative = "not" in english.split() or re.search(r"\b(dont|doesnt|isnt|arent|cant|shouldnt)\b", english)
        assert len(re.findall(r"\b(nicht|kein\w*)\b", german)) == bool(negative), (english, german)


def test_yes_no_questions_begin_with_the_verb_and_other_sentences_do_not() -> None:
    auxiliaries = words("do does is are can should")
    questions = {german.split()[0] for english, german in ALL_PAIRS if english.split()[0] in auxiliaries}
    others = {german.split()[0] for english, german in ALL_PAIRS if english.split()[0] not in auxiliaries}
    assert questions >= words("bist ist sind trinkst isst trinken kannst sollte musst will")
    assert others == words(
        "ich du er sie wir tom der die das mein meine dein deine sein seine ihr ihre unser unsere "
        "wer wo wann warum was am manchmal"
    )
    assert not questions & others


def test_the_infinitive_stands_last_after_a_modal_verb() -> None:
    modals = words("kann kannst konnen sollte solltest sollten muss musst mussen will willst wollen")
    infinitives = words(
        "sehen lesen trinken essen kaufen helfen gehen spielen schlafen arbeiten lachen tanzen schwimmen"
    )
    assert {german.split()[-1] for _, german in ALL_PAIRS if modals & words(german)} == infinitives


@pytest.mark.parametrize("reflexive", [words("ich mich"), words("ich mir"), words("du dich"), words("du dir")])
def test_nobody_acts_on_himself(reflexive: set[str]) -> None:
    assert not [german for _, german in ALL_PAIRS if reflexive <= words(german)]


def test_no_noun_is_subject_and_object_at_once() -> None:
    assert not [
        english for english, _ in ALL_PAIRS if re.search(r"\b(the|my) (man|sister|children)\b.*\1 \2$", english)
    ]
