"""A small generated corpus of English-German sentence pairs, regular enough to be learnt in minutes.

The text looks like lesson data after cleaning: lower case, ASCII, no punctuation. Apostrophes are joined ("dont")
and umlauts are reduced to their base letter ("mude"). Words with a sharp s, which ASCII would mutilate, are avoided,
and so are plurals that differ from the singular by an umlaut alone.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, IntEnum
from functools import partial
from itertools import product
from typing import NamedTuple

Pair = tuple[str, str]

CORPUS_SIZE = 4500
MAX_ENGLISH_WORDS = 8
ALWAYS_INCLUDED: Pair = ("im thirsty", "ich bin durstig")

# The members of Person and Gender are indices into the tables of forms below.
Person = IntEnum("Person", "FIRST SECOND THIRD PLURAL", start=0)
Gender = IntEnum("Gender", "M F N PLURAL", start=0)
Case = Enum("Case", "NOMINATIVE ACCUSATIVE DATIVE")


class Word(NamedTuple):
    """A verb (infinitive) or a word that is not inflected in English."""

    english: str
    german: str


class Noun(NamedTuple):
    """A noun in one number; the plurals are empty for nouns used in the singular only."""

    english: str
    german: str
    gender: Gender
    english_plural: str = ""
    german_plural: str = ""


class Subject(NamedTuple):
    """The subject of a clause."""

    english: str
    german: str
    person: Person


class Complement(NamedTuple):
    """The words after the finite verb. German needs two versions: "kein" and "nicht" have their places inside."""

    english: str = ""
    german: str = ""
    german_negated: str = "nicht"


class Clause(NamedTuple):
    """One clause as statement, negated statement and yes/no question."""

    statement: Pair
    negation: Pair
    question: Pair


# --- Lexicon ----------------------------------------------------------------------------------------------------------


def _rows(table: str) -> list[list[str]]:
    return [row.split("/") for row in table.split(", ")]


def _words(table: str) -> list[Word]:
    return [Word(english, german) for english, german in _rows(table)]


def _nouns(table: str) -> list[Noun]:
    return [Noun(english, german, Gender[gender], *plurals) for english, german, gender, *plurals in _rows(table)]


def _subjects(table: str) -> list[Subject]:
    return [Subject(english, german, Person[person]) for english, german, person in _rows(table)]


ANIMALS = _nouns(
    "dog/hund/M/dogs/hunde, cat/katze/F/cats/katzen, mouse/maus/F/mice/mause, horse/pferd/N/horses/pferde, "
    "pig/schwein/N/pigs/schweine"
)
TABLE, CHAIR, LAMP = FURNITURE = _nouns(
    "table/tisch/M/tables/tische, chair/stuhl/M/chairs/stuhle, lamp/lampe/F/lamps/lampen"
)
BOOK, LETTER, NEWSPAPER = READING_MATTER = _nouns(
    "book/buch/N/books/bucher, letter/brief/M/letters/briefe, newspaper/zeitung/F/newspapers/zeitungen"
)
BAG, CAR, HOUSE = _nouns("bag/tasche/F/bags/taschen, car/auto/N/cars/autos, house/haus/N/houses/hauser")
PORTABLE_THINGS = [BAG, LAMP, CHAIR, *READING_MATTER]
THINGS = [CAR, HOUSE, TABLE, *PORTABLE_THINGS]
PEOPLE = _nouns("man/mann/M/men/manner, woman/frau/F/women/frauen, child/kind/N/children/kinder")
FAMILY = _nouns("brother/bruder/M, sister/schwester/F, father/vater/M, mother/mutter/F, son/sohn/M, daughter/tochter/F")
DRINKS = _nouns("coffee/kaffee/M, tea/tee/M, juice/saft/M, milk/milch/F, lemonade/limonade/F, water/wasser/N")
FOODS = _nouns("cheese/kase/M, rice/reis/M, cake/kuchen/M, fish/fisch/M, soup/suppe/F, bread/brot/N, meat/fleisch/N")
PLACES = _nouns("garden/garten/M, kitchen/kuche/F, park/park/M, city/stadt/F, cinema/kino/N")

ADULTS = _subjects(
    "i/ich/FIRST, you/du/SECOND, he/er/THIRD, she/sie/THIRD, we/wir/PLURAL, they/sie/PLURAL, tom/tom/THIRD, "
    "the man/der mann/THIRD, my sister/meine schwester/THIRD"
)
SUBJECTS = [*ADULTS, Subject("the children", "die kinder", Person.PLURAL)]
WHO, THIS, THESE = _subjects("who/wer/THIRD, this/das/THIRD, these/das/PLURAL")
OBJECT_PRONOUNS = _rows("me/mich/mir, you/dich/dir, him/ihn/ihm, her/sie/ihr, us/uns/uns, them/sie/ihnen")
# Subject and object that are reflexive together, or hard to understand in German ("sie sieht sie").
UNSUITABLE_TOGETHER = _rows("i/me, i/us, we/me, we/us, you/you, you/us, he/him, she/her, she/them, they/her, they/them")
POSSESSIVES = ("my", "your", "his", "her", "our")

BE, HAVE, LIKE, LOVE, KNOW = _words("be/sein, have/haben, like/mogen, love/lieben, know/kennen")
SEE, READ, DRINK, EAT = _words("see/sehen, read/lesen, drink/trinken, eat/essen")
BUY, TAKE, HELP, GO, DRIVE = _words("buy/kaufen, take/nehmen, help/helfen, go/gehen, drive/fahren")
SLEEP, WORK, PLAY = _words("sleep/schlafen, work/arbeiten, play/spielen")
LAUGH, DANCE, SWIM = _words("laugh/lachen, dance/tanzen, swim/schwimmen")
CAN, SHOULD, HAVE_TO, WANT_TO = _words("can/konnen, should/sollten, have/mussen, want/wollen")

FEELINGS = _words("thirsty/durstig, hungry/hungrig, tired/mude, sick/krank, sad/traurig, happy/glucklich, alone/allein")
TRAITS = _words("rich/reich, poor/arm, strong/stark, nice/nett")
OLD, NEW, SMALL, BLACK, RED = _words("old/alt, new/neu, small/klein, black/schwarz, red/rot")
TIMES = _words("sometimes/manchmal, in the morning/am morgen, in the evening/am abend, on sunday/am sonntag")
WHERE, WHEN, WHY, WHAT = _words("where/wo, when/wann, why/warum, what/was")
IN, TO, WITH, ON, UNDER = _words("in/in, to/in, with/mit, on/auf, under/unter")

# --- Grammar ----------------------------------------------------------------------------------------------------------

# The stem before the endings of "du" and "er"; schlafen and fahren take only an umlaut, which is not written.
CHANGED_STEMS = {"essen": "iss", "lesen": "lies", "sehen": "sieh", "nehmen": "nimm", "helfen": "hilf", "haben": "ha"}
IRREGULAR_FORMS = {
    "sein": ("bin", "bist", "ist", "sind"),
    "mogen": ("mag", "magst", "mag", "mogen"),
    "wollen": ("will", "willst", "will", "wollen"),
    "konnen": ("kann", "kannst", "kann", "konnen"),
    "mussen": ("muss", "musst", "muss", "mussen"),
    "sollten": ("sollte", "solltest", "sollte", "sollten"),
}
DEFINITE_ARTICLES = {
    Case.NOMINATIVE: ("der", "die", "das", "die"),
    Case.ACCUSATIVE: ("den", "die", "das", "die"),
    Case.DATIVE: ("dem", "der", "dem", "den"),
}
EIN_WORDS = {"a": "ein", "no": "kein", "my": "mein", "your": "dein", "his": "sein", "her": "ihr", "our": "unser"}
EIN_WORD_ENDINGS = {
    Case.NOMINATIVE: ("", "e", "", "e"),
    Case.ACCUSATIVE: ("en", "e", "", "e"),
    Case.DATIVE: ("em", "er", "em", "en"),
}
ENGLISH_BE = ("am", "are", "is", "are")
ENGLISH_CONTRACTIONS = {"i": "im", "you": "youre", "he": "hes", "she": "shes", "we": "were", "they": "theyre"}


def join(*parts: str) -> str:
    """Return the parts that are not empty, with spaces between."""
    return " ".join(part for part in parts if part)


def plural(noun: Noun) -> Noun:
    """Return the plural of a noun as a noun of its own."""
    return Noun(noun.english_plural, noun.german_plural, Gender.PLURAL)


def conjugate(infinitive: str, person: Person) -> str:
    """Return the present-tense form of a German verb."""
    if infinitive in IRREGULAR_FORMS:
        return IRREGULAR_FORMS[infinitive][person]
    if person is Person.PLURAL:
        return infinitive
    stem = infinitive.removesuffix("en")
    if person is Person.FIRST:
        return stem + "e"
    stem = CHANGED_STEMS.get(infinitive, stem)
    if stem.endswith(("t", "d")):
        stem += "e"
    return stem + ("st" if person is Person.SECOND and not stem.endswith(("s", "z")) else "t")


def adjective_ending(determiner: str, gender: Gender, case: Case) -> str:
    """Return the ending of an adjective between a determiner and a noun."""
    if case is Case.DATIVE or gender is Gender.PLURAL or (case is Case.ACCUSATIVE and gender is Gender.M):
        return "en"
    return "e" if determiner == "the" else ("er", "e", "es")[gender]


def decline(determiner: str, noun: Noun, case: Case, adjective: Word | None = None) -> str:
    """Return the German noun phrase for an English determiner ("" for none)."""
    article = DEFINITE_ARTICLES[case][noun.gender] if determiner == "the" else ""
    if determiner in EIN_WORDS:
        article = EIN_WORDS[determiner] + EIN_WORD_ENDINGS[case][noun.gender]
    inflected = adjective.german + adjective_ending(determiner, noun.gender, case) if adjective else ""
    takes_n = case is Case.DATIVE and noun.gender is Gender.PLURAL and not noun.german.endswith(("n", "s"))
    return join(article, inflected, noun.german + "n" * takes_n)


def english_phrase(determiner: str, noun: Noun, adjective: Word | None = None) -> str:
    """Return the English noun phrase."""
    phrase = join(adjective.english if adjective else "", noun.english)
    return join("an" if determiner == "a" and phrase[0] in "aeiou" else determiner, phrase)


def noun_subject(determiner: str, noun: Noun, adjective: Word | None = None) -> Subject:
    """Return a noun phrase as the subject."""
    german = decline(determiner, noun, Case.NOMINATIVE, adjective)
    person = Person.PLURAL if noun.gender is Gender.PLURAL else Person.THIRD
    return Subject(english_phrase(determiner, noun, adjective), german, person)


def noun_object(determiner: str, noun: Noun, adjective: Word | None = None, case: Case = Case.ACCUSATIVE) -> Complement:
    """Return a noun phrase as the object: "kein" negates an indefinite one, "nicht" stands after a definite one."""
    german = decline(determiner, noun, case, adjective)
    negated = decline("no", noun, case, adjective) if determiner in ("", "a") else join(german, "nicht")
    return Complement(english_phrase(determiner, noun, adjective), german, negated)


def after_nicht(english: str, german: str) -> Complement:
    """Return a complement that "nicht" stands before: an adjective, a phrase with a preposition, "mein hund"."""
    return Complement(english, german, join("nicht", german))


def prepositional(preposition: Word, noun: Noun, case: Case = Case.DATIVE, determiner: str = "the") -> Complement:
    """Return a phrase with a preposition, contracted in German where that is the rule."""
    german = join(preposition.german, decline(determiner, noun, case))
    german = german.replace("in dem ", "im ").replace("in das ", "ins ")
    return after_nicht(join(preposition.english, english_phrase(determiner, noun)), german)


# --- Clauses ----------------------------------------------------------------------------------------------------------


def _english_do(subject: Subject, verb: str, rest: str) -> list[str]:
    name, do, present = subject.english, "do", verb
    if subject.person is Person.THIRD:
        do, present = "does", {"have": "has", "go": "goes"}.get(verb, verb + "s")
    return [join(name, present, rest), join(name, do + "nt", verb, rest), join(do, name, verb, rest)]


def _english_be(subject: Subject, rest: str) -> list[str]:
    name, be = subject.english, ENGLISH_BE[subject.person]
    not_be = "im not" if subject.person is Person.FIRST else f"{name} {be}nt"
    return [join(ENGLISH_CONTRACTIONS.get(name, f"{name} {be}"), rest), join(not_be, rest), join(be, name, rest)]


def _clause(english: list[str], subject: Subject, verb: str, complement: Complement, infinitive: str = "") -> Clause:
    finite, rest = conjugate(verb, subject.person), join(complement.german, infinitive)
    negation = join(subject.german, finite, complement.german_negated, infinitive)
    german = [join(subject.german, finite, rest), negation, join(finite, subject.german, rest)]
    return Clause(*zip(english, german, strict=True))


def simple(subject: Subject, verb: Word, complement: Complement) -> Clause:
    """Return the clause whose English is in the simple present ("he drinks coffee", "he is tired")."""
    rest = complement.english
    english = _english_be(subject, rest) if verb == BE else _english_do(subject, verb.english, rest)
    return _clause(english, subject, verb.german, complement)


def progressive(subject: Subject, verb: Word, complement: Complement) -> Clause:
    """Return the clause whose English is in the present progressive ("he is reading the book")."""
    participle = "swimming" if verb == SWIM else verb.english.removesuffix("e") + "ing"
    return _clause(_english_be(subject, join(participle, complement.english)), subject, verb.german, complement)


def modal(auxiliary: Word, subject: Subject, verb: Word, complement: Complement) -> Clause:
    """Return the clause with a modal verb and an infinitive ("he can see the dog", "he wants to sleep")."""
    name, can, rest = subject.english, auxiliary.english, join(verb.english, complement.english)
    if auxiliary in (HAVE_TO, WANT_TO):
        english = _english_do(subject, can, f"to {rest}")
    else:
        english = [f"{name} {can} {rest}", f"{name} {can.removesuffix('n')}nt {rest}", f"{can} {name} {rest}"]
    return _clause(english, subject, auxiliary.german, complement, verb.german)


# --- Patterns ---------------------------------------------------------------------------------------------------------

Action = tuple[Word, Complement]
MakeClause = Callable[[Subject, Word, Complement], Clause]


def _on(verbs: Iterable[Word], determiners: Iterable[str], nouns: Iterable[Noun]) -> list[Action]:
    return [(verb, noun_object(determiner, noun)) for verb, determiner, noun in product(verbs, determiners, nouns)]


OBJECTS = [*ANIMALS, *THINGS]
OWNERS = ["the", *POSSESSIVES]
COLOURED = [BAG, CAR, *FURNITURE]
DESCRIBED = [*product(OBJECTS, [OLD]), *product(THINGS, [NEW]), *product([*ANIMALS, HOUSE, *COLOURED], [SMALL])]
DESCRIBED += [*product([*ANIMALS, *COLOURED], [BLACK]), *product(COLOURED, [RED])]
ANIMALS_AND_PEOPLE = [*ANIMALS, *PEOPLE, *map(plural, ANIMALS + PEOPLE)]
COMPANIONS = [("the", noun) for noun in [*PEOPLE, plural(PEOPLE[-1])]] + [("my", noun) for noun in FAMILY]
LOCATIONS = [prepositional(IN, place) for place in PLACES]
DESTINATIONS = [prepositional(TO, place, Case.ACCUSATIVE) for place in PLACES]

FEELING = [(BE, after_nicht(*feeling)) for feeling in FEELINGS]
CONSUMING = _on([DRINK], [""], DRINKS) + _on([EAT], [""], FOODS)
ACTING = [(verb, Complement()) for verb in (SLEEP, WORK, PLAY, DANCE, SWIM, LAUGH)]
GOING = list(product([GO], DESTINATIONS))
DRIVING = list(product([DRIVE], DESTINATIONS[2:]))
MEETING = _on([KNOW], ["the"], [*PEOPLE, *map(plural, PEOPLE)]) + [
    (verb, Complement(english, accusative, f"{accusative} nicht"))
    for verb, (english, accusative, _) in product((SEE, KNOW, LOVE), OBJECT_PRONOUNS)
]
HELPING = [(HELP, Complement(english, dative, f"{dative} nicht")) for english, _, dative in OBJECT_PRONOUNS]
HELPING += [(HELP, noun_object(determiner, noun, case=Case.DATIVE)) for determiner, noun in COMPANIONS]
PLAYING = [(PLAY, prepositional(WITH, noun, determiner=determiner)) for determiner, noun in COMPANIONS]
PLAYING += [(PLAY, prepositional(WITH, animal)) for animal in ANIMALS]
READING = _on([READ], ["the"], READING_MATTER)
BUYING = _on([BUY], ["a"], [noun for noun in OBJECTS if noun != LETTER])
# What children can do, too: neither driving nor buying a house.
DOABLE = CONSUMING + ACTING + GOING + HELPING + READING
DOABLE += _on([SEE], ["the"], ANIMALS_AND_PEOPLE) + _on([BUY], ["a"], [BAG, LAMP, BOOK, NEWSPAPER])


def clauses(make: MakeClause, actions: Iterable[Action], subjects: Iterable[Subject] = SUBJECTS) -> Iterator[Clause]:
    """Return the clauses of every subject with every action, save those it would do to itself."""
    for subject, (verb, complement) in product(subjects, actions):
        to_itself = f" {complement.english}".endswith(f" {subject.english}")
        if not to_itself and [subject.english, complement.english] not in UNSUITABLE_TOGETHER:
            yield make(subject, verb, complement)


def all_moods(make: MakeClause, actions: Iterable[Action], subjects: Iterable[Subject] = SUBJECTS) -> list[Pair]:
    """Return statements, negated statements and questions, except questions about the speaker."""
    pairs = [pair for clause in clauses(make, actions, subjects) for pair in clause]
    return [pair for pair in pairs if not pair[0].startswith(("do i ", "am i "))]


def asking(word: Word, make: MakeClause, actions: Iterable[Action], subjects: Iterable[Subject]) -> list[Pair]:
    """Return the questions that begin with an interrogative."""
    questions = [clause.question for clause in clauses(make, actions, subjects)]
    return [(f"{word.english} {english}", f"{word.german} {german}") for english, german in questions]


def time_first(actions: Iterable[Action], subjects: Iterable[Subject]) -> list[Pair]:
    """Return statements that begin with a time, after which German puts the verb before the subject."""
    timed = product(TIMES, clauses(simple, actions, subjects))
    return [
        (f"{time.english} {statement[0]}", f"{time.german} {question[1]}") for time, (statement, _, question) in timed
    ]


def patterns() -> dict[str, list[Pair]]:
    """Return every pair that the lexicon allows, by sentence pattern."""
    not_first = [subject for subject in SUBJECTS if subject.person is not Person.FIRST]
    movable = [noun_subject(owner, noun) for owner, noun in product(OWNERS, [*ANIMALS[:3], *PORTABLE_THINGS])]
    supports = [(BE, prepositional(where, noun)) for where, noun in product((ON, UNDER), (TABLE, CHAIR))]
    sought = [noun_subject(owner, noun) for owner, noun in product(OWNERS, [*OBJECTS, *map(plural, OBJECTS)])]
    sought += [noun_subject(owner, *pair) for owner, pair in product(("the", "my"), DESCRIBED)]
    owned = [(BE, after_nicht(*noun_subject(owner, noun)[:2])) for owner, noun in product(POSSESSIVES, OBJECTS)]
    owned_plural = [(BE, after_nicht(*noun[:2])) for noun in sought if noun.person is Person.PLURAL]
    descriptions = [
        (noun_subject(owner, number), (BE, after_nicht(*adjective)))
        for owner, (noun, adjective) in product(OWNERS, DESCRIBED)
        for number in (noun, plural(noun))
    ]
    questions = asking(WHY, simple, FEELING, not_first) + asking(WHY, progressive, ACTING, not_first)
    questions += asking(WHERE, simple, ACTING[:5], not_first) + asking(WHEN, simple, ACTING[:5], not_first)
    asked_what = [(verb, Complement()) for verb in (DRINK, EAT, READ, SEE, BUY, HAVE)]
    return {
        "state": all_moods(simple, FEELING + [(BE, after_nicht(*trait)) for trait in TRAITS]),
        "drink and food": all_moods(simple, CONSUMING),
        "liking": all_moods(simple, _on([LIKE], [""], [*DRINKS, *FOODS, *map(plural, ANIMALS)])),
        "indefinite object": all_moods(simple, _on([HAVE, SEE], ["a"], OBJECTS)),
        "definite object": all_moods(simple, _on([SEE], ["the"], ANIMALS_AND_PEOPLE + THINGS)),
        "described indefinite": all_moods(simple, [(HAVE, noun_object("a", *pair)) for pair in DESCRIBED]),
        "described definite": all_moods(simple, [(SEE, noun_object("the", *pair)) for pair in DESCRIBED]),
        "family": all_moods(simple, _on([LOVE, SEE], POSSESSIVES, FAMILY)),
        "pronoun": all_moods(simple, MEETING),
        "dative": all_moods(simple, HELPING),
        "activity": all_moods(progressive, ACTING),
        "activity and place": all_moods(progressive, list(product((SLEEP, WORK, PLAY, DANCE), LOCATIONS))),
        "company": all_moods(progressive, PLAYING),
        "motion": all_moods(progressive, GOING + DRIVING, ADULTS),
        "reading": all_moods(progressive, _on([READ], ["a", *OWNERS], READING_MATTER)),
        "taking": all_moods(progressive, _on([TAKE], OWNERS, PORTABLE_THINGS)),
        "buying": all_moods(progressive, BUYING, ADULTS),
        "ability": all_moods(partial(modal, CAN), DOABLE),
        "advice": all_moods(partial(modal, SHOULD), DOABLE),
        "duty": all_moods(partial(modal, HAVE_TO), DOABLE),
        "wish": all_moods(partial(modal, WANT_TO), DOABLE),
        "time and activity": time_first(ACTING, SUBJECTS),
        "time and outing or reading": time_first(GOING[2:] + DRIVING + READING, ADULTS),
        "time and food": time_first(CONSUMING, SUBJECTS),
        "possession": all_moods(simple, owned, [THIS]) + all_moods(simple, owned_plural, [THESE]),
        "identity": all_moods(
            simple, [(BE, noun_object("a", *pair, case=Case.NOMINATIVE)) for pair in DESCRIBED], [THIS]
        ),
        "description": [pair for subject, action in descriptions for pair in simple(subject, *action)],
        "whereabouts": all_moods(simple, product([BE], LOCATIONS), SUBJECTS),
        "position": all_moods(simple, supports + list(product([BE], LOCATIONS[:2])), movable),
        "search": asking(WHERE, simple, [(BE, Complement())], sought),
        "question word": questions + asking(WHAT, simple, asked_what, not_first),
        "who": [clause.statement for clause in clauses(simple, FEELING + DOABLE, [WHO])],
    }


def _with_i_or_you(pair: Pair) -> bool:
    return not {"i", "im", "you", "youre"}.isdisjoint(pair[0].split())


def sentence_pairs(seed: int = 1) -> list[Pair]:
    """Return (English, German) pairs, each English sentence once, in an order that depends on the seed alone."""
    rng = random.Random(seed)
    chosen = [ALWAYS_INCLUDED]
    usable = [
        [pair for pair in group if pair != ALWAYS_INCLUDED and len(pair[0].split()) <= MAX_ENGLISH_WORDS]
        for group in patterns().values()
    ]
    # Smallest patterns first: the unused part of their share goes to the larger ones.
    for patterns_left, group in zip(range(len(usable), 0, -1), sorted(usable, key=len), strict=True):
        share = min(len(group), (CORPUS_SIZE - len(chosen)) // patterns_left)
        # Only "i" and "you" of ten subjects take a first or second person, yet those are half of the verb forms.
        first_or_second = [pair for pair in group if _with_i_or_you(pair)]
        third = [pair for pair in group if not _with_i_or_you(pair)]
        count = min(len(first_or_second), max(share // 2, share - len(third)))
        chosen += rng.sample(first_or_second, count) + rng.sample(third, share - count)
    rng.shuffle(chosen)
    return chosen
